//! What is measured.

use serde_json::Value;

use crate::common::{Receiver, finish, interrupted, key_file, measure, send, spawn};

/// What [`check_udp`] expects, for as long as [`SHORT`] says.
const GENTLE_UDP: [&str; 5] = ["--udp", "--rate", "200pps", "--payload", "100"];
const SHORT: [&str; 4] = ["--seconds", "0.5", "--warm-up", "0.2s"];

fn number(report: &Value, name: &str) -> f64 {
    report[name]
        .as_f64()
        .unwrap_or_else(|| panic!("no `{name}` in {report}"))
}

/// That a rate is the one asked for, but for what a busy machine was late with and therefore left out.
fn check_sent(report: &Value, asked: f64) {
    let flows = report["flows"].as_array().unwrap();
    let rates = flows.iter().map(|flow| {
        let mut ends = [&flow["client"], &flow["server"]].into_iter();
        let outcome = ends.find(|end| end["skipped"].is_u64()).unwrap();
        let left_out = number(outcome, "skipped") + outcome["unsent"].as_f64().unwrap_or(0.0);
        number(flow, "sent_packets_per_second") + left_out / 0.5
    });
    assert_eq!(rates.sum::<f64>(), asked, "{report}");
    assert!(number(report, "sent_packets_per_second") > 0.0, "{report}");
}

fn check_udp(report: &Value) {
    check_sent(report, 200.0);
    let received = number(report, "received_packets_per_second");
    assert!(received > 0.0 && received <= 220.0, "{received}");
    assert!(number(report, "loss_ratio") <= 1.0);
    assert!(report["delay"]["p50"].as_i64().unwrap() > 0);
    assert_eq!(report["clock"]["shared"], true);
    assert_eq!(report["clock"]["uncertainty"], 0);
    assert_eq!(report["asked"]["payload"], 100);
}

#[test]
fn udp_crosses_with_a_key_and_without_over_both_versions_of_ip() {
    let key = key_file("udp");
    let with_key = ["--key-file", key.path()];
    for bind in ["127.0.0.1:0", "[::1]:0"] {
        for trust in [&["--insecure"][..], &with_key] {
            let receiver = Receiver::start(bind, trust);
            let asked = [&[receiver.address()][..], &GENTLE_UDP].concat();
            check_udp(&measure(&[&asked[..], &SHORT, trust].concat()));
        }
    }
}

#[test]
fn a_receiver_on_all_addresses_serves_both_versions_of_ip() {
    let receiver = Receiver::start("[::]:0", &["--insecure"]);
    for host in [
        format!("127.0.0.1:{}", receiver.port()),
        format!("[::1]:{}", receiver.port()),
    ] {
        let asked = [&[host.as_str()][..], &GENTLE_UDP, &["--insecure"]].concat();
        check_udp(&measure(&[&asked[..], &SHORT].concat()));
    }
}

