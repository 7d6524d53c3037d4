"""Campaigns for notebooks and scripts: what was measured as polars frames, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars

from tunnelbench.store.model import CampaignRecord
from tunnelbench.store.read import CampaignData

if TYPE_CHECKING:
    from tunnelbench.analysis.findings.verdict import Verdict
    from tunnelbench.report.content import Content


class Campaign:
    """A campaign in a directory. Every call reads it anew, so it may still be running.

    Calls raise UserError if it is of another version or was removed meanwhile.
    """

    def __init__(self, directory: str | Path) -> None:
        """Raises UserError if the directory holds no campaign."""
        self.directory = Path(directory)
        with CampaignData(self.directory):
            pass

    def __repr__(self) -> str:
        return f"tunnelbench.open({str(self.directory)!r})"

    @property
    def about(self) -> CampaignRecord:
        """Study, seed, plan, versions, state, and why it ended."""
        with CampaignData(self.directory) as data:
            return data.campaign()

    def trials(self) -> polars.DataFrame:
        """One row per trial and metric.

        Columns: `campaign_round`, `instance`, `runtime`, the factors, `trial`, `status`, `metric`, `value`.
        """
        with CampaignData(self.directory) as data:
            return data.trials()

    def instances(self) -> polars.DataFrame:
        """One row per bring-up of a tunnel: where it ran and why, how it ended, its set-up in ms."""
        with CampaignData(self.directory) as data:
            return data.instances()

    def cells(self) -> polars.DataFrame:
        """One row per combination of levels, with the reason where it isn't measured."""
        with CampaignData(self.directory) as data:
            return data.cells()

    def node_costs(self) -> polars.DataFrame:
        """One row per trial, node and field: processor seconds, or context switches, per second."""
        with CampaignData(self.directory) as data:
            return data.node_costs()

    def warnings(self) -> polars.DataFrame:
        """One row per doubt about an instance or a trial."""
        with CampaignData(self.directory) as data:
            return data.warnings()

    def series(self, trial: int) -> polars.DataFrame:
        """How one trial went: a row for each 100 ms and a column for each series that it has."""
        with CampaignData(self.directory) as data:
            samples = data.series(trial)
        longest = max(map(len, samples.values()), default=0)
        padded = {name: [*values, *[None] * (longest - len(values))] for name, values in samples.items()}
        return polars.DataFrame(padded, schema=dict.fromkeys(samples, polars.Float64))

    def summary(self) -> polars.DataFrame:
        """One row per cell, runtime and metric: medians, means, intervals, ratios to plain IP."""
        return self._content().summary

    def tiers(self) -> polars.DataFrame:
        """One row per tunnel and point, best first: those of one `tier` can't be told apart."""
        content = self._content()
        rows = [
            {
                "tunnel": result.tunnel,
                "runtime": result.runtime,
                **result.point.model_dump(),
                "metric": result.ranked_by,
                "median": result.ranking and result.ranking.median,
                "tier": result.tier,
            }
            for section in content.sections
            for result in section.results
        ]
        return polars.DataFrame(rows, infer_schema_length=None)

    def why(self) -> polars.DataFrame:
        """One row per tunnel at the headline points: where its throughput went, ceilings in Mbit/s."""
        rows = [
            {
                "tunnel": one.result.tunnel,
                "runtime": one.result.runtime,
                "transport": one.result.point.transport,
                "throughput": one.why.throughput,
                "lowest_ceiling": one.why.lowest,
                "unexplained": one.why.unexplained,
                "bottleneck": one.why.bottleneck,
                "busiest": one.why.busiest,
                "busiest_share": one.why.busiest_share,
                "machine_share": one.why.machine_share,
                "cipher_ns_per_byte": one.why.cipher_ns_per_byte,
                "plain_ns_per_byte": one.why.plain_ns_per_byte,
                "wire_overhead": one.why.wire_overhead,
                **{f"{ceiling.part} ceiling": ceiling.mbit_per_second for ceiling in one.why.ceilings},
            }
            for one in self._content().explained
        ]
        return polars.DataFrame(rows, infer_schema_length=None)

    def verdicts(self) -> tuple[Verdict, ...]:
        """What became of the findings of the published study that it repeats; empty where it repeats none."""
        reproduction = self._content().reproduction
        return () if reproduction is None else reproduction.verdicts

    def report(self, out: str | Path | None = None) -> Path:
        """Write the report, into the campaign's own directory if nothing else is said; returns its path."""
        from tunnelbench.report.build import build_report

        with CampaignData(self.directory) as data:
            return build_report(data, Path(out) if out is not None else self.directory)

    def export(self, out: str | Path) -> Path:
        """Write figures, tables and data as files; returns where."""
        from tunnelbench.report.export import export

        with CampaignData(self.directory) as data:
            export(data, Path(out))
        return Path(out)

    def _content(self) -> Content:
        from tunnelbench.report.collect import collect

        with CampaignData(self.directory) as data:
            return collect(data)
