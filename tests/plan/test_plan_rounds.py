"""Plans: complete blocks in seeded random order."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.plan.rounds import Plan, Runtime, instance_key, make_plan
from tunnelbench.study.cells import Cell, Treatment
from tunnelbench.study.points import Point


def treatment(vpn: str, suite: str = "none", system: str = "bookworm", mtu: int = 1500) -> Treatment:
    return Treatment(vpn=vpn, suite=suite, gateway_os=system, host_os=system, mtu=mtu)


def point(transport: str = "tcp", payload_bytes: int = 1400) -> Point:
    fields = {"transport": transport, "ip": "ipv4", "direction": "forward", "load": "engine"}
    rate = "max" if transport == "udp" else None
    return Point.model_validate({**fields, "payload_bytes": payload_bytes, "rate": rate})


def cells_of(treatments: list[Treatment], points: list[Point]) -> list[Cell]:
    return [Cell(treatment=treatment, point=point) for treatment, point in product(treatments, points)]


OPEN = treatment("open")
IPIP = treatment("ipip")
ESP = treatment("ipsec-manual", "aes128-sha1")
SSH = treatment("ssh-vpn", "aes128-cbc-sha1")
POINTS = [point("tcp"), point("udp")]


def places(plan: Plan, campaign_round: int = 1) -> set[tuple[str, str]]:
    return {(instance.treatment.vpn, instance.runtime) for instance in plan.rounds[campaign_round - 1]}


def test_every_runtime_in_use_has_its_baseline() -> None:
    runtimes: dict[Treatment, Runtime] = {OPEN: "namespace", ESP: "kernel", SSH: "namespace"}
    plan = make_plan(cells_of([OPEN, ESP, SSH], POINTS), 1, 1, runtimes)
    assert places(plan) == {
        ("open", "namespace"),
        ("open", "kernel"),
        ("ipsec-manual", "kernel"),
        ("ssh-vpn", "namespace"),
    }


def test_a_runtime_that_nothing_else_uses_has_no_baseline() -> None:
    plan = make_plan(cells_of([OPEN, ESP], POINTS), 1, 1, {OPEN: "namespace", ESP: "kernel"})
    assert places(plan) == {("open", "kernel"), ("ipsec-manual", "kernel")}


def test_plain_ip_alone_runs_where_it_is_told() -> None:
    assert places(make_plan(cells_of([OPEN], POINTS), 1, 1, {OPEN: "namespace"})) == {("open", "namespace")}


def test_what_cannot_run_here_is_left_out() -> None:
    assert places(make_plan(cells_of([OPEN, ESP, SSH], POINTS), 1, 1, {SSH: "namespace"})) == {
        ("open", "namespace"),
        ("ssh-vpn", "namespace"),
    }
    assert make_plan(cells_of([OPEN, ESP], POINTS), 2, 1, {}).instances == ()


def test_skipped_cells_are_not_planned() -> None:
    cells = [
        *cells_of([OPEN], POINTS),
        Cell(treatment=SSH, point=POINTS[0]),
        Cell(treatment=SSH, point=POINTS[1], skipped="not carried"),
        Cell(treatment=ESP, point=POINTS[0], skipped="not carried"),
    ]
    plan = make_plan(cells, 1, 1, {OPEN: "namespace", SSH: "namespace", ESP: "kernel"})
    assert {instance.treatment.vpn: set(instance.points) for instance in plan.instances} == {
        "open": set(POINTS),
        "ssh-vpn": {POINTS[0]},
    }


def test_each_image_and_mtu_has_its_own_baseline() -> None:
    jumbo = {vpn: treatment(vpn, mtu=9000) for vpn in ("open", "ipip")}
    runtimes: dict[Treatment, Runtime] = {IPIP: "kernel", jumbo["ipip"]: "namespace"}
    plan = make_plan(cells_of([OPEN, IPIP, *jumbo.values()], POINTS), 1, 1, runtimes)
    assert {
        (instance.treatment.vpn, instance.treatment.mtu, instance.runtime) for instance in plan.instances
    } == {
        ("open", 1500, "kernel"),
        ("ipip", 1500, "kernel"),
        ("open", 9000, "namespace"),
        ("ipip", 9000, "namespace"),
    }


def test_the_order_is_the_same_on_every_machine() -> None:
    runtimes: dict[Treatment, Runtime] = {IPIP: "kernel", ESP: "kernel", SSH: "namespace"}
    plan = make_plan(cells_of([OPEN, IPIP, ESP, SSH], POINTS), 2, 7, runtimes)
    first, second = (
        [f"{i.treatment.vpn} {i.runtime}" for i in planned_round] for planned_round in plan.rounds
    )
    assert first == [
        "open kernel",
        "open namespace",
        "ipsec-manual kernel",
        "ipip kernel",
        "ssh-vpn namespace",
    ]
    assert second == [
        "ssh-vpn namespace",
        "open kernel",
        "open namespace",
        "ipsec-manual kernel",
        "ipip kernel",
    ]
    assert [i.points[0].transport for i in plan.rounds[0]] == ["udp", "udp", "tcp", "tcp", "tcp"]


VPNS = [
    treatment("ipip"),
    treatment("gre"),
    ESP,
    SSH,
    treatment("ipip", mtu=9000),
    treatment("gre", system="trixie"),
]


@st.composite
def studies(draw: st.DrawFn) -> tuple[list[Cell], dict[Treatment, Runtime]]:
    treatments = draw(st.lists(st.sampled_from(VPNS), unique=True))
    baselines = list(dict.fromkeys(treatment.baseline for treatment in [OPEN, *treatments]))
    sizes = draw(st.lists(st.integers(1, 1400), min_size=1, max_size=4, unique=True))
    runtime: st.SearchStrategy[Runtime] = st.sampled_from(("namespace", "kernel"))
    cells = cells_of([*baselines, *treatments], [point("udp", size) for size in sizes])
    return cells, {treatment: draw(runtime) for treatment in [*baselines, *treatments]}


@given(studies(), st.integers(1, 5), st.integers(0, 2**63 - 1))
def test_each_round_is_a_complete_block(
    study: tuple[list[Cell], dict[Treatment, Runtime]], rounds: int, seed: int
) -> None:
    cells, runtimes = study
    plan = make_plan(cells, rounds, seed, runtimes)
    assert len(plan.rounds) == rounds
    for number, planned_round in enumerate(plan.rounds, 1):
        assert {instance.campaign_round for instance in planned_round} == {number}
        assert [instance.position for instance in planned_round] == list(range(len(planned_round)))
        visits = Counter(instance.key for instance in planned_round)
        assert set(visits.values()) == {1}
        for instance in planned_round:
            assert Counter(instance.points) == Counter(
                cell.point for cell in cells if cell.treatment == instance.treatment
            )
            assert instance_key(instance.treatment.baseline, instance.runtime) in visits
        for treatment, runtime in runtimes.items():
            assert treatment.is_baseline or instance_key(treatment, runtime) in visits


@given(studies(), st.integers(1, 4), st.integers(0, 3), st.integers(0, 100))
def test_a_longer_plan_begins_with_the_shorter_one(
    study: tuple[list[Cell], dict[Treatment, Runtime]], rounds: int, more: int, seed: int
) -> None:
    cells, runtimes = study
    longer = make_plan(cells, rounds + more, seed, runtimes)
    assert longer.rounds[:rounds] == make_plan(cells, rounds, seed, runtimes).rounds


@given(studies(), st.randoms(use_true_random=False))
def test_the_order_of_the_study_does_not_matter(
    study: tuple[list[Cell], dict[Treatment, Runtime]], random: Random
) -> None:
    cells, runtimes = study
    shuffled = list(cells)
    random.shuffle(shuffled)
    assert make_plan(shuffled, 2, 1, runtimes) == make_plan(cells, 2, 1, runtimes)


def test_all_orders_are_equally_likely() -> None:
    runtimes: dict[Treatment, Runtime] = {IPIP: "kernel", ESP: "kernel"}
    plan = make_plan(cells_of([OPEN, IPIP, ESP], POINTS), 3000, 1, runtimes)
    orders = Counter(tuple(i.treatment.vpn for i in planned_round) for planned_round in plan.rounds)
    assert len(orders) == 6
    # Each of 3! orders is expected 500 times with a standard deviation of 20.
    assert all(abs(count - 500) < 100 for count in orders.values())
    firsts = [planned_round[0].points[0] for planned_round in plan.rounds]
    assert 1350 < firsts.count(POINTS[0]) < 1650
    repeats = sum(one == other for one, other in pairwise(firsts))
    assert 1350 < repeats < 1650


def test_another_seed_gives_another_order() -> None:
    runtimes: dict[Treatment, Runtime] = dict.fromkeys(VPNS, "kernel")
    cells = cells_of([OPEN, *VPNS], POINTS)
    assert make_plan(cells, 3, 1, runtimes).rounds != make_plan(cells, 3, 2, runtimes).rounds


def test_a_plan_survives_json() -> None:
    plan = make_plan(cells_of([OPEN, SSH], POINTS), 2, 5, {SSH: "namespace"})
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_no_rounds_is_an_empty_plan() -> None:
    assert make_plan(cells_of([OPEN], POINTS), 0, 1, {OPEN: "kernel"}).rounds == ()
