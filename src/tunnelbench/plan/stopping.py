"""When a campaign stops: small rules, asked between two rounds, that say why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tunnelbench.study.model import Method


class StopRule(Protocol):
    """Decides between two rounds whether another one follows."""

    def reason_to_stop(self, round_seconds: Sequence[float]) -> str | None:
        """Why to stop now, or None to go on. `round_seconds`: how long each finished round took, in order."""
        ...


@dataclass(frozen=True)
class FixedRounds:
    """Stop after so many rounds."""

    rounds: int

    def reason_to_stop(self, round_seconds: Sequence[float]) -> str | None:
        if len(round_seconds) < self.rounds:
            return None
        return "the one round is done" if self.rounds == 1 else f"all {self.rounds} rounds are done"


@dataclass(frozen=True)
class Budget:
    """Stop when another round, if it took as long as the longest so far, would go beyond the budget."""

    seconds: float
    """For the whole campaign."""
    rounds_min: int = 1
    """Rounds that are done whatever they cost; at least the first, whose length nobody knows."""

    def reason_to_stop(self, round_seconds: Sequence[float]) -> str | None:
        done = len(round_seconds)
        if done < max(self.rounds_min, 1):
            return None
        spent = sum(round_seconds)
        if spent + max(round_seconds) <= self.seconds:
            return None
        return (
            f"the budget of {self.seconds:g} s has no room for another round: "
            f"{done} {'round' if done == 1 else 'rounds'} took {spent:.0f} s"
        )


@dataclass(frozen=True)
class FirstOf:
    """Stop as soon as one of several rules says so."""

    rules: tuple[StopRule, ...]

    def reason_to_stop(self, round_seconds: Sequence[float]) -> str | None:
        reasons = (rule.reason_to_stop(round_seconds) for rule in self.rules)
        return next((reason for reason in reasons if reason is not None), None)


def stop_rule(method: Method) -> StopRule:
    """The rule that a study's method asks for: its rounds, or fewer where its budget is spent."""
    fixed = FixedRounds(method.rounds)
    if method.budget is None:
        return fixed
    return FirstOf((fixed, Budget(method.budget, method.rounds_min)))
