//! What a UDP sender puts on the wire, seen by a plain socket.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread;

use tunnelbench_packet_log::LogReader;
use tunnelbench_traffic::job::{Content, SendMode, SocketOptions, UdpSend};
use tunnelbench_traffic::outcome::UdpSent;
use tunnelbench_traffic::process::{Departures, Distribution, Sizes};
use tunnelbench_traffic::{Job, Outcome, Schedule, TrafficError, start};

use crate::common::*;

/// What fits an Ethernet frame over IPv4.
const FULL: u32 = 1_472;

const PACED: Departures = Departures::PacketsPerSecond { value: 500 };

/// A datagram as it arrived.
#[derive(Debug, PartialEq)]
struct Arrival {
    sequence: u32,
    intended: u64,
    lateness: Option<u32>,
    content: Vec<u8>,
}

impl Arrival {
    fn parse(datagram: &[u8]) -> Self {
        let number = |range: std::ops::Range<usize>| {
            datagram[range]
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        assert_eq!(number(4..6), 7, "the session");
        let has_lateness = datagram.len() >= 16;
        Self {
            sequence: number(0..4) as u32,
            intended: number(6..12),
            lateness: has_lateness.then(|| number(12..16) as u32),
            content: datagram[if has_lateness { 16 } else { 12 }..].to_vec(),
        }
    }
}

fn job(departures: Departures, sizes: Sizes, mode: SendMode) -> UdpSend {
    UdpSend {
        destination: loopback(9),
        session: 7,
        schedule: schedule(),
        departures,
        sizes,
        seed: 5,
        mode,
        content: Content::Random,
        socket: SocketOptions::default(),
        log: None,
    }
}

/// Runs a job towards a plain socket.
fn carried(job: UdpSend) -> (UdpSent, Vec<Arrival>) {
    let any: SocketAddr = SocketAddr::new(job.destination.ip(), 0);
    let receiver = UdpSocket::bind(any).unwrap();
    force_buffer(&receiver, 8_000_000);
    let destination = receiver.local_addr().unwrap();
    let running = start(Job::UdpSend(UdpSend { destination, ..job })).unwrap();
    // Whoever is done sends this in the last place.
    let done = [0];
    let finish = thread::spawn(move || {
        let outcome = running.finish();
        UdpSocket::bind((any.ip(), 0))
            .unwrap()
            .send_to(&done, destination)
            .unwrap();
        outcome
    });
    receiver.set_read_timeout(Some(HANGS)).unwrap();
    let mut arrivals = Vec::new();
    let mut buffer = vec![0; 70_000];
    loop {
        let length = receiver.recv(&mut buffer).unwrap();
        if length == done.len() {
            break;
        }
        arrivals.push(Arrival::parse(&buffer[..length]));
    }
    match finish.join().unwrap().unwrap() {
        Outcome::UdpSend(sent) => (sent, arrivals),
        other => panic!("{other:?}"),
    }
}

/// Beyond what the system usually grants, where this user may.
fn force_buffer(socket: &UdpSocket, bytes: libc::c_int) {
    // SAFETY: the pointer and the length are those of one live integer.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status != 0 {
        let socket = socket2::SockRef::from(socket);
        socket.set_recv_buffer_size(bytes as usize).unwrap();
    }
}

fn assert_whole(sent: &UdpSent, arrivals: &[Arrival], job: &UdpSend) {
    assert_eq!(sent.total.packets, arrivals.len() as u64);
    let header = |arrival: &Arrival| if arrival.lateness.is_some() { 16 } else { 12 };
    let bytes: usize = arrivals
        .iter()
        .map(|arrival| header(arrival) + arrival.content.len())
        .sum();
    assert_eq!(sent.total.bytes, bytes as u64);
    let sequences: Vec<u32> = arrivals.iter().map(|arrival| arrival.sequence).collect();
    assert_eq!(sequences, (0..arrivals.len() as u32).collect::<Vec<u32>>());
    let measured = |arrival: &&Arrival| {
        let intended = arrival.intended;
        (job.schedule.warm_up..job.schedule.warm_up + job.schedule.measure).contains(&intended)
    };
    assert_eq!(
        sent.measured.packets,
        arrivals.iter().filter(measured).count() as u64
    );
    assert!(sent.processor > 0);
}

