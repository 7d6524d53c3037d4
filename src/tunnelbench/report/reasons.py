"""Why each tunnel is as fast as it is: `analysis.why` for the results of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import polars

from tunnelbench.analysis.frames import POINT, TREATMENT
from tunnelbench.analysis.why import Cipher, Costs, Explanation, Hop, explain
from tunnelbench.lab.airtime import FRAMING
from tunnelbench.overhead.model import PLAIN
from tunnelbench.report.as_run import link_as_run
from tunnelbench.report.content import MACHINE, Explained, Result, Section
from tunnelbench.report.numbers import Numbers
from tunnelbench.store.model import CampaignRecord, CryptographyRecord
from tunnelbench.study.model import Link
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment
from tunnelbench.tunnels.predictions import payload_per_packet, predicted_overhead

_COMPUTING = ("gw", "client")
"""How the names of nodes begin that do a tunnel's work, where there are any; otherwise hosts do it."""

Counts = Mapping[tuple[Treatment, str, Point], Mapping[str, float]]
"""Cell to node to what was counted of it."""


def explained(
    sections: Iterable[Section],
    campaign: CampaignRecord,
    records: Iterable[CryptographyRecord],
    numbers: Numbers,
) -> Iterator[Explained]:
    """Every result of these sections that has a throughput of its own."""
    ciphers = {
        (record.treatment, record.runtime): Cipher(
            record.ns_per_packet,
            record.ns_per_byte,
            is_accounted=record.runtime == "kernel" or not record.implementation.startswith("Linux"),
        )
        for record in records
        if record.ns_per_packet is not None and record.ns_per_byte is not None
    }
    link_rate, n_processors = link_rate_of(campaign), _processors_of(campaign)
    link = link_as_run(campaign)
    counted = _Counted(_by_cell(numbers.switches), _by_cell(numbers.queued), _by_cell(numbers.system_calls))
    for section in sections:
        if section.point.question not in ("throughput", "capacity"):
            continue
        costs = {
            (result.treatment, result.runtime): _costs(result, n_processors, counted)
            for result in section.results
            if result.throughput is not None and result.throughput.median > 0
        }
        for result in section.results:
            place = (result.treatment, result.runtime)
            if place not in costs:
                continue
            plain = None if result.treatment.is_baseline else costs.get((result.treatment.baseline, place[1]))
            hop = hop_of(link, result.treatment, result.point)
            found = _explain(costs[place], plain, ciphers.get(place), link_rate, hop)
            yield Explained(result, found)


def link_rate_of(campaign: CampaignRecord) -> float | None:
    """Mbit/s of the link that the tunnel crosses; None for one without a limit."""
    rate = link_as_run(campaign).rate
    return None if rate is None else rate / 1e6


def hop_of(link: Link, treatment: Treatment, point: Point) -> Hop | None:
    """The study's hop of Wi-Fi, and what plain IP's packets at a point take of it by their formats."""
    if link.wifi_rate is None:
        return None
    rate = link.wifi_rate / 1e6
    on_ethernet = predicted_overhead(PLAIN, point, treatment.mtu)
    payload = payload_per_packet(treatment.baseline, point)
    if on_ethernet is None or payload is None:
        return Hop(rate)
    return Hop(rate, on_ethernet + FRAMING / payload)


def _explain(
    costs: Costs, plain: Costs | None, cipher: Cipher | None, link_rate: float | None, hop: Hop | None
) -> Explanation:
    nodes = sorted(costs.processors)
    computing = [node for node in nodes if node.startswith(_COMPUTING)] or nodes
    return explain(costs, tuple(computing), plain, cipher, link_rate, hop)


@dataclass(frozen=True)
class _Counted:
    switches: Counts
    queued: Counts
    system_calls: Counts


def _costs(result: Result, n_processors: int | None, counted: _Counted) -> Costs:
    def median(metric: str) -> float | None:
        estimate = result.metrics.get(metric)
        return None if estimate is None else estimate.median

    throughput = median("throughput")
    assert throughput is not None
    cell = (result.treatment, result.runtime, result.point)
    return Costs(
        throughput=throughput,
        processors={node: estimate.median for node, estimate in result.processor.items() if node != MACHINE},
        machine=result.machine,
        n_processors=n_processors,
        wire_overhead=median("wire_overhead"),
        wire_predicted=median("wire_overhead_predicted"),
        payload_per_packet=payload_per_packet(result.treatment, result.point),
        switches=counted.switches.get(cell, {}),
        queued=counted.queued.get(cell, {}),
        system_calls=counted.system_calls.get(cell, {}),
    )


def _by_cell(values: polars.DataFrame) -> Counts:
    found: dict[tuple[Treatment, str, Point], dict[str, float]] = {}
    for row in values.iter_rows(named=True):
        treatment = Treatment.model_validate({column: row[column] for column in TREATMENT})
        point = Point.model_validate({column: row[column] for column in POINT})
        found.setdefault((treatment, row["runtime"], point), {})[row["node"]] = row["value"]
    return found


def _processors_of(campaign: CampaignRecord) -> int | None:
    count = campaign.versions.machine.get("processors", "")
    return int(count) if count.isdecimal() else None
