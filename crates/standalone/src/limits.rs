//! What a receiver takes part in at most.

use std::time::Duration;

use tunnelbench_traffic::HEADER_BYTES;
use tunnelbench_traffic::job::Content;
use tunnelbench_traffic::process::{Departures, Distribution};

use crate::message::{Refusal, Why};
use crate::offer::{Direction, Flow, MOST_FLOWS, Offer, Traffic, UdpTraffic};
use crate::quantity::{bits_per_second, duration};

/// Rate at which a receiver without a key sends at most, where nothing else was said: bits per second.
const STRANGERS_RATE: u64 = 1_000_000_000;

/// The steps of a series at most; each takes a few dozen bytes on both ends.
const MOST_STEPS: u64 = 100_000;

const LONGEST_WARM_UP: Duration = Duration::from_secs(30);
const SHORTEST_STEP: u64 = 1_000_000;
const LARGEST_BUFFER: u32 = 64 << 20;
const MOST_STREAMS: u16 = 128;

/// What a receiver takes part in at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The measured window of a session.
    pub longest: Duration,
    /// Payload bits per second of all flows of a session together, each direction by itself; none: what this machine can.
    pub highest_rate: Option<u64>,
    /// Whether clients are authenticated.
    pub keyed: bool,
}

impl Limits {
    /// Checks the offer; a pace, payload bits per second, for each flow that asks for as much as it can get where there
    /// is a limit.
    ///
    /// # Errors
    /// What is beyond the limits, or makes no sense.
    pub(crate) fn admit(&self, offer: &Offer) -> Result<Vec<Option<u64>>, Refusal> {
        self.check_times(offer)?;
        if !(1..=MOST_FLOWS).contains(&offer.flows.len()) {
            return invalid(format!(
                "a session has 1 to {MOST_FLOWS} flows, not {}",
                offer.flows.len()
            ));
        }
        offer.flows.iter().try_for_each(check_flow)?;
        let mut paces = vec![None; offer.flows.len()];
        for direction in [Direction::Forward, Direction::Reverse] {
            self.pace(&offer.flows, direction, &mut paces)?;
        }
        Ok(paces)
    }

    fn check_times(&self, offer: &Offer) -> Result<(), Refusal> {
        let lasting = offer.warm_up.saturating_add(offer.measure);
        if offer.measure == 0 {
            return invalid("the measured window has no length".into());
        }
        if Duration::from_nanos(offer.measure) > self.longest
            || Duration::from_nanos(offer.warm_up) > LONGEST_WARM_UP
        {
            return beyond(format!(
                "a session measures for at most {} here, after a warm-up of at most {}; start the receiver with a larger \
                 --longest",
                duration(self.longest.as_nanos()),
                duration(LONGEST_WARM_UP.as_nanos())
            ));
        }
        if offer.step < SHORTEST_STEP || lasting.div_ceil(offer.step) > MOST_STEPS {
            return invalid(format!(
                "a series has steps of 1 ms or more, and at most {MOST_STEPS} of them"
            ));
        }
        Ok(())
    }

    fn highest(&self, direction: Direction) -> Option<u64> {
        let strangers = !self.keyed && direction.is_sent_by_receiver();
        self.highest_rate.or(strangers.then_some(STRANGERS_RATE))
    }

