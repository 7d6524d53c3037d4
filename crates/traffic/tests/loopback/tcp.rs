//! TCP jobs against each other.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use tunnelbench_traffic::job::{
    Content, Messages, Side, SocketOptions, TcpConnect, TcpListen, TcpOptions,
};
use tunnelbench_traffic::outcome::{TcpFlow, TcpReceived, TcpSent};
use tunnelbench_traffic::process::{Departures, Distribution, Sizes};
use tunnelbench_traffic::{Job, Outcome, Schedule, TrafficError, start};

use crate::common::*;

fn options() -> TcpOptions {
    TcpOptions {
        write_bytes: 65_536,
        streams: 1,
        rate: None,
        messages: None,
        content: Content::Random,
        no_delay: false,
        congestion_control: None,
        socket: SocketOptions::default(),
        mss: None,
        sample: 20 * MILLISECOND,
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
    let connect_timeout = HANGS.as_nanos() as u64;
    TcpConnect {
        destination,
        proxy: None,
        session: 7,
        schedule: schedule(),
        side,
        options,
        connect_timeout,
    }
}

/// What both ends found out, the connecting end's first. Runs a TCP job pair in which that end has the side `side`.
fn tcp_pair(side: Side, streams: u16, options: &TcpOptions) -> [TcpFlow; 2] {
    let options = TcpOptions {
        streams,
        ..options.clone()
    };
    let other = match side {
        Side::Send => Side::Receive,
        Side::Receive => Side::Send,
        Side::Both => Side::Both,
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
    let outcomes = [connector.finish().unwrap(), listener.finish().unwrap()];
    let [Outcome::TcpConnect(connected), Outcome::TcpListen(listened)] = outcomes else {
        panic!("the outcomes are tagged like the jobs");
    };
    [connected.flow, listened.flow]
}

fn sent_and_received(flows: [TcpFlow; 2]) -> (TcpSent, TcpReceived) {
    let one_way = |flow: &TcpFlow| flow.sent.is_some() != flow.received.is_some();
    assert!(flows.iter().all(one_way), "{flows:?}");
    let [left, right] = flows;
    (
        left.sent.or(right.sent).unwrap(),
        left.received.or(right.received).unwrap(),
    )
}

#[test]
fn either_end_of_a_tcp_connection_can_send() {
    for side in [Side::Send, Side::Receive] {
        let (sent, received) = sent_and_received(tcp_pair(side, 1, &options()));
        assert!(received.measured_bytes > 0 && received.measured_bytes < received.total_bytes);
        assert!(received.total_bytes <= sent.total_bytes);
        assert_eq!(received.streams.len(), 1);
        assert_eq!(received.streams[0].measured_bytes, received.measured_bytes);
        assert_eq!(sent.streams[0].measured_bytes, sent.measured_bytes);
        assert_eq!(received.series.bytes.len(), 3);
        assert_eq!(sent.streams.len(), 1);
        assert!(sent.streams[0].processor + received.streams[0].processor > 0);
    }
}

#[test]
fn both_ends_send_at_once_and_all_arrives() {
    let [left, right] = tcp_pair(Side::Both, 2, &options());
    for (from, to) in [(&left, &right), (&right, &left)] {
        let (sent, received) = (from.sent.as_ref().unwrap(), to.received.as_ref().unwrap());
        assert!(received.measured_bytes > 0);
        assert_eq!(received.total_bytes, sent.total_bytes);
        assert_eq!((sent.streams.len(), received.streams.len()), (2, 2));
    }
}

#[test]
fn streams_add_up() {
    let asked = TcpOptions {
        write_bytes: 1_000,
        content: Content::Zeros,
        no_delay: true,
        congestion_control: Some("cubic".into()),
        socket: SocketOptions {
            buffer: Some(200_000),
            dscp: Some(10),
            ..SocketOptions::default()
        },
        mss: Some(1_000),
        ..options()
    };
    let (sent, received) = sent_and_received(tcp_pair(Side::Send, 3, &asked));
    assert_eq!((sent.streams.len(), received.streams.len()), (3, 3));
    let measured = received.streams.iter().map(|stream| stream.measured_bytes);
    assert_eq!(measured.sum::<u64>(), received.measured_bytes);
    assert!(
        sent.streams
            .iter()
            .all(|stream| stream.end.segment_bytes <= 1_000)
    );
    assert_eq!(sent.congestion_control, "cubic");
}

#[test]
fn connections_are_sampled_from_start_to_end() {
    let (sent, _) = sent_and_received(tcp_pair(Side::Send, 2, &options()));
    assert_eq!(sent.step, 20 * MILLISECOND);
    for stream in &sent.streams {
        let samples = &stream.samples;
        assert_eq!(samples.round_trip.len(), 15);
        assert_eq!(samples.delivery_rate.len(), 15);
        assert!(samples.retransmits.iter().flatten().is_sorted());
        assert!(
            samples
                .congestion_window
                .iter()
                .flatten()
                .all(|segments| *segments > 0)
        );
    }
    let round_trip = sent.round_trip.unwrap();
    // Ten of each stream, and one more of each where a busy machine takes the last of the warm-up late.
    assert!(round_trip.count <= 22 && round_trip.min > 0);
    assert!(sent.minimum_round_trip.unwrap() > 0);
    assert!(sent.segments.unwrap() > 0 && sent.retransmits <= sent.segments.unwrap());
}

fn telnet() -> TcpOptions {
    TcpOptions {
        messages: Some(Messages {
            departures: Departures::Process {
                interval: Distribution::Exponential { mean: 1e6 },
            },
            sizes: Sizes(Distribution::Uniform {
                low: 1.0,
                high: 60.0,
            }),
            seed: 42,
        }),
        no_delay: true,
        ..options()
    }
}

#[test]
fn messages_are_each_accounted_for() {
    let [left, right] = tcp_pair(Side::Both, 1, &telnet());
    for (from, to) in [(&left, &right), (&right, &left)] {
        let (sent, received) = (from.sent.as_ref().unwrap(), to.received.as_ref().unwrap());
        let (sent, flow) = (
            sent.messages.as_ref().unwrap(),
            received.messages.as_ref().unwrap(),
        );
        assert!(sent.measured.packets > 0 && sent.measured.packets < sent.total.packets);
        assert_eq!((flow.measured, flow.total), (sent.measured, sent.total));
        assert_eq!((flow.duplicates, flow.reordered), (0, 0));
        assert_eq!(flow.delay.as_ref().unwrap().count, sent.measured.packets);
        let error = sent.departure_error.as_ref().unwrap();
        assert_eq!((error.count, error.negative), (sent.measured.packets, 0));
    }
}

#[test]
fn messages_that_come_as_fast_as_possible_fill_the_stream() {
    let messages = Messages {
        departures: Departures::Max,
        sizes: Sizes::constant(40_000),
        seed: 0,
    };
    let options = TcpOptions {
        messages: Some(messages),
        ..options()
    };
    let (sent, received) = sent_and_received(tcp_pair(Side::Receive, 1, &options));
    assert_eq!(
        received.messages.unwrap().total,
        sent.messages.unwrap().total
    );
}

#[test]
fn a_stream_of_something_else_than_messages_is_an_error() {
    let listener = TcpListen {
        options: telnet(),
        ..tcp_listen(Side::Receive)
    };
    let listener = start(Job::TcpListen(listener)).unwrap();
    let mut peer = TcpStream::connect(bound(&listener)).unwrap();
    greet(&mut peer, 7, 0).unwrap();
    peer.write_all(&[0; 100]).unwrap();
    let outcome = listener.finish();
    assert!(
        matches!(outcome, Err(TrafficError::Broken { .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_paced_job_sends_no_more_than_asked() {
    let paced = TcpOptions {
        write_bytes: 500,
        rate: Some(8_000_000),
        no_delay: true,
        ..options()
    };
    for streams in [1, 2] {
        let (sent, received) = sent_and_received(tcp_pair(Side::Send, streams, &paced));
        assert!(sent.total_bytes > 0 && sent.total_bytes <= 300_000);
        assert!(received.total_bytes <= sent.total_bytes);
    }
}

#[test]
fn an_unknown_congestion_control_is_refused_by_naming_the_known() {
    let job = TcpListen {
        options: TcpOptions {
            congestion_control: Some("carrier-pigeon".into()),
            ..options()
        },
        ..tcp_listen(Side::Send)
    };
    let failure = start(Job::TcpListen(job)).unwrap_err().to_string();
    assert!(
        failure.contains("carrier-pigeon") && failure.contains("reno"),
        "{failure}"
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
    let job = tcp_listen(Side::Receive);
    let schedule = job.schedule;
    let listener = start(Job::TcpListen(job)).unwrap();
    let mute = TcpStream::connect(bound(&listener)).unwrap();
    for (session, index) in [(8, 0), (7, 1)] {
        let mut stranger = TcpStream::connect(bound(&listener)).unwrap();
        assert!(greet(&mut stranger, session, index).is_err());
    }
    let connector = start(Job::TcpConnect(TcpConnect {
        schedule,
        ..tcp_connect(bound(&listener), Side::Send, 1)
    }))
    .unwrap();
    connector.finish().unwrap();
    let Outcome::TcpListen(listened) = listener.finish().unwrap() else {
        panic!("not a listener's outcome")
    };
    assert_eq!(listened.foreign, 2, "strangers that spoke");
    drop(mute);
}

/// Introduces a stream as a connecting job does.
fn greet(stream: &mut TcpStream, session: u64, index: u16) -> std::io::Result<()> {
    stream.set_read_timeout(Some(HANGS))?;
    let hello = [&b"tbtc"[..], &session.to_be_bytes(), &index.to_be_bytes()].concat();
    stream.write_all(&hello)?;
    let mut answer = [0; 14];
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

#[test]
fn tcp_jobs_beyond_the_limits_are_refused() {
    assert_all_refused([
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
        Job::TcpListen(TcpListen {
            options: TcpOptions {
                rate: Some(0),
                ..options()
            },
            ..tcp_listen(Side::Send)
        }),
        Job::TcpListen(TcpListen {
            options: TcpOptions {
                streams: 2,
                ..telnet()
            },
            ..tcp_listen(Side::Send)
        }),
        Job::TcpListen(TcpListen {
            options: TcpOptions {
                sample: 0,
                ..options()
            },
            ..tcp_listen(Side::Send)
        }),
        Job::TcpListen(TcpListen {
            options: TcpOptions {
                mss: Some(9),
                ..options()
            },
            ..tcp_listen(Side::Send)
        }),
    ]);
}

#[test]
fn a_stopped_tcp_job_has_no_result() {
    let schedule = Schedule {
        measure: 60_000 * MILLISECOND,
        ..schedule()
    };
    let listener = start(Job::TcpListen(TcpListen {
        schedule,
        ..tcp_listen(Side::Receive)
    }))
    .unwrap();
    let connector = TcpConnect {
        schedule,
        ..tcp_connect(bound(&listener), Side::Send, 1)
    };
    assert_stopped([start(Job::TcpConnect(connector)).unwrap(), listener]);
}

#[test]
fn a_job_that_contents_itself_tells_what_it_has() {
    let schedule = Schedule {
        measure: 60_000 * MILLISECOND,
        ..schedule()
    };
    let listener = start(Job::TcpListen(TcpListen {
        schedule,
        ..tcp_listen(Side::Receive)
    }))
    .unwrap();
    let connector = start(Job::TcpConnect(TcpConnect {
        schedule,
        ..tcp_connect(bound(&listener), Side::Send, 1)
    }))
    .unwrap();
    let (receiver, sender) = (listener.stopper(), connector.stopper());
    let measured_from = schedule.start_at + schedule.warm_up as i64;
    wait_until(|| now() > measured_from);
    let before = receiver.received().bytes;
    wait_until(|| receiver.received().bytes > before);
    let so_far = receiver.received().bytes;
    receiver.content_itself();
    sender.content_itself();
    sender.stop();
    let sent = connector.finish().unwrap();
    receiver.stop();
    let received = listener.finish().unwrap();
    let (Outcome::TcpConnect(sent), Outcome::TcpListen(received)) = (sent, received) else {
        panic!("other kinds");
    };
    assert!(sent.flow.sent.unwrap().measured_bytes > 0);
    let received = received.flow.received.unwrap();
    assert!(received.measured_bytes > 0 && received.total_bytes >= so_far);
}