#[test]
fn each_mode_sends_one_packet_for_each_datagram() {
    let trains = Departures::Bursts {
        datagrams: 20,
        interval: 10 * MILLISECOND,
    };
    for mode in [
        SendMode::PerPacket,
        SendMode::Batched { datagrams: 16 },
        SendMode::Segmented { datagrams: 8 },
    ] {
        let job = job(trains.clone(), Sizes::constant(FULL), mode);
        let (sent, arrivals) = carried(job.clone());
        assert_eq!(sent.mode, mode);
        assert_whole(&sent, &arrivals, &job);
        assert_eq!(sent.measured.packets + sent.skipped + sent.unsent, 400);
        for arrival in &arrivals {
            assert_eq!(arrival.content.len(), FULL as usize - 16);
        }
        assert!(
            arrivals
                .windows(2)
                .all(|pair| pair[0].content != pair[1].content)
        );
    }
}

#[test]
fn segments_that_cannot_be_are_batches_and_said_to_be() {
    let segmented = SendMode::Segmented { datagrams: 8 };
    let batched = SendMode::Batched { datagrams: 8 };
    let trains = Departures::Bursts {
        datagrams: 8,
        interval: 20 * MILLISECOND,
    };
    let varied = Sizes(Distribution::Listed {
        values: vec![64.0, 1_000.0],
    });
    let (sent, arrivals) = carried(job(trains.clone(), varied, segmented));
    assert_eq!(
        (sent.mode, arrivals.len()),
        (batched, sent.total.packets as usize)
    );
    // No two of these fit what one packet can be.
    let (sent, _) = carried(job(trains, Sizes::constant(40_000), segmented));
    assert_eq!(sent.mode, SendMode::Segmented { datagrams: 1 });
}

#[test]
fn what_one_call_took_left_at_one_time() {
    let trains = Departures::Bursts {
        datagrams: 16,
        interval: 10 * MILLISECOND,
    };
    let mode = SendMode::Batched { datagrams: 16 };
    let (_, arrivals) = carried(job(trains, Sizes::constant(100), mode));
    let departures: std::collections::HashSet<(u64, Option<u32>)> = arrivals
        .iter()
        .map(|arrival| (arrival.intended, arrival.lateness))
        .collect();
    assert!(arrivals.len() >= 16 && arrivals.len() % 16 == 0);
    assert_eq!(
        departures.len(),
        arrivals.len() / 16,
        "one time for each train"
    );
    assert!(
        arrivals
            .iter()
            .all(|arrival| arrival.intended % (10 * MILLISECOND) == 0)
    );
}

#[test]
fn nothing_need_be_due_at_the_end() {
    let interval = 120 * MILLISECOND;
    let trains = Departures::Bursts {
        datagrams: 2,
        interval,
    };
    let job = job(trains, Sizes::constant(100), SendMode::PerPacket);
    let schedule = Schedule {
        cool_down: 0,
        ..job.schedule
    };
    let (sent, arrivals) = carried(UdpSend { schedule, ..job });
    assert_eq!(sent.measured.packets + sent.skipped, 4);
    assert!(
        arrivals
            .iter()
            .all(|arrival| arrival.intended % interval == 0)
    );
}

