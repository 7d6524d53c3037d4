//! Whole jobs against each other over the loopback interface.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_bytes::ByteBuf;
use tunnelbench_traffic::job::{
    Content, EchoProbe, EchoServe, Protocol, Rate, Side, TcpConnect, TcpListen, TcpOptions,
    Timestamps, UdpReceive, UdpSend,
};
use tunnelbench_traffic::outcome::{Probed, TcpFlow, TcpReceived, TcpSent, UdpReceived, UdpSent};
use tunnelbench_traffic::{Job, Outcome, Running, Schedule, TrafficError, start};

const MILLISECOND: u64 = 1_000_000;

fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos() as i64
}

/// Starts soon enough for a test and late enough for a busy machine.
fn schedule() -> Schedule {
    let start_at = now() + 200 * MILLISECOND as i64;
    let (warm_up, measure, cool_down) = (50 * MILLISECOND, 200 * MILLISECOND, 50 * MILLISECOND);
    Schedule {
        start_at,
        warm_up,
        measure,
        cool_down,
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn bound(running: &Running) -> SocketAddr {
    running.bound().expect("a listener knows its address")
}

fn udp_receive(bind: SocketAddr, schedule: Schedule) -> UdpReceive {
    let timestamps = Timestamps::Kernel;
    UdpReceive {
        bind,
        session: 7,
        schedule,
        linger: 200 * MILLISECOND,
        timestamps,
        socket_buffer: None,
    }
}

fn udp_send(destination: SocketAddr, schedule: Schedule, rate: Rate) -> UdpSend {
    UdpSend {
        destination,
        source_port: None,
        session: 7,
        schedule,
        payload_bytes: 200,
        rate,
        batch: 16,
        content: Content::Random,
        socket_buffer: None,
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

fn probed(running: Running) -> Probed {
    match running.finish().unwrap() {
        Outcome::EchoProbe(probed) => probed,
        other => panic!("{other:?}"),
    }
}

/// Runs a UDP job pair over one address family.
fn udp_pair(bind: SocketAddr, timestamps: Timestamps, rate: Rate) -> (UdpSent, UdpReceived) {
    let schedule = schedule();
    let receiver = start(Job::UdpReceive(UdpReceive {
        timestamps,
        ..udp_receive(bind, schedule)
    }))
    .unwrap();
    let sender = start(Job::UdpSend(udp_send(bound(&receiver), schedule, rate))).unwrap();
    (udp_sent(sender), udp_received(receiver))
}

fn assert_all_arrived(sent: &UdpSent, received: &UdpReceived) {
    assert_eq!(received.measured, sent.measured);
    assert_eq!(received.total, sent.total);
    assert_eq!(
        (
            received.duplicates,
            received.reordered,
            received.beyond_window
        ),
        (0, 0, 0)
    );
    assert_eq!((received.foreign, received.buffer_drops), (0, 0));
    let in_series: u64 = received.series.packets.as_ref().unwrap().iter().sum();
    assert!(received.arrived.packets <= in_series && in_series <= received.total.packets);
    let delay = received.delay.as_ref().unwrap();
    assert_eq!(
        (delay.count, delay.negative),
        (received.measured.packets, 0)
    );
    assert!(received.jitter_mean.unwrap() > 0.0);
}

#[test]
fn every_paced_datagram_is_accounted_for() {
    let (sent, received) = udp_pair(
        loopback(0),
        Timestamps::Kernel,
        Rate::PacketsPerSecond { value: 2_000 },
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
        Rate::BitsPerSecond { value: 1_600_000 },
    );
    assert_eq!(sent.measured.packets + sent.skipped + sent.unsent, 200);
    assert_eq!(received.timestamps, Timestamps::User);
    assert_all_arrived(&sent, &received);
}

#[test]
fn the_highest_rate_intends_what_it_does() {
    let (sent, received) = udp_pair(loopback(0), Timestamps::Kernel, Rate::Max);
    assert_eq!((sent.asked_rate, sent.late, sent.skipped), (None, 0, 0));
    assert!(sent.departure_error.is_none());
    let lost = sent.total.packets - received.total.packets;
    assert!(
        received.buffer_drops <= lost,
        "on loopback only a full receive buffer loses anything"
    );
}

#[test]
fn what_the_receive_buffer_loses_is_told_apart() {
    let schedule = schedule();
    let receive = UdpReceive {
        socket_buffer: Some(2_000),
        ..udp_receive(loopback(0), schedule)
    };
    let receiver = start(Job::UdpReceive(receive)).unwrap();
    let sender = start(Job::UdpSend(udp_send(
        bound(&receiver),
        schedule,
        Rate::Max,
    )))
    .unwrap();
    let (sent, received) = (udp_sent(sender), udp_received(receiver));
    assert!(received.socket_buffer < 10_000);
    assert!(received.buffer_drops > 0 && received.measured.packets < sent.measured.packets);
    assert!(received.buffer_drops <= sent.total.packets - received.total.packets);
}

#[test]
fn strangers_do_not_count() {
    let schedule = schedule();
    let receiver = start(Job::UdpReceive(udp_receive(loopback(0), schedule))).unwrap();
    let rate = Rate::PacketsPerSecond { value: 100 };
    let first = start(Job::UdpSend(udp_send(bound(&receiver), schedule, rate))).unwrap();
    let job = UdpSend {
        session: 8,
        ..udp_send(bound(&receiver), schedule, rate)
    };
    let other_session = start(Job::UdpSend(job)).unwrap();
    let stranger = UdpSocket::bind(loopback(0)).unwrap();
    stranger.send_to(b"short", bound(&receiver)).unwrap();
    let (first, other_session, received) = (
        udp_sent(first),
        udp_sent(other_session),
        udp_received(receiver),
    );
    assert_eq!(received.measured, first.measured);
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
        let intended = (intended * MILLISECOND).to_be_bytes();
        let datagram = [
            &sequence.to_be_bytes()[..],
            &7_u16.to_be_bytes(),
            &intended[2..],
            b"content",
        ]
        .concat();
        socket.send_to(&datagram, bound(&receiver)).unwrap();
    }
    let received = udp_received(receiver);
    assert_eq!(
        (received.measured.packets, received.measured.bytes),
        (3, 3 * 19)
    );
    assert_eq!((received.duplicates, received.reordered), (1, 1));
    assert_eq!(received.total.packets, 7);
    assert_eq!(
        received.arrived.packets, 0,
        "they all came before the measured window"
    );
    assert_eq!(
        received.delay.unwrap().negative,
        3,
        "and before they were intended to leave"
    );
}

#[test]
fn nobody_listening_is_counted_and_not_fatal() {
    let silent = UdpSocket::bind(loopback(0)).unwrap().local_addr().unwrap();
    let sent = udp_sent(
        start(Job::UdpSend(udp_send(
            silent,
            schedule(),
            Rate::PacketsPerSecond { value: 500 },
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
    assert_eq!((received.measured.packets, received.total.packets), (0, 0));
    assert_eq!((received.delay, received.jitter_last), (None, None));
    assert_eq!(received.longest_gap, 200 * MILLISECOND);
}

#[test]
fn a_sender_that_is_too_late_says_by_how_much() {
    let late = Schedule {
        start_at: now() - 2_000 * MILLISECOND as i64,
        ..schedule()
    };
    let outcome = start(Job::UdpSend(udp_send(loopback(9), late, Rate::Max)));
    assert!(
        matches!(outcome, Err(TrafficError::StartPassed { by }) if by >= 2_000 * MILLISECOND as i64)
    );
}

#[test]
fn jobs_beyond_the_limits_are_refused() {
    let send = udp_send(loopback(9), schedule(), Rate::Max);
    let long = Schedule {
        measure: u64::MAX,
        ..schedule()
    };
    let jobs = [
        Job::UdpSend(UdpSend {
            payload_bytes: 11,
            ..send.clone()
        }),
        Job::UdpSend(UdpSend {
            payload_bytes: 65_508,
            ..send.clone()
        }),
        Job::UdpSend(UdpSend {
            batch: 0,
            ..send.clone()
        }),
        Job::UdpSend(UdpSend {
            rate: Rate::BitsPerSecond { value: 0 },
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
        Job::TcpListen(TcpListen {
            options: TcpOptions {
                streams: 0,
                ..options()
            },
            ..tcp_listen(Side::Send)
        }),
        Job::TcpListen(TcpListen {
            options: TcpOptions {
                write_bytes: 0,
                ..options()
            },
            ..tcp_listen(Side::Send)
        }),
        Job::EchoProbe(EchoProbe {
            count: 0,
            ..echo_probe(loopback(9), Protocol::Udp)
        }),
        Job::EchoProbe(EchoProbe {
            marker: Some(ByteBuf::new()),
            ..echo_probe(loopback(9), Protocol::Udp)
        }),
        Job::EchoProbe(EchoProbe {
            until_first_reply: true,
            interval: 0,
            ..echo_probe(loopback(9), Protocol::Udp)
        }),
        Job::EchoServe(EchoServe {
            bind: loopback(0),
            protocol: Protocol::Tcp,
            deadline: u64::MAX,
        }),
    ];
    for job in jobs {
        let outcome = start(job.clone());
        assert!(
            matches!(outcome, Err(TrafficError::Invalid(_))),
            "{job:?}: {outcome:?}"
        );
    }
}

#[test]
fn a_stopped_job_has_no_result() {
    let schedule = Schedule {
        measure: 60_000 * MILLISECOND,
        ..schedule()
    };
    let receiver = start(Job::UdpReceive(udp_receive(loopback(0), schedule))).unwrap();
    let sender = start(Job::UdpSend(udp_send(
        bound(&receiver),
        schedule,
        Rate::PacketsPerSecond { value: 1 },
    )))
    .unwrap();
    let listener = start(Job::TcpListen(TcpListen {
        schedule,
        ..tcp_listen(Side::Receive)
    }))
    .unwrap();
    let connector = TcpConnect {
        schedule,
        ..tcp_connect(bound(&listener), Side::Send, 1)
    };
    let connector = start(Job::TcpConnect(connector)).unwrap();
    let jobs = [receiver, sender, connector, listener];
    jobs.iter().for_each(Running::stop);
    for job in jobs {
        let outcome = job.finish();
        let stopped = matches!(
            outcome,
            Err(TrafficError::Stopped | TrafficError::Broken { .. })
        );
        assert!(stopped, "{outcome:?}");
    }
}

fn options() -> TcpOptions {
    TcpOptions {
        write_bytes: 65_536,
        streams: 1,
        content: Content::Random,
        no_delay: false,
        congestion_control: None,
        socket_buffer: None,
        mss: None,
    }
}

fn tcp_listen(side: Side) -> TcpListen {
    TcpListen {
        bind: loopback(0),
        session: 7,
        schedule: schedule(),
        side,
        options: options(),
    }
}

fn tcp_connect(destination: SocketAddr, side: Side, streams: u16) -> TcpConnect {
    let options = TcpOptions {
        streams,
        ..options()
    };
    let connect_timeout = 1_000 * MILLISECOND;
    TcpConnect {
        destination,
        session: 7,
        schedule: schedule(),
        side,
        options,
        connect_timeout,
    }
}

fn sent_and_received(outcomes: [Outcome; 2]) -> (TcpSent, TcpReceived) {
    let [connected, listened] = outcomes;
    let (Outcome::TcpConnect(connected), Outcome::TcpListen(listened)) = (connected, listened)
    else {
        panic!("the outcomes are tagged like the jobs");
    };
    match (connected.flow, listened.flow) {
        (TcpFlow::Send(sent), TcpFlow::Receive(received))
        | (TcpFlow::Receive(received), TcpFlow::Send(sent)) => (sent, received),
        flows => panic!("{flows:?}"),
    }
}

/// Runs a TCP job pair in which the connecting end has the side `side`.
fn tcp_pair(side: Side, streams: u16, options: &TcpOptions) -> (TcpSent, TcpReceived) {
    let options = TcpOptions {
        streams,
        ..options.clone()
    };
    let other = if side == Side::Send {
        Side::Receive
    } else {
        Side::Send
    };
    let schedule = schedule();
    let listener = TcpListen {
        options: options.clone(),
        schedule,
        ..tcp_listen(other)
    };
    let listener = start(Job::TcpListen(listener)).unwrap();
    let connector = TcpConnect {
        options,
        schedule,
        ..tcp_connect(bound(&listener), side, streams)
    };
    let connector = start(Job::TcpConnect(connector)).unwrap();
    sent_and_received([connector.finish().unwrap(), listener.finish().unwrap()])
}

#[test]
fn either_end_of_a_tcp_connection_can_send() {
    for side in [Side::Send, Side::Receive] {
        let (sent, received) = tcp_pair(side, 1, &options());
        assert!(received.measured_bytes > 0 && received.measured_bytes < received.total_bytes);
        assert!(received.total_bytes <= sent.total_bytes);
        assert_eq!(received.streams, [received.measured_bytes]);
        assert_eq!(received.series.bytes.len(), 3);
        assert_eq!(received.series.packets, None);
        assert_eq!(sent.streams.len(), 1);
        assert!(sent.streams[0].segment_bytes > 0);
    }
}

#[test]
fn streams_add_up() {
    let asked = TcpOptions {
        write_bytes: 1_000,
        content: Content::Zeros,
        no_delay: true,
        congestion_control: Some("cubic".into()),
        socket_buffer: Some(200_000),
        mss: Some(1_000),
        ..options()
    };
    let (sent, received) = tcp_pair(Side::Send, 3, &asked);
    assert_eq!((sent.streams.len(), received.streams.len()), (3, 3));
    assert_eq!(
        received.streams.iter().sum::<u64>(),
        received.measured_bytes
    );
    assert!(
        sent.streams
            .iter()
            .all(|stream| stream.segment_bytes <= 1_000)
    );
}

#[test]
fn a_connection_that_breaks_is_an_error() {
    let listener = start(Job::TcpListen(tcp_listen(Side::Receive))).unwrap();
    let mut peer = TcpStream::connect(bound(&listener)).unwrap();
    greet(&mut peer, 7, 0).unwrap();
    drop(peer);
    let outcome = listener.finish();
    assert!(
        matches!(outcome, Err(TrafficError::Broken { .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_connection_that_carries_nothing_is_an_error() {
    let listener = start(Job::TcpListen(tcp_listen(Side::Receive))).unwrap();
    let mut peer = TcpStream::connect(bound(&listener)).unwrap();
    greet(&mut peer, 7, 0).unwrap();
    let outcome = listener.finish();
    assert!(
        matches!(outcome, Err(TrafficError::NothingCarried(_))),
        "{outcome:?}"
    );
}

#[test]
fn a_listener_that_lacks_streams_says_how_many() {
    let job = TcpListen {
        options: TcpOptions {
            streams: 2,
            ..options()
        },
        ..tcp_listen(Side::Receive)
    };
    let listener = start(Job::TcpListen(job)).unwrap();
    let mut peer = TcpStream::connect(bound(&listener)).unwrap();
    greet(&mut peer, 7, 1).unwrap();
    let outcome = listener.finish();
    assert!(
        matches!(
            outcome,
            Err(TrafficError::NotConnected {
                connected: 1,
                asked: 2
            })
        ),
        "{outcome:?}"
    );
}

#[test]
fn a_listener_turns_strangers_away() {
    let listener = start(Job::TcpListen(tcp_listen(Side::Receive))).unwrap();
    for (session, index) in [(8, 0), (7, 1)] {
        let mut stranger = TcpStream::connect(bound(&listener)).unwrap();
        assert!(greet(&mut stranger, session, index).is_err());
    }
    let connector = start(Job::TcpConnect(tcp_connect(
        bound(&listener),
        Side::Send,
        1,
    )))
    .unwrap();
    connector.finish().unwrap();
    let Outcome::TcpListen(listened) = listener.finish().unwrap() else {
        panic!("not a listener's outcome")
    };
    assert_eq!(listened.foreign, 2);
}

/// Introduces a stream as a connecting job does.
fn greet(stream: &mut TcpStream, session: u16, index: u16) -> std::io::Result<()> {
    use std::io::{Read, Write};
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let hello = [&b"tbtc"[..], &session.to_be_bytes(), &index.to_be_bytes()].concat();
    stream.write_all(&hello)?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)?;
    assert_eq!(answer, hello[..]);
    Ok(())
}

#[test]
fn connecting_to_nobody_is_an_error() {
    let silent = std::net::TcpListener::bind(loopback(0))
        .unwrap()
        .local_addr()
        .unwrap();
    let outcome = start(Job::TcpConnect(tcp_connect(silent, Side::Send, 1)));
    assert!(
        matches!(&outcome, Err(TrafficError::Io { .. })),
        "{outcome:?}"
    );
}

#[test]
fn connecting_to_a_stranger_ends_in_time() {
    let stranger = std::net::TcpListener::bind(loopback(0)).unwrap();
    let connect_timeout = 50 * MILLISECOND;
    let job = TcpConnect {
        connect_timeout,
        ..tcp_connect(stranger.local_addr().unwrap(), Side::Send, 1)
    };
    let outcome = start(Job::TcpConnect(job));
    assert!(
        matches!(&outcome, Err(TrafficError::Io { .. })),
        "{outcome:?}"
    );
}

fn echo_serve(protocol: Protocol) -> Running {
    start(Job::EchoServe(EchoServe {
        bind: loopback(0),
        protocol,
        deadline: 5_000 * MILLISECOND,
    }))
    .unwrap()
}

fn echo_probe(destination: SocketAddr, protocol: Protocol) -> EchoProbe {
    EchoProbe {
        destination,
        protocol,
        count: 20,
        interval: MILLISECOND,
        payload_bytes: 100,
        marker: Some(ByteBuf::from("marker")),
        timeout: 1_000 * MILLISECOND,
        until_first_reply: false,
        deadline: 4_000 * MILLISECOND,
    }
}

#[test]
fn every_probe_is_answered() {
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        for interval in [MILLISECOND, 0] {
            let server = echo_serve(protocol);
            let job = EchoProbe {
                interval,
                ..echo_probe(bound(&server), protocol)
            };
            let probed = probed(start(Job::EchoProbe(job)).unwrap());
            assert_eq!(
                (probed.sent, probed.replies, probed.failures),
                (20, 20, 0),
                "{protocol:?}"
            );
            let round_trip = probed.round_trip.unwrap();
            assert!(round_trip.count == 20 && round_trip.min > 0);
            assert!(probed.first_reply_after.unwrap() >= round_trip.min);
            server.stop();
            let Outcome::EchoServe(echoed) = server.finish().unwrap() else {
                panic!("not a server's outcome")
            };
            assert_eq!(echoed.echoed.bytes, 2_000);
        }
    }
}

#[test]
fn a_probe_carries_the_marker() {
    let listener = UdpSocket::bind(loopback(0)).unwrap();
    let probe = EchoProbe {
        payload_bytes: 22,
        ..echo_probe(listener.local_addr().unwrap(), Protocol::Udp)
    };
    let running = start(Job::EchoProbe(probe)).unwrap();
    let mut buffer = [0; 100];
    let length = listener.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[12..length], b"markermark");
    running.stop();
    assert!(matches!(running.finish(), Err(TrafficError::Stopped)));
}

#[test]
fn probing_goes_on_until_there_is_an_answer() {
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        let later = match protocol {
            Protocol::Udp => UdpSocket::bind(loopback(0)).unwrap().local_addr().unwrap(),
            Protocol::Tcp => std::net::TcpListener::bind(loopback(0))
                .unwrap()
                .local_addr()
                .unwrap(),
        };
        let job = EchoProbe {
            count: 1_000,
            until_first_reply: true,
            ..echo_probe(later, protocol)
        };
        let prober = start(Job::EchoProbe(job)).unwrap();
        std::thread::sleep(Duration::from_millis(30));
        let deadline = 5_000 * MILLISECOND;
        let server = start(Job::EchoServe(EchoServe {
            bind: later,
            protocol,
            deadline,
        }))
        .unwrap();
        let probed = probed(prober);
        server.stop();
        assert!(
            probed.replies >= 1 && probed.first_reply_after.unwrap() >= 30 * MILLISECOND,
            "{probed:?}"
        );
    }
}

#[test]
fn a_connection_that_stays_silent_is_given_up_for_another() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind(loopback(0)).unwrap();
    let job = EchoProbe {
        count: 1_000,
        timeout: 50 * MILLISECOND,
        until_first_reply: true,
        ..echo_probe(listener.local_addr().unwrap(), Protocol::Tcp)
    };
    let prober = start(Job::EchoProbe(job)).unwrap();
    let (_silent, _) = listener.accept().unwrap();
    let (mut answering, _) = listener.accept().unwrap();
    let mut probe = [0; 100];
    answering.read_exact(&mut probe).unwrap();
    answering.write_all(&probe).unwrap();
    let probed = probed(prober);
    assert_eq!(probed.replies, 1);
    assert!(probed.first_reply_after.unwrap() >= 50 * MILLISECOND);
}

#[test]
fn probing_nobody_ends_at_the_deadline() {
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        let silent = UdpSocket::bind(loopback(0)).unwrap().local_addr().unwrap();
        let deadline = 50 * MILLISECOND;
        let job = EchoProbe {
            until_first_reply: true,
            deadline,
            ..echo_probe(silent, protocol)
        };
        let probed = probed(start(Job::EchoProbe(job)).unwrap());
        assert_eq!(
            (probed.replies, probed.first_reply_after, probed.round_trip),
            (0, None, None)
        );
    }
}

#[test]
fn an_echo_server_answers_only_the_first_source() {
    let server = echo_serve(Protocol::Udp);
    let [first, second] = [(); 2].map(|()| UdpSocket::bind(loopback(0)).unwrap());
    first.send_to(b"first", bound(&server)).unwrap();
    let mut buffer = [0; 16];
    assert_eq!(first.recv(&mut buffer).unwrap(), 5);
    second.send_to(b"second", bound(&server)).unwrap();
    first.send_to(b"again", bound(&server)).unwrap();
    assert_eq!(first.recv(&mut buffer).unwrap(), 5);
    server.stop();
    let Outcome::EchoServe(echoed) = server.finish().unwrap() else {
        panic!("not a server's outcome")
    };
    assert_eq!((echoed.echoed.packets, echoed.foreign), (2, 1));
}
