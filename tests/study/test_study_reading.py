"""Studies from TOML and the errors of wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.errors import UserError
from tunnelbench.study.catalogue import Catalogue
from tunnelbench.study.contents import read_contents
from tunnelbench.study.model import Link, Method, Rates, Socket, Study
from tunnelbench.study.reading import Problem, StudyError, parse_study, read_study

HEAD = '[study]\nid = "one"\ntitle = "One"\nquestion = "Which?"\n'
"""Four lines: what follows starts at line 5."""

SMALLEST = HEAD + '[factors]\ntunnel = ["ipip"]\n'


def problems_of(text: str, catalogue: Catalogue) -> list[str]:
    with pytest.raises(StudyError) as error:
        parse_study(text, "one.toml", catalogue)
    return [str(problem) for problem in error.value.problems]


def test_the_smallest_study(catalogue: Catalogue) -> None:
    study = parse_study(SMALLEST, "one.toml", catalogue)
    assert study.about.id == "one"
    assert study.about.topology == "site-to-site"
    assert study.factors.tunnel == ("ipip",)
    assert study.factors.rate == Rates()
    assert study.link == Link()
    assert study.method == Method()


def test_a_full_study(catalogue: Catalogue) -> None:
    text = f"""{HEAD}topology = "host-to-host"
