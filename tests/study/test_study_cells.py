"""The expansion of studies into cells."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.errors import UserError
from tunnelbench.study.catalogue import Catalogue, Vpn
from tunnelbench.study.cells import Cell, Treatment, expand
from tunnelbench.study.model import About, Factors, Payloads, Rates, Study
from tunnelbench.study.points import APPLIES, CHOSEN_BY_LOAD
from tunnelbench.study.quantity import CAPACITY, MAXIMUM, Bursts, SendingRate


def study_of(factors: Factors) -> Study:
    return Study(study=About(id="one", title="One", question="Which?"), factors=factors)


def test_the_baseline_comes_first_where_the_study_lacks_it(catalogue: Catalogue) -> None:
    cells = expand(study_of(Factors(tunnel=("ipip",), mtu=(1500, 9000))), catalogue)
    assert [cell.treatment.tunnel for cell in cells] == ["open", "open", "ipip", "ipip"]
    assert [cell.treatment.mtu for cell in cells] == [1500, 9000, 1500, 9000]
    assert all(cell.skipped is None for cell in cells)


def test_a_baseline_that_the_study_lists_keeps_its_place(catalogue: Catalogue) -> None:
    cells = expand(study_of(Factors(tunnel=("ipip", "open/none"))), catalogue)
    assert [cell.treatment.tunnel for cell in cells] == ["ipip", "open"]


def test_overlapping_patterns_give_each_tunnel_once(catalogue: Catalogue) -> None:
    cells = expand(study_of(Factors(tunnel=("openvpn/aes-256-gcm", "openvpn/*", "open"))), catalogue)
    tunnels = [cell.treatment.tunnel for cell in cells]
    assert tunnels[0] == "openvpn/aes-256-gcm"
    assert len(tunnels) == len(set(tunnels)) == len(catalogue.vpns["openvpn"].suites) + 1


def test_what_a_vpn_cannot_carry_is_skipped_with_the_reason(catalogue: Catalogue) -> None:
    factors = Factors(tunnel=("ssh-port-forwarding/aes128-cbc-sha1",), transport=("tcp", "udp"), ip=("ipv6",))
    skipped = {
        (cell.treatment.vpn, cell.point.transport): cell.skipped
        for cell in expand(study_of(factors), catalogue)
    }
    assert skipped == {
        ("open", "tcp"): None,
        ("open", "udp"): None,
        ("ssh-port-forwarding", "tcp"): None,
        ("ssh-port-forwarding", "udp"): "SSH port forwarding doesn't carry UDP over IPv6",
    }


def test_ipv6_needs_its_smallest_mtu(catalogue: Catalogue) -> None:
    factors = Factors(tunnel=("open",), ip=("ipv4", "ipv6"), mtu=(1279, 1280))
    reasons = {
        (cell.treatment.mtu, cell.point.ip): cell.skipped for cell in expand(study_of(factors), catalogue)
    }
    assert reasons.pop((1279, "ipv6")) == "IPv6 needs an MTU of at least 1280 bytes (RFC 8200), not 1279"
    assert set(reasons.values()) == {None}


def test_rates_belong_to_udp_and_packet_rates_follow_the_payload(catalogue: Catalogue) -> None:
    factors = Factors(
        tunnel=("open",),
        transport=("tcp", "udp"),
        payload_bytes=Payloads(tcp=(65_536,), udp=(100, 1000)),
        rate=Rates(udp=(MAXIMUM, SendingRate(1000, "packets/s"), SendingRate(800_000))),
    )
    points = [cell.point for cell in expand(study_of(factors), catalogue)]
    assert [(point.transport, point.payload_bytes, str(point.rate)) for point in points] == [
        ("tcp", 65_536, "None"),
        ("udp", 100, "max"),
        ("udp", 100, "1000 packets/s"),  # which is the same as 800 kbit/s here
        ("udp", 1000, "max"),
        ("udp", 1000, "1000 packets/s"),
        ("udp", 1000, "800 kbit/s"),
    ]


def test_factors_apply_to_what_they_can_change(catalogue: Catalogue) -> None:
    factors = Factors(
        tunnel=("open",),
        transport=("tcp", "udp", "icmp"),
        profile=("constant", "request-response", "voip-g711", "imix"),
        payload_bytes=Payloads(request=(1, 64)),
        direction=("forward", "both"),
        streams=(1, 8),
        content=("random", "zeros"),
        sending=("batched", "segmented"),
        congestion_control=("cubic", "bbr"),
    )
    counts = Counter(
        (cell.point.transport, cell.point.profile) for cell in expand(study_of(factors), catalogue)
    )
    assert counts == {
        ("tcp", "constant"): 16,  # direction, streams, content, congestion control
        ("tcp", "request-response"): 8,  # payload, streams, congestion control
        ("udp", "constant"): 8,  # direction, content, sending
        ("udp", "request-response"): 2,
        ("udp", "voip-g711"): 8,
        ("udp", "imix"): 8,
        ("icmp", "constant"): 1,
    }
    points = [cell.point for cell in expand(study_of(factors), catalogue)]
    assert {point.rate for point in points if point.profile == "imix"} == {MAXIMUM}
    assert {point.rate for point in points if point.profile == "voip-g711"} == {None}
    assert {point.direction for point in points if point.transport == "icmp"} == {None}


def test_a_load_with_a_way_of_its_own_is_measured_once(catalogue: Catalogue) -> None:
    factors = Factors(tunnel=("open",), content=("random", "zeros"), load=("engine", "iperf3"))
    points = [cell.point for cell in expand(study_of(factors), catalogue)]
    assert [(point.load, point.content) for point in points] == [
        ("engine", "random"),
        ("iperf3", None),
        ("engine", "zeros"),
    ]


def test_what_a_load_cannot_send_is_skipped_with_the_reason(catalogue: Catalogue) -> None:
    factors = Factors(tunnel=("open",), transport=("tcp", "icmp"), load=("engine", "ping"))
    skipped = [(cell.point.load, cell.skipped) for cell in expand(study_of(factors), catalogue)]
    assert skipped == [("engine", None), ("ping", "ping can't send tcp"), ("engine", None), ("ping", None)]


def reasons_beside_a_stream(catalogue: Catalogue, **levels: object) -> set[str | None]:
    factors = Factors.model_validate({"tunnel": ("open",), "background": ("none", "tcp"), **levels})
    cells = expand(study_of(factors), catalogue)
    assert all(cell.skipped is None for cell in cells if cell.point.background == "none")
    return {cell.skipped for cell in cells if cell.point.background == "tcp"}


PROBES = Rates(udp=(SendingRate(100, "packets/s"),), icmp=(SendingRate(10, "packets/s"),))


def test_probes_are_measured_alone_and_beside_each_background(catalogue: Catalogue) -> None:
    factors = Factors(
        tunnel=("open",),
        transport=("udp", "icmp", "tcp"),
        profile=("constant", "request-response", "voip-g711"),
        rate=PROBES,
        background=("none", "tcp", "tcp-reverse", "tcp-both"),
    )
    cells = expand(study_of(factors), catalogue)
    refused = {(c.point.transport, c.point.profile) for c in cells if c.skipped is not None}
    assert refused == {("tcp", "constant")}
    assert len(cells) == 4 * 6
    keys = [cell.point.key for cell in cells if cell.point.transport == "icmp"]
    assert keys == [
        "icmp ipv4 payload=56 rate=10 packets/s engine",
        "icmp ipv4 payload=56 rate=10 packets/s background=tcp engine",
        "icmp ipv4 payload=56 rate=10 packets/s background=tcp-reverse engine",
        "icmp ipv4 payload=56 rate=10 packets/s background=tcp-both engine",
    ]
    alone = {cell.point.without_background.key for cell in cells if cell.point.transport == "icmp"}
    assert alone == {keys[0]}


@pytest.mark.parametrize(
    "levels", [{}, {"transport": ("udp",)}, {"transport": ("udp",), "rate": Rates(udp=(CAPACITY,))}]
)
def test_what_fills_the_path_by_itself_is_not_measured_beside_a_stream(
    catalogue: Catalogue, levels: dict[str, object]
) -> None:
    (reason,) = reasons_beside_a_stream(catalogue, **levels)
    assert reason is not None
    assert reason.startswith("what fills the path by itself is not measured beside a background")


def test_a_load_that_does_not_keep_time_has_no_background(catalogue: Catalogue) -> None:
    reasons = reasons_beside_a_stream(catalogue, transport=("icmp",), load=("ping",))
    assert reasons == {"ping can't be timed to run beside a background; the engine can"}


def test_a_tunnel_without_tcp_has_no_background(catalogue: Catalogue) -> None:
    datagrams = Vpn(
        "datagrams", "Datagrams", ("none",), encrypted=False, carries=lambda _: frozenset({("udp", "ipv4")})
    )
    more = replace(catalogue, vpns={**catalogue.vpns, "datagrams": datagrams})
    reasons = reasons_beside_a_stream(more, tunnel=("datagrams",), transport=("udp",), rate=PROBES)
    assert reasons == {None, "Datagrams doesn't carry the TCP of a background over IPv4"}


def test_keys_are_stable() -> None:
    cell = Cell.model_validate_json(
        '{"treatment": {"vpn": "openvpn", "suite": "aes-256-gcm", "mtu": 1500,'
        '"gateway_os": "bookworm", "host_os": "trixie"},'
        '"point": {"transport": "udp", "ip": "ipv4", "payload_bytes": 1400, "rate": "max",'
        '"direction": "forward", "load": "engine"}}'
    )
    assert cell.key == (
        "openvpn/aes-256-gcm gateway_os=bookworm host_os=trixie mtu=1500 "
        "udp ipv4 payload=1400 rate=max forward engine"
    )
    more = cell.point.model_copy(
        update={"profile": "imix", "streams": 1, "content": "zeros", "direction": None, "payload_bytes": None}
    )
    assert more.key == "udp ipv4 profile=imix rate=max content=zeros engine"
    assert cell.treatment.baseline == Treatment(
        vpn="open", suite="none", gateway_os="bookworm", host_os="trixie", mtu=1500
    )
    assert cell.treatment.baseline.is_baseline
    assert cell.treatment.baseline.tunnel == "open"
    assert Cell.model_validate_json(cell.model_dump_json()) == cell


def systems(catalogue: Catalogue, topology: str, **levels: tuple[str, ...]) -> list[tuple[str, str]]:
    factors = Factors.model_validate({"tunnel": ("open",), **levels})
    about = About.model_validate({"id": "s", "title": "S", "question": "Q?", "topology": topology})
    cells = expand(Study(study=about, factors=factors), catalogue)
    return [(cell.treatment.gateway_os, cell.treatment.host_os) for cell in cells]


def test_hosts_run_what_gateways_run_where_nothing_else_is_said(catalogue: Catalogue) -> None:
    both = ("bookworm", "trixie")
    assert systems(catalogue, "site-to-site", gateway_os=both) == [
        ("bookworm", "bookworm"),
        ("trixie", "trixie"),
    ]
    assert systems(catalogue, "site-to-site", gateway_os=both, host_os=("trixie",)) == [
        ("bookworm", "trixie"),
        ("trixie", "trixie"),
    ]
    assert systems(catalogue, "site-to-site", gateway_os=("bookworm+trixie",)) == [
        ("bookworm+trixie", "bookworm+trixie"),
    ]
    assert systems(catalogue, "host-to-host", host_os=both) == [
        ("bookworm", "bookworm"),
        ("trixie", "trixie"),
    ]


@pytest.mark.parametrize("factors", [Factors(tunnel=("ipsec/x",)), Factors(tunnel=("open",), load=("x",))])
def test_unknown_names_are_refused(catalogue: Catalogue, factors: Factors) -> None:
    with pytest.raises(UserError, match="unknown"):
        expand(study_of(factors), catalogue)


def some(*levels: object) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(st.sampled_from(levels), min_size=1, unique=True).map(tuple)


factors_of_any_size = st.builds(
    Factors,
    tunnel=some("open", "ipip", "openvpn/*", "ssh-port-forwarding/3des-cbc-sha1", "ssh-vpn/aes*"),
    gateway_os=some("bookworm", "trixie"),
    mtu=some(1000, 1500, 9000),
    transport=some("tcp", "udp", "icmp"),
    profile=some("request-response", "connect-request-response", "imix", "voip-g711", "telnet").map(
        lambda profiles: ("constant", *profiles)
    ),
    ip=some("ipv4", "ipv6"),
    payload_bytes=st.builds(Payloads, tcp=some(64, 131_072), udp=some(64, 1400), request=some(1, 64)),
    rate=st.builds(
        Rates,
        udp=some(MAXIMUM, SendingRate(1_000_000), SendingRate(1000, "packets/s"), Bursts(100, 10**7)),
    ),
    direction=some("forward", "reverse", "both"),
    streams=some(1, 4, 128),
    content=some("random", "zeros", "./own"),
    sending=some("batched", "per-packet", "segmented"),
    congestion_control=st.none() | some("cubic", "reno"),
    background=some("none", "tcp", "tcp-both"),
    load=some("engine", "iperf3", "ping"),
)


@given(factors_of_any_size)
def test_cells_are_the_full_crossing_once_each(catalogue: Catalogue, factors: Factors) -> None:
    cells = expand(study_of(factors), catalogue)
    treatments = {cell.treatment for cell in cells}
    points = {cell.point for cell in cells}
    assert len(cells) == len(treatments) * len(points) == len({cell.key for cell in cells})
    assert {(cell.treatment, cell.point) for cell in cells} == set(product(treatments, points))
    assert {treatment.baseline for treatment in treatments} <= treatments
    tunnels = {tunnel for pattern in (*factors.tunnel, "open") for tunnel in catalogue.tunnels(pattern)}
    assert len(treatments) == len(tunnels) * len(factors.gateway_os) * len(factors.mtu)


@given(factors_of_any_size, some("tcp", "udp"), some("ipip", "open", "openvpn"))
def test_what_is_left_out_is_missing_but_for_the_baseline_of_the_rest(
    catalogue: Catalogue, factors: Factors, transports: tuple[object, ...], vpns: tuple[object, ...]
) -> None:
    every = expand(study_of(factors), catalogue)
    selection = {"transport": transports, "vpn": vpns}
    left = expand(study_of(factors.model_copy(update={"leave_out": (selection,)})), catalogue)
    selected = {c for c in every if c.point.transport in transports and c.treatment.vpn in vpns}
    assert {cell for cell in every if cell not in selected} <= set(left) <= set(every)
    assert all(cell.treatment.is_baseline for cell in selected & set(left))
    assert {(cell.treatment.baseline, cell.point) for cell in left} <= {
        (cell.treatment, cell.point) for cell in left
    }


@given(factors_of_any_size)
def test_a_factor_has_a_level_exactly_where_it_applies(catalogue: Catalogue, factors: Factors) -> None:
    for point in {cell.point for cell in expand(study_of(factors), catalogue)}:
        profile = catalogue.profile(point.profile)
        assert point.transport in profile.transports
        for name, applies in APPLIES.items():
            is_chosen = name not in CHOSEN_BY_LOAD or name in catalogue.load(point.load).chooses
            has_level = applies(point.transport, profile) and is_chosen
            level = getattr(point, name)
            assert (level is not None) == has_level or (name == "congestion_control" and level is None)


@given(factors_of_any_size)
def test_levels_that_apply_to_nothing_change_nothing(catalogue: Catalogue, factors: Factors) -> None:
    tcp = factors.model_copy(update={"transport": ("tcp",)})
    usual = Factors.model_fields
    plain = tcp.model_copy(update={name: usual[name].default for name in ("sending", "rate")})
    assert expand(study_of(tcp), catalogue) == expand(study_of(plain), catalogue)
