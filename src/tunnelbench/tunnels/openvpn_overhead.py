"""What OpenVPN adds to packets, and how large it has TCP make its segments.

That is how OpenVPN 2.6 does it, where every packet of the data channel names its peer. Between two gateways
2.5 has packets that are 3 bytes shorter, and its `mssfix` of 1450 bytes does not count the outer headers.
"""

from __future__ import annotations

from bisect import bisect_right

from tunnelbench.overhead import Encapsulation, Inner, Layer, Oversize, layers
from tunnelbench.overhead.encapsulation import size_around
from tunnelbench.tunnels.base import Variant

_DEVICE_MTU = 1500
_MSSFIX = 1492
"""The largest outer packet with a TCP segment, headers included; OpenVPN 2.6's default."""
_TAP_ALLOWANCE = 32
"""What OpenVPN sets aside for the Ethernet header there (`tun-mtu-extra`)."""


def encapsulation(variant: Variant) -> Encapsulation:
    """How a variant wraps packets."""
    return Encapsulation(
        _layers(variant, timestamps=True),
        Inner.FRAME if variant["device"] == "tap" else Inner.PACKET,
        inner_mtu=_DEVICE_MTU,
        oversize=Oversize.FRAGMENTED_AFTER,
        tcp_packet=None if variant["offload"] == "yes" else _mssfix(variant),
        fills_segments=variant["carrier"] == "tcp",
        compresses=variant["compression"] != "none",
    )


def _layers(variant: Variant, *, timestamps: bool) -> tuple[Layer, ...]:
    over_tcp = variant["carrier"] == "tcp"
    data = layers.openvpn_data(
        variant.suite.encryption,
        variant.suite.integrity,
        static_key=variant["keying"] == "static",
        compression_byte=variant["compression"] == "lzo",
        over_tcp=over_tcp,
    )
    return layers.ip(variant.outer), layers.tcp(timestamps) if over_tcp else layers.udp(), data


def _mssfix(variant: Variant) -> int:
    """The largest inner packet with a TCP segment; OpenVPN counts no options of the outer TCP header."""
    wrapping = _layers(variant, timestamps=False)
    fitting = bisect_right(range(_MSSFIX), _MSSFIX, key=lambda inner: size_around(wrapping, inner)) - 1
    return fitting - _TAP_ALLOWANCE if variant["device"] == "tap" else fitting
