"""What a campaign's parts need to know of the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tunnelbench.plan.rounds import Plan
from tunnelbench.store.model import CalibrationRecord
from tunnelbench.study.model import Method, Socket


@dataclass(frozen=True)
class Course:
    """A campaign that is to be run: what, how, and why each instance runs where it does."""

    plan: Plan
    method: Method
    socket: Socket
    contents: Mapping[str, bytes]
    """Payload by the path that the study names it by."""
    reasons: Mapping[str, str]
    """Instance key to the reason for its runtime."""
    calibrations: Sequence[CalibrationRecord] = ()
    """What the load generators themselves can do."""
