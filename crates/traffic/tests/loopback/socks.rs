//! TCP jobs through a SOCKS 5 proxy.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tunnelbench_traffic::job::{
    Content, EchoDestination, EchoProbe, EchoServe, ProbePlan, Protocol, Side, SocketOptions,
    TcpConnect, TcpListen, TcpOptions, Transaction, TransactionRun, TransactionServe,
};
use tunnelbench_traffic::{Job, Outcome, Schedule, TrafficError, start};

use crate::common::*;

/// A proxy for IPv4 destinations, and how often it was asked to connect to one.
struct Proxy {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind(loopback(0)).unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        thread::spawn(move || {
            for client in listener.incoming() {
                let count = Arc::clone(&count);
                thread::spawn(move || serve(client.unwrap(), &count));
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

fn serve(mut client: TcpStream, asked: &AtomicUsize) -> io::Result<()> {
    let mut greeting = [0; 3];
    client.read_exact(&mut greeting)?;
    assert_eq!(greeting, [5, 1, 0]);
    client.write_all(&[5, 0])?;
    let mut request = [0; 10];
    client.read_exact(&mut request)?;
    let [5, 1, 0, 1, a, b, c, d, high, low] = request else {
        panic!("not a request for IPv4: {request:?}")
    };
    asked.fetch_add(1, Ordering::Relaxed);
    let port = u16::from_be_bytes([high, low]);
    let Ok(server) = TcpStream::connect((Ipv4Addr::new(a, b, c, d), port)) else {
        return client.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]);
    };
    client.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 9])?;
    let (from, to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || pass(from, to));
    pass(server, client)
}

fn pass(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let _ = io::copy(&mut from, &mut to);
    to.shutdown(Shutdown::Both)
}

fn connect(destination: SocketAddr, proxy: &Proxy, streams: u16, schedule: Schedule) -> [Job; 2] {
    let options = TcpOptions {
        write_bytes: 10_000,
        streams,
        rate: None,
        messages: None,
        content: Content::Random,
        no_delay: false,
        congestion_control: None,
        mss: None,
        sample: 20 * MILLISECOND,
        socket: SocketOptions::default(),
    };
    let listen = TcpListen {
        bind: destination,
        session: 7,
        schedule,
        side: Side::Receive,
        options: options.clone(),
    };
    let connect = TcpConnect {
        destination,
        proxy: Some(proxy.address),
        session: 7,
        schedule,
        side: Side::Send,
        options,
        connect_timeout: HANGS.as_nanos() as u64,
    };
    [Job::TcpListen(listen), Job::TcpConnect(connect)]
}

#[test]
fn streams_pass_through_a_proxy() {
    let proxy = Proxy::start();
    let schedule = schedule();
    let [listen, _] = connect(loopback(0), &proxy, 2, schedule);
    let listener = start(listen).unwrap();
    let [_, connect] = connect(bound(&listener), &proxy, 2, schedule);
    let connector = start(connect).unwrap();
    connector.finish().unwrap();
    let Outcome::TcpListen(listened) = listener.finish().unwrap() else {
        panic!("not a listener's outcome")
    };
    assert!(listened.flow.received.unwrap().measured_bytes > 0);
    assert_eq!(proxy.asked(), 2);
}

#[test]
fn a_proxy_that_cannot_connect_is_quoted() {
    let proxy = Proxy::start();
    let nobody = TcpListener::bind(loopback(0))
        .unwrap()
        .local_addr()
        .unwrap();
    let [_, connect] = connect(nobody, &proxy, 1, schedule());
    let failure = start(connect).unwrap_err();
    assert!(matches!(failure, TrafficError::Io { .. }), "{failure}");
    assert!(
        failure.to_string().contains("connection refused"),
        "{failure}"
    );
}

#[test]
fn probes_pass_through_a_proxy() {
    let proxy = Proxy::start();
    let server = start(Job::EchoServe(EchoServe {
        bind: loopback(0),
        protocol: Protocol::Tcp,
        deadline: HANGS.as_nanos() as u64,
    }))
    .unwrap();
    let prober = start(Job::EchoProbe(EchoProbe {
        destination: EchoDestination::Tcp {
            address: bound(&server),
            proxy: Some(proxy.address),
        },
        plan: ProbePlan::Count {
            count: 20,
            until_first_reply: false,
            deadline: HANGS.as_nanos() as u64,
        },
        interval: MILLISECOND,
        payload_bytes: 100,
        marker: None,
        timeout: HANGS.as_nanos() as u64,
        socket: SocketOptions::default(),
    }))
    .unwrap();
    let Outcome::EchoProbe(probed) = prober.finish().unwrap() else {
        panic!("not a prober's outcome")
    };
    server.stop();
    assert_eq!((probed.replies, probed.failures), (20, 0));
    assert_eq!(proxy.asked(), 1);
}

#[test]
fn transactions_pass_through_a_proxy() {
    for fresh_connections in [false, true] {
        let proxy = Proxy::start();
        let transaction = transaction(Protocol::Tcp, fresh_connections);
        let schedule = Schedule {
            measure: 2_000 * MILLISECOND,
            ..schedule()
        };
        let server = start(Job::TransactionServe(TransactionServe {
            bind: loopback(0),
            session: 7,
            schedule,
            transaction,
            peer: None,
            socket: SocketOptions::default(),
        }))
        .unwrap();
        let client = start(Job::TransactionRun(TransactionRun {
            destination: bound(&server),
            proxy: Some(proxy.address),
            session: 7,
            schedule,
            transaction,
            timeout: HANGS.as_nanos() as u64,
            socket: SocketOptions::default(),
        }))
        .unwrap();
        let Outcome::TransactionRun(transacted) = client.finish().unwrap() else {
            panic!("not a client's outcome")
        };
        server.stop();
        assert!(transacted.transactions > 0);
        assert!(if fresh_connections {
            proxy.asked() > 1
        } else {
            proxy.asked() == 1
        });
    }
}

#[test]
fn datagrams_have_no_proxy() {
    assert_all_refused([Job::TransactionRun(TransactionRun {
        destination: loopback(1),
        proxy: Some(loopback(2)),
        session: 7,
        schedule: schedule(),
        transaction: transaction(Protocol::Udp, false),
        timeout: HANGS.as_nanos() as u64,
        socket: SocketOptions::default(),
    })]);
}

fn transaction(protocol: Protocol, fresh_connections: bool) -> Transaction {
    Transaction {
        protocol,
        request_bytes: 100,
        response_bytes: 200,
        fresh_connections,
        concurrency: 1,
    }
}
