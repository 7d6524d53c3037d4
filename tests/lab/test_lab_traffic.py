"""Both sides of the wire read the same golden files, which the Rust tests check and write."""

from __future__ import annotations

from pathlib import Path
from types import UnionType

import msgspec
import pytest

from tunnelbench.lab import traffic as messages

GOLDEN = Path(__file__).parents[2] / "crates" / "traffic" / "tests" / "golden"

UNIONS: dict[str, UnionType] = {
    "job": messages.Job,
    "content": messages.Content,
    "mode": messages.SendMode,
    "outcome": messages.Outcome,
    "departures": messages.Departures,
    "distribution": messages.Distribution,
}

SCHEDULE = messages.Schedule(1_700_000_000_123_456_789, 500_000_000, 5_000_000_000, 250_000_000)

HISTOGRAM = messages.Histogram(
    unit="ns",
    count=5,
    negative=1,
    min=0,
    max=70_000_000_000,
    mean=1.5,
    deviation=0.5,
    p50=1,
    p90=200,
    p99=70_000,
    p999=5_000_000_000,
    encoded=bytes([28, 132, 147, 20]),
)

ROUND_TRIPS = messages.RoundTripSeries(
    step=100_000_000,
    begun=[6, 4],
    completed=[2, 0],
    shortest=[1, None],
    mean=[1.5, None],
    longest=[2, None],
)


def read(name: str) -> object:
    data = (GOLDEN / f"{name}.msgpack").read_bytes()
    return msgspec.msgpack.decode(data, type=UNIONS[name.partition("_")[0]])


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.msgpack")), ids=lambda path: path.stem)
def test_a_golden_message_survives_decoding_and_encoding(path: Path) -> None:
    assert msgspec.msgpack.encode(read(path.stem)) == path.read_bytes()


def test_every_job_and_outcome_has_a_golden_message() -> None:
    kinds = {f"{name}_{kind.__struct_config__.tag}" for name in UNIONS for kind in UNIONS[name].__args__}
    assert kinds <= {path.stem for path in GOLDEN.glob("*.msgpack")}


def test_jobs_mean_the_same_on_both_sides() -> None:
    assert read("job_udp_send") == messages.UdpSend(
        destination="10.0.0.2:5201",
        session=65_535,
        schedule=SCHEDULE,
        departures=messages.BitsPerSecond(100_000_000),
        sizes=messages.Constant(1_400),
        seed=2**64 - 1,
        mode=messages.Batched(64),
        content=messages.Zeros(),
        socket=messages.SocketOptions(source="10.0.0.1", port=40_000, dscp=46, ttl=64, dont_fragment=True),
        log="/run/sent.parquet",
    )
    assert read("job_udp_receive") == messages.UdpReceive(
        bind="[fd00::1]:0",
        session=1,
        schedule=SCHEDULE,
        step=50_000_000,
        timestamps="user",
        peer="fd00::2",
        voice="g729a",
        log="/tmp/received.parquet",
        socket=messages.SocketOptions(buffer=8_388_608),
    )
    assert read("job_tcp_connect") == messages.TcpConnect(
        destination="127.0.0.1:5201",
        proxy="[fd00:1::1]:1080",
        session=2**64 - 2,
        schedule=SCHEDULE,
        side="receive",
        options=messages.TcpOptions(
            write_bytes=131_072,
            streams=4,
            rate=50_000_000,
            content=messages.Random(),
            no_delay=True,
            congestion_control="cubic",
            mss=1_200,
            sample=10_000_000,
            socket=messages.SocketOptions(buffer=1_048_576),
        ),
    )
    assert read("job_tcp_listen") == messages.TcpListen(
        bind="0.0.0.0:5201",
        session=2**64 - 2,
        schedule=SCHEDULE,
        side="send",
        options=messages.TcpOptions(
            write_bytes=131_072,
            streams=4,
            messages=messages.Messages(
                departures=messages.Process(messages.Exponential(1e6)),
                sizes=messages.Constant(100),
                seed=42,
            ),
            content=messages.Pattern(bytes([0, 255, 128])),
        ),
    )
    assert read("job_echo_serve") == messages.EchoServe(
        bind="[::]:7", protocol="udp", deadline=10_000_000_000
    )
    assert read("job_echo_probe") == messages.EchoProbe(
        destination=messages.TcpEcho("10.0.0.2:7", proxy="10.1.0.1:1080"),
        plan=messages.ProbeCount(count=1_000, until_first_reply=True, deadline=20_000_000_000),
        interval=10_000_000,
        payload_bytes=512,
        marker=b"a marker",
        timeout=1_000_000_000,
    )
    assert read("job_transaction_serve") == messages.TransactionServe(
        bind="0.0.0.0:7",
        session=2**64 - 1,
        schedule=SCHEDULE,
        transaction=messages.Transaction(protocol="udp", request_bytes=1, response_bytes=2, concurrency=3),
        peer="fd00::2",
    )
    assert read("job_transaction_run") == messages.TransactionRun(
        destination="[fd00::2]:7",
        session=1,
        schedule=SCHEDULE,
        transaction=messages.Transaction(
            protocol="tcp", request_bytes=1, response_bytes=1_048_576, fresh_connections=True
        ),
    )
    assert read("job_echo_probe_icmp") == messages.EchoProbe(
        destination=messages.IcmpEcho("fd00::2"),
        plan=messages.ProbeSchedule(SCHEDULE),
        interval=0,
        payload_bytes=56,
        timeout=1_000_000_000,
        socket=messages.SocketOptions(ttl=3),
    )
    assert read("content_zeros") == messages.Zeros()
    assert read("content_random") == messages.Random()
    assert read("content_pattern") == messages.Pattern(bytes([0, 255, 128]))
    assert read("content_file") == messages.File("/srv/corpus/text")
    assert read("mode_per_packet") == messages.PerPacket()
    assert read("mode_batched") == messages.Batched(64)
    assert read("mode_segmented") == messages.Segmented(64)


