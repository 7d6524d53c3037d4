"""The file of what `tunnelbench prove` found: one row for each attempt, filled as attempts end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tunnelbench.campaign.proving import Attempt, Finding
from tunnelbench.errors import UserError

Row = Mapping[str, Any]
"""One finding, as `--json` has it."""

_ATTEMPT = ("vpn", "suite", "options", "outer_ip", "clients", "image", "mtu", "topology")
"""What tells attempts apart."""


def as_row(finding: Finding) -> dict[str, object]:
    """A finding as JSON has it."""
    return {
        **_attempted(finding.attempt),
        "outcome": finding.outcome,
        "reason": finding.reason,
        "runtime": finding.runtime,
        "setup_ms": finding.setup_ms,
    }


@dataclass
class Book:
    """Rows by attempt, on disk after each that is added, so that an interrupted matrix can go on."""

    path: Path
    rows: dict[tuple[object, ...], Row] = field(default_factory=dict[tuple[object, ...], Row])

    @classmethod
    def open(cls, path: Path) -> Book:
        """What a file has so far; raises UserError where it isn't such a file."""
        if not path.exists():
            return cls(path)
        try:
            rows = msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]])
            return cls(path, {_key(row): row for row in rows})
        except (OSError, msgspec.MsgspecError, KeyError) as error:
            raise UserError(
                f"{path} is not what `tunnelbench prove --out` writes: {error}",
                advice="Name another file, or remove it.",
            ) from error

    def settles(self, attempt: Attempt) -> bool:
        """Whether an attempt is known to work, or to be blocked."""
        row = self.rows.get(_key(_attempted(attempt)))
        return row is not None and row["outcome"] != "fails"

    def add(self, row: Row) -> None:
        """Puts a row in, in place of an older one of the same attempt."""
        self.rows[_key(row)] = row
        text = ",\n".join(map(json.dumps, self.rows.values()))
        unfinished = self.path.with_name(f"{self.path.name}.unfinished")
        try:
            unfinished.write_text(f"[\n{text}\n]\n", encoding="utf-8")
            unfinished.replace(self.path)
        except OSError as error:
            raise UserError(f"{self.path} can't be written: {error.strerror}") from error


def _attempted(attempt: Attempt) -> dict[str, object]:
    treatment = attempt.treatment
    return {
        "tunnel": treatment.tunnel,
        **treatment.model_dump(exclude={"gateway_os", "host_os"}),
        "image": treatment.gateway_os,
        "topology": attempt.topology,
    }


def _key(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in _ATTEMPT)
