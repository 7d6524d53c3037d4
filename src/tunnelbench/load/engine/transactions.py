"""Requests and responses: what netperf calls RR and CRR."""

from __future__ import annotations

import secrets
from asyncio import gather
from contextlib import AsyncExitStack

from tunnelbench.lab.traffic import (
    Protocol,
    Transacted,
    Transaction,
    TransactionRun,
    TransactionServe,
    TransactionsServed,
)
from tunnelbench.load.base import LoadError, Measurement, Workload
from tunnelbench.load.engine import doubts, metrics
from tunnelbench.load.engine.scene import Scene, ended, reached

MEASURES = frozenset(
    {
        "transactions_per_second",
        *(f"round_trip_{quantile}" for quantile in metrics.QUANTILES),
        *("connect_p50", "connect_p99"),
    }
)


async def measure(scene: Scene) -> Measurement:
    """One trial; raises LoadError where no transaction was completed."""
    workload, session = scene.workload, secrets.randbits(64)
    transaction = _transaction(workload)
    serve = TransactionServe(
        bind=str(workload.server),
        session=session,
        schedule=scene.server_schedule,
        transaction=transaction,
        socket=scene.socket_options,
    )
    async with AsyncExitStack() as running:
        server = await scene.server.start_traffic(serve, TransactionsServed)
        running.push_async_callback(ended, server)
        run = TransactionRun(
            destination=str(reached(workload.connect, server)),
            proxy=str(workload.proxy) if workload.proxy else None,
            session=session,
            schedule=scene.client_schedule,
            transaction=transaction,
            socket=scene.socket_options,
        )
        client = await scene.client.start_traffic(run, Transacted)
        running.push_async_callback(ended, client)
        transacted, _ = await gather(client.outcome(scene.timeout), server.outcome(scene.timeout))
    return _measurement(workload, transaction, transacted)


def _transaction(workload: Workload) -> Transaction:
    protocol: Protocol = workload.transport
    response = workload.payload if workload.response_bytes is None else workload.response_bytes
    return Transaction(
        protocol=protocol,
        request_bytes=workload.payload,
        response_bytes=response,
        fresh_connections=workload.pattern == "connect-request-response",
        concurrency=workload.concurrency,
    )


def _measurement(workload: Workload, transaction: Transaction, transacted: Transacted) -> Measurement:
    if transacted.round_trip is None or transacted.transactions == 0:
        raise LoadError("no transaction was completed in the measured window")
    found = {
        "transactions_per_second": transacted.transactions / workload.measure_s,
        **metrics.quantiles("round_trip", transacted.round_trip),
    }
    if transacted.connect is not None:
        found |= metrics.quantiles("connect", transacted.connect, "p50", "p99")
    steps = transacted.series
    return Measurement(
        delivered_bytes=transacted.total * (transaction.request_bytes + transaction.response_bytes),
        metrics=found,
        histograms=metrics.encoded({"round_trip": transacted.round_trip, "connect": transacted.connect}),
        series={"transactions_per_second": [count * 1e9 / steps.step for count in steps.completed]},
        warnings=doubts.of_transactions(transacted),
    )
