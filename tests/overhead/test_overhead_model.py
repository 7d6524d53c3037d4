"""The model against packets worked out by hand, and against what must hold for every format."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Inner, Kind, Oversize, layers
from tunnelbench.overhead.model import (
    ETHERNET,
    PLAIN,
    bulk_payload,
    ceiling,
    largest_unfragmented_payload,
    path_mtu,
    predict,
)
from tunnelbench.study.vocabulary import Transport

ESP = layers.esp("AES-128-CBC", "HMAC-SHA-1-96")
TUNNELS = {
    "plain": PLAIN,
    "esp": Encapsulation((layers.ipv4(), ESP)),
    "esp over ipv6": Encapsulation((layers.ipv6(), ESP)),
    "esp transport": Encapsulation((layers.ipv4(), ESP), Inner.SEGMENT),
    "gre": Encapsulation((layers.ipv4(), layers.gre())),
    "vxlan": Encapsulation((layers.ipv4(), layers.udp(), layers.vxlan()), Inner.FRAME),
    "macsec": Encapsulation((layers.macsec(),)),
    "wireguard": Encapsulation((layers.ipv4(), layers.udp(), layers.wireguard()), inner_mtu=1420),
    "openvpn": Encapsulation(
        (layers.ipv4(), layers.udp(), layers.openvpn_data("AES-128-CBC", "HMAC-SHA-1")),
        inner_mtu=1500,
        oversize=Oversize.FRAGMENTED_AFTER,
        tcp_packet=89 * 16 - 5,
    ),
    "openvpn over tcp": Encapsulation(
        (layers.ipv4(), layers.tcp(), layers.openvpn_data("AES-128-CBC", "HMAC-SHA-1", over_tcp=True)),
        inner_mtu=1500,
        fills_segments=True,
    ),
    "frames that share records": Encapsulation(
        (
            layers.ipv4(),
            layers.tcp(),
            layers.tls_record("AES-128-CBC", "HMAC-SHA-1", "1.2"),
            layers.header("count", "here", 4),
            layers.header("length", "here", 4),
        ),
        Inner.FRAME,
        inner_mtu=1500,
        chunk=16_384,
        gathered=1,
        fills_segments=True,
    ),
    "ssh forwarding": Encapsulation(
        (
            layers.ipv4(),
            layers.tcp(),
            layers.ssh_packet("AES-128-CBC", "HMAC-SHA-1"),
            layers.ssh_channel_data(),
        ),
        Inner.STREAM,
    ),
}
tunnels = st.sampled_from(list(TUNNELS.values()))
packet_tunnels = st.sampled_from([tunnel for tunnel in TUNNELS.values() if not tunnel.stream])
families = st.sampled_from(Family)
transports = st.sampled_from(["tcp", "udp", "icmp"])
payloads = st.integers(1, 20_000)
mtus = st.integers(1280, 9000)


@pytest.mark.parametrize(
    ("tunnel", "payload", "transport", "family", "sizes"),
    [
        ("plain", 100, "udp", Family.IPV4, [14 + 20 + 8 + 100]),
        ("plain", 100, "tcp", Family.IPV6, [14 + 40 + 32 + 100]),
        ("plain", 1472, "udp", Family.IPV4, [1514]),
        ("plain", 1473, "udp", Family.IPV4, [1514, 14 + 20 + 1]),
        # Fragments of 1448 bytes behind two headers of IPv6
        ("plain", 1453, "udp", Family.IPV6, [14 + 48 + 1448, 14 + 48 + 13]),
        # 20 + 8 + 100 + 2 bytes in 9 blocks
        ("esp", 100, "udp", Family.IPV4, [14 + 20 + 8 + 16 + 144 + 12]),
        ("esp transport", 100, "udp", Family.IPV4, [14 + 20 + 8 + 16 + 112 + 12]),
        ("gre", 1448, "udp", Family.IPV4, [1514]),
        # 20 + 1448 + 8 fill the path's 1476 bytes; fragments of 1456 and 1 byte
        ("gre", 1449, "udp", Family.IPV4, [14 + 24 + 1476, 14 + 24 + 21]),
        ("vxlan", 100, "udp", Family.IPV4, [14 + 20 + 8 + 8 + 14 + 128]),
        ("wireguard", 100, "udp", Family.IPV4, [14 + 20 + 8 + 16 + 128 + 16]),
        # 1500 and the packet number in 95 blocks, behind 40 bytes: fragments of 1480 bytes and the rest
        ("openvpn", 1472, "udp", Family.IPV4, [1514, 14 + 20 + 8 + 40 + 1520 - 1480]),
        ("macsec", 100, "udp", Family.IPV4, [14 + 16 + 128 + 16]),
    ],
)
def test_packets_worked_out_by_hand(
    tunnel: str, payload: int, transport: Transport, family: Family, sizes: list[int]
) -> None:
    predicted = predict(TUNNELS[tunnel], payload, transport, family)
    assert [packet.size for packet in predicted.packets] == sizes
    assert predicted.wire_bytes == predicted.bulk_bytes == sum(sizes)


@pytest.mark.parametrize(
    ("tunnel", "mtu"),
    # 20 + 8 + 16 + 12 around 90 blocks with a trailer of 2; 28 + 40 around 1419; Ethernet's 14 in VXLAN
    [("plain", 1500), ("esp", 1438), ("gre", 1476), ("vxlan", 1450), ("wireguard", 1420), ("openvpn", 1500)],
)
def test_the_path_has_the_mtu_that_kernels_have(tunnel: str, mtu: int) -> None:
    assert path_mtu(TUNNELS[tunnel], Family.IPV4) == mtu


def test_openvpn_has_tcp_send_what_fits() -> None:
    """20 + 8 + 40 around 89 blocks, in which are the packet number and a byte of padding."""
    assert bulk_payload(TUNNELS["openvpn"], Family.IPV4) == 89 * 16 - 5 - 20 - 32
    full = predict(TUNNELS["openvpn"], 89 * 16 - 5 - 52, "tcp", Family.IPV4)
    assert [packet.size for packet in full.packets] == [14 + 28 + 40 + 89 * 16]


def test_a_message_in_a_stream_travels_alone_or_shares_segments() -> None:
    predicted = predict(TUNNELS["openvpn over tcp"], 100, "udp", Family.IPV4)
    message = 2 + 4 + 20 + 16 + 144
    assert predicted.wire_bytes == 14 + 20 + 32 + message
    assert predicted.bulk_bytes == pytest.approx(message * 1514 / 1448)


def test_a_message_leaves_at_once_where_messages_do_not_fill_segments() -> None:
    hurried = dataclasses.replace(TUNNELS["openvpn over tcp"], fills_segments=False)
    predicted = predict(hurried, 100, "udp", Family.IPV4)
    assert predicted.bulk_bytes == predicted.wire_bytes
    assert predicted.bulk_packets == len(predicted.packets)


def test_fragments_of_a_datagram_share_a_record() -> None:
    predicted = predict(TUNNELS["frames that share records"], 1473, "udp", Family.IPV4)
    # Count 4, lengths 4 each, frames of 1514 and 14 + 20 + 1 bytes; one byte of padding at least
    record = 5 + 16 + (4 + 4 + 1514 + 4 + 35 + 7) + 20
    assert [packet.size for packet in predicted.packets] == [1514, 66 + record - 1448]
    among_many = (4 + 1514 + 4 + 35) * (5 + 16 + (4 + 16_384 + 12) + 20) / 16_384
    assert predicted.bulk_bytes == pytest.approx(among_many * 1514 / 1448)


def test_an_interface_may_take_its_mtu_from_the_wires() -> None:
    tunnel = dataclasses.replace(TUNNELS["esp"], inner_mtu_over=(-100).__add__)
    assert path_mtu(tunnel, Family.IPV4, 1500) == 1400
    assert path_mtu(tunnel, Family.IPV4, 1400) == 1300


def test_a_byte_stream_has_no_packets_inside() -> None:
    predicted = predict(TUNNELS["ssh forwarding"], 100, "tcp", Family.IPV4)
    names = [field.name for field in predicted.packets[0].fields]
    assert names == [
        "Ethernet header",
        "IPv4 header",
        "TCP header",
        "TCP timestamps",
        "packet length",
        "padding length",
        "SSH channel data header",
        "payload",
        "padding",
        "MAC",
    ]


@given(tunnels, payloads, transports, families, mtus)
def test_payload_arrives_whole(
    tunnel: Encapsulation, payload: int, transport: Transport, family: Family, mtu: int
) -> None:
    predicted = predict(tunnel, payload, transport, family, mtu)
    fields = [field for packet in predicted.packets for field in packet.fields]
    assert sum(field.size for field in fields if field.kind is Kind.PAYLOAD) == payload
    assert all(field.size > 0 for field in fields)
    assert all(packet.size <= mtu + 14 for packet in predicted.packets)


@given(tunnels, payloads, transports, families, mtus)
def test_more_payload_is_never_less_on_the_wire(
    tunnel: Encapsulation, payload: int, transport: Transport, family: Family, mtu: int
) -> None:
    less, more = (predict(tunnel, size, transport, family, mtu) for size in (payload, payload + 1))
    assert more.wire_bytes >= less.wire_bytes > payload
    assert len(more.packets) >= len(less.packets)


@given(tunnels, payloads, transports, families, mtus)
def test_a_tunnel_is_never_less_than_what_it_carries(
    tunnel: Encapsulation, payload: int, transport: Transport, family: Family, mtu: int
) -> None:
    if tunnel.inner is Inner.STREAM:
        return
    inside = predict(PLAIN, payload, transport, family, mtu)
    assert predict(tunnel, payload, transport, family, mtu).wire_bytes >= inside.wire_bytes


@given(packet_tunnels, payloads, transports, families, mtus)
def test_fragments_are_the_datagram_and_a_header_for_each(
    tunnel: Encapsulation, payload: int, transport: Transport, family: Family, mtu: int
) -> None:
    """Fragmented after encapsulation: nothing but headers of the outermost layer is repeated."""
    if tunnel.oversize is Oversize.FRAGMENTED_BEFORE or tunnel.inner_mtu is None or transport == "tcp":
        return
    whole = dataclasses.replace(tunnel, inner_mtu=100_000)
    fragments = predict(whole, min(payload, mtu - 48), transport, family, mtu).packets
    alone = predict(whole, min(payload, mtu - 48), transport, family, 100_000).packets
    assert sum(packet.size - 34 for packet in fragments) == sum(packet.size - 34 for packet in alone)
    assert all((packet.size - 34) % 8 == 0 for packet in fragments[:-1])


@given(tunnels, transports, families, mtus)
def test_one_byte_more_than_the_largest_payload_takes_two_packets(
    tunnel: Encapsulation, transport: Transport, family: Family, mtu: int
) -> None:
    largest = largest_unfragmented_payload(tunnel, transport, family, mtu)
    assert len(predict(tunnel, largest, transport, family, mtu).packets) == 1
    assert len(predict(tunnel, largest + 1, transport, family, mtu).packets) > 1


@given(tunnels, payloads, transports, families, st.floats(1e6, 1e10))
def test_a_ceiling_fills_the_link(
    tunnel: Encapsulation, payload: int, transport: Transport, family: Family, rate: float
) -> None:
    predicted = predict(tunnel, payload, transport, family)
    counted = ceiling(tunnel, payload, transport, family, rate)
    assert counted.mbit_per_second * 1e6 * predicted.bulk_ratio == pytest.approx(rate)
    real = ceiling(tunnel, payload, transport, family, rate, framing=ETHERNET)
    assert real.mbit_per_second < counted.mbit_per_second < rate / 1e6


def test_the_well_known_rate_of_ethernet() -> None:
    """14 881 frames of 64 bytes each second at 10 Mbit/s, 812.7 of 1518 (RFC 1242, RFC 2544)."""
    smallest = ceiling(PLAIN, 1, "udp", Family.IPV4, 10e6, framing=ETHERNET)
    assert smallest.packets_per_second == pytest.approx(14_881, rel=1e-4)
    largest = ceiling(PLAIN, 1472, "udp", Family.IPV4, 10e6, framing=ETHERNET)
    assert largest.packets_per_second == pytest.approx(812.7, rel=1e-4)


def test_no_room_is_said() -> None:
    with pytest.raises(ValueError, match="60 bytes leave no room for packets"):
        predict(TUNNELS["esp"], 100, "udp", Family.IPV4, 60)
