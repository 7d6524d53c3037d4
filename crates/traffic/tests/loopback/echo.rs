//! Probes and echo servers.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use serde_bytes::ByteBuf;
use tunnelbench_traffic::job::{EchoProbe, EchoServe, Protocol, SocketOptions};
use tunnelbench_traffic::outcome::Probed;
use tunnelbench_traffic::{Job, Outcome, Running, TrafficError, start};

use crate::common::*;

fn probed(running: Running) -> Probed {
    match running.finish().unwrap() {
        Outcome::EchoProbe(probed) => probed,
        other => panic!("{other:?}"),
    }
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
        socket: SocketOptions::default(),
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

#[test]
fn echo_jobs_beyond_the_limits_are_refused() {
    assert_all_refused([
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
    ]);
}
