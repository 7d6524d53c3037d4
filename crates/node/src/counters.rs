//! Reads what the kernel counts: traffic of interfaces, processor time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::protocol::{Counters, InterfaceCounters, KernelTime, ProcessorTime};

/// Processor time at this moment; what the kernel does not tell is left out.
pub fn read() -> Counters {
    Counters {
        clock: realtime(),
        processes: processes(),
        kernel: kernel_time(&text("/proc/stat"), ticks_per_second()),
    }
}

/// Traffic so far, by interface.
pub fn read_interfaces() -> BTreeMap<String, InterfaceCounters> {
    interfaces(&text("/proc/net/dev"))
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The realtime clock in nanoseconds since the epoch.
pub fn realtime() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_nanos() as i64)
}

fn ticks_per_second() -> f64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .map_or(100.0, |ticks| ticks as f64)
}

fn interfaces(text: &str) -> BTreeMap<String, InterfaceCounters> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .filter_map(|(name, numbers)| {
            let fields: Vec<u64> = numbers
                .split_whitespace()
                .map_while(|field| field.parse().ok())
                .collect();
            let [received_bytes, received_packets, _, received_dropped, ..] = fields[..] else {
                return None;
            };
            let [sent_bytes, sent_packets, _, sent_dropped, ..] = fields.get(8..)? else {
                return None;
            };
            let counters = InterfaceCounters {
                received_bytes,
                received_packets,
                received_dropped,
                sent_bytes: *sent_bytes,
                sent_packets: *sent_packets,
                sent_dropped: *sent_dropped,
            };
            Some((name.trim().to_owned(), counters))
        })
        .collect()
}

/// All processes of this process namespace. Dead ones count through the parent that waited for them, and
/// orphans through process 1, so nothing that ran is lost.
fn processes() -> ProcessorTime {
    let Ok(directory) = fs::read_dir("/proc") else {
        return ProcessorTime::default();
    };
    let ticks = ticks_per_second();
    directory
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
        .filter_map(|entry| {
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let time = process_time(&stat, ticks)?;
            Some(add(time, threads(&entry.path())))
        })
        .fold(ProcessorTime::default(), add)
}

fn add(one: ProcessorTime, other: ProcessorTime) -> ProcessorTime {
    ProcessorTime {
        user: one.user + other.user,
        system: one.system + other.system,
        queued: one
            .queued
            .zip(other.queued)
            .map(|(one, other)| one + other)
            .or(one.queued)
            .or(other.queued),
        voluntary_switches: one.voluntary_switches + other.voluntary_switches,
        involuntary_switches: one.involuntary_switches + other.involuntary_switches,
    }
}

fn process_time(stat: &str, ticks: f64) -> Option<ProcessorTime> {
    // The program's name, in brackets, may itself hold blanks and brackets.
    let (_, fields) = stat.rsplit_once(')')?;
    let field: Vec<&str> = fields.split_whitespace().collect();
    let seconds = |index: usize| Some(field.get(index)?.parse::<f64>().ok()? / ticks);
    Some(ProcessorTime {
        user: seconds(11)? + seconds(13)?,
        system: seconds(12)? + seconds(14)?,
        ..ProcessorTime::default()
    })
}

/// What is told thread by thread, of all that a process has now: the kernel forgets those that ended.
fn threads(process: &Path) -> ProcessorTime {
    let Ok(threads) = fs::read_dir(process.join("task")) else {
        return ProcessorTime::default();
    };
    threads
        .flatten()
        .filter_map(|thread| {
            let (voluntary_switches, involuntary_switches) =
                switches(&fs::read_to_string(thread.path().join("status")).ok()?);
            let schedule = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            Some(ProcessorTime {
                queued: queued(&schedule),
                voluntary_switches,
                involuntary_switches,
                ..ProcessorTime::default()
            })
        })
        .fold(ProcessorTime::default(), add)
}

/// Seconds on a run queue, the second field of `schedstat` (Documentation/scheduler/sched-stats.rst);
/// None where the kernel keeps no account of it.
fn queued(schedule: &str) -> Option<f64> {
    let nanoseconds: u64 = schedule.split_whitespace().nth(1)?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

fn switches(status: &str) -> (u64, u64) {
    let value = |key: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
            .unwrap_or(0)
    };
    (
        value("voluntary_ctxt_switches:"),
        value("nonvoluntary_ctxt_switches:"),
    )
}

fn kernel_time(stat: &str, ticks: f64) -> KernelTime {
    let fields: Vec<f64> = stat
        .lines()
        .find_map(|line| line.strip_prefix("cpu "))
        .unwrap_or_default()
        .split_whitespace()
        .map_while(|field| field.parse::<f64>().ok())
        .map(|value| value / ticks)
        .collect();
    let at = |index: usize| fields.get(index).copied().unwrap_or(0.0);
    KernelTime {
        user: at(0) + at(1),
        system: at(2),
        idle: at(3) + at(4),
        interrupt: at(5),
        softirq: at(6),
        stolen: at(7),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn interfaces_are_read() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop\n    lo: 10 2 0 1 0 0 0 0 30 4 0 5 0 0 0 0\n";
        let read = interfaces(text);
        let expected = InterfaceCounters {
            received_bytes: 10,
            received_packets: 2,
            received_dropped: 1,
            sent_bytes: 30,
            sent_packets: 4,
            sent_dropped: 5,
        };
        assert_eq!(read.get("lo"), Some(&expected));
        assert_eq!(read.len(), 1);
    }

    #[test]
    fn a_process_name_may_hold_brackets() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 1 0 0 0 150 50 20 10 20 0 1 0 5";
        let time = process_time(stat, 100.0).unwrap();
        assert!((time.user - 1.7).abs() < 1e-9);
        assert!((time.system - 0.6).abs() < 1e-9);
    }

    #[test]
    fn switches_of_every_thread_count() {
        let own = || threads(Path::new("/proc/self")).voluntary_switches;
        let before = own();
        let thread = std::thread::spawn(move || {
            for _ in 0..5 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            own() >= before + 5
        });
        assert!(thread.join().unwrap());
    }

    #[test]
    fn time_on_a_run_queue_is_in_seconds() {
        assert_eq!(queued("81002113 2500000000 41\n"), Some(2.5));
        assert_eq!(queued(""), None);
    }

    #[test]
    fn kernel_time_is_split() {
        let time = kernel_time("cpu  100 0 50 1000 0 1 20 3 0 0\ncpu0 1 2 3\n", 100.0);
        assert!((time.softirq - 0.2).abs() < 1e-9);
        assert!((time.user - 1.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in ".{0,300}") {
            interfaces(&text);
            process_time(&text, 100.0);
            queued(&text);
            kernel_time(&text, 100.0);
        }
    }
}
