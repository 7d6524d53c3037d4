//! What a receiver takes part in at most.

use std::ops::RangeInclusive;
use std::time::Duration;

use tunnelbench_traffic::job::{Content, Messages};
use tunnelbench_traffic::process::{Departures, Plan, Sizes, Transport};

use crate::message::{Refusal, Why};
use crate::offer::{Direction, Flow, MESSAGE_BYTES, MOST_FLOWS, Offer, Traffic};
use crate::quantity::{bits_per_second, duration};

/// Rate at which a receiver without a key sends at most, where nothing else was said: bits per second.
const STRANGERS_RATE: u64 = 1_000_000_000;

/// The steps of a series at most; each takes a few dozen bytes on both ends.
const MOST_STEPS: u64 = 100_000;

const LONGEST_WARM_UP: Duration = Duration::from_secs(30);
/// Datagrams whose times and sizes tell the mean rate of a flow.
const LOOKED_AT: usize = 100_000;

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
        offer
            .flows
            .iter()
            .try_for_each(|flow| check_flow(flow, offer))?;
        let mut paces = vec![None; offer.flows.len()];
        for direction in [Direction::Forward, Direction::Reverse] {
            self.pace(offer, direction, &mut paces)?;
        }
        Ok(paces)
    }

    fn check_times(&self, offer: &Offer) -> Result<(), Refusal> {
        let lasting = offer.lasting().as_nanos() as u64;
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
        offer: &Offer,
        direction: Direction,
        paces: &mut [Option<u64>],
    ) -> Result<(), Refusal> {
        let Some(highest) = self.highest(direction) else {
            return Ok(());
        };
        let highest = highest as f64;
        let mut asked = 0.0;
        let mut open = Vec::new();
        let lasting = offer.lasting().as_nanos() as u64;
        for (flow, pace) in offer.flows.iter().zip(paces) {
            if ![direction, Direction::Both].contains(&flow.direction) {
                continue;
            }
            match flow.traffic.rate(lasting)? {
                Some(rate) => asked += rate,
                None => open.push(pace),
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

impl Traffic {
    /// Payload bits per second on average over a flow of this length; none where it sends as much as it can.
    fn rate(&self, lasting: u64) -> Result<Option<f64>, Refusal> {
        match self {
            Self::Udp(udp) => {
                let range = Transport::Udp.sizes();
                mean_rate(&udp.departures, &udp.sizes, range, udp.seed, lasting)
            }
            Self::Tcp(tcp) => match &tcp.messages {
                Some(Messages {
                    departures,
                    sizes,
                    seed,
                }) => mean_rate(departures, sizes, MESSAGE_BYTES, *seed, lasting),
                None => Ok(tcp.rate.map(|rate| rate as f64)),
            },
            Self::Icmp(icmp) => Ok(icmp.rate()),
            Self::Transactions(_) => Ok(None),
        }
    }
}

fn check_flow(flow: &Flow, offer: &Offer) -> Result<(), Refusal> {
    flow.traffic.rate(offer.lasting().as_nanos() as u64)?;
    if flow.measure(offer.measure) == 0 {
        return invalid("a flow starts when the measured window is over".into());
    }
    let (socket, content) = match &flow.traffic {
        Traffic::Udp(udp) => {
            if flow.direction == Direction::Both {
                return invalid("a UDP flow has one direction; two flows make both".into());
            }
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
        Traffic::Icmp(icmp) => {
            if flow.direction != Direction::Forward {
                return invalid("a receiver sends no echo requests".into());
            }
            (icmp.socket, &Content::Zeros)
        }
        Traffic::Transactions(traffic) => {
            if flow.direction != Direction::Forward {
                return invalid("a receiver sends no requests".into());
            }
            (traffic.socket, &Content::Zeros)
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

/// Payload bits per second on average of the very datagrams that would be sent, or of the first of them.
fn mean_rate(
    departures: &Departures,
    sizes: &Sizes,
    range: RangeInclusive<u32>,
    seed: u64,
    lasting: u64,
) -> Result<Option<f64>, Refusal> {
    let mut plan = Plan::new(departures, sizes, range, seed)
        .or_else(|problem| invalid(problem.to_string()))?;
    let mut bits = 0.0;
    let mut elapsed = 0;
    for _ in 0..LOOKED_AT {
        let Some(due) = plan.due() else {
            return Ok(None);
        };
        elapsed = due.min(lasting);
        if elapsed == lasting {
            break;
        }
        bits += 8.0 * f64::from(plan.next().bytes);
    }
    Ok(Some(bits * 1e9 / elapsed.max(1) as f64))
}

fn invalid<T>(reason: String) -> Result<T, Refusal> {
    Err(Refusal::new(Why::Invalid, reason))
}

fn beyond<T>(reason: String) -> Result<T, Refusal> {
    Err(Refusal::new(Why::Limit, reason))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tunnelbench_traffic::job::{SendMode, SocketOptions};
    use tunnelbench_traffic::process::{Distribution, Sizes};

    use super::*;
    use crate::offer::{IcmpTraffic, TcpTraffic, UdpTraffic};

    const SECOND: u64 = 1_000_000_000;

    fn limits(highest_rate: Option<u64>, keyed: bool) -> Limits {
        Limits {
            longest: Duration::from_secs(60),
            highest_rate,
            keyed,
        }
    }

    fn udp(departures: Departures, bytes: u32) -> Traffic {
        Traffic::Udp(UdpTraffic {
            departures,
            sizes: Sizes::constant(bytes),
            seed: 1,
            mode: SendMode::PerPacket,
            content: Content::Zeros,
            voice: None,
            socket: SocketOptions::default(),
        })
    }

    fn tcp() -> Traffic {
        Traffic::Tcp(TcpTraffic {
            write_bytes: 1000,
            streams: 1,
            rate: None,
            messages: None,
            content: Content::Zeros,
            no_delay: false,
            congestion_control: None,
            mss: None,
            socket: SocketOptions::default(),
        })
    }

    fn offer(flows: Vec<(Direction, Traffic)>) -> Offer {
        let flow = |(direction, traffic)| Flow {
            name: None,
            direction,
            delay: 0,
            length: None,
            traffic,
        };
        Offer {
            warm_up: 0,
            measure: 10 * SECOND,
            step: SECOND,
            flows: flows.into_iter().map(flow).collect(),
        }
    }

    fn why(limits: Limits, offer: &Offer) -> Why {
        limits.admit(offer).unwrap_err().why
    }

    #[test]
    fn times_are_limited() {
        let good = offer(vec![(Direction::Forward, tcp())]);
        let limits = limits(None, true);
        assert_eq!(limits.admit(&good), Ok(vec![None]));
        assert!(
            limits
                .admit(&Offer {
                    measure: 60 * SECOND,
                    warm_up: SECOND,
                    ..good.clone()
                })
                .is_ok()
        );
        for (bad, reason) in [
            (
                Offer {
                    measure: 61 * SECOND,
                    ..good.clone()
                },
                Why::Limit,
            ),
            (
                Offer {
                    measure: u64::MAX,
                    ..good.clone()
                },
                Why::Limit,
            ),
            (
                Offer {
                    warm_up: u64::MAX,
                    ..good.clone()
                },
                Why::Limit,
            ),
            (
                Offer {
                    measure: 0,
                    ..good.clone()
                },
                Why::Invalid,
            ),
            (
                Offer {
                    step: 0,
                    ..good.clone()
                },
                Why::Invalid,
            ),
            (
                Offer {
                    flows: Vec::new(),
                    ..good.clone()
                },
                Why::Invalid,
            ),
            (
                Offer {
                    flows: vec![good.flows[0].clone(); MOST_FLOWS + 1],
                    ..good
                },
                Why::Invalid,
            ),
        ] {
            assert_eq!(why(limits, &bad), reason, "{bad:?}");
        }
    }

    #[test]
    fn the_rate_is_that_of_all_flows_of_a_direction() {
        let flow = |value| udp(Departures::PacketsPerSecond { value }, 125);
        let limits = limits(Some(1_000_000), true);
        let forward = |value| (Direction::Forward, flow(value));
        assert!(
            limits
                .admit(&offer(vec![forward(500), forward(500)]))
                .is_ok()
        );
        assert!(
            limits
                .admit(&offer(vec![
                    forward(1000),
                    (Direction::Reverse, flow(1000))
                ]))
                .is_ok()
        );
        assert_eq!(
            why(limits, &offer(vec![forward(500), forward(501)])),
            Why::Limit
        );
    }

    #[test]
    fn who_asks_for_as_much_as_possible_shares_what_is_left() {
        let limits = limits(Some(10_000_000), true);
        let fixed = udp(Departures::BitsPerSecond { value: 4_000_000 }, 1000);
        let open = udp(Departures::Max, 1000);
        let paces = limits.admit(&offer(vec![
            (Direction::Forward, fixed),
            (Direction::Forward, open),
            (Direction::Both, tcp()),
        ]));
        assert_eq!(paces, Ok(vec![None, Some(3_000_000), Some(3_000_000)]));
    }

    #[test]
    fn strangers_get_no_more_than_a_gigabit_sent_to_them() {
        let both = |direction| offer(vec![(direction, tcp())]);
        assert_eq!(
            limits(None, false).admit(&both(Direction::Forward)),
            Ok(vec![None])
        );
        assert_eq!(
            limits(None, false).admit(&both(Direction::Reverse)),
            Ok(vec![Some(STRANGERS_RATE)])
        );
        assert_eq!(
            limits(None, true).admit(&both(Direction::Reverse)),
            Ok(vec![None])
        );
    }

    #[test]
    fn a_rate_that_varies_is_that_of_the_datagrams_that_would_be_sent() {
        let process = Departures::Process {
            interval: Distribution::Exponential { mean: 1e6 },
        };
        let varied = offer(vec![(Direction::Forward, udp(process, 125))]);
        assert!(limits(Some(1_100_000), true).admit(&varied).is_ok());
        assert_eq!(why(limits(Some(900_000), true), &varied), Why::Limit);
    }

    #[test]
    fn no_offer_names_a_file_or_an_address() {
        let with = |change: fn(&mut UdpTraffic)| {
            let Traffic::Udp(mut traffic) = udp(Departures::Max, 100) else {
                unreachable!()
            };
            change(&mut traffic);
            offer(vec![(Direction::Reverse, Traffic::Udp(traffic))])
        };
        let limits = limits(None, true);
        let file = with(|udp| {
            udp.content = Content::File {
                path: "/etc/passwd".into(),
            }
        });
        let source = with(|udp| udp.socket.source = Some([127, 0, 0, 9].into()));
        let port = with(|udp| udp.socket.port = Some(53));
        for bad in [file, source, port] {
            assert_eq!(why(limits, &bad), Why::Invalid);
        }
        let buffer = with(|udp| udp.socket.buffer = Some(u32::MAX));
        assert_eq!(why(limits, &buffer), Why::Limit);
    }

    #[test]
    fn a_receiver_sends_no_echo_requests() {
        let icmp = || {
            Traffic::Icmp(IcmpTraffic {
                interval: 0,
                payload_bytes: 56,
                timeout: SECOND,
                socket: SocketOptions::default(),
            })
        };
        let limits = limits(Some(448_000), true);
        let paces = limits
            .admit(&offer(vec![(Direction::Forward, icmp())]))
            .unwrap();
        let paced = offer(vec![(Direction::Forward, icmp())]).paced(&paces);
        assert!(
            matches!(&paced.flows[0].traffic, Traffic::Icmp(icmp) if icmp.interval == 1_000_000)
        );
        assert_eq!(
            why(limits, &offer(vec![(Direction::Reverse, icmp())])),
            Why::Invalid
        );
    }

    proptest! {
        #[test]
        fn damaged_offers_are_admitted_within_the_limits_or_refused(
            place: prop::sample::Index, byte: u8, cut in 0_usize..4,
        ) {
            let good = offer(vec![(Direction::Reverse, udp(Departures::Max, 100)), (Direction::Both, tcp())]);
            let mut bytes = rmp_serde::to_vec_named(&good).unwrap();
            *place.get_mut(&mut bytes) = byte;
            bytes.truncate(bytes.len() - cut);
            if let Ok(damaged) = rmp_serde::from_slice::<Offer>(&bytes)
                && let Ok(paces) = limits(Some(1_000_000), false).admit(&damaged)
            {
                prop_assert!(damaged.measure <= 60 * SECOND);
                prop_assert!(paces.iter().flatten().all(|pace| *pace <= 1_000_000));
            }
        }
    }
}
