//! Receives datagrams and tells those of the flow from others.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

use crate::account::{FlowAccount, Observed};
use crate::batch::{ReceiveBatch, Received, Source};
use crate::clock::{STOP_LATENCY, Timeline, realtime};
use crate::datagram::Header;
use crate::error::TrafficError;
use crate::job::{SocketOptions, Timestamps, UdpReceive};
use crate::outcome::{Outcome, UdpReceived};
use crate::real_time::RealTime;
use crate::running::Running;
use crate::schedule::Schedule;
use crate::socket::{Buffer, buffer_drops, enable_kernel_timestamps, granted_buffer};

const BATCH: usize = 128;
const DEFAULT_BUFFER: u32 = 4 * 1024 * 1024;

/// How long the receiver lets datagrams gather when few were there, ns. Waking for each would slow down the sender,
/// who has to do the waking; and it is the kernel that notes the arrival.
const GATHER: i64 = 250_000;

/// Starts the job.
pub(crate) fn start(job: UdpReceive) -> Result<Running, TrafficError> {
    job.schedule.validate(realtime(), job.linger)?;
    job.socket.validate_listener(job.bind)?;
    let account = FlowAccount::new(job.schedule, job.step)?;
    let socket = Socket::new(Domain::for_address(job.bind), Type::DGRAM, None)
        .map_err(TrafficError::io("open a UDP socket"))?;
    let options = SocketOptions {
        buffer: job.socket.buffer.or(Some(DEFAULT_BUFFER)),
        ..job.socket
    };
    options.apply(&socket, job.bind)?;
    let buffer = granted_buffer(&socket, Buffer::Receive)
        .map_err(TrafficError::io("read the size of the receive buffer"))?;
    let by_kernel = job.timestamps == Timestamps::Kernel && enable_kernel_timestamps(&socket);
    let timestamps = if by_kernel {
        Timestamps::Kernel
    } else {
        Timestamps::User
    };
    socket
        .bind(&job.bind.into())
        .map_err(TrafficError::io(format!("bind UDP {}", job.bind)))?;
    let bound = socket
        .local_addr()
        .map_err(TrafficError::io("read the local address"))?
        .as_socket();
    Running::spawn("udp-receive", bound, move |stop| {
        Receiver::new(&job, &socket, timestamps, account).run(buffer as u64, stop)
    })
}

struct Receiver<'a> {
    job: &'a UdpReceive,
    socket: &'a Socket,
    timestamps: Timestamps,
    timeline: Timeline,
    source: Option<Source>,
    account: FlowAccount,
    foreign: u64,
}

impl<'a> Receiver<'a> {
    fn new(
        job: &'a UdpReceive,
        socket: &'a Socket,
        timestamps: Timestamps,
        account: FlowAccount,
    ) -> Self {
        Self {
            job,
            socket,
            timestamps,
            timeline: Timeline::new(job.schedule.start_at),
            source: None,
            account,
            foreign: 0,
        }
    }

    fn run(mut self, socket_buffer: u64, stop: &AtomicBool) -> Result<Outcome, TrafficError> {
        let schedule = self.job.schedule;
        let linger = self.job.linger as i64;
        let mut batch = ReceiveBatch::new(BATCH);
        let mut drops = DropCounter::default();
        let mut active = schedule.end();
        let _real_time = RealTime::enter();
        loop {
            let now = self.timeline.elapsed();
            if stop.load(Ordering::Relaxed) {
                if now < schedule.measured_to() {
                    return Err(TrafficError::Stopped);
                }
                break;
            }
            if now >= schedule.end() + linger || now >= active + linger / 4 {
                break;
            }
            drops.look(self.socket, now, schedule)?;
            let count = self.receive(&mut batch)?;
            if count == 0 {
                wait_for(self.socket)?;
                continue;
            }
            let read = self.timeline.elapsed();
            (0..count).for_each(|index| self.account(&batch.datagram(index), read));
            active = active.max(read);
            if count < batch.capacity() && self.timestamps == Timestamps::Kernel {
                self.timeline.sleep_until(read + GATHER, stop);
            }
        }
        drops.look(self.socket, self.timeline.elapsed(), schedule)?;
        Ok(self.finish(socket_buffer, drops.measured()))
    }

    fn receive(&self, batch: &mut ReceiveBatch) -> Result<usize, TrafficError> {
        match batch.receive(self.socket) {
            Err(failure) if is_nothing(&failure) => Ok(0),
            outcome => outcome.map_err(TrafficError::io(format!("receive on {}", self.job.bind))),
        }
    }

    /// `read` is when the datagram was read, ns since the start of the schedule.
    fn account(&mut self, received: &Received<'_>, read: i64) {
        let header =
            Header::parse(received.payload).filter(|header| header.session == self.job.session);
        let Some(header) = header else {
            self.foreign += 1;
            return;
        };
        if self.source.get_or_insert(*received.source) != received.source {
            self.foreign += 1;
            return;
        }
        let arrived = match received.timestamp {
            Some(timestamp) if self.timestamps == Timestamps::Kernel => {
                self.timeline.of_realtime(timestamp)
            }
            _ => read,
        };
        self.account.observe(&Observed {
            sequence: header.sequence,
            intended: header.intended as i64,
            sent: None,
            arrived,
            bytes: received.payload.len() as u64,
        });
    }

    fn finish(self, socket_buffer: u64, buffer_drops: u64) -> Outcome {
        Outcome::UdpReceive(UdpReceived {
            timestamps: self.timestamps,
            socket_buffer,
            flow: Box::new(self.account.finish()),
            foreign: self.foreign,
            buffer_drops,
            clock_step: self.timeline.clock_step(),
        })
    }
}

/// Tells the drops in the measured window from those before and after, as exactly as the receiver looks.
#[derive(Default)]
struct DropCounter {
    before: Option<u64>,
    up_to_end: Option<u64>,
}

impl DropCounter {
    fn look(&mut self, socket: &Socket, now: i64, schedule: Schedule) -> Result<(), TrafficError> {
        let place = match now {
            _ if self.before.is_none() && now >= schedule.measured_from() => &mut self.before,
            _ if self.up_to_end.is_none() && now >= schedule.measured_to() => &mut self.up_to_end,
            _ => return Ok(()),
        };
        let drops = buffer_drops(socket);
        *place = Some(drops.map_err(TrafficError::io("read how much the receive buffer lost"))?);
        Ok(())
    }

    fn measured(&self) -> u64 {
        match (self.before, self.up_to_end) {
            (Some(before), Some(up_to_end)) => up_to_end - before,
            _ => 0,
        }
    }
}

/// Waits until there is something to read, or long enough to look at the clock again.
fn wait_for(socket: &Socket) -> Result<(), TrafficError> {
    let mut readable = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: STOP_LATENCY.subsec_nanos().into(),
    };
    match poll(&mut readable, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(failure) => Err(TrafficError::io("wait for datagrams")(failure.into())),
    }
}

/// Nothing to read, or only news of an earlier datagram.
fn is_nothing(failure: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
    matches!(failure.kind(), WouldBlock | Interrupted | ConnectionRefused)
}
