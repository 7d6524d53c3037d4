//! Checks the flows of a script.

use std::io;
use std::ops::RangeInclusive;

use toml::Spanned;

use super::{Flow, WrittenFlow};
use crate::job::Content;
use crate::process::departures::Departures;
use crate::process::distribution::Distribution;
use crate::process::located::{Text, TextError};
use crate::process::plan::Plan;
use crate::process::profile::{Profile, profile};
use crate::process::sizes::Sizes;
use crate::process::transport::Transport;
use crate::schedule::LONGEST_JOB;

const STREAMS: RangeInclusive<u16> = 1..=128;

/// A written flow while it is checked.
pub(super) struct Reading<'a, Read> {
    text: &'a Text<'a>,
    index: usize,
    written: &'a WrittenFlow,
    whole: &'a Spanned<WrittenFlow>,
    read: &'a Read,
}

impl<'a, Read: Fn(&str) -> io::Result<String>> Reading<'a, Read> {
    pub fn new(
        text: &'a Text<'a>,
        index: usize,
        whole: &'a Spanned<WrittenFlow>,
        read: &'a Read,
    ) -> Self {
        Self {
            text,
            index,
            written: whole.get_ref(),
            whole,
            read,
        }
    }

    pub fn flow(&self) -> Result<Flow, TextError> {
        let written = self.written;
        let profile = self.profile()?;
        let transport = written
            .transport
            .or(profile.map(|profile| profile.transport))
            .ok_or_else(|| self.missing("`transport` or `profile`"))?;
        let flow = Flow {
            name: written.name.clone().unwrap_or_else(|| match profile {
                Some(profile) => format!("{}-{}", profile.name, self.index + 1),
                None => format!("flow-{}", self.index + 1),
            }),
            transport,
            reverse: written.reverse,
            departures: self.departures(profile)?,
            sizes: self.sizes(profile, transport)?,
            // Flows of one script must not be in step with each other.
            seed: written.seed.unwrap_or(self.index as u64 + 1),
            delay: match &written.delay {
                Some(seconds) => self.duration("delay", seconds, 0.0)?,
                None => 0,
            },
            length: match &written.seconds {
                Some(seconds) => Some(self.duration("seconds", seconds, 1e-9)?),
                None => None,
            },
            content: written.content.clone().unwrap_or(Content::Random),
            socket: written.socket,
            streams: self.streams(transport)?,
            codec: profile.and_then(|profile| profile.codec),
        };
        // What is left to refuse is a rate that departures and sizes make together.
        Plan::new(&flow.departures, &flow.sizes, transport.sizes(), flow.seed)
            .map_err(|reason| self.text.refused_at(&self.path(), self.whole, &reason))?;
        Ok(flow)
    }

    fn profile(&self) -> Result<Option<&'static Profile>, TextError> {
        let Some(name) = &self.written.profile else {
            return Ok(None);
        };
        profile(name.get_ref())
            .map(Some)
            .map_err(|reason| self.text.refused_at(&self.key("profile"), name, &reason))
    }

    fn departures(&self, profile: Option<&Profile>) -> Result<Departures, TextError> {
        match (&self.written.departures, &self.written.intervals_file) {
            (Some(_), Some(file)) => Err(self.both("intervals_file", file, "departures")),
            (Some(departures), None) => {
                departures.get_ref().validate().map_err(|reason| {
                    self.text
                        .refused_at(&self.key("departures"), departures, &reason)
                })?;
                Ok(departures.get_ref().clone())
            }
            (None, Some(file)) => Ok(Departures::Process {
                interval: self.listed("intervals_file", file)?,
            }),
            (None, None) => profile
                .and_then(|profile| profile.departures.clone())
                .ok_or_else(|| self.missing("`departures` or `intervals_file`")),
        }
    }

    fn sizes(&self, profile: Option<&Profile>, transport: Transport) -> Result<Sizes, TextError> {
        let carried = transport.sizes();
        match (&self.written.sizes, &self.written.sizes_file) {
            (Some(_), Some(file)) => Err(self.both("sizes_file", file, "sizes")),
            (Some(sizes), None) => {
                sizes
                    .get_ref()
                    .validate(&carried)
                    .map_err(|reason| self.text.refused_at(&self.key("sizes"), sizes, &reason))?;
                Ok(sizes.get_ref().clone())
            }
            (None, Some(file)) => {
                let sizes = Sizes(self.listed("sizes_file", file)?);
                sizes.validate(&carried).map_err(|reason| {
                    self.text.refused_at(&self.key("sizes_file"), file, &reason)
                })?;
                Ok(sizes)
            }
            (None, None) => profile
                .map(|profile| profile.sizes.clone())
                .ok_or_else(|| self.missing("`sizes`, `sizes_file` or `profile`")),
        }
    }

    /// The numbers of a file, one in each line.
    fn listed(&self, key: &str, file: &Spanned<String>) -> Result<Distribution, TextError> {
        let name = file.get_ref();
        let wrong = |message| self.text.error_at(&self.key(key), file, message);
        let content =
            (self.read)(name).map_err(|failure| wrong(format!("cannot read {name}: {failure}")))?;
        let values = content
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(index, line)| {
                line.trim().parse::<f64>().map_err(|_| {
                    wrong(format!(
                        "line {} of {name} is not a number: `{}`",
                        index + 1,
                        line.trim().chars().take(40).collect::<String>()
                    ))
                })
            })
            .collect::<Result<Vec<f64>, TextError>>()?;
        let listed = Distribution::Listed { values };
        listed
            .validate()
            .map_err(|reason| self.text.refused_at(&self.key(key), file, &reason))?;
        Ok(listed)
    }

    fn duration(&self, key: &str, seconds: &Spanned<f64>, least: f64) -> Result<u64, TextError> {
        let longest = LONGEST_JOB as f64 / 1e9;
        let value = *seconds.get_ref();
        if (least..=longest).contains(&value) {
            return Ok((value * 1e9).round() as u64);
        }
        let message = format!("a flow's time is up to {longest} seconds, not {value}");
        Err(self.text.error_at(&self.key(key), seconds, message))
    }

    fn streams(&self, transport: Transport) -> Result<u16, TextError> {
        let Some(streams) = &self.written.streams else {
            return Ok(1);
        };
        let wrong = |message: String| self.text.error_at(&self.key("streams"), streams, message);
        if transport != Transport::Tcp {
            return Err(wrong(
                "only a TCP flow has streams; write more flows".into(),
            ));
        }
        if STREAMS.contains(streams.get_ref()) {
            return Ok(*streams.get_ref());
        }
        Err(wrong(format!(
            "a flow has {} to {} streams, not {}",
            STREAMS.start(),
            STREAMS.end(),
            streams.get_ref()
        )))
    }

    fn path(&self) -> String {
        format!("flow[{}]", self.index)
    }

    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.path())
    }

    fn missing(&self, keys: &str) -> TextError {
        self.text
            .error_at(&self.path(), self.whole, format!("the flow needs {keys}"))
    }

    fn both(&self, key: &str, value: &Spanned<String>, other: &str) -> TextError {
        let message = format!("give either this or `{other}`");
        self.text.error_at(&self.key(key), value, message)
    }
}
