"""The live view of a campaign: what runs, a table that fills, the time left."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tunnelbench.plan.rounds import PlannedInstance
from tunnelbench.store.model import InstanceEnd, TrialRecord
from tunnelbench.study.points import Point, Question
from tunnelbench.study.quantity import MAXIMUM

_UPDATES_PER_SECOND = 4
_MARKS: dict[InstanceEnd, tuple[str, str]] = {
    "proven": ("✓", "green"),
    "refused": ("refused", "red"),
    "failed": ("failed", "red"),
    "skipped": ("skipped", "yellow"),
}


class LiveView:
    """Shows a campaign on a terminal; where there is none, prints a line for each instance."""

    def __init__(self, console: Console) -> None:
        """Draws on `console`."""
        self._console = console
        self._instances: Sequence[PlannedInstance] = ()
        self._done_before = 0
        self._durations: list[float] = []
        self._began = time.monotonic()
        self._now = "getting ready"
        self._numbers: dict[tuple[str, str], list[float]] = {}
        self._ends: dict[str, InstanceEnd] = {}
        self._live = Live(
            get_renderable=self._picture,
            console=console,
            refresh_per_second=_UPDATES_PER_SECOND,
            transient=True,
        )

    def __enter__(self) -> LiveView:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def campaign_began(self, instances: Sequence[PlannedInstance], done: int) -> None:
        """Notes what there is to do."""
        self._instances, self._done_before = instances, done

    def calibration_began(self, count: int) -> None:
        """Shows that the load generators are being measured."""
        self._now = f"the load generators on their own, with {count} settings"

    def cryptography_began(self, count: int) -> None:
        """Shows that ciphers are being timed."""
        self._now = f"the cryptography of {count} {'tunnel' if count == 1 else 'tunnels'} on its own"

    def instance_began(self, instance: PlannedInstance) -> None:
        """Shows which tunnel comes up."""
        self._began = time.monotonic()
        self._now = f"round {instance.campaign_round}: {_row(instance)} comes up"

    def trial_began(self, instance: PlannedInstance, position: int) -> None:
        """Shows what is measured."""
        point = instance.points[position]
        self._now = f"round {instance.campaign_round}: {_row(instance)}, {_one_line(point)}"

    def pilot_began(self, instance: PlannedInstance, position: int) -> None:
        """Shows what the pilot is for."""
        self.trial_began(instance, position)
        self._now += ", a pilot that finds the warm-up"

    def search_measured(self, instance: PlannedInstance, position: int, rate: float, loss: float) -> None:
        """Shows how far the search has come."""
        self.trial_began(instance, position)
        self._now += f", searching: {_number(rate / 1e6)} Mbit/s lost {loss:.2%}"

    def trial_ended(self, instance: PlannedInstance, trial: TrialRecord) -> None:
        """Adds a number to the table."""
        metric, unit = _shown(trial.point)
        value = trial.metrics.get(metric)
        done = "done" if trial.status == "ok" else trial.reason
        if value is not None:
            self._numbers.setdefault((_row(instance), _column(trial.point)), []).append(value)
        if not self._console.is_terminal:
            shown = done if value is None else f"{_number(value)} {unit}"
            self._console.print(
                f"round {instance.campaign_round}  {_row(instance)}  {_one_line(trial.point)}  {shown}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    def instance_ended(self, instance: PlannedInstance, status: InstanceEnd, reason: str | None) -> None:
        """Marks the tunnel with how it ended."""
        self._durations.append(time.monotonic() - self._began)
        self._ends[_row(instance)] = status
        if not self._console.is_terminal and status != "proven":
            self._console.print(
                f"round {instance.campaign_round}  {_row(instance)}  {status}: {reason}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    def instance_left_out(self, instance: PlannedInstance) -> None:
        """Counts it as done."""
        self._done_before += 1

    def _picture(self) -> RenderableType:
        parts: list[RenderableType] = []
        if self._ends or self._numbers:
            parts.append(self._table())
        done = self._done_before + len(self._durations)
        total = max(len(self._instances), 1)
        line = Table.grid(padding=(0, 1))
        line.add_row(ProgressBar(total=total, completed=done, width=30), f"{done}/{total}", self._time_left())
        return Group(*parts, line, Text(self._now, style="dim"))

    def _table(self) -> Table:
        columns = sorted({column for _, column in self._numbers})
        table = Table(box=None, padding=(0, 2, 0, 0))
        table.add_column("Medians so far")
        for column in columns:
            table.add_column(column, justify="right")
        table.add_column("")
        for row in dict.fromkeys(_row(instance) for instance in self._instances):
            if row not in self._ends and not any(place[0] == row for place in self._numbers):
                continue
            numbers = [self._numbers.get((row, column)) for column in columns]
            mark, style = _MARKS[self._ends[row]] if row in self._ends else ("…", "dim")
            shown = [_number(statistics.median(found)) if found else "" for found in numbers]
            table.add_row(row, *shown, Text(mark, style=style))
        return table

    def _time_left(self) -> str:
        if not self._durations:
            return ""
        left = len(self._instances) - self._done_before - len(self._durations)
        return f"about {timedelta(seconds=round(left * statistics.mean(self._durations)))} left"


def _row(instance: PlannedInstance) -> str:
    treatment = instance.treatment
    extra = "".join(
        f" {text}"
        for text, usual in ((treatment.systems, "bookworm"), (f"mtu={treatment.mtu}", "mtu=1500"))
        if text != usual
    )
    place = " (kernel)" if instance.runtime == "kernel" else ""
    return f"{treatment.tunnel}{extra}{place}"


def _column(point: Point) -> str:
    words = [point.transport, point.ip]
    words += [point.profile] if point.profile != "constant" else []
    words += [f"{point.payload_bytes} B"] if point.payload_bytes is not None else []
    words += [f"at {point.rate}"] if point.rate not in (None, MAXIMUM) else []
    words += [point.direction] if point.direction in ("reverse", "both") else []
    words += [f"{factor}={level}" for factor, level in point.unusual.items()]
    if point.load != "engine":
        words.append(point.load)
    return f"{' '.join(words)}\n{_shown(point)[1]}"


def _one_line(point: Point) -> str:
    return _column(point).partition("\n")[0]


def _shown(point: Point) -> tuple[str, str]:
    """The metric that tells most of a point, and its unit: at a fixed rate all have the same throughput."""
    return _METRICS[point.question]


_METRICS: Mapping[Question, tuple[str, str]] = {
    "throughput": ("throughput", "Mbit/s"),
    "capacity": ("capacity", "Mbit/s"),
    "delay": ("latency_p50", "ms"),
    "round trip": ("round_trip_p50", "ms"),
    "transactions": ("transactions_per_second", "per second"),
}


def _number(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.3f}"
