//! UDP jobs against each other.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use serde_bytes::ByteBuf;
use tunnelbench_packet_log::LogReader;
use tunnelbench_traffic::job::{Content, SendMode, SocketOptions, Timestamps, UdpReceive, UdpSend};
use tunnelbench_traffic::outcome::{UdpReceived, UdpSent};
use tunnelbench_traffic::process::{Departures, Sizes};
use tunnelbench_traffic::voice::{Codec, VoiceQuality};
use tunnelbench_traffic::{Job, Outcome, Running, Schedule, TrafficError, start};

use crate::common::*;

fn udp_receive(bind: SocketAddr, schedule: Schedule) -> UdpReceive {
    let timestamps = Timestamps::Kernel;
    UdpReceive {
        bind,
        session: 7,
        schedule,
        linger: 500 * MILLISECOND,
        step: 100 * MILLISECOND,
        timestamps,
        peer: None,
        voice: None,
        log: None,
        socket: SocketOptions::default(),
    }
}

fn udp_send(destination: SocketAddr, schedule: Schedule, departures: Departures) -> UdpSend {
    UdpSend {
        destination,
        session: 7,
        schedule,
        departures,
        sizes: Sizes::constant(200),
        seed: 1,
        mode: SendMode::Batched { datagrams: 16 },
        content: Content::Random,
        socket: SocketOptions::default(),
        log: None,
    }
}

fn udp_sent(running: Running) -> UdpSent {
    match running.finish().unwrap() {
        Outcome::UdpSend(sent) => sent,
        other => panic!("{other:?}"),
    }
}

fn udp_received(running: Running) -> UdpReceived {
    match running.finish().unwrap() {
        Outcome::UdpReceive(received) => received,
        other => panic!("{other:?}"),
    }
}

/// Runs a UDP job pair over one address family.
fn udp_pair(
    bind: SocketAddr,
    timestamps: Timestamps,
    departures: Departures,
) -> (UdpSent, UdpReceived) {
    let schedule = schedule();
    let receiver = start(Job::UdpReceive(UdpReceive {
        timestamps,
        ..udp_receive(bind, schedule)
    }))
    .unwrap();
    let sender = start(Job::UdpSend(udp_send(
        bound(&receiver),
        schedule,
        departures,
    )))
    .unwrap();
    (udp_sent(sender), udp_received(receiver))
}

fn assert_all_arrived(sent: &UdpSent, received: &UdpReceived) {
    assert_eq!(received.flow.measured, sent.measured);
    assert_eq!(received.flow.total, sent.total);
    assert_eq!(
        (
            received.flow.duplicates,
            received.flow.reordered,
            received.flow.beyond_window
        ),
        (0, 0, 0)
    );
    assert_eq!((received.foreign, received.buffer_drops), (0, 0));
    assert_eq!(received.coalesced, 0, "each was sent on its own");
    assert!(received.receive_calls <= received.flow.total.packets && received.processor > 0);
    let in_series: u64 = received.flow.series.packets.iter().sum();
    assert!(received.flow.arrived.packets <= in_series && in_series <= received.flow.total.packets);
    let delay = received.flow.delay.as_ref().unwrap();
    assert_eq!(
        (delay.count, delay.negative),
        (received.flow.measured.packets, 0)
    );
    assert!(received.flow.jitter_mean.unwrap() > 0.0);
}

#[test]
fn every_paced_datagram_is_accounted_for() {
    let (sent, received) = udp_pair(
        loopback(0),
        Timestamps::Kernel,
        Departures::PacketsPerSecond { value: 2_000 },
    );
    assert_eq!(sent.measured.packets + sent.skipped + sent.unsent, 400);
    assert_eq!(sent.measured.bytes, sent.measured.packets * 200);
    assert_eq!(sent.asked_rate, Some(3_200_000.0));
    assert!(sent.departure_error.is_some());
    assert_eq!(received.timestamps, Timestamps::Kernel);
    assert_all_arrived(&sent, &received);
}

