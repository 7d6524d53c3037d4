//! The loop that receives.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;
use tunnelbench_packet_log::{LogWriter, Record};

use crate::account::{FlowAccount, Observed};
use crate::batch::{ReceiveBatch, Received};
use crate::clock::{STOP_LATENCY, Timeline};
use crate::datagram::Header;
use crate::error::TrafficError;
use crate::job::{Timestamps, UdpReceive};
use crate::outcome::{Outcome, UdpReceived};
use crate::packet_log::FLOW;
use crate::processor::ProcessorMeter;
use crate::real_time::RealTime;
use crate::running::Control;
use crate::udp_receive::Open;
use crate::udp_receive::drops::DropCounter;
use crate::udp_receive::silence::Silence;
use crate::udp_receive::sources::SourceLock;

const BATCH: usize = 128;

/// How long the receiver lets datagrams gather when few were there, ns. Waking for each would slow down the sender,
/// who has to do the waking; and it is the kernel that notes the arrival.
const GATHER: i64 = 250_000;

pub(super) struct Receiver<'a> {
    job: &'a UdpReceive,
    open: &'a Open,
    timeline: Timeline,
    sources: SourceLock,
    account: FlowAccount,
    log: Option<LogWriter>,
    foreign: u64,
    calls: u64,
    coalesced: u64,
}

impl<'a> Receiver<'a> {
    pub fn new(
        job: &'a UdpReceive,
        open: &'a Open,
        account: FlowAccount,
        log: Option<LogWriter>,
    ) -> Self {
        Self {
            job,
            open,
            timeline: Timeline::new(job.schedule.start_at),
            sources: SourceLock::new(job.peer),
            account,
            log,
            foreign: 0,
            calls: 0,
            coalesced: 0,
        }
    }

    pub fn run(mut self, stop: &Control) -> Result<Outcome, TrafficError> {
        let schedule = self.job.schedule;
        let socket = &self.open.socket;
        let mut batch = ReceiveBatch::new(BATCH);
        let mut drops = DropCounter::default();
        let mut processor = ProcessorMeter::new(schedule);
        let mut silence = Silence::default();
        let real_time = RealTime::enter();
        loop {
            let now = self.timeline.elapsed();
            if stop.load(Ordering::Relaxed) {
                if now < schedule.measured_to() && !stop.contents_itself() {
                    return Err(TrafficError::Stopped);
                }
                break;
            }
            if silence.is_final(now, schedule.end(), self.job.linger as i64) {
                break;
            }
            drops.look(socket, now, schedule)?;
            processor.look(now);
            let count = self.receive(&mut batch)?;
            if count == 0 {
                wait_for(socket)?;
                continue;
            }
            self.calls += 1;
            let read = self.timeline.elapsed();
            let before = self.account.total();
            (0..count).for_each(|index| self.take(&batch.received(index), read));
            let total = self.account.total();
            stop.received(total.packets - before.packets, total.bytes - before.bytes);
            silence.broken(read);
            if count < batch.capacity() && self.open.timestamps == Timestamps::Kernel {
                self.timeline.sleep_until(read + GATHER, stop);
            }
        }
        drops.look(socket, self.timeline.elapsed(), schedule)?;
        let processor = processor.finish();
        drop(real_time);
        self.finish(drops.measured(), processor)
    }

    fn receive(&self, batch: &mut ReceiveBatch) -> Result<usize, TrafficError> {
        match batch.receive(&self.open.socket) {
            Err(failure) if is_nothing(&failure) => Ok(0),
            outcome => outcome.map_err(TrafficError::io(format!("receive on {}", self.job.bind))),
        }
    }

    /// `read` is when it was read, ns since the start of the schedule.
    fn take(&mut self, received: &Received<'_>, read: i64) {
        let arrived = match received.timestamp {
            Some(timestamp) if self.open.timestamps == Timestamps::Kernel => {
                self.timeline.of_realtime(timestamp)
            }
            _ => read,
        };
        let datagrams = received.datagrams();
        if datagrams.len() > 1 {
            self.coalesced += datagrams.len() as u64;
        }
        for datagram in datagrams {
            match Header::parse(datagram) {
                Some(header)
                    if header.session == self.job.session
                        && self.sources.admits(received.source) =>
                {
                    self.observe(&Observed {
                        sequence: header.sequence,
                        intended: header.intended as i64,
                        sent: header.departed(),
                        arrived,
                        bytes: datagram.len() as u64,
                    });
                }
                _ => self.foreign += 1,
            }
        }
    }

    fn observe(&mut self, observed: &Observed) {
        self.account.observe(observed);
        if let Some(log) = &mut self.log {
            log.record(Record {
                flow: FLOW,
                sequence: self.account.number(observed.sequence),
                intended: self.timeline.realtime_at(observed.intended),
                sent: observed.sent.map(|sent| self.timeline.realtime_at(sent)),
                received: Some(self.timeline.realtime_at(observed.arrived)),
                bytes: observed.bytes as u32,
            });
        }
    }

    fn finish(mut self, buffer_drops: u64, processor: u64) -> Result<Outcome, TrafficError> {
        let written = self.log.take().map(LogWriter::finish).transpose()?;
        let flow = self.account.finish();
        Ok(Outcome::UdpReceive(UdpReceived {
            timestamps: self.open.timestamps,
            socket_buffer: self.open.buffer,
            voice: self.job.voice.and_then(|codec| flow.voice(codec)),
            flow: Box::new(flow),
            foreign: self.foreign,
            buffer_drops,
            receive_calls: self.calls,
            coalesced: self.coalesced,
            processor,
            log_dropped: written.map(|written| written.dropped),
            clock_step: self.timeline.clock_step(),
        }))
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
