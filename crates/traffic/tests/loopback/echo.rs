//! Probes and echo servers.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use serde_bytes::ByteBuf;
use tunnelbench_traffic::job::{
    EchoDestination, EchoProbe, EchoServe, ProbePlan, Protocol, SocketOptions, Timestamps,
};
use tunnelbench_traffic::outcome::Probed;
use tunnelbench_traffic::{Job, Outcome, Running, TrafficError, start};

use crate::common::*;

/// What no answer takes, ns.
const LONG: u64 = HANGS.as_nanos() as u64;

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
        deadline: LONG,
    }))
    .unwrap()
}

fn plan(count: u64, until_first_reply: bool, deadline: u64) -> ProbePlan {
    ProbePlan::Count {
        count,
        until_first_reply,
        deadline,
    }
}

fn echo_probe(address: SocketAddr, protocol: Protocol) -> EchoProbe {
    EchoProbe {
        destination: match protocol {
            Protocol::Udp => EchoDestination::Udp { address },
            Protocol::Tcp => EchoDestination::Tcp {
                address,
                proxy: None,
            },
        },
        plan: plan(20, false, LONG),
        interval: MILLISECOND,
        payload_bytes: 100,
        marker: Some(ByteBuf::from("marker")),
        timeout: LONG,
        socket: SocketOptions::default(),
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
            plan: plan(1_000, true, LONG),
            ..echo_probe(later, protocol)
        };
        let prober = start(Job::EchoProbe(job)).unwrap();
        std::thread::sleep(Duration::from_millis(30));
        let deadline = LONG;
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
        plan: plan(1_000, true, LONG),
        timeout: 50 * MILLISECOND,
        ..echo_probe(listener.local_addr().unwrap(), Protocol::Tcp)
    };
    let prober = start(Job::EchoProbe(job)).unwrap();
    let (_silent, _) = listener.accept().unwrap();
    // Whichever of the others is answered in time.
    std::thread::spawn(move || {
        for answering in listener.incoming() {
            let mut probe = [0; 100];
            let mut answering = answering?;
            answering.read_exact(&mut probe)?;
            answering.write_all(&probe)?;
        }
        std::io::Result::Ok(())
    });
    let probed = probed(prober);
    assert_eq!(probed.replies, 1);
    assert!(probed.first_reply_after.unwrap() >= 50 * MILLISECOND);
}

#[test]
fn probing_nobody_ends_at_the_deadline() {
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        let silent = UdpSocket::bind(loopback(0)).unwrap().local_addr().unwrap();
        let job = EchoProbe {
            plan: plan(20, true, 50 * MILLISECOND),
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
            plan: plan(0, false, MILLISECOND),
            ..echo_probe(loopback(9), Protocol::Udp)
        }),
        Job::EchoProbe(EchoProbe {
            marker: Some(ByteBuf::new()),
            ..echo_probe(loopback(9), Protocol::Udp)
        }),
        Job::EchoProbe(EchoProbe {
            plan: plan(1, true, MILLISECOND),
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

/// Sends to each datagram as many copies back as `copies` says of its number.
fn wayward_server(copies: impl Fn(u32) -> usize + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind(loopback(0)).unwrap();
    let address = socket.local_addr().unwrap();
    socket.set_read_timeout(Some(HANGS)).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 1_000];
        while let Ok((length, source)) = socket.recv_from(&mut buffer) {
            let number = u32::from_be_bytes(buffer[..4].try_into().unwrap());
            for _ in 0..copies(number) {
                socket.send_to(&buffer[..length], source).unwrap();
            }
        }
    });
    address
}

#[test]
fn lost_and_duplicated_replies_are_counted() {
    let server = wayward_server(|number| [1, 0, 3, 1][number as usize % 4]);
    for interval in [MILLISECOND, 0] {
        let job = EchoProbe {
            interval,
            timeout: 500 * MILLISECOND,
            plan: plan(16, false, LONG),
            ..echo_probe(server, Protocol::Udp)
        };
        let probed = probed(start(Job::EchoProbe(job)).unwrap());
        assert_eq!((probed.sent, probed.replies), (16, 12), "{probed:?}");
        assert_eq!((probed.duplicates, probed.reordered), (8, 0));
        assert_eq!((probed.total_sent, probed.total_replies), (16, 12));
        assert_eq!(probed.round_trip_from_intended.is_some(), interval > 0);
    }
}

#[test]
fn replies_that_overtake_each_other_are_reordered() {
    let socket = UdpSocket::bind(loopback(0)).unwrap();
    let job = EchoProbe {
        plan: plan(4, false, LONG),
        ..echo_probe(socket.local_addr().unwrap(), Protocol::Udp)
    };
    let prober = start(Job::EchoProbe(job)).unwrap();
    let mut probes = Vec::new();
    let mut source = None;
    for _ in 0..4 {
        let mut probe = vec![0; 100];
        source = Some(socket.recv_from(&mut probe).unwrap().1);
        probes.push(probe);
    }
    let mut of_another = probes[0].clone();
    of_another[5] ^= 1;
    let mut of_another_time = probes[0].clone();
    of_another_time[11] ^= 1;
    let replies = [
        &of_another,
        &of_another_time,
        &probes[1],
        &probes[0],
        &probes[3],
        &probes[2],
    ];
    for reply in replies {
        socket.send_to(reply, source.unwrap()).unwrap();
    }
    let probed = probed(prober);
    assert_eq!((probed.sent, probed.replies), (4, 4));
    assert_eq!((probed.reordered, probed.duplicates), (2, 0));
}

#[test]
fn a_schedule_says_which_probes_count() {
    let server = echo_serve(Protocol::Udp);
    let job = EchoProbe {
        plan: ProbePlan::Schedule {
            schedule: schedule(),
        },
        ..echo_probe(bound(&server), Protocol::Udp)
    };
    let probed = probed(start(Job::EchoProbe(job)).unwrap());
    assert_eq!(probed.sent + probed.skipped, 200, "{probed:?}");
    assert_eq!(probed.replies, probed.sent);
    assert!(probed.total_sent > probed.sent);
    assert_eq!(probed.total_sent, probed.series.begun.iter().sum::<u64>());
    assert_eq!(probed.series.begun, probed.series.completed);
    assert_eq!(probed.series.begun.len(), 3);
    assert_eq!(probed.timestamps, Timestamps::Kernel);
    assert!(probed.processor > 0);
    let (from_real, from_intended) = (
        probed.round_trip.unwrap(),
        probed.round_trip_from_intended.unwrap(),
    );
    assert!(from_real.mean <= from_intended.mean);
    assert_eq!(from_real.count, from_intended.count);
    server.stop();
}
