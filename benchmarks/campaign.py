"""How much of a campaign's wall time is not measuring, and how much memory the orchestrator takes.

python benchmarks/campaign.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import table

from tunnelbench.store.read import CampaignData

STUDY = """
[study]
id = "overhead"
title = "Overhead of the orchestrator"
question = "How much time is not measuring?"

[factors]
tunnel = ["open", "ipip", "ipsec-manual/aes128-sha1", "openvpn/aes-128-cbc-sha1", "wireguard-go/*"]
transport = ["tcp", "udp"]
rate = ["20 Mbit/s"]

[method]
rounds = 2
trial = "5 s"
warm_up = "0 s"
cool_down = "0 s"
"""


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as directory:
        study = Path(directory) / "overhead.toml"
        study.write_text(STUDY)
        out = Path(directory) / "out"
        began = time.monotonic()
        orchestrator = subprocess.Popen(
            [sys.executable, "-m", "tunnelbench.cli", "run", str(study), "--out", str(out)],
            stdout=subprocess.DEVNULL,
        )
        peak = 0.0
        while orchestrator.poll() is None:
            peak = max(peak, peak_memory(orchestrator.pid))
            time.sleep(0.2)
        wall = time.monotonic() - began
        with CampaignData(out) as data:
            trials = data.trials()
        measured = trials.unique("trial")["trial"].len() * 5.0
    row = [f"{wall:.0f}", f"{measured:.0f}", f"{1 - measured / wall:.0%}", f"{peak:.0f}"]
    print(table(["wall, s", "measuring, s", "not measuring", "orchestrator, MB"], [row]))


def peak_memory(process: int) -> float:
    """The most that a process has had in memory so far, MB; 0 for one that is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    return next(
        (int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith("VmHWM")), 0.0
    )


if __name__ == "__main__":
    main()