#[test]
fn the_receiver_can_take_the_time_itself_and_speaks_ipv6() {
    let bind = "[::1]:0".parse().unwrap();
    let (sent, received) = udp_pair(
        bind,
        Timestamps::User,
        Departures::BitsPerSecond { value: 1_600_000 },
    );
    assert_eq!(sent.measured.packets + sent.skipped + sent.unsent, 200);
    assert_eq!(received.timestamps, Timestamps::User);
    assert_all_arrived(&sent, &received);
}

#[test]
fn the_highest_rate_intends_what_it_does() {
    let (sent, received) = udp_pair(loopback(0), Timestamps::Kernel, Departures::Max);
    assert_eq!((sent.asked_rate, sent.late, sent.skipped), (None, 0, 0));
    assert!(sent.departure_error.is_none());
    let lost = sent.total.packets - received.flow.total.packets;
    assert!(
        received.buffer_drops <= lost,
        "on loopback only a full receive buffer loses anything"
    );
}

#[test]
fn what_the_receive_buffer_loses_is_told_apart() {
    let schedule = schedule();
    let receive = UdpReceive {
        socket: SocketOptions {
            buffer: Some(2_000),
            ..SocketOptions::default()
        },
        ..udp_receive(loopback(0), schedule)
    };
    let receiver = start(Job::UdpReceive(receive)).unwrap();
    let sender = start(Job::UdpSend(udp_send(
        bound(&receiver),
        schedule,
        Departures::Max,
    )))
    .unwrap();
    let (sent, received) = (udp_sent(sender), udp_received(receiver));
    assert!(received.socket_buffer < 10_000);
    assert!(received.buffer_drops > 0 && received.flow.measured.packets < sent.measured.packets);
    assert!(received.buffer_drops <= sent.total.packets - received.flow.total.packets);
}

#[test]
fn strangers_do_not_count() {
    let schedule = schedule();
    let receiver = start(Job::UdpReceive(udp_receive(loopback(0), schedule))).unwrap();
    let departures = Departures::PacketsPerSecond { value: 100 };
    let job = udp_send(bound(&receiver), schedule, departures);
    let first = start(Job::UdpSend(job.clone())).unwrap();
    let job = UdpSend { session: 8, ..job };
    let other_session = start(Job::UdpSend(job)).unwrap();
    let stranger = UdpSocket::bind(loopback(0)).unwrap();
    stranger.send_to(b"short", bound(&receiver)).unwrap();
    let (first, other_session, received) = (
        udp_sent(first),
        udp_sent(other_session),
        udp_received(receiver),
    );
    assert_eq!(received.flow.measured, first.measured);
    assert_eq!(received.foreign, other_session.total.packets + 1);
}

#[test]
fn copies_and_latecomers_are_told_apart() {
    let schedule = schedule();
    let receiver = start(Job::UdpReceive(udp_receive(loopback(0), schedule))).unwrap();
    let socket = UdpSocket::bind(loopback(0)).unwrap();
    for (sequence, intended) in [
        (0_u32, 60),
        (2, 61),
        (1, 62),
        (2, 61),
        (3, 300),
        (3, 300),
        (4, 10),
    ] {
        socket
            .send_to(&datagram(sequence, intended), bound(&receiver))
            .unwrap();
    }
    let received = udp_received(receiver);
    assert_eq!(
        (received.flow.measured.packets, received.flow.measured.bytes),
        (3, 3 * 40)
    );
    assert_eq!((received.flow.duplicates, received.flow.reordered), (1, 1));
    assert_eq!(received.flow.total.packets, 7);
    assert_eq!(
        received.flow.arrived.packets, 0,
        "they all came before the measured window"
    );
    assert_eq!(
        received.flow.delay.as_ref().unwrap().negative,
        3,
        "and before they were intended to leave"
    );
}

/// A datagram as a sender of session 7 makes it.
fn datagram(sequence: u32, intended: u64) -> Vec<u8> {
    let intended = (intended * MILLISECOND).to_be_bytes();
    let session = 7_u16.to_be_bytes();
    [
        &sequence.to_be_bytes()[..],
        &session,
        &intended[2..],
        &[0; 28],
    ]
    .concat()
}

