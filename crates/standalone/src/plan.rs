//! Which job each end of a flow runs.

use std::net::{IpAddr, SocketAddr};

use tunnelbench_traffic::job::{
    SendMode, Side, SocketOptions, TcpConnect, TcpListen, TcpOptions, Timestamps, UdpReceive,
    UdpSend,
};
use tunnelbench_traffic::{Job, Schedule};

use crate::offer::{Direction, Flow, Offer, TcpTraffic, Traffic, UdpTraffic};

/// Sending goes on for this long after the measured window, ns, so that what arrives at its end was sent as all else.
const COOL_DOWN: u64 = 100_000_000;

/// How long a receiver waits for stragglers, ns.
pub(crate) const LINGER: u64 = 1_000_000_000;

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
    /// The time plan of all flows, from `start_at` in the clock of the end that uses it.
    pub(crate) fn schedule(&self, start_at: i64) -> Schedule {
        Schedule {
            start_at,
            warm_up: self.warm_up,
            measure: self.measure,
            cool_down: COOL_DOWN,
        }
    }
}

impl Flow {
    /// What the receiver runs.
    pub(crate) fn receivers_job(&self, stand: Stand) -> Job {
        match &self.traffic {
            Traffic::Udp(udp) if self.direction == Direction::Forward => udp_receive(udp, stand),
            Traffic::Udp(udp) => udp_send(udp, stand),
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
        }
    }

    /// What the client runs.
    pub(crate) fn clients_job(&self, stand: Stand, source: Option<IpAddr>) -> Job {
        match &self.traffic {
            Traffic::Udp(udp) if self.direction == Direction::Forward => udp_send(udp, stand),
            Traffic::Udp(udp) => udp_receive(udp, stand),
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
            }),
        }
    }
}

fn udp_send(udp: &UdpTraffic, stand: Stand) -> Job {
    Job::UdpSend(UdpSend {
        destination: stand.other,
        session: stand.session as u16,
        schedule: stand.schedule,
        departures: udp.departures.clone(),
        sizes: udp.sizes.clone(),
        seed: udp.seed,
        mode: SendMode::Batched { datagrams: 64 },
        content: udp.content.clone(),
        socket: SocketOptions {
            source: Some(stand.own.ip()),
            port: Some(stand.own.port()),
            ..udp.socket
        },
        log: None,
    })
}

fn udp_receive(udp: &UdpTraffic, stand: Stand) -> Job {
    Job::UdpReceive(UdpReceive {
        bind: stand.own,
        session: stand.session as u16,
        schedule: stand.schedule,
        linger: LINGER,
        step: stand.step,
        timestamps: Timestamps::default(),
        peer: None,
        voice: None,
        log: None,
        socket: SocketOptions {
            buffer: udp.socket.buffer,
            ..SocketOptions::default()
        },
    })
}

fn tcp_options(tcp: &TcpTraffic, step: u64) -> TcpOptions {
    TcpOptions {
        messages: None,
        write_bytes: tcp.write_bytes,
        streams: tcp.streams,
        rate: tcp.rate,
        sample: step,
        content: tcp.content.clone(),
        no_delay: tcp.no_delay,
        congestion_control: tcp.congestion_control.clone(),
        mss: tcp.mss,
        socket: tcp.socket,
    }
}
