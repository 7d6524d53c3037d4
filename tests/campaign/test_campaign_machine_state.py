"""What a machine does besides a campaign: of files like those of /proc and /sys, and of this machine."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tunnelbench.campaign.machine_state import (
    MachineWatch,
    Process,
    frequencies,
    look,
    others,
    processes,
    temperatures,
)

TICKS = os.sysconf("SC_CLK_TCK")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def process(system: Path, identity: int, parent: int, seconds: float, name: str = "sleep") -> None:
    ticks = round(seconds * TICKS)
    times = f"{ticks} 0 0 0"
    write(
        system / f"proc/{identity}/stat", f"{identity} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {times} 20 0 1"
    )


def test_only_what_is_neither_the_campaigns_nor_the_kernels_counts() -> None:
    found = {
        1: Process(0, 1.0),
        2: Process(0, 10.0),
        20: Process(2, 100.0),
        50: Process(1, 1000.0),
        60: Process(50, 10_000.0),
        61: Process(60, 100_000.0),
        70: Process(1, 2.0),
        80: Process(999, 4.0),
    }
    assert sum(it.seconds for it in others(found, own=50)) == 1 + 2 + 4


def test_a_process_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    process(tmp_path, 7, 1, 2.5, name="a) R (b")
    write(tmp_path / "proc/self/stat", "not a process")
    assert processes(tmp_path) == {7: Process(1, 2.5)}


def test_frequency_and_temperature_where_they_are_visible(tmp_path: Path) -> None:
    assert (frequencies(tmp_path), temperatures(tmp_path)) == ([], [])
    for processor, kilohertz in ((0, 2_400_000), (1, 2_600_000)):
        write(tmp_path / f"sys/devices/system/cpu/cpu{processor}/cpufreq/scaling_cur_freq", f"{kilohertz}\n")
    write(tmp_path / "sys/class/thermal/thermal_zone0/temp", "54321\n")
    assert sorted(frequencies(tmp_path)) == [2400, 2600]
    assert temperatures(tmp_path) == [54.321]


async def test_a_watch_tells_what_others_took(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, 5.0)
    write(tmp_path / "proc/stat", f"cpu 0 0 0 0 0 0 0 {3 * TICKS} 0 0\n")
    write(tmp_path / "sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
    async with MachineWatch("during", tmp_path) as watch:
        await asyncio.sleep(0.01)
        process(tmp_path, 10, 1, 6.0)
        process(tmp_path, 11, 10, 2.0)
        write(tmp_path / "proc/stat", f"cpu 0 0 0 0 0 0 0 {4 * TICKS} 0 0\n")
    state = watch.state
    assert state is not None
    assert round(state.others * state.seconds, 6) == 3.0
    assert round(state.stolen * state.seconds, 6) == 1.0
    assert (state.clock_source, state.frequency_mhz, state.temperature_c) == ("tsc", None, None)


async def test_a_process_that_ends_unnoticed_makes_nothing_negative(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, 500.0)
    async with MachineWatch("during", tmp_path) as watch:
        (tmp_path / "proc/10/stat").unlink()
    assert watch.state is not None
    assert watch.state.others == 0


async def test_our_own_work_is_not_that_of_others() -> None:
    busy = await asyncio.create_subprocess_exec(sys.executable, "-c", "while True: pass")
    try:
        found = processes(Path("/"))
        assert busy.pid in found
        assert found[busy.pid] not in list(others(found, os.getpid()))
        state = await look("before")
    finally:
        busy.kill()
        await busy.wait()
    assert state.moment == "before"
    assert state.processors == os.cpu_count()
