"""Trials beside a bulk stream, on a path that is made up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from ipaddress import IPv4Address
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from tunnelbench.campaign import trial as trials
from tunnelbench.campaign.costs import WireCount
from tunnelbench.campaign.trial import Bench, run_trial
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.topology import TOPOLOGIES, Family
from tunnelbench.load import engine
from tunnelbench.load.background import AFTER_S, BEFORE_S
from tunnelbench.load.base import Endpoint, Measurement, WindowPlan, Workload
from tunnelbench.store.model import TrialRecord
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import SendingRate
from tunnelbench.study.vocabulary import Background
from tunnelbench.tunnels.base import Target
from tunnelbench.tunnels.path import BACKGROUND_PORT, SERVICE_PORT

QUIET = Point(
    transport="udp",
    ip="ipv4",
    payload_bytes=200,
    rate=SendingRate(100, "packets/s"),
    direction="forward",
    load="engine",
)
METHOD = Method.model_validate({"trial": "2 s", "warm_up": "500 ms", "cool_down": "200 ms"})
FORWARDED = {(Family.IPV4, BACKGROUND_PORT): Target(IPv4Address("10.1.0.1"), BACKGROUND_PORT)}


class Path:
    """Stands in for the engine: datagrams wait for 50 ms while a stream fills the path, and else for 1 ms."""

    def __init__(self, stream: float | Exception = 20.0) -> None:
        self.stream = stream
        self.is_full = False
        self.driven: list[Workload] = []

    async def measure(
        self, _client: object, _server: object, workload: Workload, window: WindowPlan
    ) -> Measurement:
        self.driven.append(workload)
        if workload.transport == "tcp":
            if isinstance(self.stream, Exception):
                raise self.stream
            self.is_full = True
            return Measurement(metrics={"throughput": self.stream})
        window(0.0, 0.0)
        await asyncio.sleep(0.01)  # until the stream is there, if one is to be
        seconds = workload.warm_up_s + workload.measure_s + workload.cool_down_s
        return Measurement(
            delivered_bytes=round(seconds * 20_000),
            delivered_packets=round(seconds * 100),
            metrics={"latency_p50": 50.0 if self.is_full else 1.0},
            series={"latency": [1.0] * round(seconds * 10)},
        )


async def measured(
    path: Path,
    background: Background,
    monkeypatch: pytest.MonkeyPatch,
    forwards: Mapping[tuple[Family, int], Target] = MappingProxyType({}),
) -> TrialRecord:
    async def counted(*_: object) -> WireCount:
        return WireCount(0, 0)

    async def accounts(*_: object) -> dict[str, object]:
        return {}

    def no_costs(*_: object) -> dict[str, dict[str, float]]:
        return {}

    monkeypatch.setattr(trials, "drivers", lambda: {"engine": path})
    monkeypatch.setattr(engine, "DRIVER", path)
    monkeypatch.setattr(trials, "count_wire", counted)
    monkeypatch.setattr(trials, "read_accounts", accounts)
    monkeypatch.setattr(trials, "node_costs", no_costs)
    topology = TOPOLOGIES["site-to-site"]
    lab: Any = SimpleNamespace(
        topology=topology, nodes={name: SimpleNamespace(alive=True) for name in topology.nodes}
    )
    established: Any = SimpleNamespace(dead=lambda: None, proxies={}, forwards=forwards)
    point = QUIET.model_copy(update={"background": background})
    return await run_trial(Bench(lab, established), point, 0, METHOD)


async def test_nothing_runs_beside_traffic_that_is_to_be_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path()
    trial = await measured(path, "none", monkeypatch)
    assert (trial.status, trial.metrics["latency_p50"]) == ("ok", 1.0)
    (workload,) = path.driven
    assert (workload.server.port, workload.warm_up_s) == (SERVICE_PORT, 0.5)
    assert "wire_overhead" in trial.metrics
    assert len(trial.series["latency"]) == 20


@pytest.mark.parametrize(
    ("background", "direction"), [("tcp", "forward"), ("tcp-reverse", "reverse"), ("tcp-both", "both")]
)
async def test_a_stream_surrounds_the_trial_and_its_throughput_is_kept(
    background: Background, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path()
    trial = await measured(path, background, monkeypatch)
    assert (trial.status, trial.reason) == ("ok", None)
    assert trial.point.background == background
    # What crosses the wire belongs to both, so that there is no overhead.
    assert trial.metrics == {"latency_p50": 50.0, "background_throughput": 20.0}
    probe, stream = sorted(path.driven, key=lambda workload: workload.server.port)
    assert (probe.transport, probe.server.port) == ("udp", SERVICE_PORT)
    assert (stream.transport, stream.server.port, stream.direction) == ("tcp", BACKGROUND_PORT, direction)
    assert (stream.congestion_control, probe.congestion_control) == ("cubic", None)
    assert probe.warm_up_s == stream.warm_up_s == pytest.approx(BEFORE_S + 0.5)
    assert probe.measure_s == stream.measure_s == METHOD.window
    assert stream.cool_down_s == pytest.approx(probe.cool_down_s + AFTER_S)
    # As if the trial had begun with its own warm-up.
    assert len(trial.series["latency"]) == 20
    assert trial.seconds == METHOD.window
    assert trial.warnings == []


async def test_where_single_ports_are_forwarded_the_stream_has_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = Path()
    await measured(path, "tcp", monkeypatch, FORWARDED)
    stream = next(workload for workload in path.driven if workload.transport == "tcp")
    assert stream.connect == Endpoint("10.1.0.1", BACKGROUND_PORT)
    assert stream.server.address != stream.connect.address


@pytest.mark.parametrize(("throughput", "kinds"), [(0.05, ["idle-background"]), (0.5, [])])
async def test_a_stream_that_carried_next_to_nothing_is_a_doubt(
    throughput: float, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = await measured(Path(throughput), "tcp", monkeypatch)
    assert [warning.kind for warning in trial.warnings] == kinds
    assert trial.metrics["background_throughput"] == throughput


async def test_without_a_stream_there_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(NodeError("host2: no byte arrived over TCP in the measured window"))
    trial = await measured(path, "tcp", monkeypatch)
    assert trial.status == "void"
    assert trial.reason == (
        "the TCP stream beside the measured traffic failed: "
        "host2: no byte arrived over TCP in the measured window"
    )
    assert trial.metrics == {}
