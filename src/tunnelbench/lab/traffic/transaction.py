"""Requests and responses."""

from __future__ import annotations

from tunnelbench.lab.traffic.common import Histogram, Message, Schedule, SocketOptions, Tagged
from tunnelbench.lab.traffic.echo import Protocol, RoundTripSeries

DEFAULT_TRANSACTION_TIMEOUT = 1_000_000_000
"""How long a connection may take and, over UDP, a response, ns."""


class Transaction(Message, frozen=True, kw_only=True):
    """What a transaction is; both ends must agree."""

    protocol: Protocol
    request_bytes: int
    """1 byte to 1 MiB; over UDP at most 65507."""
    response_bytes: int
    """Within the same limits."""
    fresh_connections: bool = False
    """A new TCP connection for each transaction."""
    concurrency: int = 1
    """How many are under way at once, each on a connection of its own, 1 to 128."""


class TransactionServe(Tagged, frozen=True, kw_only=True, tag="transaction_serve"):
    """Answers the requests of a `TransactionRun` job."""

    bind: str
    """Where to listen; port 0 lets the system choose."""
    session: int
    """The secret of this job, 64 bits."""
    schedule: Schedule
    transaction: Transaction
    peer: str | None = None
    """The only address whose datagrams are answered, for one that is known."""
    socket: SocketOptions = SocketOptions()


class TransactionRun(Tagged, frozen=True, kw_only=True, tag="transaction_run"):
    """Sends requests to a `TransactionServe` job, each when the response to the last has come."""

    destination: str
    """The server, or a port that is forwarded to it."""
    proxy: str | None = None
    """A SOCKS 5 proxy that connects to the destination (RFC 1928); for TCP."""
    session: int
    schedule: Schedule
    transaction: Transaction
    timeout: int = DEFAULT_TRANSACTION_TIMEOUT
    socket: SocketOptions = SocketOptions()


class TransactionsServed(Tagged, frozen=True, kw_only=True, tag="transaction_serve"):
    """What a server of transactions did."""

    responses: int
    """In all phases; more than the client's transactions where requests came twice."""
    connections: int
    """Of this job; over UDP, sources."""
    foreign: int
    """Connections and datagrams that were not of this job."""
    processor: int
    """Processor time in the measured window, all threads, ns."""


class Transacted(Tagged, frozen=True, kw_only=True, tag="transaction_run"):
    """What a client of transactions saw."""

    transactions: int
    """Completed in the measured window."""
    failures: int
    """Attempts that failed in the measured window, each followed by another at the same transaction."""
    round_trip: Histogram | None
    """From the beginning of a transaction to its response, with a fresh connection and all attempts."""
    connect: Histogram | None
    """Until a fresh connection was established; None without fresh connections."""
    series: RoundTripSeries
    """Each transaction where it began and where it was completed."""
    total: int
    """Completed in all phases."""
    processor: int
    """Processor time in the measured window, all threads, ns."""
