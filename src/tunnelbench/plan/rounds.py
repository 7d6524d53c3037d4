"""The plan of a campaign: rounds, each a randomised complete block of all instances.

Every round visits every treatment once, with a plain-IP baseline for each runtime in use, so that a drift of
the machine hits all alike and each result can be related to its own round (randomised complete block design:
R. A. Fisher, The Design of Experiments, 1935). Inside an instance the points come in an order of their own (a
split plot).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from random import Random
from typing import Literal, TypeVar

from tunnelbench.study.cells import Cell
from tunnelbench.study.fields import Frozen
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment

Runtime = Literal["namespace", "kernel"]
"""Where the gateways of an instance run."""

Item = TypeVar("Item")


class PlannedInstance(Frozen, frozen=True):
    """One bring-up of a treatment and the points to measure in it, in order."""

    campaign_round: int
    """Counted from 1."""
    position: int
    """Place in the round's order, from 0."""
    treatment: Treatment
    runtime: Runtime
    points: tuple[Point, ...]

    @property
    def key(self) -> str:
        """Stable name, different for every instance of a round."""
        return instance_key(self.treatment, self.runtime)

    def without(self, points: Iterable[str]) -> PlannedInstance:
        """The same, without the points of these keys."""
        left_out = frozenset(points)
        return self.model_copy(update={"points": tuple(it for it in self.points if it.key not in left_out)})


class Plan(Frozen, frozen=True):
    """The instances of a campaign, round after round."""

    seed: int
    rounds: tuple[tuple[PlannedInstance, ...], ...]

    @property
    def instances(self) -> tuple[PlannedInstance, ...]:
        """All instances in their order."""
        return tuple(instance for planned_round in self.rounds for instance in planned_round)


def instance_key(treatment: Treatment, runtime: Runtime) -> str:
    """Stable name of a treatment in a runtime."""
    return f"{treatment.key} runtime={runtime}"


def make_plan(cells: Iterable[Cell], rounds: int, seed: int, runtimes: Mapping[Treatment, Runtime]) -> Plan:
    """The plan of the first `rounds` rounds.

    `runtimes` says where each treatment runs. A treatment that it lacks can't run here and is left out, as
    are cells that are skipped. Plain IP runs once in every runtime that another treatment with its image and
    MTU uses, and where `runtimes` says if there is no other. A round's order depends on the seed and the
    round's number, never on how many rounds there are: a longer plan begins with the shorter one.
    """
    points: dict[Treatment, list[Point]] = {}
    for cell in cells:
        if cell.skipped is None:
            points.setdefault(cell.treatment, []).append(cell.point)
    runnable = points.keys() & runtimes.keys()
    places: list[tuple[Treatment, Runtime]] = [
        (treatment, runtime)
        for treatment in points
        for runtime in _runtimes_of(treatment, runnable, runtimes)
    ]
    return Plan(
        seed=seed,
        rounds=tuple(_round(number, seed, places, points) for number in range(1, rounds + 1)),
    )


def _runtimes_of(
    treatment: Treatment, runnable: Set[Treatment], runtimes: Mapping[Treatment, Runtime]
) -> tuple[Runtime, ...]:
    related = [other for other in runnable if not other.is_baseline and other.baseline == treatment]
    if related:
        return tuple({runtimes[other] for other in related})
    return (runtimes[treatment],) if treatment in runnable else ()


def _round(
    number: int,
    seed: int,
    places: Sequence[tuple[Treatment, Runtime]],
    points: Mapping[Treatment, Sequence[Point]],
) -> tuple[PlannedInstance, ...]:
    order = _shuffled(places, lambda place: instance_key(*place), f"{seed} {number}")
    return tuple(
        PlannedInstance(
            campaign_round=number,
            position=position,
            treatment=treatment,
            runtime=runtime,
            points=_shuffled(
                points[treatment],
                lambda point: point.key,
                f"{seed} {number} {instance_key(treatment, runtime)}",
            ),
        )
        for position, (treatment, runtime) in enumerate(order)
    )


def _shuffled(items: Sequence[Item], key: Callable[[Item], str], seed: str) -> tuple[Item, ...]:
    """The items in the order of a random number drawn for each from the seed and its own key.

    All orders are equally likely. The order doesn't depend on the one given, nor do two items change places
    when a third is added; and every Python gives the same, since `random()` is promised to be stable.
    """
    return tuple(sorted(items, key=lambda item: (Random(f"{seed} {key(item)}").random(), key(item))))