    /// Shares what the limit leaves over among the flows of one direction that ask for as much as they can get.
    fn pace(
        &self,
        flows: &[Flow],
        direction: Direction,
        paces: &mut [Option<u64>],
    ) -> Result<(), Refusal> {
        let Some(highest) = self.highest(direction) else {
            return Ok(());
        };
        let highest = highest as f64;
        let mut asked = 0.0;
        let mut open = Vec::new();
        for (flow, pace) in flows.iter().zip(paces) {
            if ![direction, Direction::Both].contains(&flow.direction) {
                continue;
            }
            match flow.traffic.rate() {
                Rate::Fixed(rate) => asked += rate,
                Rate::Open => open.push(pace),
                Rate::Unknown => {
                    return beyond(format!(
                        "a flow has no mean rate, and at most {} are taken here",
                        bits_per_second(highest)
                    ));
                }
            }
        }
        let share = (highest - asked) / open.len().max(1) as f64;
        if asked > highest || (share < 1.0 && !open.is_empty()) {
            return beyond(format!(
                "at most {} of payload are taken in each direction here, and {} were asked for; start the receiver with \
                 a larger --highest-rate",
                bits_per_second(highest),
                bits_per_second(asked)
            ));
        }
        for pace in open {
            let other_way = pace.unwrap_or(u64::MAX);
            *pace = Some(other_way.min(share as u64));
        }
        Ok(())
    }
}

/// How much a flow sends.
enum Rate {
    /// Payload bits per second on average.
    Fixed(f64),
    /// As much as it can.
    Open,
    /// Nobody can say.
    Unknown,
}

impl Traffic {
    fn rate(&self) -> Rate {
        match self {
            Self::Udp(udp) if udp.departures == Departures::Max => Rate::Open,
            Self::Udp(udp) => mean_rate(udp).map_or(Rate::Unknown, Rate::Fixed),
            Self::Tcp(tcp) => tcp.rate.map_or(Rate::Open, |rate| Rate::Fixed(rate as f64)),
        }
    }
}

fn check_flow(flow: &Flow) -> Result<(), Refusal> {
    let (socket, content) = match &flow.traffic {
        Traffic::Udp(udp) => {
            if flow.direction == Direction::Both {
                return invalid("a UDP flow has one direction; two flows make both".into());
            }
            let sensible = udp
                .departures
                .validate()
                .and_then(|()| udp.sizes.validate(&(HEADER_BYTES as u32..=65_507)));
            sensible.or_else(|problem| invalid(problem.to_string()))?;
            (udp.socket, &udp.content)
        }
        Traffic::Tcp(tcp) => {
            if !(1..=MOST_STREAMS).contains(&tcp.streams) {
                return invalid(format!(
                    "a flow has 1 to {MOST_STREAMS} TCP streams, not {}",
                    tcp.streams
                ));
            }
            (tcp.socket, &tcp.content)
        }
    };
    if matches!(content, Content::File { .. }) {
        return invalid("an offer names no file".into());
    }
    if socket.source.is_some() || socket.port.is_some() {
        return invalid("an offer names no address and no port".into());
    }
    if socket.buffer.is_some_and(|bytes| bytes > LARGEST_BUFFER) {
        return beyond(format!(
            "a socket buffer has at most {LARGEST_BUFFER} bytes"
        ));
    }
    Ok(())
}

/// Payload bits per second on average; none where there is no such figure.
fn mean_rate(udp: &UdpTraffic) -> Option<f64> {
    let bits = || Some(8.0 * mean(&udp.sizes.0)?.clamp(HEADER_BYTES as f64, 65_507.0));
    match &udp.departures {
        Departures::BitsPerSecond { value } => Some(*value as f64),
        Departures::PacketsPerSecond { value } => Some(*value as f64 * bits()?),
        Departures::Bursts {
            datagrams,
            interval,
        } => Some(f64::from(*datagrams) * bits()? * 1e9 / *interval as f64),
        Departures::Process { interval } => Some(bits()? * 1e9 / mean(interval)?),
        // The rate while somebody talks is an upper bound, and the one that counts for who shares the link.
        Departures::Talk { interval, .. } => Some(bits()? * 1e9 / *interval as f64),
        Departures::Max => None,
    }
}

fn mean(_distribution: &Distribution) -> Option<f64> {
    match _distribution {
        Distribution::Constant { value } => Some(*value),
        _ => None,
    }
}

fn invalid<T>(reason: String) -> Result<T, Refusal> {
    Err(Refusal::new(Why::Invalid, reason))
}

fn beyond<T>(reason: String) -> Result<T, Refusal> {
    Err(Refusal::new(Why::Limit, reason))
}
