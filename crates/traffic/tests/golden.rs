//! The messages as they are on the wire. The files are read by the Python side's tests too, so neither side can drift.
//!
//! After a wanted change: `UPDATE_GOLDEN=1 cargo test -p tunnelbench-traffic --test golden`, and look at the difference.

use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_bytes::ByteBuf;
use tunnelbench_traffic::histogram::{Histogram, Unit};
use tunnelbench_traffic::job::{
    Content, EchoDestination, EchoProbe, EchoServe, Messages, ProbePlan, Protocol, SendMode, Side,
    SocketOptions, TcpConnect, TcpListen, TcpOptions, Timestamps, Transaction, TransactionRun,
    TransactionServe, UdpReceive, UdpSend,
};
use tunnelbench_traffic::outcome::{
    DelayVariation, Echoed, FlowReport, FlowSeries, LossBursts, MessagesSent, Probed,
    RoundTripSeries, Series, Tally, TcpCarried, TcpFlow, TcpInformation, TcpReceived,
    TcpReceivedStream, TcpSamples, TcpSent, TcpSentStream, Transacted, TransactionsServed,
    UdpReceived, UdpSent,
};
use tunnelbench_traffic::process::{Departures, Distribution, Sizes, profiles};
use tunnelbench_traffic::voice::{Codec, VoiceQuality};
use tunnelbench_traffic::{Job, Outcome, Schedule};

const SCHEDULE: Schedule = Schedule {
    start_at: 1_700_000_000_123_456_789,
    warm_up: 500_000_000,
    measure: 5_000_000_000,
    cool_down: 250_000_000,
};

fn buffer(bytes: u32) -> SocketOptions {
    SocketOptions {
        buffer: Some(bytes),
        ..SocketOptions::default()
    }
}

