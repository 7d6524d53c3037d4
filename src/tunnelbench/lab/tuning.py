"""What makes this machine a restless place to measure on, and the command that would change it.

Nothing is changed here. Every setting is read from /proc and /sys; what a machine doesn't have isn't told.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tunnelbench.lab.doctor import Finding, State

_FIXED_GOVERNORS = ("performance", "userspace")
_GOOD_CLOCKS = ("tsc", "arch_sys_counter", "stp", "timebase")
"""Counters of the processor itself, which programs read without a system call."""
_MOST_LOAD = 0.1
"""Of a processor, for each processor."""


def examine_tuning(system: Path = Path("/")) -> list[Finding]:
    """Looks at everything; `system` is where the machine's /proc and /sys are."""
    return [
        *_governor(system),
        *_boost(system),
        *_siblings(system),
        *_interrupts(system),
        *_clock_source(system),
        *_swap(system),
        *_load(system),
        *_huge_pages(system),
        *_randomness(system),
    ]


def _governor(system: Path) -> Iterator[Finding]:
    paths = (system / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    governors = sorted({_text(path) for path in paths} - {""})
    if not governors:
        yield _fine(
            "frequency governor", "not visible: the machine, or its host, sets the clock rate by itself"
        )
    elif set(governors) <= set(_FIXED_GOVERNORS):
        yield _fine("frequency governor", ", ".join(governors))
    else:
        yield _restless(
            "frequency governor",
            f"{', '.join(governors)}: the clock rate follows the load",
            "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        )


def _boost(system: Path) -> Iterator[Finding]:
    """Both names of the same thing: that of Intel's driver says whether it is off."""
    for name, on, off in (("intel_pstate/no_turbo", "0", "1"), ("cpufreq/boost", "1", "0")):
        path = system / "sys/devices/system/cpu" / name
        value = _text(path)
        if value == on:
            yield _restless(
                "turbo",
                "on: the clock rate depends on heat and on what else runs",
                f"echo {off} > /sys/devices/system/cpu/{name}",
            )
            return
        if value == off:
            yield _fine("turbo", "off")
            return


def _siblings(system: Path) -> Iterator[Finding]:
    value = _text(system / "sys/devices/system/cpu/smt/active")
    if value == "1":
        yield _restless(
            "hyperthreading",
            "on: two processors share one core, and each slows the other",
            "echo off > /sys/devices/system/cpu/smt/control",
        )
    elif value == "0":
        yield _fine("hyperthreading", "off")


def _interrupts(system: Path) -> Iterator[Finding]:
    running = any(_text(path) == "irqbalance" for path in (system / "proc").glob("[0-9]*/comm"))
    if running:
        yield _restless(
            "irqbalance", "running: it moves interrupts while one measures", "systemctl stop irqbalance"
        )
    else:
        yield _fine("irqbalance", "not running")


def _clock_source(system: Path) -> Iterator[Finding]:
    directory = system / "sys/devices/system/clocksource/clocksource0"
    current = _text(directory / "current_clocksource")
    better = next(
        (it for it in _GOOD_CLOCKS if it in _text(directory / "available_clocksource").split()), None
    )
    if not current:
        return
    if current in _GOOD_CLOCKS or better is None:
        yield _fine("clock source", current)
    else:
        yield _restless(
            "clock source",
            f"{current}: slower to read than {better}",
            f"echo {better} > /sys/devices/system/clocksource/clocksource0/current_clocksource",
        )


def _swap(system: Path) -> Iterator[Finding]:
    devices = [line.split()[0] for line in _text(system / "proc/swaps").splitlines()[1:]]
    if devices:
        yield _restless(
            "swap", f"{', '.join(devices)}: memory may go to disk while one measures", "swapoff --all"
        )
    else:
        yield _fine("swap", "none")


def _load(system: Path) -> Iterator[Finding]:
    """The mean over the last minute of how many processes ran or wanted to."""
    words = _text(system / "proc/loadavg").split()
    processors = len(list((system / "sys/devices/system/cpu").glob("cpu[0-9]*"))) or 1
    if not words:
        return
    if float(words[0]) > _MOST_LOAD * processors:
        yield _restless(
            "other load",
            f"{words[0]} processes ran or wanted to in the last minute, on {processors} processors",
            "top -o %CPU  # and stop what isn't needed",
        )
    else:
        yield _fine("other load", f"{words[0]} processes ran or wanted to in the last minute")


def _huge_pages(system: Path) -> Iterator[Finding]:
    """The kernel marks the one that counts: `always [madvise] never`."""
    text = _text(system / "sys/kernel/mm/transparent_hugepage/enabled")
    chosen = text.partition("[")[2].partition("]")[0]
    if chosen == "always":
        yield _restless(
            "huge pages",
            "always: the kernel gathers memory into huge pages while one measures",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )
    elif chosen:
        yield _fine("huge pages", chosen)


def _randomness(system: Path) -> Iterator[Finding]:
    """Of addresses: it makes instances differ as they do for users, so it stays."""
    value = _text(system / "proc/sys/kernel/randomize_va_space")
    if value == "0":
        yield _restless(
            "address randomness",
            "off: all instances share one layout of memory, whose luck no number of rounds shows",
            "sysctl kernel.randomize_va_space=2",
        )
    elif value:
        yield _fine("address randomness", "on, as it should be: instances differ as they do for users")


def _fine(subject: str, text: str) -> Finding:
    return Finding(subject, State.FINE, text)


def _restless(subject: str, text: str, command: str) -> Finding:
    return Finding(subject, State.LIMITED, text, f"As root: {command}")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