#[test]
fn what_the_kernel_carries_together_counts_one_by_one() {
    let receiver = start(Job::UdpReceive(udp_receive(loopback(0), schedule()))).unwrap();
    let socket = UdpSocket::bind(loopback(0)).unwrap();
    let segment: libc::c_int = 40;
    // SAFETY: the pointer and the length are those of one live integer.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const segment).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    assert_eq!(status, 0, "Linux splits datagrams since 4.18");
    let together: Vec<u8> = (0..10)
        .flat_map(|sequence| datagram(sequence, 60))
        .collect();
    socket.send_to(&together, bound(&receiver)).unwrap();
    let received = udp_received(receiver);
    assert_eq!(
        (received.flow.measured.packets, received.flow.measured.bytes),
        (10, 400)
    );
    assert_eq!((received.flow.total.packets, received.foreign), (10, 0));
    assert_eq!((received.coalesced, received.receive_calls), (10, 1));
}

#[test]
fn only_the_peer_counts() {
    let job = UdpReceive {
        peer: Some("127.0.0.2".parse().unwrap()),
        ..udp_receive(loopback(0), schedule())
    };
    let receiver = start(Job::UdpReceive(job)).unwrap();
    for (address, sequence) in [
        ([127, 0, 0, 1], 0),
        ([127, 0, 0, 2], 0),
        ([127, 0, 0, 3], 1),
    ] {
        let socket = UdpSocket::bind(SocketAddr::from((address, 0))).unwrap();
        socket
            .send_to(&datagram(sequence, 60), bound(&receiver))
            .unwrap();
    }
    let received = udp_received(receiver);
    assert_eq!((received.flow.total.packets, received.foreign), (1, 2));
}

#[test]
fn every_arrival_is_logged_copies_too() {
    let path = std::env::temp_dir().join(format!("tunnelbench-log-{}", std::process::id()));
    let schedule = schedule();
    let job = UdpReceive {
        log: Some(path.clone()),
        ..udp_receive(loopback(0), schedule)
    };
    let receiver = start(Job::UdpReceive(job)).unwrap();
    let socket = UdpSocket::bind(loopback(0)).unwrap();
    for sequence in [0, 2, 2, 1] {
        socket
            .send_to(&datagram(sequence, 60), bound(&receiver))
            .unwrap();
    }
    let received = udp_received(receiver);
    let mut records = Vec::new();
    assert!(LogReader::open(&path).unwrap().read(&mut records).unwrap());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(received.log_dropped, Some(0));
    let numbers: Vec<u64> = records.iter().map(|record| record.sequence).collect();
    assert_eq!(numbers, [0, 2, 2, 1]);
    for record in records {
        let intended = schedule.start_at + 60 * MILLISECOND as i64;
        assert_eq!((record.intended, record.sent), (intended, Some(intended)));
        assert_eq!(record.bytes, 40);
        assert!(record.received.unwrap() < intended);
    }
}

#[test]
fn a_voice_call_is_rated() {
    let job = UdpReceive {
        voice: Some(Codec::G711),
        ..udp_receive(loopback(0), schedule())
    };
    let receiver = start(Job::UdpReceive(job)).unwrap();
    let socket = UdpSocket::bind(loopback(0)).unwrap();
    for sequence in [0, 1, 2, 3, 5, 6, 7, 8, 9] {
        socket
            .send_to(&datagram(sequence, 60), bound(&receiver))
            .unwrap();
    }
    let voice = udp_received(receiver).voice.unwrap();
    let by_hand = VoiceQuality::of(Codec::G711, 0, 0.1, 1.0);
    assert!(
        (voice.r_factor - by_hand.r_factor).abs() < 1e-9,
        "{voice:?}"
    );
}

