"""Searches for capacity through tunnels that die under too much, with traffic that is made up."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from tunnelbench.campaign import capacity
from tunnelbench.campaign.trial import Bench
from tunnelbench.lab.connection import NodeError
from tunnelbench.load.base import NothingArrivedError
from tunnelbench.store.model import TrialRecord
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import CAPACITY, SendingRate

POINT = Point(
    transport="udp", ip="ipv4", payload_bytes=1000, rate=CAPACITY, direction="forward", load="engine"
)
METHOD = Method.model_validate({"capacity": {"highest": "100 Mbit/s", "trial": "100 ms", "width": "5 %"}})
LAB: Any = SimpleNamespace(topology=SimpleNamespace(clients=[None]), nodes={})


class FragileTunnel:
    """Carries all it is given up to one rate, and dies above another, in bits per second."""

    def __init__(self, carries: float, dies_above: float) -> None:
        self.carries = carries
        self.dies_above = dies_above
        self.is_dead = False
        self.times_up = 1
        self.is_drained = False

    def dead(self) -> Any:  # noqa: ANN401
        return SimpleNamespace(arguments=["ssh"], status=255, log_tail=str) if self.is_dead else None

    async def revive(self) -> Any:  # noqa: ANN401
        assert self.is_dead
        self.is_dead = False
        self.times_up += 1
        return self

    async def reply(self, *_: object) -> float:
        self.is_drained = True
        return 0.0

    async def drive(self, _bench: Bench, point: Point, *_: object) -> Any:  # noqa: ANN401
        assert not self.is_dead, "the search goes on through a tunnel that is dead"
        assert isinstance(point.rate, SendingRate)
        assert point.rate.amount is not None
        rate = point.rate.amount
        self.is_dead = rate > self.dies_above
        assert self.is_drained, "what one rate left in the queues would be lost at the next"
        self.is_drained = False
        if self.is_dead:
            raise NothingArrivedError(1000, rate / 1e6)
        return SimpleNamespace(metrics={"offered": rate / 1e6, "loss": max(0.0, 1 - self.carries / rate)})


async def search(
    tunnel: FragileTunnel, monkeypatch: pytest.MonkeyPatch, *, can_revive: bool = True, loss: float = 0.0
) -> TrialRecord:
    async def usual_trial(bench: Bench, point: Point, position: int, _method: Method) -> TrialRecord:
        assert bench.established.dead() is None
        assert tunnel.is_drained
        metrics = {"loss": loss, "packets_per_second": 10_000 * (1 - loss)}
        return TrialRecord(position, point, datetime.now(UTC), 1.0, metrics=metrics)

    monkeypatch.setattr(capacity, "drive", tunnel.drive)
    monkeypatch.setattr(capacity, "run_trial", usual_trial)
    monkeypatch.setattr(capacity, "await_first_reply", tunnel.reply)
    established: Any = tunnel
    bench = Bench(LAB, established, revive=tunnel.revive if can_revive else None)
    tried: list[tuple[float, float]] = []
    trial = await capacity.run_point(bench, POINT, 0, METHOD, lambda rate, loss: tried.append((rate, loss)))
    assert all(0 <= loss <= 1 for _, loss in tried)
    return trial


async def test_a_rate_that_kills_is_not_carried_and_the_search_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tunnel = FragileTunnel(carries=30e6, dies_above=50e6)
    trial = await search(tunnel, monkeypatch)
    assert trial.status == "ok"
    assert trial.metrics["capacity"] == pytest.approx(30, rel=0.06)
    assert tunnel.times_up > 1
    (warning,) = trial.warnings
    assert warning.kind == "died-in-search"
    deaths = tunnel.times_up - 1
    assert ("once" if deaths == 1 else f"{deaths} times") in warning.message


async def test_a_tunnel_that_lives_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tunnel = FragileTunnel(carries=30e6, dies_above=1e9)
    trial = await search(tunnel, monkeypatch)
    assert trial.metrics["capacity"] == pytest.approx(30, rel=0.06)
    assert (tunnel.times_up, trial.warnings) == (1, [])


async def test_where_nothing_can_be_revived_the_trial_says_what_died(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = await search(FragileTunnel(30e6, 50e6), monkeypatch, can_revive=False)
    assert trial.status == "void"
    assert trial.reason is not None
    assert "ssh died while measuring, with status 255" in trial.reason


async def test_a_tunnel_that_does_not_come_up_again_makes_the_trial_void(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tunnel = FragileTunnel(30e6, 50e6)

    async def fails() -> Any:  # noqa: ANN401
        raise NodeError("no payload came through")

    monkeypatch.setattr(tunnel, "revive", fails)
    trial = await search(tunnel, monkeypatch)
    assert trial.status == "void"
    assert trial.reason is not None
    assert trial.reason.startswith("ssh died while measuring")


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (0.0, []),
        (0.005, []),  # The goal itself, which `conditional` has where a study names none.
        (0.007, []),  # Of 10,000 datagrams, within three standard deviations of it.
        (0.0072, ["capacity-not-held"]),
        (0.047, ["capacity-not-held"]),
    ],
)
async def test_a_capacity_at_which_the_trial_loses_too_much_is_doubted(
    loss: float, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = await search(FragileTunnel(carries=30e6, dies_above=1e9), monkeypatch, loss=loss)
    assert [warning.kind for warning in trial.warnings] == told
    if loss == 0.047:
        assert "lost 4.7 %, where the search allows 0.5 %" in trial.warnings[0].message
