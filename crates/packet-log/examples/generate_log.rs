//! Writes the log of a receiver that got a steady flow over a lossy path, for benchmarks:
//! `generate_log FILE PACKETS PACKETS_PER_SECOND`.

use std::env::args;
use std::error::Error;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use tunnelbench_packet_log::{LogHead, LogSchedule, LogWriter, Record};

const START: i64 = 1_700_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;
/// How many records are given at once before the writer gets time: fewer than may wait for the disk.
const BURST: u64 = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let [_, path, packets, rate] = &args().collect::<Vec<_>>()[..] else {
        return Err("generate_log FILE PACKETS PACKETS_PER_SECOND".into());
    };
    let (packets, rate): (u64, u64) = (packets.parse()?, rate.parse()?);
    let interval = SECOND / rate;
    let head = LogHead {
        version: env!("CARGO_PKG_VERSION").into(),
        schedule: LogSchedule {
            start_at: START,
            warm_up: 0,
            measure: packets * interval,
            cool_down: 0,
        },
        flows: [(1, "benchmark".to_owned())].into(),
        clock: None,
    };
    let mut writer = LogWriter::create(Path::new(path), &head)?;
    let mut noise = Noise(1);
    let mut last_arrival = START;
    for sequence in 0..packets {
        if sequence % BURST == 0 {
            sleep(Duration::from_millis(30));
        }
        let intended = START + (sequence * interval) as i64;
        let sent = intended + (noise.next() % 2_000) as i64;
        // A queue keeps the order, except for one packet in a thousand, and loses another one.
        let arrival = last_arrival.max(sent + 100_000 + (noise.next() % 50_000) as i64) + 300;
        let received = match noise.next() % 1_000 {
            0 => continue,
            1 => arrival + 200_000,
            _ => {
                last_arrival = arrival;
                arrival
            }
        };
        let bytes = 64 + (noise.next() % 3) as u32 * 500;
        writer.record(Record {
            flow: 1,
            sequence,
            intended,
            sent: Some(sent),
            received: Some(received),
            bytes,
        });
    }
    let written = writer.finish()?;
    println!(
        "{} records, {} dropped, {} bytes",
        written.records, written.dropped, written.bytes
    );
    Ok(())
}

/// A xorshift generator: what it makes is the same everywhere.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }
}
