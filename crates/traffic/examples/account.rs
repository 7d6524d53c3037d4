//! The processor time that the account of a flow takes for each datagram: `cargo run --release --example account`.

use rustix::time::{ClockId, clock_gettime};
use tunnelbench_traffic::{FlowAccount, Observed, Schedule};

const DATAGRAMS: u32 = 20_000_000;
const INTERVAL: i64 = 10_000;

fn main() {
    for (name, lost, reordered) in [("in order", 0, 0), ("1 % lost, 1 % reordered", 100, 100)] {
        let schedule = Schedule {
            start_at: 0,
            warm_up: 1_000_000_000,
            measure: u64::from(DATAGRAMS) * INTERVAL as u64 - 2_000_000_000,
            cool_down: 1_000_000_000,
        };
        let mut account = FlowAccount::new(schedule, 100_000_000).expect("the steps are long");
        let arrivals = arrivals(lost, reordered);
        let rounds = DATAGRAMS / arrivals.len() as u32;
        let start = processor_time();
        for round in 0..rounds {
            let first = round * arrivals.len() as u32;
            for arrival in &arrivals {
                account.observe(&Observed {
                    sequence: first + arrival.sequence,
                    intended: i64::from(first) * INTERVAL + arrival.intended,
                    arrived: i64::from(first) * INTERVAL + arrival.arrived,
                    ..*arrival
                });
            }
        }
        let total = processor_time() - start;
        let each = total / f64::from(rounds) / arrivals.len() as f64;
        println!(
            "{name}: {each:.1} ns per datagram, {} measured",
            account.finish().measured.packets
        );
    }
}

/// Datagrams with delays around 100 us; one in `lost` and one in `reordered` of them is, none for 0.
fn arrivals(lost: u32, reordered: u32) -> Vec<Observed> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut arrivals: Vec<Observed> = (0..1_000_000)
        .map(|sequence| Observed {
            sequence,
            intended: i64::from(sequence) * INTERVAL,
            sent: None,
            arrived: i64::from(sequence) * INTERVAL + 90_000 + random.i64(0..20_000),
            bytes: 64,
        })
        .collect();
    if reordered > 0 {
        (0..arrivals.len() - 1)
            .step_by(reordered as usize)
            .for_each(|place| arrivals.swap(place, place + 1));
    }
    if lost > 0 {
        arrivals.retain(|_| random.u32(0..lost) > 0);
    }
    arrivals
}

/// Of this thread, ns.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