#[test]
fn udp_crosses_the_other_way_and_both_ways() {
    let receiver = Receiver::start("127.0.0.1:0", &["--insecure"]);
    let asked = [&[receiver.address()][..], &GENTLE_UDP, &["--insecure"]].concat();
    check_udp(&measure(&[&asked[..], &SHORT, &["--reverse"]].concat()));
    let both = measure(&[&asked[..], &SHORT, &["--both"]].concat());
    check_sent(&both, 400.0);
    let directions: Vec<_> = both["flows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|flow| &flow["direction"])
        .collect();
    assert_eq!(directions, ["forward", "reverse"]);
}

#[test]
fn tcp_crosses_in_all_directions() {
    let key = key_file("tcp");
    let trust = ["--key-file", key.path()];
    let receiver = Receiver::start("[::1]:0", &trust);
    let asked = [
        receiver.address(),
        "--tcp",
        "--rate",
        "20Mbit",
        "--streams",
        "2",
    ];
    for direction in [&[][..], &["--reverse"], &["--both"]] {
        let report = measure(&[&asked[..], &SHORT, &trust, direction].concat());
        assert!(number(&report, "throughput_bits_per_second") > 1e6);
        assert!(number(&report, "sent_bits_per_second") > 1e6);
        assert!(report["round_trip"]["p50"].as_i64().is_some());
        assert!(report["sent_packets_per_second"].is_null());
    }
}

#[test]
fn a_receiver_for_one_session_ends_after_it() {
    let mut receiver = Receiver::start("127.0.0.1:0", &["--insecure", "--once"]);
    let asked = [&[receiver.address()][..], &GENTLE_UDP, &["--insecure"]].concat();
    check_udp(&measure(&[&asked[..], &SHORT].concat()));
    assert_eq!(receiver.event()["event"], "began");
    assert_eq!(receiver.event()["event"], "ended");
    assert_eq!(receiver.wait(), Some(0));
}

#[test]
fn echo_requests_are_answered_by_the_system() {
    let receiver = Receiver::start("127.0.0.1:0", &["--insecure"]);
    let asked = [
        receiver.address(),
        "--icmp",
        "--rate",
        "100pps",
        "--insecure",
        "--json",
    ];
    let outcome = send(&[&asked[..], &SHORT].concat());
    if outcome.errors.contains("not permitted") {
        return;
    }
    let report: Value = serde_json::from_str(&outcome.output).unwrap();
    check_sent(&report, 100.0);
    assert!(number(&report, "received_packets_per_second") <= 100.0);
    assert!(report["round_trip"]["p50"].as_i64().unwrap() > 0);
}

#[test]
fn transactions_messages_profiles_and_modes_are_measured() {
    let receiver = Receiver::start("127.0.0.1:0", &["--insecure"]);
    let go =
        |kind: &[&str]| measure(&[&[receiver.address(), "--insecure"], &SHORT[..], kind].concat());
    for kind in [
        &["--tcp", "--request-response", "64,1000"][..],
        &["--udp", "--request-response"],
        &["--tcp", "--connect-request-response"],
    ] {
        let report = go(kind);
        assert!(number(&report, "transactions_per_second") > 0.0);
        assert!(report["round_trip"]["p50"].as_i64().unwrap() > 0);
    }
    let messages = go(&["--tcp", "--rate", "100pps", "--payload", "100"]);
    let rate = number(&messages, "sent_packets_per_second");
    let sent = &messages["flows"][0]["client"]["flow"]["sent"]["messages"];
    let is_on_time = number(sent, "behind") == 0.0;
    assert!(rate == 100.0 || (rate > 0.0 && rate < 100.0 && !is_on_time));
    let call = go(&["--profile", "voip-g711"]);
    assert!(call["voice"]["mos"].as_f64().unwrap() > 1.0);
    let trains = go(&[
        "--udp",
        "--burst",
        "8",
        "--every",
        "50ms",
        "--mode",
        "per-packet",
    ]);
    check_sent(&trains, 160.0);
    assert_eq!(trains["mode"]["kind"], "per_packet");
}

#[test]
fn a_log_holds_what_was_sent() {
    let path = std::env::temp_dir().join(format!("tbnode-{}.parquet", std::process::id()));
    let receiver = Receiver::start("127.0.0.1:0", &["--insecure"]);
    let log = path.to_str().unwrap();
    let asked = [&[receiver.address()][..], &GENTLE_UDP, &["--insecure"]].concat();
    check_udp(&measure(&[&asked[..], &SHORT, &["--log", log]].concat()));
    assert!(std::fs::read(&path).unwrap().starts_with(b"PAR1"));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn an_interrupted_run_tells_what_was_measured() {
    let mut receiver = Receiver::start("127.0.0.1:0", &["--insecure"]);
    for kind in [
        &["--udp", "--rate", "200pps"][..],
        &["--tcp", "--rate", "20Mbit", "--reverse"],
    ] {
        let address = receiver.address().to_owned();
        let asked = [
            &address,
            "--insecure",
            "--json",
            "--seconds",
            "30",
            "--warm-up",
            "0s",
        ];
        let outcome = interrupted(&[&asked[..], kind].concat(), &mut receiver);
        assert_eq!(outcome.code, 130, "{}", outcome.errors);
        let report: Value = serde_json::from_str(&outcome.output).unwrap();
        assert_eq!(report["interrupted"], true);
        assert!(number(&report, "measured_seconds") < 30.0);
        assert!(number(&report, "throughput_bits_per_second") > 0.0);
    }
}

#[test]
fn a_receiver_that_is_told_to_end_lets_its_client_know() {
    let mut receiver = Receiver::start("127.0.0.1:0", &["--insecure"]);
    let asked = [
        receiver.address(),
        "--insecure",
        "--json",
        "--seconds",
        "30",
        "--udp",
        "--rate",
        "200pps",
    ];
    let client = spawn(&asked);
    assert_eq!(receiver.event()["event"], "began");
    std::thread::sleep(std::time::Duration::from_secs(2));
    receiver.interrupt();
    let outcome = finish(client);
    assert_eq!(outcome.code, 130, "{}", outcome.errors);
    assert_eq!(receiver.wait(), Some(0));
}