[factors]
tunnel = ["openvpn/*", "ipip"]
host_os = ["bullseye", "bookworm"]
mtu = [1500, 9000]
transport = ["tcp", "udp"]
ip = ["ipv4", "ipv6"]
payload_bytes = {{ tcp = ["128 KiB", 64], udp = ["1400 B"] }}
rate = ["max", "10 Mbit/s", "10000 packets/s"]
direction = ["forward", "reverse"]
load = ["engine", "iperf3"]
[socket]
dscp = 46
buffer = "64 KiB"
[link]
rate = "100 Mbit/s"
delay = "20 ms"
loss = "1 %"
[method]
rounds = 5
rounds_min = 2
budget = "10m"
trial = "5 s"
warm_up = "1 s"
cool_down = "500 ms"
seed = 7
"""
    study = parse_study(text, "one.toml", catalogue)
    assert study.factors.payload_bytes.tcp == (131_072, 64)
    assert study.factors.payload_bytes.udp == (1400,)
    assert [str(rate) for rate in study.factors.rate.udp] == ["max", "10 Mbit/s", "10000 packets/s"]
    assert study.socket == Socket(dscp=46, buffer=65_536)
    assert (study.link.rate, study.link.delay, study.link.loss) == (100_000_000, 0.02, 0.01)
    assert (study.method.budget, study.method.trial, study.method.window) == (600.0, 5.0, 3.5)


def test_one_payload_list_serves_both_transports(catalogue: Catalogue) -> None:
    study = parse_study(SMALLEST + "payload_bytes = [64, 1400]\n", "one.toml", catalogue)
    assert study.factors.payload_bytes.tcp == study.factors.payload_bytes.udp == (64, 1400)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('tunnels = ["ipip"]', "7: factors.tunnels: unknown key 'tunnels'. Did you mean 'tunnel'?"),
        (
            'transport = [\n"tcp",\n"upd"]',
            "9: factors.transport[1]: unknown level 'upd'. Did you mean 'udp'?",
        ),
        ('ip = ["ipv5"]', "7: factors.ip[0]: unknown level 'ipv5'. Did you mean 'ipv"),
        ('transport = "tcp"', "7: factors.transport: must be a list, such as ['tcp']"),
        ("mtu = []", "7: factors.mtu: must name at least one level"),
        ("mtu = [1500, 1500]", "7: factors.mtu: names '1500' twice"),
        ("mtu = [1]", "7: factors.mtu[0]: must be greater than or equal to 68, not 1"),
        ('mtu = ["1500"]', "7: factors.mtu[0]: must be a valid integer, not '1500'"),
        ("payload_bytes = [-1]", "7: factors.payload_bytes[0]: -1 is negative"),
        (
            "payload_bytes.udp = [70000]",
            "7: factors.payload_bytes.udp[0]: must be less than or equal to 65507",
        ),
        (
            "payload_bytes.sctp = [1]",
            "7: factors.payload_bytes.sctp: unknown key 'sctp'. Did you mean 'tcp'?",
        ),
        (
            'rate = ["10 mbps"]',
            "7: factors.rate[0]: '10 mbps' has the unknown unit 'mbps'; write a sending rate",
        ),
        ('host_os = ["../etc"]', "7: factors.host_os[0]: '../etc' must be lower-case letters"),
        ('host_os = ["a+b+c"]', "7: factors.host_os[0]: 'a+b+c' names 3 images; there are two sides"),
        ('gateway_os = ["trixie", "+trixie"]', "7: factors.gateway_os[1]: '' must be lower-case letters"),
        ('gateway_os = ["trixie", "trixie+trixie"]', "7: factors.gateway_os: names 'trixie' twice"),
        ('load = ["iperf2"]', "7: factors.load[0]: unknown load 'iperf2'. Did you mean 'iperf3'?"),
        ('[links]\nrate = "1 bit/s"', "7: links: unknown key 'links'. Did you mean 'link'?"),
        ("[link]\nloss = 2", "8: link.loss: 2 is outside 0 to below 1"),
        ('[link]\nrate = "-1 Mbit/s"', "8: link.rate: '-1 Mbit/s' is negative"),
        (
            '[method]\ntrial = "5 Mbit"',
            "8: method.trial: '5 Mbit' has the unknown unit 'Mbit'; write a duration",
        ),
        ('[method]\nbudget = "0 s"', "8: method.budget: must be greater than 0, not '0 s'"),
        ('[method]\n\ntrial = "500 ms"', "7: method: a trial of 0.5 s leaves nothing to measure"),
        ("[method]\nrounds = 2\nrounds_min = 3", "7: method: rounds_min (3) is more than rounds (2)"),
        ("[method]\nseed = 2.5", "8: method.seed: must be a valid integer, not 2.5"),
        ("[method]\nrounds = true", "8: method.rounds: must be a valid integer, not True"),
        ("link = 3", "7: factors.link: unknown key 'link'."),
    ],
)
def test_each_mistake_is_named_with_its_line(catalogue: Catalogue, line: str, expected: str) -> None:
    (problem,) = problems_of(f"{SMALLEST}{line}\n", catalogue)
    assert problem.startswith(f"one.toml:{expected}")


@pytest.mark.parametrize(
    ("tunnel", "expected"),
    [
        ("ipsec-manul/aes128-sha1", "unknown VPN 'ipsec-manul'. Did you mean 'ipsec-manual'?"),
        (
            "ipsec-manual/aes-128-sha1",
            "ipsec-manual has no suite 'aes-128-sha1'. Did you mean 'aes128-sha1'?",
        ),
    ],
)
def test_unknown_tunnels(catalogue: Catalogue, tunnel: str, expected: str) -> None:
    (problem,) = problems_of(f'{HEAD}[factors]\ntunnel = ["open",\n  "{tunnel}"]\n', catalogue)
    assert problem.startswith(f"one.toml:7: factors.tunnel[1]: {expected}")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            'profile = ["voip-g71"]',
            "7: factors.profile[0]: unknown profile 'voip-g71'. Did you mean 'voip-g711'?",
        ),
        ('profile = ["imix"]', "7: factors.profile[0]: the profile imix is traffic over udp"),
        (
            'transport = ["udp",\n"tcp"]\nprofile = ["imix"]',
            "8: factors.transport[1]: none of the study's profiles is traffic over tcp: imix",
        ),
        ('load = ["ping"]', "7: factors.load[0]: ping can't send tcp"),
        ('load = ["engine", "ping"]', "7: factors.load[1]: ping can't send tcp"),
        ('transport = ["udp"]\nstreams = [4]', "8: factors.streams[0]: it would change nothing: streams are"),
        ("streams = [1, 200]", "7: factors.streams[1]: must be less than or equal to 128, not 200"),
        ('direction = ["both"]\ntransport = ["icmp"]', "7: factors.direction[0]: it would change nothing"),
        ('content = ["zeros"]\nload = ["iperf3"]', "7: factors.content[0]: it would change nothing: no load"),
        ('content = ["zeroes"]', "7: factors.content[0]: unknown content 'zeroes'. Did you mean 'zeros'?"),
        ('content = ["../../etc/passwd"]', "7: factors.content[0]: '../../etc/passwd' must be a file beside"),
        ('sending = ["segmented"]', "7: factors.sending[0]: it would change nothing: it is how"),
        ('sending = ["batch"]', "7: factors.sending[0]: unknown level 'batch'. Did you mean 'batched'?"),
        ('rate = ["1 every 1"]', "7: factors.rate[0]: '1' has no unit; write a duration"),
        ('rate = { tcp = ["max"] }', "7: factors.rate.tcp: unknown key 'tcp'. Did you mean 'icmp'?"),
        ('load = ["iperf3"]\n[socket]\nttl = 3', "7: factors.load[0]: iperf3 can't set socket.ttl"),
        ('background = ["none", "tcp"]', "7: factors.background[1]: what fills the path by itself is not"),
        ('transport = ["udp"]\nrate = ["capacity"]\nbackground = ["tcp"]', "9: factors.background[0]: what"),
        ('background = ["tpc"]', "7: factors.background[0]: unknown level 'tpc'. Did you mean 'tcp'?"),
        (
            'transport = ["icmp"]\nload = ["engine", "ping"]\nbackground = ["tcp"]',
            "8: factors.load[1]: ping can't be timed to run beside a background; the engine can",
        ),
        ("[socket]\nttl = 0", "8: socket.ttl: must be greater than or equal to 1, not 0"),
        ("[socket]\ndscp = 64", "8: socket.dscp: must be less than or equal to 63, not 64"),
    ],
)
def test_traffic_that_cannot_be(catalogue: Catalogue, lines: str, expected: str) -> None:
    (problem,) = problems_of(f"{SMALLEST}{lines}\n", catalogue)
    assert problem.startswith(f"one.toml:{expected}")


def test_a_tunnel_that_carries_nothing_of_the_study(catalogue: Catalogue) -> None:
    text = f'{HEAD}[factors]\ntransport = ["udp"]\ntunnel = [\n"ipip", "ssh-port-forwarding/*"]\n'
    (problem,) = problems_of(text, catalogue)
    assert problem == ("one.toml:8: factors.tunnel[1]: SSH port forwarding doesn't carry UDP over IPv4")


def test_levels_of_which_some_cells_can_be_measured_are_right(catalogue: Catalogue) -> None:
    text = 'transport = ["tcp", "udp", "icmp"]\nload = ["engine", "ping"]\nprofile = ["constant", "imix"]\n'
    assert parse_study(SMALLEST + text, "one.toml", catalogue).factors.load == ("engine", "ping")


def test_the_files_of_a_study_are_beside_it(tmp_path: Path, catalogue: Catalogue) -> None:
    path = tmp_path / "one.toml"
    path.write_text(SMALLEST + 'content = ["zeros", "./corpus", "empty.bin", "none.bin"]\n')
    (tmp_path / "corpus").write_bytes(b"abc")
    (tmp_path / "empty.bin").touch()
    with pytest.raises(StudyError) as error:
        read_study(path, catalogue)
    assert [problem.key for problem in error.value.problems] == ["factors.content[2]", "factors.content[3]"]
    assert "there is no such file" in str(error.value)
    (tmp_path / "empty.bin").write_bytes(b"x")
    (tmp_path / "none.bin").write_bytes(b"y")
    contents = read_contents(read_study(path, catalogue), tmp_path)
    assert contents == {"./corpus": b"abc", "empty.bin": b"x", "none.bin": b"y"}


def test_every_mistake_is_reported_in_the_order_of_lines(catalogue: Catalogue) -> None:
    text = '[study]\nid = "One"\n[factors]\ntunnel = ["ipip"]\nmtu = [0]\n[method]\ntrial = "1"\n'
    lines = [problem.split(":")[1] for problem in problems_of(text, catalogue)]
    assert lines == ["1", "1", "2", "5", "7"]  # title and question are missing from line 1's table


@pytest.mark.parametrize("missing", ["study", "factors"])
def test_a_missing_section(catalogue: Catalogue, missing: str) -> None:
    text = HEAD if missing == "factors" else '[factors]\ntunnel = ["ipip"]\n'
    assert problems_of(text, catalogue) == [f"one.toml:1: '{missing}' is missing"]


@pytest.mark.parametrize(
    ("text", "line"), [("[study\n", 1), ("a = 1\nb =\n", 2), ('a = 1\n\nb = "x', 3), ("a = 1\na = 2\n", 2)]
)
def test_wrong_toml(catalogue: Catalogue, text: str, line: int) -> None:
    (problem,) = problems_of(text, catalogue)
    assert problem.startswith(f"one.toml:{line}: not valid TOML: ")


def test_a_file(tmp_path: Path, catalogue: Catalogue) -> None:
    path = tmp_path / "one.toml"
    path.write_text(SMALLEST)
    assert read_study(path, catalogue) == parse_study(SMALLEST, "elsewhere", catalogue)


def test_files_that_cannot_be_read(tmp_path: Path, catalogue: Catalogue) -> None:
    (tmp_path / "binary.toml").write_bytes(b"a = '\xff'")
    for name, message in (
        ("absent.toml", "No such file"),
        ("", "Is a directory"),
        ("binary.toml", "not a text file"),
    ):
        with pytest.raises(UserError, match=message):
            read_study(tmp_path / name, catalogue)


def test_rounds_and_budget_can_be_overridden() -> None:
    method = Method(rounds=5, rounds_min=3)
    assert method.override() == method
    assert method.override(rounds=2).rounds_min == 2
    assert method.override(budget=60.0).budget == 60.0


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(("tcp", "5 s")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
SECTIONS: dict[str, tuple[str, ...]] = {
    "study": ("id", "title", "topology"),
    "factors": ("tunnel", "mtu", "payload_bytes", "rate", "load"),
    "link": ("rate", "delay", "loss", "host_rate", "wifi_rate"),
    "method": ("rounds", "budget", "trial", "seed"),
}


def written(value: Any) -> str:  # noqa: ANN401
    match value:
        case bool():
            return str(value).lower()
        case str():
            return '"' + "".join(f"\\U{ord(character):08x}" for character in value) + '"'
        case list():
            return f"[{', '.join(map(written, value))}]"  # pyright: ignore[reportUnknownArgumentType]
        case dict():
            pairs = (f"{written(key)} = {written(inner)}" for key, inner in value.items())  # pyright: ignore[reportUnknownVariableType]
            return f"{{ {', '.join(pairs)} }}"
        case None:
            return "1979-05-27"
        case _:
            return repr(value)


@given(
    st.sampled_from([(section, key) for section, keys in SECTIONS.items() for key in keys]).flatmap(
        lambda place: st.tuples(st.just(place), VALUES)
    )
)
def test_any_value_anywhere_is_read_or_refused_with_its_line(
    catalogue: Catalogue, placed: tuple[tuple[str, str], Any]
) -> None:
    (section, key), value = placed
    tables: dict[str, dict[str, str]] = {
        "study": {"id": '"one"', "title": '"One"', "question": '"Which?"'},
        "factors": {"tunnel": '["ipip"]'},
    }
    tables.setdefault(section, {})[key] = written(value)
    lines: list[str] = []
    for name, pairs in tables.items():
        lines += [f"[{name}]", *(f"{key} = {text}" for key, text in pairs.items())]
    problems: tuple[Problem, ...] = ()
    try:
        study = parse_study("\n".join(lines), "one.toml", catalogue)
        assert Study.model_validate_json(study.model_dump_json(by_alias=True)) == study
    except StudyError as error:
        problems = error.problems
    at_fault = {lines.index(f"{key} = {written(value)}") + 1, lines.index(f"[{section}]") + 1}
    assert {problem.line for problem in problems} <= at_fault


def test_hosts_alone_have_no_gateways(catalogue: Catalogue) -> None:
    text = f'{HEAD}topology = "host-to-host"\n[factors]\ntunnel = ["open"]\ngateway_os = ["trixie"]\n'
    (problem,) = problems_of(text, catalogue)
    assert problem.startswith("one.toml:8: factors.gateway_os: the topology host-to-host has no gateways")


def test_the_one_gateway_of_remote_access_runs_one_image(catalogue: Catalogue) -> None:
    both = 'gateway_os = ["trixie", "bookworm+trixie"]\nhost_os = ["bullseye+trixie"]\n'
    text = f'{HEAD}topology = "remote-access"\n[factors]\ntunnel = ["open"]\n{both}'
    (problem,) = problems_of(text, catalogue)
    assert problem.startswith("one.toml:8: factors.gateway_os[1]: the topology remote-access has one gateway")


@pytest.mark.parametrize(
    ("selection", "problem"),
    [
        ('{ transprot = ["udp"] }', "nothing is called 'transprot'. Did you mean 'transport'?"),
        ('{ transport = ["sctp"] }', "transport can't be 'sctp'"),
        ('{ transport = ["udp"] }', "the study has no such combination"),
    ],
)
def test_combinations_in_vain_are_told(catalogue: Catalogue, selection: str, problem: str) -> None:
    text = f'{HEAD}[factors]\ntunnel = ["ipip"]\nleave_out = [{selection}]\n'
    (found,) = problems_of(text, catalogue)
    assert found.startswith("one.toml:7: factors.leave_out")
    assert problem in found


def test_hosts_have_ethernet_of_a_rate(catalogue: Catalogue) -> None:
    text = f'{HEAD}[factors]\ntunnel = ["open"]\n[link]\nhost_rate = "1 Gbit/s"\n'
    assert parse_study(text, "one.toml", catalogue).link.host_rate == 1_000_000_000


def test_hosts_alone_have_no_links_but_the_one_between_them(catalogue: Catalogue) -> None:
    text = f'{HEAD}topology = "host-to-host"\n[factors]\ntunnel = ["open"]\n[link]\nhost_rate = "1 Gbit/s"\n'
    (problem,) = problems_of(text, catalogue)
    assert problem.startswith("one.toml:9: link.host_rate: the topology host-to-host has one link")


def test_a_host_may_be_behind_wifi(catalogue: Catalogue) -> None:
    text = f'{HEAD}[factors]\ntunnel = ["open"]\n[link]\nwifi_rate = "100 Mbit/s"\n'
    assert parse_study(text, "one.toml", catalogue).link.wifi_rate == 100_000_000


@pytest.mark.parametrize("topology", ["host-to-host", "remote-access"])
def test_other_topologies_have_no_wifi(catalogue: Catalogue, topology: str) -> None:
    text = f'{HEAD}topology = "{topology}"\n[factors]\ntunnel = ["open"]\n[link]\nwifi_rate = "1 Mbit/s"\n'
    (problem,) = problems_of(text, catalogue)
    assert problem.startswith("one.toml:9: link.wifi_rate: only the topology site-to-site has a hop of Wi-Fi")


def test_packets_can_be_too_large_for_wifi(catalogue: Catalogue) -> None:
    text = f'{HEAD}[factors]\ntunnel = ["open"]\nmtu = [1500, 1501]\n[link]\nwifi_rate = "1 Mbit/s"\n'
    (problem,) = problems_of(text, catalogue)
    assert problem.startswith("one.toml:7: factors.mtu")
    assert "no packets of more than 1500 bytes" in problem
