//! Requests and responses.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use tunnelbench_traffic::job::{
    Protocol, SocketOptions, Transaction, TransactionRun, TransactionServe,
};
use tunnelbench_traffic::outcome::{Transacted, TransactionsServed};
use tunnelbench_traffic::{Job, Outcome, Running, Schedule, TrafficError, start};

use crate::common::*;

const SESSION: u64 = 0x0123_4567_89ab_cdef;

const SMALL: Transaction = Transaction {
    protocol: Protocol::Tcp,
    request_bytes: 1,
    response_bytes: 1,
    fresh_connections: false,
    concurrency: 1,
};

fn serve(transaction: Transaction, schedule: Schedule) -> Running {
    start(Job::TransactionServe(TransactionServe {
        bind: loopback(0),
        session: SESSION,
        schedule,
        transaction,
        peer: None,
        socket: SocketOptions::default(),
    }))
    .unwrap()
}

fn client(destination: SocketAddr, transaction: Transaction, schedule: Schedule) -> TransactionRun {
    TransactionRun {
        destination,
        proxy: None,
        session: SESSION,
        schedule,
        transaction,
        timeout: HANGS.as_nanos() as u64,
        socket: SocketOptions::default(),
    }
}

fn served(running: Running) -> TransactionsServed {
    match running.finish().unwrap() {
        Outcome::TransactionServe(served) => served,
        other => panic!("{other:?}"),
    }
}

fn transacted(running: Running) -> Transacted {
    match running.finish().unwrap() {
        Outcome::TransactionRun(transacted) => transacted,
        other => panic!("{other:?}"),
    }
}

fn pair(transaction: Transaction, schedule: Schedule) -> (Transacted, TransactionsServed) {
    let server = serve(transaction, schedule);
    let job = client(bound(&server), transaction, schedule);
    let client = start(Job::TransactionRun(job)).unwrap();
    (transacted(client), served(server))
}

#[test]
fn both_ends_count_the_same_transactions() {
    let kinds = [
        (Protocol::Tcp, false),
        (Protocol::Tcp, true),
        (Protocol::Udp, false),
    ];
    for (protocol, fresh_connections) in kinds {
        for (request_bytes, response_bytes, concurrency) in
            [(1, 1, 1), (64, 20_000, 3), (20_000, 3, 2)]
        {
            let transaction = Transaction {
                protocol,
                fresh_connections,
                request_bytes,
                response_bytes,
                concurrency,
            };
            let (transacted, served) = pair(transaction, schedule());
            let case = format!("{transaction:?} {served:?}");
            // The last responses may still be on their way when a busy machine's time is up.
            let most = transacted.total + u64::from(concurrency);
            let counted = transacted.total..=most;
            assert!(counted.contains(&served.responses), "{case}");
            assert_eq!((transacted.failures, served.foreign), (0, 0), "{case}");
            if fresh_connections {
                assert!(counted.contains(&served.connections), "{case}");
            } else {
                assert_eq!(served.connections, u64::from(concurrency), "{case}");
            }
            assert!(transacted.transactions > 0 && transacted.transactions < transacted.total);
            let round_trip = transacted.round_trip.unwrap();
            assert_eq!(round_trip.count, transacted.transactions);
            let connecting = transacted
                .connect
                .map(|connect| (connect.count, connect.max));
            assert_eq!(connecting.is_some(), fresh_connections);
            assert!(connecting.is_none_or(
                |(count, longest)| count == round_trip.count && longest < round_trip.max
            ));
            let series = transacted.series;
            assert_eq!(series.begun.iter().sum::<u64>(), transacted.total);
            assert_eq!(series.completed.iter().sum::<u64>(), transacted.total);
            assert!(transacted.processor > 0 && served.processor > 0);
        }
    }
}

