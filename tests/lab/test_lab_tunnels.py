"""VPNs in a real lab when something goes wrong: wrong keys, dead daemons, peers that do not answer."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tunnel_labs import TunnelLabs, labs_for

from tunnelbench.lab.cleanliness import Snapshot, leftovers, snapshot
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.lab import Lab
from tunnelbench.lab.node import Node
from tunnelbench.lab.topology import Addresses
from tunnelbench.tunnels import all_tunnels, openssh, openvpn, wireguard_device
from tunnelbench.tunnels.base import Established, gateways
from tunnelbench.tunnels.certificates import Authority, Identity, Role

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]


IN_USER_SPACE = [
    ("openvpn", "aes-128-gcm"),
    ("ssh-port-forwarding", "aes128-gcm"),
    ("ssh-vpn", "aes128-gcm"),
    ("wireguard-go", "chacha20-poly1305"),
]
HANGS_SECONDS = 60


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def labs() -> AsyncGenerator[TunnelLabs]:
    async with labs_for(IN_USER_SPACE) as opened:
        for lab in opened.labs.values():
            for end in gateways(lab):
                await settle(end.node)
        yield opened


async def settle(node: Node) -> None:
    """Waits for what the kernel makes by itself: it is no trace of a tunnel."""
    for kind in ("ipip", "gre", "sit", "ip6tnl", "ip6gre"):
        # With the first link of a kind come devices that nobody can remove.
        remote = "::1" if kind.startswith("ip6") else "127.0.0.1"
        await node.run("ip", "link", "add", "first", "type", kind, "remote", remote, check=False)
        await node.run("ip", "link", "del", "first", check=False)
    link_local = "until [ $(ip -6 -o address show scope link | wc -l) -ge 2 ]; do sleep 0.02; done"
    await node.run("sh", "-c", link_local)


async def up(lab: Lab, vpn: str, suite: str, cleanup: AsyncExitStack) -> Established:
    tunnel = all_tunnels()[vpn]
    variant = tunnel.variant(suite)
    return await tunnel.up(*gateways(lab, variant.outer), variant, cleanup)


async def state(lab: Lab) -> Mapping[str, Snapshot]:
    """What both gateways have."""
    return {end.node.name: await snapshot(end.node) for end in gateways(lab)}


async def assert_as_before(lab: Lab, before: Mapping[str, Snapshot]) -> None:
    for node in (end.node for end in gateways(lab)):
        assert await leftovers(node, before[node.name]) == ()


async def test_keys_are_new_each_time_and_readable_by_root_alone(labs: TunnelLabs) -> None:
    """Whatever file of a daemon has a private key in it."""
    seen: set[str] = set()
    for vpn, suite in IN_USER_SPACE * 2:
        lab = labs.lab_for(vpn, suite)
        async with AsyncExitStack() as cleanup:
            await up(lab, vpn, suite, cleanup)
            for end in gateways(lab):
                found = await end.node.run("grep", "-rlsIiE", "PRIVATE ?KEY", "/run", check=False)
                assert found.text, f"{vpn}: no private key found on {end.node.name}"
                for path in found.text.split():
                    mode = await end.node.run("stat", "--format=%a", path)
                    assert mode.text.strip() == "600", path
                    key = (await end.node.run("grep", "-A3", "-iE", "PRIVATE ?KEY", path)).text
                    assert key not in seen
                    seen.add(key)


@pytest.mark.parametrize(("vpn", "suite"), IN_USER_SPACE)
async def test_a_daemon_that_dies_is_named(labs: TunnelLabs, vpn: str, suite: str) -> None:
    lab = labs.lab_for(vpn, suite)
    before = await state(lab)
    for position in range(2):
        async with AsyncExitStack() as cleanup:
            established = await up(lab, vpn, suite, cleanup)
            victim = established.programs[position]
            await victim.signal(signal.SIGKILL)
            await victim.ended()
            assert established.dead() is victim
        await assert_as_before(lab, before)


async def test_a_session_of_sshd_that_dies_ends_its_client(labs: TunnelLabs) -> None:
    lab = labs.lab_for("ssh-vpn", "aes128-gcm")
    async with AsyncExitStack() as cleanup:
        established = await up(lab, "ssh-vpn", "aes128-gcm", cleanup)
        client, server = established.programs
        await gateways(lab)[1].node.run("pkill", "-KILL", "-f", "sshd: root")
        async with asyncio.timeout(HANGS_SECONDS):
            await client.ended()
        assert server.running
        assert established.dead() is client


class TwoAuthorities(Authority):
    """Issues the client's certificate under an authority that nobody knows."""

    def issue(self, name: str, role: Role) -> Identity:
        return Authority().issue(name, role) if role == "client" else super().issue(name, role)


