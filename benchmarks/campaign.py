"""How much of a campaign's wall time is not measuring, and how much memory the orchestrator takes.

python benchmarks/campaign.py
"""

from __future__ import annotations

import os
import resource
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
        subprocess.run(
            [sys.executable, "-m", "tunnelbench.cli", "run", str(study), "--out", str(out)],
            check=True,
            env={**os.environ, "PYTHONPATH": "src"},
            stdout=subprocess.DEVNULL,
        )
        wall = time.monotonic() - began
        with CampaignData(out) as data:
            trials = data.trials()
        measured = trials.unique("trial")["trial"].len() * 5.0
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    row = [f"{wall:.0f}", f"{measured:.0f}", f"{1 - measured / wall:.0%}", f"{peak:.0f}"]
    print(table(["wall, s", "measuring, s", "not measuring", "largest process, MB"], [row]))


if __name__ == "__main__":
    main()
