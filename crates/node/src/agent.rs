//! Reads calls off the stream, carries them out, and ends the node when the stream ends.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_bytes::ByteBuf;
use tunnelbench_traffic as traffic;

use crate::capture::Capture;
use crate::counters;
use crate::frame::{self, Incoming};
use crate::network;
use crate::outbox::Outbox;
use crate::process::{Processes, write_file};
use crate::protocol::{Answer, Call, Event, Request};
use crate::window::Reporting;

/// Serves until the stream ends or the orchestrator asks for the end. With a `window`, no more bytes may be on
/// their way here.
///
/// # Errors
/// The stream could not be used.
pub fn serve(stream: File, window: Option<u32>) -> io::Result<()> {
    let outbox = Outbox::new(stream.try_clone()?);
    let mut agent = Agent {
        processes: Processes::new(outbox.clone()),
        captures: HashMap::new(),
        stoppers: Arc::default(),
        last_number: 0,
        outbox,
    };
    agent.outbox.report(Event::Ready { window });
    let source: Box<dyn Read> = match window {
        Some(_) => Box::new(Reporting::new(stream, agent.outbox.clone())),
        None => Box::new(stream),
    };
    let mut reader = io::BufReader::with_capacity(64 << 10, source);
    loop {
        match frame::read(&mut reader)? {
            Incoming::End => return Ok(()),
            Incoming::Oversized(length) => agent.outbox.answer(
                None,
                Answer::Error {
                    message: format!(
                        "a message of {length} bytes is too long; the limit is {}",
                        frame::MAXIMUM_LENGTH
                    ),
                },
            ),
            // A nudge; see the client of this stream.
            Incoming::Frame(contents) if contents.is_empty() => {}
            Incoming::Frame(contents) => match rmp_serde::from_slice::<Call>(&contents) {
                Ok(Call {
                    id,
                    request: Request::PowerOff {},
                }) => {
                    agent.outbox.answer(Some(id), Answer::Done {});
                    return Ok(());
                }
                Ok(call) => agent.carry_out(call),
                Err(error) => agent.outbox.answer(
                    None,
                    Answer::Error {
                        message: format!("a message could not be read: {error}"),
                    },
                ),
            },
        }
    }
}

struct Agent {
    processes: Processes,
    captures: HashMap<u32, Capture>,
    stoppers: Arc<Mutex<HashMap<u32, traffic::Stopper>>>,
    last_number: u32,
    outbox: Outbox,
}

impl Agent {
    fn carry_out(&mut self, call: Call) {
        let Call { id, request } = call;
        match request {
            Request::StartTraffic { job } => self.start_traffic(id, *job),
            Request::Input {
                process,
                data,
                close,
            } => self.input(id, process, data, close),
            request => {
                let answer = self
                    .answer(request)
                    .unwrap_or_else(|message| Answer::Error { message });
                self.outbox.answer(Some(id), answer);
            }
        }
    }

    /// Waiting for a program to read must not keep the node from answering others.
    fn input(&self, id: u32, process: u32, data: ByteBuf, close: bool) {
        let (processes, outbox) = (self.processes.clone(), self.outbox.clone());
        thread::spawn(move || {
            outbox.answer(Some(id), done(processes.input(process, &data, close)));
        });
    }

