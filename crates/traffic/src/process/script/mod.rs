//! Several flows from one file: the script of `tbnode send --script`.

mod reading;

use std::io;

use serde::Deserialize;
use toml::Spanned;

use self::reading::Reading;
use crate::job::{Content, SocketOptions};
use crate::process::departures::Departures;
use crate::process::located::{Text, TextError};
use crate::process::sizes::Sizes;
use crate::process::transport::Transport;
use crate::voice::Codec;

/// The most flows of one script.
const MOST_FLOWS: usize = 128;

/// One flow of a script, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// What it is called in results.
    pub name: String,
    /// What carries it.
    pub transport: Transport,
    /// Whether the other end sends.
    pub reverse: bool,
    /// When its datagrams or messages depart.
    pub departures: Departures,
    /// How long they are.
    pub sizes: Sizes,
    /// Where its random numbers begin.
    pub seed: u64,
    /// From the start of the script to that of the flow, ns.
    pub delay: u64,
    /// How long it sends, ns; none for as long as the command says.
    pub length: Option<u64>,
    /// What its payload is made of.
    pub content: Content,
    /// How its sockets are set up.
    pub socket: SocketOptions,
    /// TCP connections side by side.
    pub streams: u16,
    /// How it is rated as a voice call; none for what is no voice.
    pub codec: Option<Codec>,
}

