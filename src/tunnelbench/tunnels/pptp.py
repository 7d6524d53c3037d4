"""PPTP: PPP in an enhanced GRE, with a TCP connection that controls it (RFC 2637), by pptpd and pptp.

Its suites are those of PPP: MPPE, or none. Debian's pppd comes without the plugin for the kernel's PPTP, so
packets go through pptp and pptpctrl, which hand them to pppd's link on a pseudo-terminal.

Both read GRE from a raw socket. Linux 6.12 (trixie) tells the sender that it has no such protocol as soon
as that socket is full, where older ones only dropped the packet, and both programs end the session then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead.layers import ipv4, pptp_gre
from tunnelbench.tunnels import pppd
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Place,
    ReadBack,
    Tunnel,
    Variant,
    options,
)
from tunnelbench.tunnels.daemons import place_files, printed, start_daemon
from tunnelbench.tunnels.point_to_point import INNER_ADDRESSES

# Here pptp makes its socket, whether the directory is ours or not.
DIRECTORY = "/run/pptp"
PORT = 1723
READY_SECONDS = 20.0
"""How long a step may take; idle all take about two seconds together."""


class Pptp(Tunnel):
    """A PPTP session between the gateways, with PPP in it."""

    name = "pptp"
    title = "PPTP"
    suites = pppd.MPPE_SUITES
    options = options(pppd.AUTHENTICATION, pppd.COMPRESSION)

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """What PPP can't do."""
        return _negotiation(variant).refusal

    def needs(self, variant: Variant) -> Needs:
        """Both programs, pppd, and PPP in the kernel."""
        return Needs(frozenset({"pptpd", "pptp", "pppd"}), _negotiation(variant).features(user_space=True))

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts pptpd on the right gateway, then pppd with pptp on the left one."""
        secret = pppd.Secret.fresh(left, str(INNER_ADDRESSES[0].ipv4.ip))
        for end in (right, left):
            await start_daemon(end.node, cleanup, "python3", "-c", _TAKE_GRE)
            await pppd.place_secrets(end.node, [secret], cleanup)
        await place_files(right.node, DIRECTORY, _server_files(right, variant), cleanup)
        server_log = await pppd.watch(right, DIRECTORY, cleanup)
        server = await start_daemon(right.node, cleanup, *_SERVER)
        await right.node.run("sh", "-c", _LISTENING, timeout=READY_SECONDS)
        await place_files(
            left.node, DIRECTORY, {"options": pppd.lines(_client_options(left, variant))}, cleanup
        )
        began = asyncio.get_running_loop().time()
        client = await start_daemon(left.node, cleanup, "pppd", "file", f"{DIRECTORY}/options")
        for log in (client, server_log):
            await pppd.wait_until_up(log, READY_SECONDS)
        handshake_seconds = asyncio.get_running_loop().time() - began
        session = await pppd.guard(right, pppd.INTERFACE, cleanup)
        for end in (left, right):
            await end.route_to_peer(cleanup, interface=pppd.INTERFACE)

        async def read_back() -> ReadBack:
            return ReadBack.agreed(pppd.read_log(printed(log)) for log in (client, server_log))

        return Established(
            wire=frozenset({"ipv4 gre", f"ipv4 tcp {PORT}"}),
            read_back=read_back,
            programs=(client, server, session),
            facts=_negotiation(variant).facts,
            compresses=variant["compression"] != "none",
            rekey_refusal=_negotiation(variant).rekey_refusal,
            handshake_seconds=handshake_seconds,
        )

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """GRE with a sequence number, PPP with address and control.

        A packet that also acknowledges one of the other direction is four bytes longer.
        """
        negotiation = _negotiation(variant)
        return Encapsulation(
            (ipv4(), pptp_gre(), *negotiation.layers),
            inner_mtu=negotiation.mtu,
            varying=4,
            compresses=variant["compression"] != "none",
        )


TUNNEL = Pptp()


def _negotiation(variant: Variant) -> pppd.Negotiation:
    return pppd.Negotiation(variant["authentication"], variant["compression"], variant.suite.name)


# A second raw socket, which has a kernel know the protocol: it filters all packets out, so it is never full.
# (linux/filter.h: one instruction, to return 0; SO_ATTACH_FILTER is 26.)
_TAKE_GRE = """
import ctypes, signal, socket, struct
drop = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
taker = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_GRE)
taker.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", 1, ctypes.addressof(drop)))
signal.pause()
"""
_SERVER = ("pptpd", "-f", "-c", f"{DIRECTORY}/pptpd.conf", "-p", f"{DIRECTORY}/pptpd.pid")
# It says what it does to the system's log alone.
_LISTENING = f"until ss -Hltn 'sport = :{PORT}' | grep -q .; do sleep 0.02; done"


def _server_files(end: Gateway, variant: Variant) -> dict[str, bytes]:
    # pppd is to find the client's address beside its password, not to be told one by pptpd.
    configuration = (f"option {DIRECTORY}/options", f"listen {end.outside}", "delegate", "noipparam")
    return {"pptpd.conf": pppd.lines(configuration), "options": pppd.lines(_server_options(end, variant))}


def _server_options(end: Gateway, variant: Variant) -> Iterator[str]:
    yield from pppd.options(_negotiation(variant), end, server=True)
    yield pppd.NO_LOCK
    yield f"{INNER_ADDRESSES[1].ipv4.ip}:"
    yield f"logfile {pppd.log_file(DIRECTORY)}"


def _client_options(end: Gateway, variant: Variant) -> Iterator[str]:
    yield from pppd.options(_negotiation(variant), end, server=False)
    yield pppd.NO_LOCK
    yield f'pty "pptp {end.peer_outside} --nolaunchpppd --nohostroute"'
    yield "nodetach"