#[test]
fn the_largest_messages_go_through() {
    for (protocol, bytes) in [(Protocol::Tcp, 1024 * 1024), (Protocol::Udp, 65_507)] {
        let transaction = Transaction {
            protocol,
            request_bytes: bytes,
            response_bytes: bytes,
            ..SMALL
        };
        let (transacted, served) = pair(transaction, schedule());
        assert!(transacted.transactions > 0 && served.responses >= transacted.total);
    }
}

#[test]
fn a_server_turns_strangers_away() {
    for (protocol, fresh_connections) in [
        (Protocol::Tcp, false),
        (Protocol::Tcp, true),
        (Protocol::Udp, false),
    ] {
        let transaction = Transaction {
            protocol,
            fresh_connections,
            ..SMALL
        };
        let server = serve(transaction, schedule());
        let stranger = TransactionRun {
            session: SESSION + 1,
            timeout: 100 * MILLISECOND,
            ..client(bound(&server), transaction, schedule())
        };
        let outcome = start(Job::TransactionRun(stranger)).and_then(Running::finish);
        assert!(
            matches!(
                outcome,
                Err(TrafficError::Io { .. } | TrafficError::NothingCarried(_))
            ),
            "{outcome:?}"
        );
        let served = served(server);
        assert!(served.foreign > 0, "{served:?}");
        assert_eq!((served.responses, served.connections), (0, 0));
    }
}

#[test]
fn requests_without_a_hello_get_no_answer() {
    let transaction = Transaction {
        protocol: Protocol::Udp,
        ..SMALL
    };
    let server = serve(transaction, schedule());
    let stranger = UdpSocket::bind(loopback(0)).unwrap();
    stranger
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    stranger.send_to(b"x", bound(&server)).unwrap();
    assert!(stranger.recv(&mut [0; 16]).is_err());
    assert_eq!(served(server).foreign, 1);
}

#[test]
fn a_connection_that_stays_silent_holds_nobody_up() {
    let schedule = schedule();
    let server = serve(SMALL, schedule);
    let _silent = TcpStream::connect(bound(&server)).unwrap();
    let job = client(bound(&server), SMALL, schedule);
    let transacted = transacted(start(Job::TransactionRun(job)).unwrap());
    assert!(transacted.transactions > 0);
    assert_eq!(served(server).responses, transacted.total);
}

/// Hands datagrams to and fro between one client and `server`, but loses some.
fn lossy_relay(server: SocketAddr) -> SocketAddr {
    let [front, back] = [(); 2].map(|()| {
        let socket = UdpSocket::bind(loopback(0)).unwrap();
        socket.set_read_timeout(Some(HANGS)).unwrap();
        socket
    });
    let address = front.local_addr().unwrap();
    back.connect(server).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 1_000];
        let mut number = 0_u64;
        while let Ok((length, client)) = front.recv_from(&mut buffer) {
            number += 1;
            if number.is_multiple_of(5) {
                continue;
            }
            back.send(&buffer[..length]).unwrap();
            let Ok(length) = back.recv(&mut buffer) else {
                return;
            };
            if !number.is_multiple_of(7) {
                front.send_to(&buffer[..length], client).unwrap();
            }
        }
    });
    address
}

