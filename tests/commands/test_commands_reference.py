"""The reference pages that are made from the program are up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "make-reference"


def test_the_reference_is_current() -> None:
    completed = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
