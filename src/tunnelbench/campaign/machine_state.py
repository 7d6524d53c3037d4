"""What this machine does besides a campaign: read from /proc and /sys before and after a stretch of time.

All of it is a few small files, so that looking costs milliseconds, outside of traffic but for a look at
frequency and temperature each second.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import TracebackType

from tunnelbench.store.model import MachineStateRecord, Moment

_STEP_S = 1.0
"""Between two looks at frequency and temperature."""
_LOOK_S = 1.0
"""How long one looks at a machine before and after a campaign."""
_TICKS = os.sysconf("SC_CLK_TCK")
_KTHREADD = 2
"""The process from which all threads of the kernel come, as far as they are visible."""


@dataclass(frozen=True)
class Process:
    """A process, as /proc/PID/stat has it."""

    parent: int
    seconds: float
    """Processor time of its own, and of all its children that it has waited for."""


class MachineWatch:
    """An asynchronous context in which a machine is watched; `state` says afterwards what it did."""

    def __init__(self, moment: Moment, system: Path = Path("/")) -> None:
        """`system`: where the machine's /proc and /sys are."""
        self._moment: Moment = moment
        self._system = system
        self._frequencies: list[float] = []
        self._temperatures: list[float] = []
        self.state: MachineStateRecord | None = None

    async def __aenter__(self) -> MachineWatch:
        self._before = _Reading.now(self._system)
        self._looking = asyncio.create_task(self._look())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._looking.cancel()
        before, after = self._before, _Reading.now(self._system)
        seconds = max(after.monotonic - before.monotonic, 1e-9)
        self.state = MachineStateRecord(
            moment=self._moment,
            seconds=seconds,
            processors=os.cpu_count() or 1,
            # Less than before where a process ended that nobody waited for.
            others=max(0.0, (after.others - before.others) / seconds),
            stolen=max(0.0, (after.stolen - before.stolen) / seconds),
            frequency_mhz=fmean(self._frequencies) if self._frequencies else None,
            temperature_c=max(self._temperatures, default=None),
            clock_step_ms=(after.clock_offset - before.clock_offset) * 1000,
            clock_source=after.clock_source,
        )

    async def _look(self) -> None:
        while True:
            # The first look is that of a machine that is at work already.
            await asyncio.sleep(_STEP_S / 2)
            self._frequencies += frequencies(self._system)
            self._temperatures += temperatures(self._system)
            await asyncio.sleep(_STEP_S / 2)


async def look(moment: Moment) -> MachineStateRecord:
    """What the machine does for a second in which a campaign does nothing."""
    async with MachineWatch(moment) as watch:
        await asyncio.sleep(_LOOK_S)
    assert watch.state is not None
    return watch.state


def processes(system: Path) -> dict[int, Process]:
    """Every process that is visible here."""
    found: dict[int, Process] = {}
    for directory in (system / "proc").glob("[0-9]*"):
        text = _text(directory / "stat")
        if text:  # It may have ended meanwhile.
            # Its name, in brackets, may hold anything.
            words = text.rpartition(")")[2].split()
            found[int(directory.name)] = Process(int(words[1]), sum(map(int, words[11:15])) / _TICKS)
    return found


def others(found: Mapping[int, Process], own: int) -> Iterable[Process]:
    """Those that belong neither to the process `own` and what it has started, nor to the kernel."""
    belongs: dict[int, bool] = {own: True, _KTHREADD: True, 0: False}

    def is_ours(identity: int) -> bool:
        line: list[int] = []
        while identity not in belongs:
            line.append(identity)
            identity = found[identity].parent if identity in found else 0
        belongs.update(dict.fromkeys(line, belongs[identity]))
        return belongs[identity]

    return [process for identity, process in found.items() if not is_ours(identity)]


def frequencies(system: Path) -> list[float]:
    """The clock rate of each processor, MHz; empty where the machine doesn't say."""
    paths = (system / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
    return [int(text) / 1000 for path in paths if (text := _text(path).strip())]


def temperatures(system: Path) -> list[float]:
    """What each sensor of the machine shows, degrees Celsius; empty where none is visible."""
    paths = (system / "sys/class/thermal").glob("thermal_zone*/temp")
    return [int(text) / 1000 for path in paths if (text := _text(path).strip())]


@dataclass(frozen=True)
class _Reading:
    monotonic: float
    """Seconds."""
    clock_offset: float
    """Seconds from the monotonic clock, which is never set, to that of the day."""
    others: float
    """Processor seconds so far, of processes that are not the campaign's."""
    stolen: float
    """Processor seconds so far that the hypervisor gave to others."""
    clock_source: str | None

    @classmethod
    def now(cls, system: Path) -> _Reading:
        monotonic, wall, again = time.monotonic(), time.time(), time.monotonic()
        return cls(
            monotonic=monotonic,
            clock_offset=wall - (monotonic + again) / 2,
            others=sum(process.seconds for process in others(processes(system), os.getpid())),
            stolen=_stolen(system),
            clock_source=_text(
                system / "sys/devices/system/clocksource/clocksource0/current_clocksource"
            ).strip()
            or None,
        )


def _stolen(system: Path) -> float:
    """The eighth number of the first line of /proc/stat (proc(5))."""
    words = _text(system / "proc/stat").partition("\n")[0].split()
    return int(words[8]) / _TICKS if len(words) > 8 else 0.0


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