#[test]
fn a_seed_sends_the_same_datagrams() {
    let process = Departures::Process {
        interval: Distribution::Exponential { mean: 1e6 },
    };
    let sizes = Sizes(Distribution::Uniform {
        low: 12.0,
        high: 1_400.0,
    });
    let planned = |seed| {
        let job = UdpSend {
            seed,
            ..job(process.clone(), sizes.clone(), SendMode::PerPacket)
        };
        let (sent, arrivals) = carried(job.clone());
        assert_whole(&sent, &arrivals, &job);
        let asked = sent.asked_rate.unwrap();
        assert!(sent.achieved_rate <= asked && asked > 0.0);
        let all: Vec<(u64, usize)> = arrivals
            .into_iter()
            .map(|arrival| (arrival.intended, arrival.content.len()))
            .collect();
        (sent.skipped, all)
    };
    let ((skipped, first), (skipped_again, again), (_, other)) =
        (planned(5), planned(5), planned(6));
    if skipped + skipped_again == 0 {
        assert_eq!(first, again);
    }
    assert_ne!(first, other);
}

#[test]
fn the_smallest_and_the_largest_datagrams_are_carried() {
    // So few that all fit a receive buffer of the usual size, however late they are read.
    let few = Departures::PacketsPerSecond { value: 15 };
    for (bytes, destination) in [
        (12, "127.0.0.1:9"),
        (15, "[::1]:9"),
        (65_507, "127.0.0.1:9"),
        (65_507, "[::1]:9"),
    ] {
        let job = UdpSend {
            destination: destination.parse().unwrap(),
            ..job(
                few.clone(),
                Sizes::constant(bytes),
                SendMode::Batched { datagrams: 4 },
            )
        };
        let (sent, arrivals) = carried(job.clone());
        assert_whole(&sent, &arrivals, &job);
        assert_eq!(arrivals[0].lateness.is_some(), bytes >= 16);
    }
}

#[test]
fn the_bytes_of_a_file_are_sent_one_after_the_other() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"abcdefghij").unwrap();
    let with = |path: &Path| UdpSend {
        content: Content::File { path: path.into() },
        ..job(PACED, Sizes::constant(20), SendMode::PerPacket)
    };
    let (_, arrivals) = carried(with(file.path()));
    let contents: Vec<&[u8]> = arrivals[..3]
        .iter()
        .map(|arrival| arrival.content.as_slice())
        .collect();
    assert_eq!(contents, [b"abcd", b"efgh", b"ijab"]);
    let missing = start(Job::UdpSend(with(Path::new("/no/such/content"))));
    assert!(
        matches!(missing, Err(TrafficError::Io { action, .. }) if action.contains("/no/such/content"))
    );
}

#[test]
fn the_log_has_every_datagram_that_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sent.parquet");
    let job = UdpSend {
        log: Some(path.clone()),
        ..job(
            PACED,
            Sizes::constant(100),
            SendMode::Batched { datagrams: 8 },
        )
    };
    let (sent, arrivals) = carried(job.clone());
    assert_eq!(sent.total.packets, arrivals.len() as u64);
    let mut log = LogReader::open(&path).unwrap();
    assert_eq!(log.head().schedule.start_at, job.schedule.start_at);
    assert!(log.is_complete() && log.dropped() == 0);
    let mut records = Vec::new();
    assert!(log.read(&mut records).unwrap());
    assert_eq!(records.len(), arrivals.len());
    for (record, arrival) in records.iter().zip(&arrivals) {
        let intended = job.schedule.start_at + arrival.intended as i64;
        assert_eq!(
            (record.sequence, record.bytes),
            (arrival.sequence.into(), 100)
        );
        assert_eq!((record.intended, record.received), (intended, None));
        assert_eq!(
            record.sent,
            Some(intended + i64::from(arrival.lateness.unwrap()))
        );
    }
    let nowhere = UdpSend {
        log: Some("/no/such/directory/sent.parquet".into()),
        schedule: schedule(),
        ..job
    };
    let refused = start(Job::UdpSend(nowhere)).unwrap_err().to_string();
    assert!(
        refused.contains("/no/such/directory/sent.parquet"),
        "{refused}"
    );
}