async def fails_to_come_up(lab: Lab, vpn: str, suite: str) -> str:
    """Brings a tunnel up that can't come up, has it leave nothing, and returns what it complained of."""
    before = await state(lab)
    async with asyncio.timeout(HANGS_SECONDS):
        with pytest.raises(NodeError) as failure:
            async with AsyncExitStack() as cleanup:
                await up(lab, vpn, suite, cleanup)
    await assert_as_before(lab, before)
    return str(failure.value)


async def test_openvpn_with_a_wrong_certificate_says_so(
    labs: TunnelLabs, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = labs.lab_for("openvpn", "aes-128-gcm")
    monkeypatch.setattr(openvpn, "Authority", TwoAuthorities)
    complaint = await fails_to_come_up(lab, "openvpn", "aes-128-gcm")
    assert "VERIFY ERROR" in complaint or "alert unknown ca" in complaint


async def test_ssh_with_a_wrong_key_says_so(labs: TunnelLabs, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = labs.lab_for("ssh-vpn", "aes128-gcm")
    stranger = Ed25519PrivateKey.generate().public_key()
    text = stranger.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    monkeypatch.setattr(openssh, "_public", lambda _key: text)  # pyright: ignore
    complaint = await fails_to_come_up(lab, "ssh-vpn", "aes128-gcm")
    assert "Host key verification failed" in complaint
    assert "The last lines of the server:\ndebug1: " in complaint


async def test_wireguard_with_a_wrong_key_says_how_far_it_came(
    labs: TunnelLabs, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = labs.lab_for("wireguard-go", "chacha20-poly1305")
    stranger = X25519PrivateKey.generate()

    section = wireguard_device.section

    def of_a_stranger(peer: wireguard_device.Peer) -> str:
        return section(dataclasses.replace(peer, key=stranger))

    monkeypatch.setattr(wireguard_device, "section", of_a_stranger)
    monkeypatch.setattr(wireguard_device, "READY_SECONDS", 2.0)
    complaint = await fails_to_come_up(lab, "wireguard-go", "chacha20-poly1305")
    assert "WireGuard was not ready within 2 s" in complaint
    assert "Sending handshake initiation" in complaint


@pytest.mark.parametrize(("vpn", "suite"), IN_USER_SPACE)
async def test_a_peer_that_does_not_answer_is_given_up(
    labs: TunnelLabs, vpn: str, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = labs.lab_for(vpn, suite)
    for module in (openvpn, openssh, wireguard_device):
        monkeypatch.setattr(module, "READY_SECONDS", 2.0)
    left, right = gateways(lab)
    nowhere = dataclasses.replace(left.peer, outside=Addresses.parse("192.168.0.99/24", "fd00:0::99/64"))
    tunnel, before = all_tunnels()[vpn], await state(lab)
    with pytest.raises(NodeError, match=r"(not ready within 2 s|before it was ready); its last lines:\n\S"):
        async with asyncio.timeout(HANGS_SECONDS), AsyncExitStack() as cleanup:
            await tunnel.up(dataclasses.replace(left, peer=nowhere), right, tunnel.variant(suite), cleanup)
    await assert_as_before(lab, before)