fn jobs() -> [(&'static str, Job); 9] {
    let options = TcpOptions {
        write_bytes: 131_072,
        streams: 4,
        rate: Some(50_000_000),
        content: Content::Random,
        no_delay: true,
        congestion_control: Some("cubic".into()),
        mss: Some(1_200),
        sample: 10_000_000,
        messages: None,
        socket: buffer(1_048_576),
    };
    let plain = TcpOptions {
        content: Content::Pattern {
            data: ByteBuf::from(vec![0, 255, 128]),
        },
        no_delay: false,
        congestion_control: None,
        mss: None,
        rate: None,
        messages: Some(Messages {
            departures: Departures::Process {
                interval: Distribution::Exponential { mean: 1e6 },
            },
            sizes: Sizes::constant(100),
            seed: 42,
        }),
        sample: 100_000_000,
        socket: SocketOptions::default(),
        ..options.clone()
    };
    [
        (
            "job_udp_send",
            Job::UdpSend(UdpSend {
                destination: "10.0.0.2:5201".parse().unwrap(),
                session: 65_535,
                schedule: SCHEDULE,
                departures: Departures::BitsPerSecond { value: 100_000_000 },
                sizes: Sizes::constant(1_400),
                seed: u64::MAX,
                mode: SendMode::Batched { datagrams: 64 },
                content: Content::Zeros,
                socket: SocketOptions {
                    source: Some("10.0.0.1".parse().unwrap()),
                    port: Some(40_000),
                    dscp: Some(46),
                    ttl: Some(64),
                    dont_fragment: Some(true),
                    buffer: None,
                },
                log: Some("/run/sent.parquet".into()),
            }),
        ),
        (
            "job_udp_receive",
            Job::UdpReceive(UdpReceive {
                bind: "[fd00::1]:0".parse().unwrap(),
                session: 1,
                schedule: SCHEDULE,
                linger: 500_000_000,
                step: 50_000_000,
                timestamps: Timestamps::User,
                peer: Some("fd00::2".parse().unwrap()),
                voice: Some(Codec::G729A),
                log: Some("/tmp/received.parquet".into()),
                socket: buffer(8_388_608),
            }),
        ),
        (
            "job_tcp_connect",
            Job::TcpConnect(TcpConnect {
                destination: "127.0.0.1:5201".parse().unwrap(),
                session: u64::MAX - 1,
                schedule: SCHEDULE,
                side: Side::Receive,
                options,
                connect_timeout: 3_000_000_000,
                proxy: Some("[fd00:1::1]:1080".parse().unwrap()),
            }),
        ),
        (
            "job_tcp_listen",
            Job::TcpListen(TcpListen {
                bind: "0.0.0.0:5201".parse().unwrap(),
                session: u64::MAX - 1,
                schedule: SCHEDULE,
                side: Side::Send,
                options: plain,
            }),
        ),
        (
            "job_echo_serve",
            Job::EchoServe(EchoServe {
                bind: "[::]:7".parse().unwrap(),
                protocol: Protocol::Udp,
                deadline: 10_000_000_000,
            }),
        ),
        (
            "job_echo_probe",
            Job::EchoProbe(EchoProbe {
                destination: EchoDestination::Tcp {
                    address: "10.0.0.2:7".parse().unwrap(),
                    proxy: Some("10.1.0.1:1080".parse().unwrap()),
                },
                plan: ProbePlan::Count {
                    count: 1_000,
                    until_first_reply: true,
                    deadline: 20_000_000_000,
                },
                interval: 10_000_000,
                payload_bytes: 512,
                marker: Some(ByteBuf::from("a marker")),
                timeout: 1_000_000_000,
                socket: SocketOptions::default(),
            }),
        ),
        (
            "job_transaction_serve",
            Job::TransactionServe(TransactionServe {
                bind: "0.0.0.0:7".parse().unwrap(),
                session: u64::MAX,
                schedule: SCHEDULE,
                transaction: Transaction {
                    protocol: Protocol::Udp,
                    request_bytes: 1,
                    response_bytes: 2,
                    fresh_connections: false,
                    concurrency: 3,
                },
                peer: Some("fd00::2".parse().unwrap()),
                socket: SocketOptions::default(),
            }),
        ),
        (
            "job_transaction_run",
            Job::TransactionRun(TransactionRun {
                destination: "[fd00::2]:7".parse().unwrap(),
                proxy: None,
                session: 1,
                schedule: SCHEDULE,
                transaction: Transaction {
                    protocol: Protocol::Tcp,
                    request_bytes: 1,
                    response_bytes: 1_048_576,
                    fresh_connections: true,
                    concurrency: 1,
                },
                timeout: 1_000_000_000,
                socket: SocketOptions::default(),
            }),
        ),
        (
            "job_echo_probe_icmp",
            Job::EchoProbe(EchoProbe {
                destination: EchoDestination::Icmp {
                    address: "fd00::2".parse().unwrap(),
                },
                plan: ProbePlan::Schedule { schedule: SCHEDULE },
                interval: 0,
                payload_bytes: 56,
                marker: None,
                timeout: 1_000_000_000,
                socket: SocketOptions {
                    ttl: Some(3),
                    ..SocketOptions::default()
                },
            }),
        ),
    ]
}

fn modes() -> [(&'static str, SendMode); 3] {
    let datagrams = 64;
    [
        ("mode_per_packet", SendMode::PerPacket),
        ("mode_batched", SendMode::Batched { datagrams }),
        ("mode_segmented", SendMode::Segmented { datagrams }),
    ]
}

fn departures() -> [(&'static str, Departures); 6] {
    let exponential = |mean| Distribution::Exponential { mean };
    [
        (
            "departures_bits_per_second",
            Departures::BitsPerSecond { value: 100_000_000 },
        ),
        (
            "departures_packets_per_second",
            Departures::PacketsPerSecond { value: 5 },
        ),
        ("departures_max", Departures::Max),
        (
            "departures_bursts",
            Departures::Bursts {
                datagrams: 32,
                interval: 10_000_000,
            },
        ),
        (
            "departures_process",
            Departures::Process {
                interval: exponential(1e6),
            },
        ),
        (
            "departures_talk",
            Departures::Talk {
                interval: 20_000_000,
                talk: exponential(1.004e9),
                silence: exponential(1.587e9),
            },
        ),
    ]
}

fn distributions() -> [(&'static str, Distribution); 13] {
    let mixture = Distribution::Mixture {
        parts: vec![
            Distribution::Exponential { mean: 4.29e6 },
            Distribution::Constant { value: 10.75e6 },
        ],
        weights: vec![0.6, 0.4],
    };
    [
        ("constant", Distribution::Constant { value: 1_400.0 }),
        (
            "uniform",
            Distribution::Uniform {
                low: 100.0,
                high: 320.0,
            },
        ),
        ("exponential", Distribution::Exponential { mean: 1e6 }),
        (
            "normal",
            Distribution::Normal {
                mean: 512.0,
                deviation: 64.5,
            },
        ),
        ("poisson", Distribution::Poisson { mean: 4.5 }),
        (
            "pareto",
            Distribution::Pareto {
                shape: 1.5,
                scale: 40.0,
            },
        ),
        (
            "cauchy",
            Distribution::Cauchy {
                location: -1.0,
                scale: 2.0,
            },
        ),
        (
            "student",
            Distribution::Student {
                location: 41.7,
                scale: 0.1,
                degrees: 0.7,
            },
        ),
        (
            "gamma",
            Distribution::Gamma {
                shape: 2.0,
                scale: 50.0,
            },
        ),
        (
            "weibull",
            Distribution::Weibull {
                shape: 0.8,
                scale: 100.0,
            },
        ),
        (
            "listed",
            Distribution::Listed {
                values: vec![100.0, 0.0, 1_400.0],
            },
        ),
        (
            "choice",
            Distribution::Choice {
                values: vec![12.0, 548.0, 1_472.0],
                weights: vec![7.0, 4.0, 1.0],
            },
        ),
        ("mixture", mixture),
    ]
}

fn contents() -> [(&'static str, Content); 4] {
    let data = ByteBuf::from(vec![0, 255, 128]);
    let path = "/srv/corpus/text".into();
    [
        ("content_zeros", Content::Zeros),
        ("content_random", Content::Random),
        ("content_pattern", Content::Pattern { data }),
        ("content_file", Content::File { path }),
    ]
}

fn outcomes() -> [(&'static str, Outcome); 8] {
    let round_trips = RoundTripSeries {
        step: 100_000_000,
        begun: vec![6, 4],
        completed: vec![2, 0],
        shortest: vec![Some(1), None],
        mean: vec![Some(1.5), None],
        longest: vec![Some(2), None],
    };
    let histogram = Histogram {
        unit: Unit::Nanoseconds,
        count: 5,
        negative: 1,
        min: 0,
        max: 70_000_000_000,
        mean: 1.5,
        deviation: 0.5,
        p50: 1,
        p90: 200,
        p99: 70_000,
        p999: 5_000_000_000,
        encoded: ByteBuf::from(vec![28, 132, 147, 20]),
    };
    let series = Series {
        step: 100_000_000,
        bytes: vec![0, 1_400, 70_000],
    };
    [
        (
            "outcome_udp_send",
            Outcome::UdpSend(UdpSent {
                mode: SendMode::Segmented { datagrams: 46 },
                asked_rate: Some(1e8),
                achieved_rate: 99_999_999.5,
                measured: Tally {
                    packets: 50,
                    bytes: 70_000,
                },
                total: Tally {
                    packets: 60,
                    bytes: 84_000,
                },
                late: 1,
                skipped: 2,
                unsent: 3,
                send_errors: 4,
                departure_error: Some(histogram.clone()),
                processor: 123_456_789,
                clock_step: -5,
            }),
        ),
        (
            "outcome_udp_receive",
            Outcome::UdpReceive(UdpReceived {
                timestamps: Timestamps::Kernel,
                socket_buffer: 4_194_304,
                flow: Box::new(FlowReport {
                    measured: Tally {
                        packets: 49,
                        bytes: 68_600,
                    },
                    duplicates: 1,
                    reordered: 2,
                    reordering_extent: Some(Histogram {
                        unit: Unit::Packets,
                        ..histogram.clone()
                    }),
                    late_time_offset: None,
                    extent_unknown: 7,
                    beyond_window: 3,
                    loss: LossBursts {
                        expected: 51,
                        lost: 2,
                        bursts: 1,
                        mean: Some(2.0),
                        longest: 2,
                        ratio: Some(1.5),
                    },
                    jitter_last: Some(12.5),
                    jitter_mean: None,
                    delay: Some(histogram.clone()),
                    ipdv: Some(DelayVariation {
                        absolute: histogram.clone(),
                        negative: 2,
                        mean: -0.5,
                        min: -70_000_000_000,
                        max: 200,
                    }),
                    pdv: Some(histogram.clone()),
                    arrived: Tally {
                        packets: 48,
                        bytes: 67_200,
                    },
                    series: FlowSeries {
                        step: 50_000_000,
                        bytes: vec![0, 1_400],
                        packets: vec![0, 1],
                        lost: vec![0, -1],
                        delay_min: vec![None, Some(-5)],
                        delay_mean: vec![None, Some(1.5)],
                        delay_max: vec![None, Some(8)],
                        jitter: vec![None, Some(2.5)],
                    },
                    longest_gap: 10_000_000,
                    total: Tally {
                        packets: 60,
                        bytes: 84_000,
                    },
                }),
                foreign: 4,
                buffer_drops: 5,
                receive_calls: 7,
                coalesced: 8,
                processor: 9_000_000,
                voice: Some(VoiceQuality {
                    r_factor: 80.5,
                    mos: 4.0,
                }),
                log_dropped: Some(10),
                clock_step: 6,
            }),
        ),
        (
            "outcome_tcp_connect",
            Outcome::TcpConnect(TcpCarried {
                foreign: 0,
                clock_step: 0,
                flow: TcpFlow {
                    sent: None,
                    received: Some(TcpReceived {
                        measured_bytes: 70_000,
                        total_bytes: 71_400,
                        streams: vec![
                            TcpReceivedStream {
                                measured_bytes: 35_000,
                                processor: 2_000_000,
                            };
                            2
                        ],
                        series,
                        longest_gap: 0,
                        messages: None,
                    }),
                },
            }),
        ),
        (
            "outcome_tcp_listen",
            Outcome::TcpListen(TcpCarried {
                foreign: 2,
                clock_step: 1,
                flow: TcpFlow {
                    received: None,
                    sent: Some(TcpSent {
                        measured_bytes: 70_000,
                        total_bytes: 71_400,
                        congestion_control: "bbr".into(),
                        retransmits: 3,
                        segments: Some(52),
                        minimum_round_trip: Some(300_000),
                        round_trip: Some(histogram.clone()),
                        step: 100_000_000,
                        messages: Some(MessagesSent {
                            measured: Tally {
                                packets: 7,
                                bytes: 700,
                            },
                            total: Tally {
                                packets: 9,
                                bytes: 900,
                            },
                            behind: 1,
                            departure_error: None,
                        }),
                        streams: vec![TcpSentStream {
                            measured_bytes: 70_000,
                            processor: 1_000_000,
                            end: TcpInformation {
                                round_trip: 400_000,
                                round_trip_deviation: 50_000,
                                minimum_round_trip: Some(300_000),
                                congestion_window: 10,
                                unacked: 4,
                                retransmits: 5,
                                segments: None,
                                segment_bytes: 1_448,
                                pacing_rate: None,
                                delivery_rate: Some(80_000_000),
                            },
                            samples: TcpSamples {
                                round_trip: vec![Some(400_000), None],
                                round_trip_deviation: vec![Some(50_000), None],
                                congestion_window: vec![Some(10), None],
                                unacked: vec![Some(4), None],
                                retransmits: vec![Some(5), None],
                                pacing_rate: vec![None, None],
                                delivery_rate: vec![Some(80_000_000), None],
                            },
                        }],
                    }),
                },
            }),
        ),
        (
            "outcome_transaction_serve",
            Outcome::TransactionServe(TransactionsServed {
                responses: 11,
                connections: 2,
                foreign: 1,
                processor: 7,
            }),
        ),
        (
            "outcome_transaction_run",
            Outcome::TransactionRun(Transacted {
                transactions: 9,
                failures: 1,
                round_trip: Some(histogram.clone()),
                connect: None,
                series: round_trips.clone(),
                total: 10,
                processor: 6,
            }),
        ),
        (
            "outcome_echo_serve",
            Outcome::EchoServe(Echoed {
                echoed: Tally {
                    packets: 10,
                    bytes: 5_120,
                },
                foreign: 1,
            }),
        ),
        (
            "outcome_echo_probe",
            Outcome::EchoProbe(Probed {
                sent: 10,
                replies: 9,
                failures: 1,
                duplicates: 2,
                reordered: 3,
                skipped: 4,
                round_trip: Some(histogram.clone()),
                round_trip_from_intended: Some(histogram),
                first_reply_after: Some(1_234_567),
                timestamps: Timestamps::Kernel,
                series: round_trips,
                total_sent: 12,
                total_replies: 11,
                late: 5,
                processor: 6,
            }),
        ),
    ]
}

/// The Python side reads the same profiles from the same file: what it makes of them must be this.
#[test]
fn profiles_are_read_alike_on_both_sides() {
    check("profiles/all", &profiles().to_vec());
}

/// Checks that the file holds exactly this message, and that the message can be read back from it.
fn check<T: Serialize + DeserializeOwned + Debug + PartialEq>(name: &str, message: &T) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
        .with_extension("msgpack");
    let encoded = rmp_serde::to_vec_named(message).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &encoded).unwrap();
    }
    let golden = fs::read(&path).unwrap_or_else(|failure| panic!("{}: {failure}", path.display()));
    assert!(golden == encoded, "{name} is not what it was on the wire");
    assert_eq!(
        rmp_serde::from_slice::<T>(&golden).unwrap(),
        *message,
        "{name}"
    );
}

#[test]
fn jobs_are_what_they_were_on_the_wire() {
    jobs().iter().for_each(|(name, job)| check(name, job));
    contents()
        .iter()
        .for_each(|(name, content)| check(name, content));
    modes().iter().for_each(|(name, mode)| check(name, mode));
}

#[test]
fn processes_are_what_they_were_on_the_wire() {
    for (name, departures) in departures() {
        departures.validate().unwrap();
        check(name, &departures);
    }
    for (kind, distribution) in distributions() {
        distribution.validate().unwrap();
        check(&format!("distribution_{kind}"), &distribution);
    }
}

#[test]
fn outcomes_are_what_they_were_on_the_wire() {
    outcomes()
        .iter()
        .for_each(|(name, outcome)| check(name, outcome));
}

#[test]
fn fields_with_a_default_may_be_left_out() {
    #[derive(Serialize)]
    struct Partial {
        kind: &'static str,
        bind: &'static str,
        session: u16,
        schedule: Schedule,
    }
    let message = Partial {
        kind: "udp_receive",
        bind: "127.0.0.1:0",
        session: 1,
        schedule: SCHEDULE,
    };
    let Job::UdpReceive(job) =
        rmp_serde::from_slice(&rmp_serde::to_vec_named(&message).unwrap()).unwrap()
    else {
        panic!("another job");
    };
    assert_eq!(
        (job.linger, job.step, job.timestamps, job.socket),
        (
            500_000_000,
            100_000_000,
            Timestamps::Kernel,
            SocketOptions::default()
        )
    );
}

#[test]
fn messages_that_make_no_sense_are_refused() {
    #[derive(Clone, Copy, Serialize)]
    struct Partial {
        kind: &'static str,
        bind: &'static str,
        protocol: &'static str,
        deadline: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        surplus: Option<u8>,
    }
    let sound = Partial {
        kind: "echo_serve",
        bind: "127.0.0.1:0",
        protocol: "udp",
        deadline: 1,
        surplus: None,
    };
    let refused = [
        Partial {
            kind: "echo",
            ..sound
        },
        Partial {
            bind: "localhost:7",
            ..sound
        },
        Partial {
            protocol: "sctp",
            ..sound
        },
        Partial {
            surplus: Some(1),
            ..sound
        },
    ];
    let decode = |message: &Partial| {
        rmp_serde::from_slice::<Job>(&rmp_serde::to_vec_named(message).unwrap())
    };
    assert!(decode(&sound).is_ok());
    refused
        .iter()
        .for_each(|message| assert!(decode(message).is_err()));
}
