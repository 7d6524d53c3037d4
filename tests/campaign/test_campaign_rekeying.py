"""Whether new keys are asked for, and what is said where they aren't."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tunnelbench.campaign import instance
from tunnelbench.campaign.trial import Bench
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.topology import Family
from tunnelbench.store.model import CampaignRecord, InstanceRecord, RekeyRecord, Versions
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment
from tunnelbench.tunnels.base import EVERYTHING, Established, ReadBack, Traffic

TUNNEL = Treatment(vpn="tinc", suite="aes-128-cbc-sha1", gateway_os="bookworm", host_os="bookworm", mtu=1500)
TCP = Point(transport="tcp", ip="ipv4", payload_bytes=1000, rate=None, direction="forward", load="engine")
RECORD = CampaignRecord("1", "s", "t", "q", "", 1, {}, Versions("0", "0", "invented"))
REKEYED = RekeyRecord(0.1, 0.01, 0.0, 30.0, 2.0, 5.0, 1.0)
LAB: Any = None
TCP_ALONE: frozenset[Traffic] = frozenset({("tcp", Family.IPV4)})


async def read_back() -> ReadBack:
    return ReadBack("aes-128-cbc-sha1", "")


async def new_keys() -> None:
    pass


async def measured(
    directory: Path,
    carried: frozenset[Traffic] = EVERYTHING,
    rekey: Callable[[], Awaitable[None]] | None = None,
    refusal: str | None = None,
) -> tuple[bool, list[str], int]:
    """Whether all went well, what warnings say, and how many times keys were changed."""
    established = Established(frozenset(), read_back, rekey=rekey, rekey_refusal=refusal)
    with CampaignStore.create(directory, RECORD, [Cell(treatment=TUNNEL, point=TCP)]) as store:
        identity = store.begin_instance(InstanceRecord(1, 0, TUNNEL, "namespace"))
        went_well = await instance._measure_new_keys(  # pyright: ignore[reportPrivateUsage]
            Bench(LAB, established), carried, store, identity
        )
    with CampaignData(directory) as data:
        warnings = data.warnings()
        assert set(warnings["kind"]) <= {"no-rekey"}
        return went_well, warnings["message"].to_list(), data.rekeys().height


@pytest.fixture(autouse=True)
def _measures(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    async def measure(_bench: Bench, rekey: Callable[[], Awaitable[None]]) -> RekeyRecord:
        await rekey()
        return REKEYED

    monkeypatch.setattr(instance, "measure_rekey", measure)


async def test_keys_that_can_be_changed_are(tmp_path: Path) -> None:
    assert await measured(tmp_path, rekey=new_keys) == (True, [], 1)


async def test_what_has_no_keys_needs_no_reason(tmp_path: Path) -> None:
    assert await measured(tmp_path) == (True, [], 0)


@pytest.mark.parametrize("rekey", [None, new_keys])
async def test_a_tunnel_says_why_its_keys_are_not_changed(
    rekey: Callable[[], Awaitable[None]] | None, tmp_path: Path
) -> None:
    reason = "tinc takes no order for them"
    message = f"new keys could not be measured: {reason}"
    assert await measured(tmp_path, rekey=rekey, refusal=reason) == (True, [message], 0)


async def test_what_carries_no_datagrams_says_so(tmp_path: Path) -> None:
    went_well, (message,), changed = await measured(tmp_path, TCP_ALONE, new_keys)
    assert (went_well, changed) == (True, 0)
    assert "datagrams of IPv4, which this VPN doesn't carry" in message


async def test_keys_that_do_not_come_are_told(tmp_path: Path) -> None:
    async def fail() -> None:
        raise NodeError("sshd on gw2 had no new keys within 20 s")

    went_well, (message,), changed = await measured(tmp_path, rekey=fail)
    assert (went_well, changed) == (False, 0)
    assert message.endswith("sshd on gw2 had no new keys within 20 s")
