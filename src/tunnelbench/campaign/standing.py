"""The tunnel of an instance: brought up and proven, and so again where it died under a load."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.lab import Lab
from tunnelbench.store.model import InstanceEnd
from tunnelbench.study.treatment import Treatment
from tunnelbench.tunnels.base import Established, bring_up
from tunnelbench.tunnels.treatments import tunnel_of, variant_of
from tunnelbench.witness.evidence import Evidence
from tunnelbench.witness.witness import await_first_reply, examine, first_traffic

FIRST_REPLY_SECONDS = 15.0
_LOG_LINES = 40


@dataclass(frozen=True)
class Proof:
    """What a tunnel showed when it came up."""

    evidence: Evidence
    set_up_ms: float
    handshake_ms: float | None


class NotStandingError(NodeError):
    """A tunnel did not come up, or is not what was asked for; the message is the reason."""

    def __init__(
        self,
        reason: str,
        status: InstanceEnd = "failed",
        evidence: Evidence | None = None,
        log_tail: str | None = None,
    ) -> None:
        """How the instance ends by it."""
        super().__init__(reason)
        self.status: InstanceEnd = status
        self.evidence = evidence
        self.log_tail = log_tail


class Standing:
    """One treatment's tunnel in an open lab."""

    established: Established
    """The tunnel that is up and proven."""

    def __init__(self, lab: Lab, treatment: Treatment, cleanup: AsyncExitStack) -> None:
        """A tunnel that is yet to come up; `cleanup` takes it down."""
        self._lab = lab
        self._tunnel = tunnel_of(treatment)
        self._variant = variant_of(treatment)
        self._cleanup = cleanup

    async def rise(self) -> Proof:
        """Brings it up and has it proven. Raises NodeError, or UserError where something is lacking."""
        clock = asyncio.get_running_loop().time
        began = clock()
        established = await self.bring_up()
        up_seconds = clock() - began
        evidence, reply_seconds = await self.prove(established)
        self.established = established
        handshake = established.handshake_seconds
        return Proof(
            evidence,
            (up_seconds + reply_seconds) * 1000,
            None if handshake is None else handshake * 1000,
        )

    async def bring_up(self) -> Established:
        """Brings it up without a proof. Raises as `rise` does."""
        return await bring_up(self._lab, self._tunnel, self._variant, self._cleanup)

    async def prove(self, established: Established) -> tuple[Evidence, float]:
        """What the witness saw of a tunnel that is up, and the seconds until its first reply.

        Raises NotStandingError where it carries nothing, or is not what was asked for.
        """
        carried = self._tunnel.carried(self._variant)
        first = first_traffic(carried)
        reply_seconds = await await_first_reply(self._lab, established, first, FIRST_REPLY_SECONDS)
        if reply_seconds is None:
            raise NotStandingError(
                f"no payload came through within {FIRST_REPLY_SECONDS:g} s after both ends said they were up",
                log_tail=log_tail(established),
            )
        verdict = await examine(self._lab, established, self._variant.suite, carried)
        if verdict.refusal is not None:
            raise NotStandingError(verdict.refusal, "refused", verdict.evidence, log_tail(established))
        return verdict.evidence, reply_seconds

    async def rise_again(self) -> Established:
        """Takes down what is left of a tunnel that died, and brings it up anew. Raises as `rise` does."""
        await self._cleanup.aclose()
        await self.rise()
        return self.established


def log_tail(established: Established) -> str | None:
    """The last lines of all programs of a tunnel."""
    parts = [f"{program.arguments[0]}:\n{program.log_tail(_LOG_LINES)}" for program in established.programs]
    return "\n\n".join(parts) or None
