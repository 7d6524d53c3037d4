"""What would quieten a machine, of files like those of /proc and /sys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelbench.lab.doctor import Finding, State
from tunnelbench.lab.tuning import examine_tuning

CPU = "sys/devices/system/cpu"
CLOCK = "sys/devices/system/clocksource/clocksource0"
RESTLESS = {
    f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave\n",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/intel_pstate/no_turbo": "0\n",
    f"{CPU}/smt/active": "1\n",
    "proc/77/comm": "irqbalance\n",
    f"{CLOCK}/current_clocksource": "hpet\n",
    f"{CLOCK}/available_clocksource": "hpet tsc acpi_pm\n",
    "proc/swaps": "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n",
    "proc/loadavg": "3.50 1.00 0.50 4/107 10093\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
    "proc/sys/kernel/randomize_va_space": "0\n",
}
QUIET = {
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/cpufreq/boost": "0\n",
    f"{CPU}/smt/active": "0\n",
    "proc/77/comm": "init\n",
    f"{CLOCK}/current_clocksource": "tsc\n",
    f"{CLOCK}/available_clocksource": "tsc hpet\n",
    "proc/swaps": "Filename Type Size Used Priority\n",
    "proc/loadavg": "0.01 0.00 0.00 1/107 10093\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "proc/sys/kernel/randomize_va_space": "2\n",
}


def machine(system: Path, files: dict[str, str]) -> dict[str, Finding]:
    for name, text in files.items():
        path = system / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {finding.subject: finding for finding in examine_tuning(system)}


def test_what_makes_a_machine_restless_is_told_with_its_value_and_a_command(tmp_path: Path) -> None:
    found = machine(tmp_path, RESTLESS)
    assert len(found) == 9
    assert {finding.state for finding in found.values()} == {State.LIMITED}
    commands = {
        subject: (finding.advice or "").removeprefix("As root: ") for subject, finding in found.items()
    }
    assert commands["frequency governor"].startswith("echo performance | tee ")
    assert commands["turbo"] == f"echo 1 > /{CPU}/intel_pstate/no_turbo"
    assert commands["clock source"] == f"echo tsc > /{CLOCK}/current_clocksource"
    assert commands["swap"] == "swapoff --all"
    assert found["frequency governor"].text.startswith("performance, powersave")
    assert found["other load"].text.startswith("3.50 processes")


def test_a_quiet_machine_is_fine(tmp_path: Path) -> None:
    found = machine(tmp_path, QUIET)
    assert len(found) == 9
    assert {finding.state for finding in found.values()} == {State.FINE}


def test_what_a_machine_does_not_have_is_not_told(tmp_path: Path) -> None:
    assert {finding.state for finding in machine(tmp_path, {}).values()} == {State.FINE}


@pytest.mark.parametrize("available", ["hpet acpi_pm", ""])
def test_no_clock_is_asked_for_that_is_not_there(available: str, tmp_path: Path) -> None:
    files = {f"{CLOCK}/current_clocksource": "hpet", f"{CLOCK}/available_clocksource": available}
    assert machine(tmp_path, files)["clock source"].state is State.FINE