/// The flows of a script. `read` gives the text of a file that the script names.
///
/// # Errors
/// The first [`TextError`]: wrong TOML, unknown keys, wrong types, flows that can't be sent, files that can't be read.
pub fn flows(
    script: &str,
    read: impl Fn(&str) -> io::Result<String>,
) -> Result<Vec<Flow>, TextError> {
    let text = Text(script);
    let written: Script = text.parse()?;
    if !(1..=MOST_FLOWS).contains(&written.flow.len()) {
        return Err(TextError {
            line: 1,
            key: "flow".into(),
            message: format!(
                "a script has 1 to {MOST_FLOWS} flows, not {}",
                written.flow.len()
            ),
        });
    }
    let flows = written.flow.iter().enumerate();
    flows
        .map(|(index, written)| Reading::new(&text, index, written, &read).flow())
        .collect()
}

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    flow: Vec<Spanned<WrittenFlow>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFlow {
    name: Option<String>,
    profile: Option<Spanned<String>>,
    transport: Option<Transport>,
    #[serde(default)]
    reverse: bool,
    departures: Option<Spanned<Departures>>,
    intervals_file: Option<Spanned<String>>,
    sizes: Option<Spanned<Sizes>>,
    sizes_file: Option<Spanned<String>>,
    seed: Option<u64>,
    delay: Option<Spanned<f64>>,
    seconds: Option<Spanned<f64>>,
    content: Option<Content>,
    #[serde(default)]
    socket: SocketOptions,
    streams: Option<Spanned<u16>>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::process::{Distribution, profile};

    const SCRIPT: &str = r#"
[[flow]]
profile = "voip-g711-vad"
seed = 7
delay = 0.5
seconds = 20
socket = { dscp = 46 }

[[flow]]
name = "trains"
transport = "udp"
departures = { kind = "bursts", datagrams = 32, interval = 10_000_000 }
sizes = { kind = "uniform", low = 64, high = 1400 }
content = { kind = "pattern", data = "abc" }
reverse = true

[[flow]]
transport = "tcp"
departures = { kind = "max" }
sizes_file = "sizes.txt"
streams = 4
"#;

    fn read(name: &str) -> io::Result<String> {
        match name {
            "sizes.txt" => Ok("100\n1400.5\n\n 20 \n".into()),
            "words.txt" => Ok("100\nmany\n".into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn problem(script: &str) -> String {
        flows(script, read).unwrap_err().to_string()
    }

    #[test]
    fn a_script_says_what_each_flow_sends() {
        let flows = flows(SCRIPT, read).unwrap();
        let voice = profile("voip-g711-vad").unwrap();
        let expected = Flow {
            name: "voip-g711-vad-1".into(),
            transport: Transport::Udp,
            reverse: false,
            departures: voice.departures.clone().unwrap(),
            sizes: voice.sizes.clone(),
            seed: 7,
            delay: 500_000_000,
            length: Some(20_000_000_000),
            content: Content::Random,
            socket: SocketOptions {
                dscp: Some(46),
                ..SocketOptions::default()
            },
            streams: 1,
            codec: Some(Codec::G711Concealed),
        };
        assert_eq!(flows[0], expected);
        let trains = &flows[1];
        assert_eq!(
            (trains.name.as_str(), trains.seed, trains.reverse),
            ("trains", 2, true)
        );
        assert_eq!((trains.delay, trains.length, trains.codec), (0, None, None));
        assert!(matches!(&trains.content, Content::Pattern { data } if data.as_slice() == b"abc"));
        let listed = Sizes(Distribution::Listed {
            values: vec![100.0, 1_400.5, 20.0],
        });
        assert_eq!((flows[2].name.as_str(), flows[2].streams), ("flow-3", 4));
        assert_eq!(flows[2].sizes, listed);
    }

    #[test]
    fn what_is_given_beside_a_profile_goes_before_it() {
        let script = "[[flow]]\nprofile = 'imix'\ntransport = 'udp'\ndepartures = { kind = 'max' }";
        assert_eq!(flows(script, read).unwrap()[0].departures, Departures::Max);
    }

    #[test]
    fn every_profile_can_be_a_flow() {
        for profile in crate::process::profiles() {
            let rate = if profile.departures.is_none() {
                "departures = { kind = 'packets_per_second', value = 100 }"
            } else {
                ""
            };
            let script = format!("[[flow]]\nprofile = '{}'\n{rate}", profile.name);
            assert!(flows(&script, read).is_ok(), "{}", profile.name);
        }
    }

    #[test]
    fn each_problem_names_its_line_and_key() {
        for (script, expected) in [
            ("", "line 1: flow: a script has 1 to 128 flows, not 0"),
            (
                "[[flow]]\nprofile = 'voip'",
                "line 2: flow[0].profile: there is no profile `voip`; there are",
            ),
            (
                "\n[[flow]]\nprofile = 'imix'",
                "line 2: flow[0]: the flow needs `departures` or",
            ),
            (
                "[[flow]]\nseed = 1",
                "line 1: flow[0]: the flow needs `transport` or `profile`",
            ),
            (
                "[[flow]]\nprofile = 'dns'\nspeed = 1",
                "line 3: flow[0].speed: unknown field `speed`, expected one of",
            ),
            (
                "[[flow]]\nprofile = 'dns'\nseed = -1",
                "line 3: flow[0].seed: invalid value: integer `-1`",
            ),
            (
                "[[flow]]\nprofile = 'dns'\ndelay = -1.0",
                "line 3: flow[0].delay: a flow's time is up to 3600 seconds, not -1",
            ),
            (
                "[[flow]]\nprofile = 'dns'\nseconds = nan",
                "line 3: flow[0].seconds: a flow's time",
            ),
            (
                "[[flow]]\nprofile = 'dns'\nstreams = 2",
                "line 3: flow[0].streams: only a TCP flow has streams",
            ),
            (
                "[[flow]]\nprofile = 'dns'\nsizes_file = 'none.txt'",
                "line 3: flow[0].sizes_file: cannot read none.txt",
            ),
            (
                "[[flow]]\nprofile = 'dns'\nsizes_file = 'words.txt'",
                "line 2 of words.txt is not a number: `many`",
            ),
            (
                "[[flow]]\nprofile = 'dns'\nsizes = { kind = 'constant', value = 9 }",
                "line 3: flow[0].sizes: the payload has 12 to 65507 bytes, not 9",
            ),
            (
                "[[flow]]\nprofile = 'dns'\nsizes = { kind = 'normal', mean = 9 }",
                "line 3: flow[0].sizes: missing field `deviation`",
            ),
            (
                "[[flow]]\nprofile = 'dns'\n\ndepartures = { kind = 'packets_per_second', value = 0 }",
                "line 4: flow[0].departures: the rate is 0",
            ),
            (
                "[[flow]]\nprofile = 'dns'\ndepartures = { kind = 'bits_per_second', value = 1_000_000_000_000_000 }",
                "line 1: flow[0]: these departures come to more than",
            ),
            (
                "[[flow]]\nprofile = 'dns'\nsizes = 3",
                "line 3: flow[0].sizes",
            ),
            ("[[flow]\nprofile = 'dns'", "line 1: "),
            (
                "[[flow]]\nsizes = { kind = 'constant', value = 100 }\nsizes_file = 'sizes.txt'\nprofile = 'dns'",
                "line 3: flow[0].sizes_file: give either this or `sizes`",
            ),
        ] {
            let found = problem(script);
            assert!(
                found.contains(expected),
                "{script}\nsays: {found}\nnot:  {expected}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text: String) {
            let _ = flows(&text, read);
        }

        #[test]
        fn a_damaged_script_is_parsed_or_refused(
            at in 0..SCRIPT.len(), inserted in "[ -~\n]{0,6}", cut in 0_usize..20,
        ) {
            let end = (at + cut).min(SCRIPT.len());
            let _ = flows(&format!("{}{inserted}{}", &SCRIPT[..at], &SCRIPT[end..]), read);
        }

        #[test]
        fn any_numbers_are_taken_or_refused(value: f64, other: f64, count in 0_i64..i64::MAX) {
            let script = format!(
                "[[flow]]\ntransport = 'udp'\nseconds = {value}\nsizes = {{ kind = 'gamma', shape = {other}, scale = {value} }}\n\
                 departures = {{ kind = 'talk', interval = {count}, talk = {{ kind = 'normal', mean = {value}, deviation = {other} }}, silence = {{ kind = 'cauchy', location = {other}, scale = {value} }} }}"
            );
            if let Ok(flows) = flows(&script, read) {
                let flow = &flows[0];
                let mut plan = crate::process::Plan::new(&flow.departures, &flow.sizes, flow.transport.sizes(), 1).unwrap();
                let dues: Vec<Option<u64>> = (0..50).map(|_| plan.next().due).collect();
                prop_assert!(dues.is_sorted());
            }
        }
    }
}
