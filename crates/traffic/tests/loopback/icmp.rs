//! ICMP echo requests to this system, which answers them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tunnelbench_traffic::job::{EchoDestination, EchoProbe, ProbePlan, SocketOptions, Timestamps};
use tunnelbench_traffic::outcome::Probed;
use tunnelbench_traffic::{Job, Outcome, Running, TrafficError, start};

use crate::common::*;

const LOOPBACKS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

fn ping(address: IpAddr) -> EchoProbe {
    EchoProbe {
        destination: EchoDestination::Icmp { address },
        plan: ProbePlan::Count {
            count: 20,
            until_first_reply: false,
            deadline: HANGS.as_nanos() as u64,
        },
        interval: MILLISECOND,
        payload_bytes: 56,
        marker: None,
        timeout: HANGS.as_nanos() as u64,
        socket: SocketOptions::default(),
    }
}

/// None where this user may not send ICMP, which the error then says.
fn probed(running: Running) -> Option<Probed> {
    match running.finish() {
        Ok(Outcome::EchoProbe(probed)) => Some(probed),
        Err(TrafficError::Invalid(text)) if text.contains("ping_group_range") => None,
        other => panic!("{other:?}"),
    }
}

fn run(job: EchoProbe) -> Option<Probed> {
    probed(start(Job::EchoProbe(job)).unwrap())
}

#[test]
fn this_system_answers_every_echo_request() {
    for address in LOOPBACKS {
        for (interval, payload_bytes) in [(MILLISECOND, 12), (0, 65_507), (0, 56)] {
            let job = EchoProbe {
                interval,
                payload_bytes,
                ..ping(address)
            };
            let Some(probed) = run(job) else { return };
            assert_eq!(
                (probed.sent, probed.replies, probed.failures),
                (20, 20, 0),
                "{address} {payload_bytes} {probed:?}"
            );
            assert_eq!((probed.duplicates, probed.reordered), (0, 0));
            assert_eq!(probed.timestamps, Timestamps::Kernel);
            assert!(probed.round_trip.unwrap().min > 0);
        }
    }
}

#[test]
fn probers_side_by_side_do_not_take_each_others_replies() {
    let probers: Vec<Running> = LOOPBACKS
        .into_iter()
        .chain(LOOPBACKS)
        .map(|address| start(Job::EchoProbe(ping(address))).unwrap())
        .collect();
    for prober in probers {
        let Some(probed) = probed(prober) else { return };
        assert_eq!((probed.sent, probed.replies), (20, 20));
        assert_eq!((probed.duplicates, probed.late), (0, 0));
    }
}

#[test]
fn every_socket_option_can_be_set() {
    for address in LOOPBACKS {
        let socket = SocketOptions {
            source: Some(address),
            port: None,
            dscp: Some(46),
            ttl: Some(1),
            dont_fragment: Some(true),
            buffer: Some(1_000_000),
        };
        let Some(probed) = run(EchoProbe {
            socket,
            ..ping(address)
        }) else {
            return;
        };
        assert_eq!((probed.replies, probed.failures), (20, 0));
    }
}

#[test]
fn what_may_not_be_fragmented_and_is_too_big_is_a_failure() {
    let Some(allowed) = run(ping(LOOPBACKS[0])) else {
        return;
    };
    assert_eq!(allowed.replies, 20);
    // The loopback carries 65536 bytes, so that only fragments of the largest echo request fit.
    let job = EchoProbe {
        payload_bytes: 65_507,
        interval: 0,
        plan: ProbePlan::Count {
            count: 3,
            until_first_reply: false,
            deadline: HANGS.as_nanos() as u64,
        },
        ..ping(LOOPBACKS[1])
    };
    let whole = run(job.clone()).unwrap();
    let socket = SocketOptions {
        dont_fragment: Some(true),
        ..SocketOptions::default()
    };
    let refused = run(EchoProbe { socket, ..job }).unwrap();
    assert_eq!((whole.replies, whole.failures), (3, 0));
    assert_eq!((refused.sent, refused.failures), (0, 3), "{refused:?}");
}

#[test]
fn icmp_has_no_ports() {
    let socket = SocketOptions {
        port: Some(7),
        ..SocketOptions::default()
    };
    assert_all_refused([Job::EchoProbe(EchoProbe {
        socket,
        ..ping(LOOPBACKS[0])
    })]);
}
