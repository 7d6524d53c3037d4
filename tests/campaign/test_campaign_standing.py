"""What becomes of a tunnel that comes up, carries nothing, or is not what was asked for; no lab is there."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tunnelbench.campaign import standing
from tunnelbench.campaign.standing import NotStandingError, Standing
from tunnelbench.commands.hold import _prove  # pyright: ignore[reportPrivateUsage]
from tunnelbench.study.treatment import Treatment
from tunnelbench.tunnels.base import Established, ReadBack
from tunnelbench.witness.evidence import Evidence, Verdict

TUNNEL = Treatment(vpn="openvpn", suite="aes-256-gcm", gateway_os="bookworm", host_os="bookworm", mtu=1500)
EVIDENCE = Evidence({"ipv4 udp 1194": 12}, False, False, False, "aes-256-gcm", "aes-256-gcm")
READABLE = "the probe's marker was readable between the gateways"
LAB: Any = None


async def read_back() -> ReadBack:
    return ReadBack("aes-256-gcm", "")


UP = Established(frozenset({"ipv4 udp 1194"}), read_back, handshake_seconds=0.25)


@dataclass
class Wire:
    """What a tunnel does that needs no lab: its first reply, and what the witness makes of it."""

    reply_seconds: float | None = 0.5
    refusal: str | None = None

    async def bring_up(self, *_: object) -> Established:
        return UP

    async def reply(self, *_: object) -> float | None:
        return self.reply_seconds

    async def examine(self, *_: object) -> Verdict:
        return Verdict(self.refusal, EVIDENCE)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    made = Wire()
    monkeypatch.setattr(standing, "bring_up", made.bring_up)
    monkeypatch.setattr(standing, "await_first_reply", made.reply)
    monkeypatch.setattr(standing, "examine", made.examine)
    return made


def tunnel() -> Standing:
    return Standing(LAB, TUNNEL, AsyncExitStack())


@pytest.mark.usefixtures("wire")
async def test_a_tunnel_that_is_proven_stands() -> None:
    one = tunnel()
    proof = await one.rise()
    assert one.established is UP
    assert proof.evidence is EVIDENCE
    assert proof.set_up_ms >= 500
    assert proof.handshake_ms == 250
    assert await _prove(one, UP) == (
        "proven: ipv4 udp 1194 on the wire, the probe's marker not readable, suite aes-256-gcm"
    )


async def test_a_tunnel_that_carries_nothing_fails(wire: Wire) -> None:
    wire.reply_seconds, one = None, tunnel()
    with pytest.raises(NotStandingError, match="no payload came through within 15 s") as failed:
        await one.rise()
    assert (failed.value.status, failed.value.evidence) == ("failed", None)
    assert not hasattr(one, "established")
    assert (await _prove(one, UP)).startswith("failed: no payload came through within 15 s after")


async def test_a_tunnel_without_proof_is_refused_and_never_measured_in(wire: Wire) -> None:
    wire.refusal, one = READABLE, tunnel()
    with pytest.raises(NotStandingError, match="readable") as refused:
        await one.rise()
    assert (refused.value.status, refused.value.evidence) == ("refused", EVIDENCE)
    assert not hasattr(one, "established")
    assert await _prove(one, UP) == f"refused: {READABLE}"


@pytest.mark.usefixtures("wire")
async def test_what_is_left_of_a_dead_tunnel_is_taken_down_before_it_rises_again() -> None:
    taken_down: list[str] = []
    cleanup = AsyncExitStack()
    one = Standing(LAB, TUNNEL, cleanup)
    await one.rise()
    cleanup.callback(taken_down.append, "the dead one")
    assert await one.rise_again() is UP
    assert taken_down == ["the dead one"]
