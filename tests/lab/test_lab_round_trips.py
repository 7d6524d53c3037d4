"""Echo requests and transactions of the engine through a lab: what comes back is told from what does not."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tunnelbench.lab.image import find
from tunnelbench.lab.lab import Lab, LabPlan
from tunnelbench.lab.node import Node
from tunnelbench.lab.topology import TOPOLOGIES, Family
from tunnelbench.lab.traffic import (
    EchoProbe,
    IcmpEcho,
    ProbeCount,
    Probed,
    ProbeSchedule,
    Schedule,
    SocketOptions,
    Transacted,
    Transaction,
    TransactionRun,
    TransactionServe,
    TransactionsServed,
)
from tunnelbench.tunnels.base import gateways
from tunnelbench.tunnels.plain import TUNNEL

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

_MILLISECOND = 1_000_000
_SECOND = 1_000_000_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lab() -> AsyncGenerator[Lab]:
    async with Lab(LabPlan(TOPOLOGIES["site-to-site"], find())) as lab, AsyncExitStack() as cleanup:
        await TUNNEL.up(*gateways(lab), TUNNEL.variant("none"), cleanup)
        yield lab


def hosts(lab: Lab) -> tuple[Node, Node]:
    client, server = lab.sites
    return lab.nodes[client.host], lab.nodes[server.host]


async def ping(
    lab: Lab,
    family: Family,
    plan: ProbeCount | ProbeSchedule,
    *,
    payload_bytes: int = 56,
    socket: SocketOptions | None = None,
) -> Probed:
    client, _ = hosts(lab)
    _, server = lab.sites
    probing = await client.start_traffic(
        EchoProbe(
            destination=IcmpEcho(str(server.inside.address(family))),
            plan=plan,
            interval=5 * _MILLISECOND,
            payload_bytes=payload_bytes,
            timeout=2 * _SECOND,
            socket=socket or SocketOptions(),
        ),
        Probed,
    )
    return await probing.outcome(120)


def some(count: int) -> ProbeCount:
    return ProbeCount(count=count, deadline=60 * _SECOND)


@pytest.mark.parametrize("family", list(Family))
async def test_echo_requests_of_any_size_come_back(lab: Lab, family: Family) -> None:
    for payload_bytes in (12, 1_400, 20_000):
        probed = await ping(lab, family, some(20), payload_bytes=payload_bytes)
        assert (probed.sent, probed.replies, probed.failures) == (20, 20, 0), payload_bytes
        assert probed.timestamps == "kernel"
        assert probed.round_trip is not None
        assert probed.round_trip.min > 0


@pytest.mark.parametrize("family", list(Family))
async def test_a_schedule_counts_its_window_alone(lab: Lab, family: Family) -> None:
    client, _ = hosts(lab)
    schedule = Schedule(
        await client.clock() + _SECOND,
        100 * _MILLISECOND,
        500 * _MILLISECOND,
        100 * _MILLISECOND,
    )
    probed = await ping(lab, family, ProbeSchedule(schedule))
    assert probed.sent + probed.skipped == 100
    assert probed.total_sent == sum(probed.series.begun) > probed.sent
    assert len(probed.series.begun) == 7


@pytest.mark.parametrize("family", list(Family))
async def test_errors_that_come_back_are_failures_and_no_replies(lab: Lab, family: Family) -> None:
    # The first gateway gives up a packet with no hops left. It tells so, but not of every one.
    expired = await ping(lab, family, some(10), socket=SocketOptions(ttl=1))
    assert (expired.sent, expired.replies) == (10, 0)
    assert 1 <= expired.failures <= 10
    assert expired.round_trip is None


@pytest.mark.parametrize("family", list(Family))
async def test_what_does_not_fit_is_a_failure(lab: Lab, family: Family) -> None:
    socket = SocketOptions(dont_fragment=True)
    probed = await ping(lab, family, some(10), payload_bytes=3_000, socket=socket)
    assert (probed.replies, probed.failures) == (0, 10)


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize(
    "transaction",
    [
        pytest.param(Transaction(protocol="tcp", request_bytes=1, response_bytes=1), id="tcp"),
        pytest.param(Transaction(protocol="udp", request_bytes=64, response_bytes=900), id="udp"),
        pytest.param(
            Transaction(
                protocol="tcp", request_bytes=64, response_bytes=900, fresh_connections=True, concurrency=2
            ),
            id="fresh",
        ),
    ],
)
async def test_both_ends_count_the_same_transactions(
    lab: Lab, family: Family, transaction: Transaction
) -> None:
    client, server = hosts(lab)
    session = secrets.randbits(64)
    address = lab.sites[1].inside.address(family)
    host = f"[{address}]" if address.version == 6 else str(address)
    schedule = Schedule(
        await client.clock() + _SECOND,
        100 * _MILLISECOND,
        500 * _MILLISECOND,
        100 * _MILLISECOND,
    )
    serving = await server.start_traffic(
        TransactionServe(bind=f"{host}:0", session=session, schedule=schedule, transaction=transaction),
        TransactionsServed,
    )
    running = await client.start_traffic(
        TransactionRun(
            destination=f"{host}:{serving.bound_port}",
            session=session,
            schedule=schedule,
            transaction=transaction,
        ),
        Transacted,
    )
    transacted, served = await running.outcome(60), await serving.outcome(60)
    assert 0 < transacted.transactions < transacted.total
    assert served.foreign == 0
    if transacted.failures == 0:
        assert served.responses == transacted.total
    if transaction.fresh_connections:
        waiting = (await client.run("ss", "-Htn", "state", "time-wait")).text.split("\n")
        assert len([line for line in waiting if line]) < transacted.total / 2