#[test]
fn what_udp_loses_is_sent_again_and_counted() {
    let schedule = Schedule {
        measure: 1_000 * MILLISECOND,
        ..schedule()
    };
    let transaction = Transaction {
        protocol: Protocol::Udp,
        request_bytes: 100,
        response_bytes: 200,
        ..SMALL
    };
    let server = serve(transaction, schedule);
    let job = TransactionRun {
        timeout: 10 * MILLISECOND,
        ..client(lossy_relay(bound(&server)), transaction, schedule)
    };
    let client = start(Job::TransactionRun(job)).unwrap();
    let (transacted, served) = (transacted(client), served(server));
    assert!(transacted.transactions > 5, "{transacted:?}");
    assert!(transacted.failures > 2, "{transacted:?}");
    assert!(served.responses >= transacted.total);
    let round_trip = transacted.round_trip.unwrap();
    assert!(round_trip.max >= 10 * MILLISECOND);
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn thousands_of_fresh_connections_leave_no_descriptors() {
    let before = open_descriptors();
    let transaction = Transaction {
        fresh_connections: true,
        concurrency: 2,
        ..SMALL
    };
    let mut connections = 0;
    while connections < 2_000 {
        let (transacted, served) = pair(transaction, schedule());
        assert!(served.connections >= transacted.total);
        connections += served.connections;
    }
    // Other tests have descriptors of their own.
    assert!(open_descriptors() < before + 300);
}

#[test]
fn nobody_to_transact_with_is_an_error() {
    let silent = std::net::TcpListener::bind(loopback(0))
        .unwrap()
        .local_addr()
        .unwrap();
    for fresh_connections in [false, true] {
        let transaction = Transaction {
            fresh_connections,
            ..SMALL
        };
        let job = client(silent, transaction, schedule());
        let outcome = start(Job::TransactionRun(job)).and_then(Running::finish);
        let text = outcome.unwrap_err().to_string();
        assert!(text.contains("refused"), "{text}");
    }
}

#[test]
fn a_server_that_goes_away_is_an_error() {
    let schedule = Schedule {
        measure: 60_000 * MILLISECOND,
        ..schedule()
    };
    let server = serve(SMALL, schedule);
    let client = start(Job::TransactionRun(client(bound(&server), SMALL, schedule))).unwrap();
    let watched = client.stopper();
    wait_until(|| watched.received().packets > 0);
    server.stop();
    assert!(matches!(server.finish(), Err(TrafficError::Stopped)));
    let outcome = client.finish();
    assert!(
        matches!(outcome, Err(TrafficError::Broken { .. })),
        "{outcome:?}"
    );
}

#[test]
fn stopped_transactions_have_no_result() {
    let schedule = Schedule {
        measure: 60_000 * MILLISECOND,
        ..schedule()
    };
    let server = serve(SMALL, schedule);
    let client = client(bound(&server), SMALL, schedule);
    assert_stopped([start(Job::TransactionRun(client)).unwrap(), server]);
}

#[test]
fn transactions_beyond_the_limits_are_refused() {
    let impossible = [
        Transaction {
            request_bytes: 0,
            ..SMALL
        },
        Transaction {
            response_bytes: 1024 * 1024 + 1,
            ..SMALL
        },
        Transaction {
            protocol: Protocol::Udp,
            request_bytes: 65_508,
            ..SMALL
        },
        Transaction {
            protocol: Protocol::Udp,
            fresh_connections: true,
            ..SMALL
        },
        Transaction {
            concurrency: 129,
            ..SMALL
        },
    ];
    assert_all_refused(
        impossible
            .map(|transaction| Job::TransactionRun(client(loopback(9), transaction, schedule()))),
    );
    assert_all_refused(impossible.map(|transaction| {
        Job::TransactionServe(TransactionServe {
            bind: loopback(0),
            session: SESSION,
            schedule: schedule(),
            transaction,
            peer: None,
            socket: SocketOptions::default(),
        })
    }));
}

#[test]
fn nobody_but_the_peer_is_answered() {
    let transaction = Transaction {
        protocol: Protocol::Udp,
        ..SMALL
    };
    let schedule = schedule();
    let server = start(Job::TransactionServe(TransactionServe {
        bind: loopback(0),
        session: SESSION,
        schedule,
        transaction,
        peer: Some([127, 0, 0, 2].into()),
        socket: SocketOptions::default(),
    }))
    .unwrap();
    let stranger = TransactionRun {
        timeout: 100 * MILLISECOND,
        ..client(bound(&server), transaction, schedule)
    };
    assert!(start(Job::TransactionRun(stranger)).is_err());
    let served = served(server);
    assert_eq!(served.responses, 0);
    assert!(served.foreign > 0);
}
