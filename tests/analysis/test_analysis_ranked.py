from __future__ import annotations

from analysis_trials import frame, row

from tunnelbench.analysis.ranked import answering

UDP = {"transport": "udp", "payload_bytes": 1400}


def test_only_what_answers_the_question_of_its_point_is_left() -> None:
    rows = [
        row("open", 1, 1.0),
        row("open", 1, 2.0, metric="wire_overhead"),
        row("open", 1, 3.0, **UDP, rate="max"),
        row("open", 1, 4.0, **UDP, rate="30 Mbit/s"),
        row("open", 1, 5.0, **UDP, rate="30 Mbit/s", metric="latency_p50"),
        row("open", 1, 6.0, transport="icmp", rate="100 packets/s", direction=None, metric="round_trip_p50"),
    ]
    assert answering(frame(rows))["value"].to_list() == [1.0, 3.0, 5.0, 6.0]


def test_nothing_measured_answers_nothing() -> None:
    assert answering(frame([])).is_empty()
