"""ping of iputils, for results that compare with the literature."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tunnelbench.load.abilities import Abilities
from tunnelbench.load.base import (
    Completed,
    LoadError,
    Measurement,
    Traffic,
    TrafficNode,
    WindowPlan,
    Workload,
)

_REPLY_S = 1
"""How long ping waits for the last replies where none came at all; otherwise two round trips, seconds."""
_GRACE_S = 15.0
"""How much longer than planned a trial may take before it is given up, seconds."""
_LEAST_DATA = 16
"""Bytes that ping needs to note when an echo request left."""
_OFF_PACE = 0.01
"""By how much of itself an interval may differ from whole milliseconds."""
_ABILITIES = Abilities(
    kinds=frozenset({("icmp", "stream")}),
    directions=frozenset({"forward"}),
    socket=frozenset({"dscp", "ttl", "dont_fragment", "buffer"}),
)
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}

_REPLY = re.compile(r"^\[[\d.]+\] \d+ bytes from \S+ icmp_seq=(\d+) .*\btime=([\d.]+) ms", re.MULTILINE)
_SUMMARY = re.compile(r"^(\d+) packets transmitted, (\d+) received(?:, \+(\d+) duplicates)?", re.MULTILINE)


class Ping:
    """Runs a ping on the client's host, and reads the replies and the summary that it prints.

    ping leaves nothing out: there is no warm-up and no cool-down. It paces in whole milliseconds, and counts
    a round trip from when a request left, not from when it was due. At `max` it is adaptive: each request
    follows the reply to the last, for whole seconds, rounded up. A reply counts however late it is.
    """

    name = "ping"
    title = "ping"
    measures = frozenset({"loss", "duplicates", *(f"round_trip_{name}" for name in _QUANTILES)})
    programs = frozenset({"ping"})

    chooses = frozenset[str]()
    speaks_socks = False
    keeps_time = False

    def refusal(self, traffic: Traffic) -> str | None:
        """Why it can't make this traffic; None where it can."""
        refusal = _ABILITIES.refusal(self.title, traffic)
        if refusal is not None:
            return refusal
        if traffic.payload < _LEAST_DATA:
            return f"{self.title} can't time echo requests with less than {_LEAST_DATA} bytes of data"
        interval = _interval_ms(traffic)
        if interval is not None and abs(round(interval) - interval) > _OFF_PACE * interval:
            return f"{self.title} can't send every {interval:.4g} ms: it counts whole milliseconds"
        return None

    async def measure(
        self, client: TrafficNode, server: TrafficNode, workload: Workload, window: WindowPlan
    ) -> Measurement:
        """Runs one trial; raises LoadError, or the node's own error, where it has no result."""
        seconds = _seconds(workload)
        window(0.0, seconds)
        completed = await client.run(*arguments(workload), timeout=seconds + _REPLY_S + _GRACE_S, check=False)
        return parse(completed)


def arguments(workload: Workload) -> list[str]:
    """The command."""
    asked = workload.socket
    command = ["ping", "-D", "-n", "-4" if workload.ip == "ipv4" else "-6"]
    command += ["-s", str(workload.payload_bytes), "-W", str(_REPLY_S)]
    interval = _interval_ms(workload)
    if interval is None:
        command += ["-A", "-w", str(_seconds(workload))]
    else:
        # A time limit would make ping send until so many replies came.
        command += ["-i", f"{round(interval) / 1000:.3f}", "-c", str(_count(workload, interval))]
    if asked.dscp is not None:
        command += ["-Q", str(asked.dscp << 2)]
    if asked.ttl is not None:
        command += ["-t", str(asked.ttl)]
    if asked.dont_fragment:
        command += ["-M", "do"]
    if asked.buffer is not None:
        command += ["-S", str(asked.buffer)]
    return [*command, workload.server.address]


def parse(completed: Completed) -> Measurement:
    """The metrics in what ping printed; raises LoadError where it failed or got no reply."""
    text = completed.stdout.decode(errors="replace")
    summary = _Summary.found_in(text)
    if summary is None:
        said = completed.stderr.decode(errors="replace").strip() or text.strip()
        raise LoadError(f"ping ended with {completed.status} and without its summary: {said}")
    if summary.received == 0:
        raise LoadError(f"none of {summary.transmitted} echo requests was answered")
    first: dict[str, float] = {}
    for number, milliseconds in _REPLY.findall(text):
        first.setdefault(number, float(milliseconds))
    if not first:
        raise LoadError("ping printed no reply with its round trip")
    times = sorted(first.values())
    return Measurement(
        metrics={
            "loss": 1 - summary.received / summary.transmitted,
            "duplicates": summary.duplicates / summary.received,
            **{
                f"round_trip_{name}": times[math.ceil(share * len(times)) - 1]
                for name, share in _QUANTILES.items()
            },
        }
    )


@dataclass(frozen=True, slots=True)
class _Summary:
    transmitted: int
    received: int
    duplicates: int

    @staticmethod
    def found_in(text: str) -> _Summary | None:
        found = _SUMMARY.search(text)
        return None if found is None else _Summary(*(int(count or 0) for count in found.groups()))


def _interval_ms(traffic: Traffic) -> float | None:
    """Between two requests; None for each after the reply to the last."""
    bits_per_second = traffic.bits_per_second
    return None if bits_per_second is None else traffic.payload * 8e3 / bits_per_second


def _count(workload: Workload, interval_ms: float) -> int:
    return max(1, round(workload.measure_s * 1000 / round(interval_ms)))


def _seconds(workload: Workload) -> float:
    """How long a trial lasts, without the wait for the last reply."""
    interval = _interval_ms(workload)
    return max(1, math.ceil(workload.measure_s)) if interval is None else workload.measure_s


DRIVER = Ping()
