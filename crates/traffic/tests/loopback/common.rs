//! What the tests of all transports share.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tunnelbench_traffic::{Job, Running, Schedule, TrafficError, start};

pub const MILLISECOND: u64 = 1_000_000;

/// What only something that hangs takes: a busy machine never does.
pub const HANGS: Duration = Duration::from_secs(30);

pub fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos() as i64
}

/// Starts soon enough for a test and late enough for a busy machine.
pub fn schedule() -> Schedule {
    let start_at = now() + 1_000 * MILLISECOND as i64;
    let (warm_up, measure, cool_down) = (50 * MILLISECOND, 200 * MILLISECOND, 50 * MILLISECOND);
    Schedule {
        start_at,
        warm_up,
        measure,
        cool_down,
    }
}

/// Waits until it is so.
pub fn wait_until(is_so: impl Fn() -> bool) {
    let give_up = Instant::now() + HANGS;
    while !is_so() {
        assert!(Instant::now() < give_up, "it hangs");
        sleep(Duration::from_millis(5));
    }
}

pub fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

pub fn bound(running: &Running) -> SocketAddr {
    running.bound().expect("a listener knows its address")
}

pub fn assert_all_refused(jobs: impl IntoIterator<Item = Job>) {
    for job in jobs {
        let outcome = start(job.clone());
        assert!(
            matches!(outcome, Err(TrafficError::Invalid(_))),
            "{job:?}: {outcome:?}"
        );
    }
}

/// Stops two jobs that have long to go.
pub fn assert_stopped(jobs: [Running; 2]) {
    jobs.iter().for_each(Running::stop);
    for job in jobs {
        let outcome = job.finish();
        let stopped = matches!(
            outcome,
            Err(TrafficError::Stopped | TrafficError::Broken { .. })
        );
        assert!(stopped, "{outcome:?}");
    }
}