def test_processes_mean_the_same_on_both_sides() -> None:
    assert read("departures_bits_per_second") == messages.BitsPerSecond(100_000_000)
    assert read("departures_packets_per_second") == messages.PacketsPerSecond(5)
    assert read("departures_max") == messages.MaximumRate()
    assert read("departures_bursts") == messages.Bursts(32, 10_000_000)
    assert read("departures_process") == messages.Process(messages.Exponential(1e6))
    assert read("departures_talk") == messages.Talk(
        20_000_000, messages.Exponential(1.004e9), messages.Exponential(1.587e9)
    )
    distributions = [
        messages.Constant(1_400.0),
        messages.Uniform(100.0, 320.0),
        messages.Exponential(1e6),
        messages.Normal(512.0, 64.5),
        messages.Poisson(4.5),
        messages.Pareto(1.5, 40.0),
        messages.Cauchy(-1.0, 2.0),
        messages.Student(41.7, 0.1, 0.7),
        messages.Gamma(2.0, 50.0),
        messages.Weibull(0.8, 100.0),
        messages.Listed((100.0, 0.0, 1_400.0)),
        messages.Choice((12.0, 548.0, 1_472.0), (7.0, 4.0, 1.0)),
        messages.Mixture((messages.Exponential(4.29e6), messages.Constant(10.75e6)), (0.6, 0.4)),
    ]
    for distribution in distributions:
        assert read(f"distribution_{distribution.__struct_config__.tag}") == distribution


