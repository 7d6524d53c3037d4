//! Which job each end of a flow runs.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use tunnelbench_traffic::job::{
    EchoDestination, EchoProbe, ProbePlan, Side, SocketOptions, TcpConnect, TcpListen, TcpOptions,
    Timestamps, TransactionRun, TransactionServe, UdpReceive, UdpSend,
};
use tunnelbench_traffic::{Job, Schedule};

use crate::offer::{Direction, Flow, Offer, TcpTraffic, Traffic, UdpTraffic};

/// Sending goes on for this long after the measured window, ns, so that what arrives at its end was sent as all else.
const COOL_DOWN: u64 = 100_000_000;

/// How long a receiver waits for stragglers, ns.
pub(crate) const LINGER: u64 = 1_000_000_000;

/// How long a response over UDP may take until the request is sent again, ns.
const RESPONSE_TIMEOUT: u64 = 1_000_000_000;

/// How long all connections of a flow may take, ns.
pub(crate) const CONNECT_TIMEOUT: u64 = 10_000_000_000;

/// One end of a flow: where it stands, where the other is, and what they share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stand {
    pub own: SocketAddr,
    pub other: SocketAddr,
    pub session: u64,
    pub schedule: Schedule,
    pub step: u64,
}

impl Offer {
    /// The time plan of a flow, where the session starts at `start_at` in the clock of the end that uses it.
    pub(crate) fn schedule(&self, flow: &Flow, start_at: i64) -> Schedule {
        Schedule {
            start_at: start_at.saturating_add_unsigned(flow.delay),
            warm_up: self.warm_up,
            measure: flow.measure(self.measure),
            cool_down: COOL_DOWN,
        }
    }
}

impl Flow {
    /// What the receiver runs; nothing where its system answers by itself.
    pub(crate) fn receivers_job(&self, stand: Stand) -> Option<Job> {
        Some(match &self.traffic {
            Traffic::Udp(udp) if self.direction == Direction::Forward => {
                udp_receive(udp, stand, None)
            }
            Traffic::Udp(udp) => udp_send(udp, stand, None),
            Traffic::Tcp(tcp) => Job::TcpListen(TcpListen {
                bind: stand.own,
                session: stand.session,
                schedule: stand.schedule,
                side: match self.direction {
                    Direction::Forward => Side::Receive,
                    Direction::Reverse => Side::Send,
                    Direction::Both => Side::Both,
                },
                options: tcp_options(tcp, stand.step),
            }),
            Traffic::Icmp(_) => return None,
            Traffic::Transactions(traffic) => Job::TransactionServe(TransactionServe {
                bind: stand.own,
                session: stand.session,
                schedule: stand.schedule,
                transaction: traffic.transaction,
                peer: Some(stand.other.ip()),
                socket: traffic.socket,
            }),
        })
    }

    /// What the client runs, with the local address that was asked for and the packet log of its end.
    pub(crate) fn clients_job(
        &self,
        stand: Stand,
        source: Option<IpAddr>,
        log: Option<PathBuf>,
    ) -> Job {
        match &self.traffic {
            Traffic::Udp(udp) if self.direction == Direction::Forward => udp_send(udp, stand, log),
            Traffic::Udp(udp) => udp_receive(udp, stand, log),
            Traffic::Tcp(tcp) => Job::TcpConnect(TcpConnect {
                destination: stand.other,
                session: stand.session,
                schedule: stand.schedule,
                side: match self.direction {
                    Direction::Forward => Side::Send,
                    Direction::Reverse => Side::Receive,
                    Direction::Both => Side::Both,
                },
                options: TcpOptions {
                    socket: SocketOptions {
                        source,
                        ..tcp.socket
                    },
                    ..tcp_options(tcp, stand.step)
                },
                connect_timeout: CONNECT_TIMEOUT,
                proxy: None,
            }),
            Traffic::Transactions(traffic) => Job::TransactionRun(TransactionRun {
                destination: stand.other,
                session: stand.session,
                schedule: stand.schedule,
                transaction: traffic.transaction,
                timeout: RESPONSE_TIMEOUT,
                proxy: None,
                socket: SocketOptions {
                    source,
                    ..traffic.socket
                },
            }),
            Traffic::Icmp(icmp) => Job::EchoProbe(EchoProbe {
                destination: EchoDestination::Icmp {
                    address: stand.other.ip(),
                },
                plan: ProbePlan::Schedule {
                    schedule: stand.schedule,
                },
                interval: icmp.interval,
                payload_bytes: icmp.payload_bytes,
                marker: None,
                timeout: icmp.timeout,
                socket: SocketOptions {
                    source,
                    ..icmp.socket
                },
            }),
        }
    }
}

fn udp_send(udp: &UdpTraffic, stand: Stand, log: Option<PathBuf>) -> Job {
    Job::UdpSend(UdpSend {
        destination: stand.other,
        session: stand.session as u16,
        schedule: stand.schedule,
        departures: udp.departures.clone(),
        sizes: udp.sizes.clone(),
        seed: udp.seed,
        mode: udp.mode,
        content: udp.content.clone(),
        socket: SocketOptions {
            source: Some(stand.own.ip()),
            port: Some(stand.own.port()),
            ..udp.socket
        },
        log,
    })
}

fn udp_receive(udp: &UdpTraffic, stand: Stand, log: Option<PathBuf>) -> Job {
    Job::UdpReceive(UdpReceive {
        bind: stand.own,
        session: stand.session as u16,
        schedule: stand.schedule,
        linger: LINGER,
        step: stand.step,
        timestamps: Timestamps::default(),
        peer: Some(stand.other.ip()),
        voice: udp.voice,
        log,
        socket: SocketOptions {
            buffer: udp.socket.buffer,
            ..SocketOptions::default()
        },
    })
}

fn tcp_options(tcp: &TcpTraffic, step: u64) -> TcpOptions {
    TcpOptions {
        write_bytes: tcp.write_bytes,
        streams: tcp.streams,
        rate: tcp.rate,
        messages: tcp.messages.clone(),
        sample: step,
        content: tcp.content.clone(),
        no_delay: tcp.no_delay,
        congestion_control: tcp.congestion_control.clone(),
        mss: tcp.mss,
        socket: tcp.socket,
    }
}
