//! What the sender's log knows beyond the receiver's: when each packet left, and how many did.

use std::collections::HashMap;

use tunnelbench_packet_log::{LogError, LogReader, Record};
use tunnelbench_traffic::Schedule;

use crate::batches::Batches;

/// How far behind the newest departure a packet's is still known.
const REMEMBERED: usize = 1 << 16;

/// Of a place that no departure has taken yet.
const NEVER: i64 = i64::MIN;

/// A sender's log, read along with the receiver's.
pub(crate) struct Departures {
    batches: Batches,
    is_over: bool,
    schedule: Schedule,
    flows: HashMap<u16, Sent>,
}

/// What was sent of a flow so far.
struct Sent {
    newest: u32,
    measured: u64,
    /// Sequence number and departure, ns since the start, at the number modulo [`REMEMBERED`].
    times: Vec<(u32, i64)>,
}

impl Departures {
    /// `schedule` is the sender's.
    pub fn of_log(reader: LogReader, schedule: Schedule) -> Self {
        Self {
            batches: Batches::of(reader),
            is_over: false,
            schedule,
            flows: HashMap::new(),
        }
    }

    /// When this packet left, ns since the start of the schedule; none where the log doesn't say.
    pub fn of(&mut self, flow: u16, sequence: u64) -> Result<Option<i64>, LogError> {
        let sequence = sequence as u32;
        while !self.is_over && !self.has_passed(flow, sequence) {
            self.read_on()?;
        }
        let sent = self
            .flows
            .get(&flow)
            .map(|sent| sent.times[place(sequence)]);
        Ok(sent
            .filter(|(number, time)| *number == sequence && *time != NEVER)
            .map(|(_, time)| time))
    }

    /// How many packets of each flow were sent in the measured window, once the rest is read.
    pub fn measured(mut self) -> Result<HashMap<u16, u64>, LogError> {
        while !self.is_over {
            self.read_on()?;
        }
        Ok(self
            .flows
            .into_iter()
            .map(|(flow, sent)| (flow, sent.measured))
            .collect())
    }

    fn has_passed(&self, flow: u16, sequence: u32) -> bool {
        self.flows
            .get(&flow)
            .is_some_and(|sent| (sent.newest.wrapping_sub(sequence) as i32) >= 0)
    }

    fn read_on(&mut self) -> Result<(), LogError> {
        let Some(record) = self.batches.next_record()? else {
            self.is_over = true;
            return Ok(());
        };
        let sent = self.flows.entry(record.flow).or_insert_with(Sent::nothing);
        sent.add(record, &self.schedule);
        Ok(())
    }
}

impl Sent {
    fn nothing() -> Self {
        Self {
            newest: 0,
            measured: 0,
            times: vec![(0, NEVER); REMEMBERED],
        }
    }

    fn add(&mut self, record: &Record, schedule: &Schedule) {
        let sequence = record.sequence as u32;
        let intended = record.intended.saturating_sub(schedule.start_at);
        let left = record
            .sent
            .map_or(intended, |sent| sent.saturating_sub(schedule.start_at));
        self.newest = sequence;
        self.measured += u64::from(schedule.measures(intended));
        self.times[place(sequence)] = (sequence, left);
    }
}

fn place(sequence: u32) -> usize {
    sequence as usize % REMEMBERED
}