def test_outcomes_mean_the_same_on_both_sides() -> None:
    series = messages.Series(100_000_000, [0, 1_400, 70_000])
    assert read("outcome_udp_send") == messages.UdpSent(
        mode=messages.Segmented(46),
        asked_rate=1e8,
        achieved_rate=99_999_999.5,
        measured=messages.Tally(50, 70_000),
        total=messages.Tally(60, 84_000),
        late=1,
        skipped=2,
        unsent=3,
        send_errors=4,
        departure_error=HISTOGRAM,
        processor=123_456_789,
        clock_step=-5,
    )
    assert read("outcome_udp_receive") == messages.UdpReceived(
        timestamps="kernel",
        socket_buffer=4_194_304,
        flow=messages.FlowReport(
            measured=messages.Tally(49, 68_600),
            duplicates=1,
            reordered=2,
            reordering_extent=msgspec.structs.replace(HISTOGRAM, unit="packets"),
            late_time_offset=None,
            extent_unknown=7,
            beyond_window=3,
            loss=messages.LossBursts(expected=51, lost=2, bursts=1, mean=2.0, longest=2, ratio=1.5),
            jitter_last=12.5,
            jitter_mean=None,
            delay=HISTOGRAM,
            ipdv=messages.DelayVariation(
                absolute=HISTOGRAM, negative=2, mean=-0.5, min=-70_000_000_000, max=200
            ),
            pdv=HISTOGRAM,
            arrived=messages.Tally(48, 67_200),
            series=messages.FlowSeries(
                step=50_000_000,
                bytes=[0, 1_400],
                packets=[0, 1],
                lost=[0, -1],
                delay_min=[None, -5],
                delay_mean=[None, 1.5],
                delay_max=[None, 8],
                jitter=[None, 2.5],
            ),
            longest_gap=10_000_000,
            total=messages.Tally(60, 84_000),
        ),
        foreign=4,
        buffer_drops=5,
        receive_calls=7,
        coalesced=8,
        processor=9_000_000,
        voice=messages.VoiceQuality(r_factor=80.5, mos=4.0),
        log_dropped=10,
        clock_step=6,
    )
    stream = messages.TcpReceivedStream(measured_bytes=35_000, processor=2_000_000)
    received = messages.TcpReceived(
        measured_bytes=70_000,
        total_bytes=71_400,
        streams=[stream, stream],
        series=series,
        longest_gap=0,
    )
    assert read("outcome_tcp_connect") == messages.TcpConnected(0, 0, messages.TcpFlow(received=received))
    sent = messages.TcpSent(
        measured_bytes=70_000,
        total_bytes=71_400,
        congestion_control="bbr",
        retransmits=3,
        segments=52,
        minimum_round_trip=300_000,
        round_trip=HISTOGRAM,
        step=100_000_000,
        streams=[
            messages.TcpSentStream(
                measured_bytes=70_000,
                processor=1_000_000,
                end=messages.TcpInformation(
                    round_trip=400_000,
                    round_trip_deviation=50_000,
                    minimum_round_trip=300_000,
                    congestion_window=10,
                    unacked=4,
                    retransmits=5,
                    segments=None,
                    segment_bytes=1_448,
                    pacing_rate=None,
                    delivery_rate=80_000_000,
                ),
                samples=messages.TcpSamples(
                    round_trip=[400_000, None],
                    round_trip_deviation=[50_000, None],
                    congestion_window=[10, None],
                    unacked=[4, None],
                    retransmits=[5, None],
                    pacing_rate=[None, None],
                    delivery_rate=[80_000_000, None],
                ),
            )
        ],
        messages=messages.MessagesSent(
            measured=messages.Tally(7, 700), total=messages.Tally(9, 900), behind=1, departure_error=None
        ),
    )
    assert read("outcome_tcp_listen") == messages.TcpListened(2, 1, messages.TcpFlow(sent=sent))
    assert read("outcome_echo_serve") == messages.Echoed(messages.Tally(10, 5_120), 1)
    assert read("outcome_echo_probe") == messages.Probed(
        sent=10,
        replies=9,
        failures=1,
        duplicates=2,
        reordered=3,
        skipped=4,
        round_trip=HISTOGRAM,
        round_trip_from_intended=HISTOGRAM,
        first_reply_after=1_234_567,
        timestamps="kernel",
        series=ROUND_TRIPS,
        total_sent=12,
        total_replies=11,
        late=5,
        processor=6,
    )
    assert read("outcome_transaction_serve") == messages.TransactionsServed(
        responses=11, connections=2, foreign=1, processor=7
    )
    assert read("outcome_transaction_run") == messages.Transacted(
        transactions=9,
        failures=1,
        round_trip=HISTOGRAM,
        connect=None,
        series=ROUND_TRIPS,
        total=10,
        processor=6,
    )
