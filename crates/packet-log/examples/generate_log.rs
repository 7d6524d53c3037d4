//! Writes the log of a receiver that got a steady flow over a lossy path, for benchmarks:
//! `generate_log FILE PACKETS PACKETS_PER_SECOND`.

use std::collections::VecDeque;
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
    let mut late: VecDeque<Record> = VecDeque::new();
    for sequence in 0..packets {
        if sequence % BURST == 0 {
            sleep(Duration::from_millis(30));
        }
        let intended = START + (sequence * interval) as i64;
        let sent = intended + (noise.next() % 2_000) as i64;
        let arrival = last_arrival.max(sent + 100_000 + (noise.next() % 50_000) as i64) + 300;
        let bytes = 64 + (noise.next() % 3) as u32 * 500;
        let packet = Record {
            flow: 1,
            sequence,
            intended,
            sent: Some(sent),
            received: Some(arrival),
            bytes,
        };
        while late
            .front()
            .is_some_and(|packet| packet.received <= Some(arrival))
        {
            late.drain(..1).for_each(|packet| writer.record(packet));
        }
        // A queue keeps the order, except for one packet in a thousand, and loses another one.
        match noise.next() % 1_000 {
            0 => continue,
            1 => late.push_back(Record {
                received: Some(arrival + 200_000),
                ..packet
            }),
            _ => {
                last_arrival = arrival;
                writer.record(packet);
            }
        }
    }
    late.into_iter().for_each(|packet| writer.record(packet));
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
