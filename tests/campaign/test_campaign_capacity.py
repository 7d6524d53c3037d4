"""Capacities of tunnels that swallow, lose and die under too much, with traffic that is made up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tunnelbench.campaign import capacity, rate_trials
from tunnelbench.campaign.packets import PacketFiles
from tunnelbench.campaign.trial import Bench
from tunnelbench.lab.connection import NodeError
from tunnelbench.load.base import LoadError, NothingArrivedError
from tunnelbench.load.search.holding import MOST_TRIALS
from tunnelbench.store.model import PacketLogRecord, TrialRecord
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import CAPACITY, SendingRate

POINT = Point(
    transport="udp", ip="ipv4", payload_bytes=1000, rate=CAPACITY, direction="forward", load="engine"
)
SEARCH = {"highest": "100 Mbit/s", "trial": "100 ms", "width": "5 %"}
METHOD = Method.model_validate({"trial": "2.2 s", "capacity": SEARCH})
LAB: Any = SimpleNamespace(topology=SimpleNamespace(clients=[None]), nodes={})


class Tunnel:
    """Carries up to one rate, swallows some of what is too much, and dies above another; bits per second."""

    def __init__(
        self, carries: float, dies_above: float = 1e9, *, swallows: float = 0.0, usually_loses: float = 0.0
    ) -> None:
        self.carries = carries
        self.dies_above = dies_above
        self.swallows = swallows
        self.usually_loses = usually_loses
        self.is_dead = False
        self.times_up = 1
        self.is_drained = False
        self.sent_seconds = 0.0
        self.usual_rates: list[float] = []

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

    async def drive(self, bench: Bench, point: Point, method: Method, *_: object) -> Any:  # noqa: ANN401
        assert bench.packets is None
        return SimpleNamespace(metrics=self.send(point, method))

    async def usual_trial(self, bench: Bench, point: Point, position: int, method: Method) -> TrialRecord:
        """Leaves a packet log where one is asked for."""
        metrics = self.send(point, method)
        offered, loss = metrics["offered"], max(metrics["loss"], self.usually_loses)
        self.usual_rates.append(offered)
        metrics["loss"] = loss
        metrics["packets_per_second"] = offered * 1e6 / 8000 * (1 - loss)
        metrics["throughput"] = min(offered * (1 - loss), self.carries / 1e6)
        logs: list[PacketLogRecord] = []
        if bench.packets:
            path = bench.packets.directory / f"{bench.packets.instance:05}-{position:04}-sender.parquet"
            assert not path.exists(), "the log of a trial that failed was left behind"
            path.write_text(str(offered))
            logs.append(PacketLogRecord("sender", path.name, path.stat().st_size))
        return TrialRecord(
            position, point, datetime.now(UTC), method.window, metrics=metrics, packet_logs=logs
        )

    def send(self, point: Point, method: Method) -> dict[str, float]:
        assert not self.is_dead, "the search goes on through a tunnel that is dead"
        assert self.is_drained, "what one rate left in the queues would be lost at the next"
        self.is_drained = False
        assert isinstance(point.rate, SendingRate)
        assert point.rate.amount is not None
        rate = point.rate.amount
        self.sent_seconds += method.trial
        self.is_dead = rate > self.dies_above
        if self.is_dead:
            raise NothingArrivedError(1000, rate / 1e6)
        lost = max(0.0, (rate - self.carries) * method.trial - self.swallows)
        return {"offered": rate / 1e6, "loss": lost / (rate * method.trial)}


def logs_in(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


async def search(
    tunnel: Tunnel,
    monkeypatch: pytest.MonkeyPatch,
    *,
    can_revive: bool = True,
    packets: PacketFiles | None = None,
    method: Method = METHOD,
) -> TrialRecord:
    monkeypatch.setattr(rate_trials, "drive", tunnel.drive)
    monkeypatch.setattr(rate_trials, "measure_trial", tunnel.usual_trial)
    monkeypatch.setattr(rate_trials, "await_first_reply", tunnel.reply)
    established: Any = tunnel
    bench = Bench(LAB, established, packets=packets, revive=tunnel.revive if can_revive else None)
    tried: list[tuple[float, float]] = []
    trial = await capacity.run_point(bench, POINT, 0, method, lambda rate, loss: tried.append((rate, loss)))
    assert all(0 <= loss <= 1 for _, loss in tried)
    return trial


async def test_a_rate_that_kills_is_not_carried_and_the_search_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tunnel = Tunnel(30e6, 50e6)
    trial = await search(tunnel, monkeypatch)
    assert trial.status == "ok"
    assert trial.metrics["capacity"] == pytest.approx(30, rel=0.06)
    assert tunnel.times_up > 1
    (warning,) = trial.warnings
    assert warning.kind == "died-in-search"
    deaths = tunnel.times_up - 1
    assert ("once" if deaths == 1 else f"{deaths} times") in warning.message


async def test_a_tunnel_that_lives_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tunnel = Tunnel(30e6)
    trial = await search(tunnel, monkeypatch)
    assert trial.metrics["capacity"] == pytest.approx(30, rel=0.06)
    assert (tunnel.times_up, trial.warnings) == (1, [])


async def test_where_nothing_can_be_revived_the_trial_says_what_died(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = await search(Tunnel(30e6, 50e6), monkeypatch, can_revive=False)
    assert trial.status == "void"
    assert trial.reason is not None
    assert "ssh died while measuring, with status 255" in trial.reason


async def test_a_tunnel_that_does_not_come_up_again_makes_the_trial_void(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tunnel = Tunnel(30e6, 50e6)

    async def fails() -> Any:  # noqa: ANN401
        raise NodeError("no payload came through")

    monkeypatch.setattr(tunnel, "revive", fails)
    trial = await search(tunnel, monkeypatch)
    assert trial.status == "void"
    assert trial.reason is not None
    assert trial.reason.startswith("ssh died while measuring")


async def test_what_short_trials_left_in_a_queue_is_not_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    tunnel = Tunnel(30e6, swallows=4e6)
    trial = await search(tunnel, monkeypatch)
    assert tunnel.usual_rates[0] > 45
    assert len(tunnel.usual_rates) <= 3
    assert trial.metrics["capacity"] == pytest.approx(30, rel=0.06)
    assert trial.metrics["capacity"] == pytest.approx(trial.metrics["offered"])
    assert trial.metrics["capacity_upper"] == pytest.approx(tunnel.usual_rates[-2])
    assert trial.metrics["capacity_pps"] == pytest.approx(trial.metrics["capacity"] * 125)
    assert trial.warnings == []


async def test_usual_trials_that_failed_are_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    tunnel = Tunnel(30e6, swallows=4e6)
    trial = await search(tunnel, monkeypatch)
    failed = tunnel.usual_rates[:-1]
    assert len(failed) > 0
    assert list(trial.series["search_rate"][-len(failed) :]) == pytest.approx(failed)
    assert all(loss > 0.005 for loss in trial.series["search_loss"][-len(failed) :])
    assert trial.metrics["capacity_trials"] == len(trial.series["search_rate"])
    # All that was sent is either of the search or the trial itself.
    assert trial.metrics["capacity_seconds"] + METHOD.trial == pytest.approx(tunnel.sent_seconds)


async def test_only_the_trial_that_held_leaves_packet_logs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tunnel = Tunnel(30e6, swallows=4e6)
    trial = await search(tunnel, monkeypatch, packets=PacketFiles(tmp_path, 1))
    assert len(tunnel.usual_rates) > 1
    (record,) = trial.packet_logs
    assert logs_in(tmp_path) == {record.file: str(trial.metrics["offered"])}


async def test_where_even_the_lowest_rate_fails_the_trial_is_void_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tunnel = Tunnel(30e6, usually_loses=0.9)
    trial = await search(tunnel, monkeypatch, packets=PacketFiles(tmp_path, 1))
    assert trial.status == "void"
    assert trial.reason == (
        "short trials passed, but in usual ones even 1 Mbit/s lose more than the goal allows"
    )
    assert tunnel.usual_rates[-1] == 1
    assert logs_in(tmp_path) == {}


async def test_where_short_trials_fail_at_the_lowest_rate_no_usual_one_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tunnel = Tunnel(0.5e6)
    trial = await search(tunnel, monkeypatch)
    assert trial.reason == "even 1 Mbit/s lose more than the goal allows"
    assert tunnel.usual_rates == []


async def test_a_capacity_that_no_usual_trial_held_is_doubted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tunnel = Tunnel(30e6, usually_loses=0.047)
    trial = await search(tunnel, monkeypatch, packets=PacketFiles(tmp_path, 1))
    (warning,) = trial.warnings
    assert warning.kind == "capacity-not-held"
    assert "none of 5 usual trials" in warning.message
    assert "lost 4.7 %, where the search allows 0.5 %" in warning.message
    assert len(tunnel.usual_rates) == MOST_TRIALS
    assert trial.metrics["capacity"] == trial.metrics["capacity_upper"]
    assert trial.metrics["capacity"] == pytest.approx(tunnel.usual_rates[-1])
    assert trial.metrics["capacity_seconds"] + METHOD.trial == pytest.approx(tunnel.sent_seconds)
    assert list(logs_in(tmp_path)) == [record.file for record in trial.packet_logs]


async def test_a_tunnel_that_dies_in_usual_trials_alone_gets_lower_rates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tunnel = Tunnel(30e6)
    usual_trial = tunnel.usual_trial

    async def dies_above_25(bench: Bench, point: Point, position: int, method: Method) -> TrialRecord:
        tunnel.dies_above = 25e6
        return await usual_trial(bench, point, position, method)

    monkeypatch.setattr(tunnel, "usual_trial", dies_above_25)
    trial = await search(tunnel, monkeypatch)
    assert trial.metrics["capacity"] == pytest.approx(0.75 * 30, rel=0.06)
    assert trial.metrics["capacity_upper"] == pytest.approx(30, rel=0.06)
    assert trial.series["search_loss"][-1] == 1.0
    assert [warning.kind for warning in trial.warnings] == ["died-in-search"]


async def fails(*_: object) -> TrialRecord:
    raise LoadError("the sender missed its start")


async def stands_still(*_: object) -> TrialRecord:
    raise NothingArrivedError(1000, 30)


@pytest.mark.parametrize(
    ("usual_trial", "reason"),
    [
        (fails, "the sender missed its start"),
        (stands_still, "under the last of 5 usual trials at ever lower rates the tunnel died or stood still"),
    ],
)
async def test_without_any_numbers_of_usual_trials_the_trial_is_void(
    usual_trial: Callable[..., Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tunnel = Tunnel(60e6)
    monkeypatch.setattr(tunnel, "usual_trial", usual_trial)
    trial = await search(tunnel, monkeypatch)
    assert (trial.status, trial.reason) == ("void", reason)


@given(
    carries=st.floats(2e6, 90e6),
    swallows=st.floats(0, 200e6),
    goal=st.sampled_from([0.005, 0.01, 0.03]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
async def test_the_capacity_is_a_rate_at_which_no_more_was_lost_than_the_goal_allows(
    carries: float, swallows: float, goal: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = Method.model_validate({"trial": "2.2 s", "capacity": {**SEARCH, "loss_goal": f"{100 * goal} %"}})
    trial = await search(Tunnel(carries, swallows=swallows), monkeypatch, method=method)
    assert trial.status == "ok"
    assert {warning.kind for warning in trial.warnings} <= {"capacity-not-reached"}
    assert trial.metrics["capacity"] == pytest.approx(trial.metrics["offered"])
    sent = trial.metrics["offered"] * 1e6 / 8000 * trial.seconds
    assert trial.metrics["loss"] <= goal + 3 * (goal * (1 - goal) / sent) ** 0.5 + 1e-9