#[test]
fn nobody_listening_is_counted_and_not_fatal() {
    let silent = UdpSocket::bind(loopback(0)).unwrap().local_addr().unwrap();
    let sent = udp_sent(
        start(Job::UdpSend(udp_send(
            silent,
            schedule(),
            Departures::PacketsPerSecond { value: 500 },
        )))
        .unwrap(),
    );
    assert!(sent.send_errors > 0);
    assert_eq!(sent.measured.packets + sent.unsent + sent.skipped, 100);
}

#[test]
fn a_receiver_that_hears_nothing_says_so() {
    let received =
        udp_received(start(Job::UdpReceive(udp_receive(loopback(0), schedule()))).unwrap());
    assert_eq!(
        (received.flow.measured.packets, received.flow.total.packets),
        (0, 0)
    );
    assert_eq!(
        (received.flow.delay, received.flow.jitter_last),
        (None, None)
    );
    assert_eq!(received.flow.longest_gap, 200 * MILLISECOND);
}

#[test]
fn a_sender_that_is_too_late_says_by_how_much() {
    let late = Schedule {
        start_at: now() - 2_000 * MILLISECOND as i64,
        ..schedule()
    };
    let outcome = start(Job::UdpSend(udp_send(loopback(9), late, Departures::Max)));
    assert!(
        matches!(outcome, Err(TrafficError::StartPassed { by }) if by >= 2_000 * MILLISECOND as i64)
    );
}

#[test]
fn udp_jobs_beyond_the_limits_are_refused() {
    let send = udp_send(loopback(9), schedule(), Departures::Max);
    let receive = udp_receive(loopback(0), schedule());
    let long = Schedule {
        measure: u64::MAX,
        ..schedule()
    };
    assert_all_refused([
        Job::UdpSend(UdpSend {
            sizes: Sizes::constant(11),
            ..send.clone()
        }),
        Job::UdpSend(UdpSend {
            sizes: Sizes::constant(65_508),
            ..send.clone()
        }),
        Job::UdpSend(UdpSend {
            mode: SendMode::Batched { datagrams: 0 },
            ..send.clone()
        }),
        Job::UdpSend(UdpSend {
            mode: SendMode::Segmented { datagrams: 65 },
            ..send.clone()
        }),
        Job::UdpSend(UdpSend {
            departures: Departures::BitsPerSecond { value: 0 },
            ..send.clone()
        }),
        Job::UdpSend(UdpSend {
            content: Content::Pattern {
                data: ByteBuf::new(),
            },
            ..send.clone()
        }),
        Job::UdpSend(UdpSend {
            schedule: long,
            ..send
        }),
        Job::UdpReceive(UdpReceive {
            step: 0,
            ..receive.clone()
        }),
        Job::UdpReceive(UdpReceive { step: 1, ..receive }),
    ]);
}

#[test]
fn a_stopped_udp_job_has_no_result() {
    let schedule = Schedule {
        measure: 60_000 * MILLISECOND,
        ..schedule()
    };
    let receiver = start(Job::UdpReceive(udp_receive(loopback(0), schedule))).unwrap();
    let departures = Departures::PacketsPerSecond { value: 1 };
    let sender = start(Job::UdpSend(udp_send(
        bound(&receiver),
        schedule,
        departures,
    )))
    .unwrap();
    assert_stopped([receiver, sender]);
}

#[test]
fn jobs_that_content_themselves_agree_on_what_there_was() {
    let schedule = Schedule {
        measure: 60_000 * MILLISECOND,
        ..schedule()
    };
    let receiver = start(Job::UdpReceive(udp_receive(loopback(0), schedule))).unwrap();
    let departures = Departures::PacketsPerSecond { value: 1_000 };
    let send = udp_send(bound(&receiver), schedule, departures);
    let sender = start(Job::UdpSend(send)).unwrap();
    let watched = receiver.stopper();
    wait_until(|| watched.received().packets >= 100);
    sender.stopper().content_itself();
    sender.stop();
    let sent = udp_sent(sender);
    wait_until(|| watched.received() == sent.total);
    watched.content_itself();
    watched.stop();
    let received = udp_received(receiver);
    assert_eq!(received.flow.measured, sent.measured);
    assert_eq!(watched.received(), sent.total);
}
