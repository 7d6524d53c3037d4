//! Ready profiles: what applications send.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::error::TrafficError;
use crate::process::departures::Departures;
use crate::process::located::{Text, TextError};
use crate::process::plan::Plan;
use crate::process::sizes::Sizes;
use crate::process::transport::Transport;
use crate::voice::Codec;

/// The one truth for the engine and the laboratory.
const BUNDLED: &str = include_str!("../../../../src/tunnelbench/load/profiles.toml");

static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    parse(BUNDLED).unwrap_or_else(|error| panic!("the profiles of the engine: {error}"))
});

/// The traffic of an application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Such as `voip-g711`.
    pub name: String,
    /// For people.
    pub title: String,
    /// Where its numbers come from.
    pub source: String,
    /// What carries it.
    pub transport: Transport,
    /// When its datagrams or messages depart; none where the profile has sizes only.
    pub departures: Option<Departures>,
    /// How long they are.
    pub sizes: Sizes,
    /// How a call is rated that sounds like this; none where it is no voice.
    pub codec: Option<Codec>,
}

/// All profiles, in the order of the file.
#[must_use]
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}

/// The profile of this name.
///
/// # Errors
/// [`TrafficError::Invalid`] that names all profiles where there is none of this name.
pub fn profile(name: &str) -> Result<&'static Profile, TrafficError> {
    profiles()
        .iter()
        .find(|profile| profile.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = profiles()
                .iter()
                .map(|profile| profile.name.as_str())
                .collect();
            TrafficError::Invalid(format!(
                "there is no profile `{name}`; there are {}",
                names.join(", ")
            ))
        })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    profile: Vec<Spanned<Profile>>,
}

fn parse(text: &str) -> Result<Vec<Profile>, TextError> {
    let text = Text(text);
    let file: File = text.parse()?;
    for profile in &file.profile {
        check(profile.get_ref())
            .map_err(|reason| text.refused_at(&profile.get_ref().name, profile, &reason))?;
    }
    Ok(file.profile.into_iter().map(Spanned::into_inner).collect())
}

fn check(profile: &Profile) -> Result<(), TrafficError> {
    let departures = profile.departures.as_ref().unwrap_or(&Departures::Max);
    Plan::new(departures, &profile.sizes, profile.transport.sizes(), 0).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::process::Distribution;

    #[test]
    fn every_bundled_profile_is_sound_and_has_a_name_of_its_own() {
        let names: HashSet<&str> = profiles()
            .iter()
            .map(|profile| profile.name.as_str())
            .collect();
        assert_eq!(names.len(), profiles().len());
        for profile in profiles() {
            let kebab =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            assert!(profile.name.bytes().all(kebab), "{}", profile.name);
            assert_eq!(profile.codec.is_some(), profile.name.starts_with("voip-"));
            assert_eq!(
                profile.departures.is_none(),
                profile.name.starts_with("imix")
            );
        }
    }

    /// The bit rates of the codecs: what is left of a packet without its RTP header, each packet time.
    #[test]
    fn voice_has_the_rate_of_its_codec() {
        for (name, kilobits) in [
            ("voip-g711", 64.0),
            ("voip-g711-10ms", 64.0),
            ("voip-g729", 8.0),
            ("voip-g729-30ms", 8.0),
            ("voip-g723", 6.4),
        ] {
            for (variant, header) in [("", 12.0), ("-crtp", 2.0)] {
                let profile = profile(&format!("{name}{variant}")).unwrap();
                let Distribution::Constant { value } = profile.sizes.0 else {
                    panic!("{name} varies in size");
                };
                let mut timetable = profile.departures.as_ref().unwrap().timetable(0).unwrap();
                timetable.take(0);
                let interval = timetable.take(0) as f64;
                let rate = (value - header) * 8e6 / interval;
                assert!((rate - kilobits).abs() < 1e-6, "{name}{variant}: {rate}");
            }
        }
    }

    #[test]
    fn an_unknown_profile_is_an_error_that_names_the_known_ones() {
        let problem = profile("voip-g722").unwrap_err().to_string();
        assert!(
            problem.contains("no profile `voip-g722`; there are voip-g711,"),
            "{problem}"
        );
    }

    #[test]
    fn errors_say_where() {
        let text = "\n[[profile]]\nname = 'a'\ntitle = ''\nsource = ''\ntransport = 'udp'\nsizes = { kind = 'constant', value = 3 }\n";
        let error = parse(text).unwrap_err();
        assert_eq!((error.line, error.key.as_str()), (2, "a"));
        assert!(
            error.message.contains("12 to 65507 bytes, not 3"),
            "{error}"
        );
        let error = parse(&text.replace("'udp'", "'sctp'")).unwrap_err();
        assert_eq!(
            (error.line, error.key.as_str()),
            (6, "profile[0].transport")
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_text_is_parsed_or_refused(text: String) {
            let _ = parse(&text);
        }

        #[test]
        fn a_damaged_file_is_parsed_or_refused(at in 0..BUNDLED.len(), inserted in "[ -~\n]{0,6}", cut in 0_usize..20) {
            let end = (at + cut).min(BUNDLED.len());
            let _ = parse(&format!("{}{inserted}{}", &BUNDLED[..at], &BUNDLED[end..]));
        }
    }
}
