"""Runs one trial: drives the load, reads the counters around its measured window, records both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime

from tunnelbench.campaign.costs import Accounts, NodeCosts, WireCount, count_wire, node_costs, read_accounts
from tunnelbench.campaign.packets import PacketFiles
from tunnelbench.campaign.traffic import traffic_of
from tunnelbench.errors import UserError
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.lab import Lab
from tunnelbench.lab.together import together
from tunnelbench.lab.topology import Family, Site
from tunnelbench.load import drivers
from tunnelbench.load.background import bulk, measure_beside
from tunnelbench.load.base import Endpoint, Measurement, Traffic, WindowPlan, Workload
from tunnelbench.load.clients import all_clients
from tunnelbench.store.model import TrialRecord, WarningRecord
from tunnelbench.study.model import Method, Socket
from tunnelbench.study.points import Point
from tunnelbench.tunnels.base import Established
from tunnelbench.tunnels.path import BACKGROUND_PORT, SERVICE_PORT, target


@dataclass(frozen=True)
class Bench:
    """Where trials take place: an open lab with a proven tunnel in it."""

    lab: Lab
    established: Established
    socket: Socket = field(default_factory=Socket)
    """How the sockets of the traffic are set."""
    contents: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Payload from files, by the path that points name it by."""
    packets: PacketFiles | None = None
    """Where packet logs go, if datagrams are to be logged."""
    revive: Callable[[], Awaitable[Established]] | None = None
    """Brings a tunnel that died up again, proven. Raises NodeError or UserError."""


async def run_trial(bench: Bench, point: Point, position: int, method: Method) -> TrialRecord:
    """Measures one point. What goes wrong in the lab makes the trial void, and never raises."""
    started = datetime.now(UTC)
    try:
        return await measure_trial(bench, point, position, method)
    except (NodeError, UserError) as error:
        reason = problem_of(bench) or str(error)
    return TrialRecord(
        position=position, point=point, started=started, seconds=method.window, status="void", reason=reason
    )


async def measure_trial(bench: Bench, point: Point, position: int, method: Method) -> TrialRecord:
    """Measures one point. Raises NodeError or UserError where it can't, and then leaves no packet log."""
    started = datetime.now(UTC)
    window = _Window(bench.lab)
    try:
        wire_before = await count_wire(bench.lab, point.direction)
        measurement = await drive(bench, point, method, window.plan)
        wire_after = await count_wire(bench.lab, point.direction)
        costs = await window.costs()
        logs = await bench.packets.fetch(position, measurement.packet_logs) if bench.packets else []
        if problem := problem_of(bench):
            raise NodeError(problem)
    except BaseException:
        window.cancel()
        if bench.packets:
            bench.packets.remove(position)
        raise
    return TrialRecord(
        position=position,
        point=point,
        started=started,
        seconds=method.window,
        metrics={**measurement.metrics, **_wire_metrics(measurement, wire_before, wire_after)},
        node_costs=costs,
        series=measurement.series,
        histograms=measurement.histograms,
        warnings=[
            *(WarningRecord(doubt.kind, doubt.message, doubt.advice) for doubt in measurement.warnings),
            *(bench.packets.doubts(logs) if bench.packets else ()),
        ],
        packet_logs=logs,
    )


async def drive(bench: Bench, point: Point, method: Method, window: WindowPlan) -> Measurement:
    """Drives the traffic of all clients at once, each to a port of its own on the server, and its background.

    Raises NodeError or LoadError where it has no result.
    """
    clients = (
        _drive_client(bench, client, number, point, method, window)
        for number, client in enumerate(bench.lab.topology.clients)
    )
    return all_clients(await together(*clients))


async def _drive_client(
    bench: Bench, client: Site, number: int, point: Point, method: Method, window: WindowPlan
) -> Measurement:
    traffic = traffic_of(point, bench.socket, bench.contents, method.seed)
    workload = _workload(bench, client, SERVICE_PORT + number, traffic, method)
    driver, nodes = drivers()[point.load], bench.lab.nodes
    ends = nodes[client.host], nodes[bench.lab.topology.server.host]
    if point.background == "none":
        return await driver.measure(*ends, workload, window)
    stream = _workload(bench, client, BACKGROUND_PORT + number, bulk(point.background, point.ip), method)
    return await measure_beside(stream, driver, *ends, workload, window)


def _workload(bench: Bench, client: Site, port: int, traffic: Traffic, method: Method) -> Workload:
    """Traffic between a client and a port of the server."""
    server, family = bench.lab.topology.server, Family(traffic.ip)
    aim = target(bench.established, server, family, port)
    return Workload(
        **{part.name: getattr(traffic, part.name) for part in fields(Traffic)},
        warm_up_s=method.warm_up_seconds,
        measure_s=method.window,
        cool_down_s=method.cool_down,
        server=Endpoint(str(server.inside.address(family)), port),
        connect=Endpoint(str(aim.address), aim.port),
        proxy=Endpoint(str(aim.proxy.address), aim.proxy.port) if aim.proxy else None,
        client_address=str(client.inside.address(family)),
        together=len(bench.lab.topology.clients) > 1,
        packet_log=bench.packets is not None,
    )


class _Window:
    """Reads the counters when the load's measured window opens and when it closes."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._readings: asyncio.Task[tuple[Accounts, Accounts]] | None = None

    def plan(self, opens_in: float, lasts: float) -> None:
        """The window opens in so many seconds and lasts so long; of several clients the last one says it."""
        self.cancel()
        self._readings = asyncio.create_task(self._read(opens_in, lasts))

    async def costs(self) -> NodeCosts:
        """The costs of the window; raises NodeError when a node was gone by its end."""
        if self._readings is None:
            raise NodeError("the load did not say when it measured")
        before, after = await self._readings
        return node_costs(self._lab, before, after)

    def cancel(self) -> None:
        """Ends the wait for a window that will not come."""
        if self._readings is not None:
            self._readings.cancel()

    async def _read(self, opens_in: float, lasts: float) -> tuple[Accounts, Accounts]:
        await asyncio.sleep(opens_in)
        before = await read_accounts(self._lab)
        await asyncio.sleep(lasts)
        return before, await read_accounts(self._lab)


def problem_of(bench: Bench) -> str | None:
    """What broke while measuring: a daemon or a node that is no more; None where nothing did."""
    dead = bench.established.dead()
    if dead is not None:
        return (
            f"{dead.arguments[0]} died while measuring, with status {dead.status}; "
            f"its last lines:\n{dead.log_tail(5)}"
        )
    gone = [name for name, node in bench.lab.nodes.items() if not node.alive]
    if gone:
        console = bench.lab.console(gone[0])
        return f"{', '.join(gone)} ended while measuring" + (f"; its console:\n{console}" if console else "")
    return None


def _wire_metrics(measurement: Measurement, before: WireCount, after: WireCount) -> dict[str, float]:
    """The wire's share of all that the trial delivered, warm-up and cool-down included: both are counts."""
    metrics: dict[str, float] = {}
    if measurement.delivered_bytes:
        metrics["wire_overhead"] = (after.bytes - before.bytes) / measurement.delivered_bytes
    if measurement.delivered_packets:
        metrics["wire_packets"] = (after.packets - before.packets) / measurement.delivered_packets
    return metrics
