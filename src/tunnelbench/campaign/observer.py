"""What a campaign tells whoever watches it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tunnelbench.plan.rounds import PlannedInstance
from tunnelbench.store.model import InstanceEnd, TrialRecord


class Observer(Protocol):
    """Hears of each step of a campaign as it happens; every method returns at once."""

    def campaign_began(self, instances: Sequence[PlannedInstance], done: int) -> None:
        """All instances that are planned, and how many of them an earlier run has finished."""
        ...

    def calibration_began(self, count: int) -> None:
        """The load generators are being measured on their own, with so many settings."""
        ...

    def cryptography_began(self, count: int) -> None:
        """The ciphers and integrity checks of so many tunnels are being timed on their own."""
        ...

    def instance_began(self, instance: PlannedInstance) -> None:
        """A tunnel is being brought up."""
        ...

    def trial_began(self, instance: PlannedInstance, position: int) -> None:
        """Traffic of the instance's point at `position` starts."""
        ...

    def pilot_began(self, instance: PlannedInstance, position: int) -> None:
        """A pilot starts, which finds the warm-up of the point at `position`; no number of it is kept."""
        ...

    def search_measured(self, instance: PlannedInstance, position: int, rate: float, loss: float) -> None:
        """The search for the capacity at `position` has tried a rate (bits per second); loss is a ratio."""
        ...

    def trial_ended(self, instance: PlannedInstance, trial: TrialRecord) -> None:
        """A trial is over and stored."""
        ...

    def instance_ended(self, instance: PlannedInstance, status: InstanceEnd, reason: str | None) -> None:
        """The instance is down and stored."""
        ...

    def instance_left_out(self, instance: PlannedInstance) -> None:
        """Enough is known of all that the instance was planned for."""
        ...


class Silent:
    """An observer that shows nothing."""

    def campaign_began(self, instances: Sequence[PlannedInstance], done: int) -> None:
        """Shows nothing."""

    def calibration_began(self, count: int) -> None:
        """Shows nothing."""

    def cryptography_began(self, count: int) -> None:
        """Shows nothing."""

    def instance_began(self, instance: PlannedInstance) -> None:
        """Shows nothing."""

    def trial_began(self, instance: PlannedInstance, position: int) -> None:
        """Shows nothing."""

    def pilot_began(self, instance: PlannedInstance, position: int) -> None:
        """Shows nothing."""

    def search_measured(self, instance: PlannedInstance, position: int, rate: float, loss: float) -> None:
        """Shows nothing."""

    def trial_ended(self, instance: PlannedInstance, trial: TrialRecord) -> None:
        """Shows nothing."""

    def instance_ended(self, instance: PlannedInstance, status: InstanceEnd, reason: str | None) -> None:
        """Shows nothing."""

    def instance_left_out(self, instance: PlannedInstance) -> None:
        """Shows nothing."""