    fn answer(&mut self, request: Request) -> Result<Answer, String> {
        Ok(match request {
            Request::Identify {} => identity(),
            Request::ReadClock {} => Answer::Clock {
                nanoseconds: counters::realtime(),
            },
            Request::Spawn(spawn) => Answer::Spawned {
                process: self.processes.spawn(&spawn)?,
            },
            Request::TakeOutput { process, bytes } => {
                self.processes.take_output(process, bytes);
                Answer::Done {}
            }
            Request::Signal { process, signal } => done(self.processes.signal(process, signal)),
            Request::Resize {
                process,
                rows,
                columns,
            } => done(self.processes.resize(process, rows, columns)),
            Request::ReadFile {
                path,
                offset,
                limit,
            } => read_file(&path, offset, limit)?,
            Request::RemoveFile { path } => done(
                fs::remove_file(&path)
                    .map_err(|error| format!("{path} could not be removed: {error}")),
            ),
            Request::WriteFile(file) => done(write_file(&file)),
            Request::ConfigureNetwork { operations } => done(network::configure(&operations)),
            Request::ReadCounters {} => Answer::Counters(counters::read()),
            Request::ReadInterfaces {} => Answer::Interfaces {
                interfaces: counters::read_interfaces(),
            },
            Request::StartCapture {
                interface,
                markers,
                keep,
            } => {
                let started = Capture::start(&interface, &markers, keep)?;
                let capture = self.number();
                self.captures.insert(capture, started);
                Answer::CaptureStarted { capture }
            }
            Request::StopCapture { capture } => {
                let started = self
                    .captures
                    .remove(&capture)
                    .ok_or_else(|| format!("there is no capture {capture}"))?;
                Answer::Captured(started.finish()?)
            }
            Request::StopTraffic { traffic } => {
                // A job that has ended by itself needs no stop.
                if let Some(stopper) = lock(&self.stoppers).get(&traffic) {
                    stopper.stop();
                }
                Answer::Done {}
            }
            Request::StartTraffic { .. } | Request::Input { .. } | Request::PowerOff {} => {
                return Err("this request is carried out elsewhere".into());
            }
        })
    }

    /// Opening connections may take a while, in which the node answers others.
    fn start_traffic(&mut self, id: u32, job: traffic::Job) {
        let number = self.number();
        let (stoppers, outbox) = (Arc::clone(&self.stoppers), self.outbox.clone());
        thread::spawn(move || {
            let running = match traffic::start(job) {
                Ok(running) => running,
                Err(error) => {
                    outbox.answer(Some(id), not_started(&error));
                    return;
                }
            };
            lock(&stoppers).insert(number, running.stopper());
            let port = running.bound().map(|address| address.port());
            outbox.answer(
                Some(id),
                Answer::TrafficStarted {
                    traffic: number,
                    port,
                },
            );
            let finished = running.finish();
            lock(&stoppers).remove(&number);
            outbox.report(match finished {
                Ok(outcome) => Event::TrafficFinished {
                    traffic: number,
                    outcome: Box::new(outcome),
                },
                Err(error) => Event::TrafficFailed {
                    traffic: number,
                    message: error.to_string(),
                },
            });
        });
    }

    fn number(&mut self) -> u32 {
        self.last_number += 1;
        self.last_number
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn not_started(error: &traffic::TrafficError) -> Answer {
    match error {
        traffic::TrafficError::StartPassed { by } => Answer::StartPassed { by: *by },
        other => Answer::Error {
            message: other.to_string(),
        },
    }
}

fn done(result: Result<(), String>) -> Answer {
    match result {
        Ok(()) => Answer::Done {},
        Err(message) => Answer::Error { message },
    }
}

fn read_file(path: &str, offset: u64, limit: u64) -> Result<Answer, String> {
    let limit = limit.min(frame::MAXIMUM_LENGTH as u64 - 1024);
    let read = || -> io::Result<Vec<u8>> {
        let mut data = Vec::new();
        let mut file = File::open(path)?;
        // What can't be sought, such as a pipe, can still be read from its start.
        if offset > 0 {
            file.seek(SeekFrom::Start(offset))?;
        }
        file.take(limit + 1).read_to_end(&mut data)?;
        Ok(data)
    };
    let mut data = read().map_err(|error| format!("{path} could not be read: {error}"))?;
    let truncated = data.len() as u64 > limit;
    data.truncate(limit as usize);
    Ok(Answer::Contents {
        data: ByteBuf::from(data),
        truncated,
    })
}

fn identity() -> Answer {
    let names = nix::sys::utsname::uname().ok();
    let text =
        |name: Option<&std::ffi::OsStr>| name.unwrap_or_default().to_string_lossy().into_owned();
    Answer::Identity {
        version: env!("CARGO_PKG_VERSION").into(),
        kernel: text(names.as_ref().map(|names| names.release())),
        kernel_version: text(names.as_ref().map(|names| names.version())),
        machine: text(names.as_ref().map(|names| names.machine())),
        processor: processor(),
        process_id: std::process::id(),
    }
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim().eq_ignore_ascii_case("model name"))
        .map_or_else(String::new, |(_, name)| name.trim().to_owned())
}
