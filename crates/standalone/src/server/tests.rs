//! The receiver against clients that mean no good, or cannot help it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tunnelbench_traffic::Outcome;
use tunnelbench_traffic::job::{Content, SendMode, SocketOptions};
use tunnelbench_traffic::outcome::UdpReceived;
use tunnelbench_traffic::process::{Departures, Sizes};

use super::*;
use crate::channel::Channel;
use crate::frames::{self, Decoder};
use crate::key::Key;
use crate::message::{Answer, Hello, LONGEST_ANSWER, Place, Request};
use crate::offer::{Direction, Flow, Traffic, UdpTraffic};
use crate::rendezvous::meet;
use crate::secrecy::Handshake;

/// A receiver on loopback, which ends when this is dropped.
struct Host {
    address: SocketAddr,
    trust: Trust,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    fn start(trust: Trust, highest_rate: Option<u64>) -> Self {
        let ending = Arc::new(AtomicBool::new(false));
        let (sender, listening) = channel();
        let observer: Observer = Box::new(move |event| {
            if let Event::Listening(address) = event {
                sender.send(*address).unwrap();
            }
        });
        let keyed = trust != Trust::Anybody;
        let limits = Limits {
            longest: Duration::from_secs(5),
            highest_rate,
            keyed,
        };
        let house = House::new(
            trust.clone(),
            limits,
            1,
            false,
            Arc::clone(&ending),
            observer,
        );
        let thread = thread::spawn(move || house.receive(([127, 0, 0, 1], 0).into()).unwrap());
        Self {
            address: listening.recv().unwrap(),
            trust,
            ending,
            thread: Some(thread),
        }
    }

    fn open() -> Self {
        Self::start(Trust::Anybody, None)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream
    }

    /// A client that knows how to behave.
    fn client(&self) -> Client {
        let channel =
            Channel::initiate(self.connect(), &self.trust, LONGEST_ANSWER, soon()).unwrap();
        let mut client = Client {
            channel,
            receiver: self.address,
        };
        assert!(matches!(
            client.ask(&Request::Hello(Hello::own())),
            Answer::Hello(_)
        ));
        client
    }

    /// What a client agrees on as soon as the session of another that has vanished frees its place.
    fn accepted_when_free(&self, offer: &Offer) -> Vec<Option<u64>> {
        let until = soon();
        loop {
            let offer = offer.clone();
            match self.client().ask(&Request::Offer { offer }) {
                Answer::Accepted { paces, .. } => return paces,
                Answer::Refused(refusal) if Instant::now() < until => {
                    assert_eq!(refusal.why, Why::Busy);
                }
                answer => panic!("not accepted: {answer:?}"),
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Client {
    channel: Channel,
    receiver: SocketAddr,
}

impl Client {
    fn answer(&mut self) -> Answer {
        self.channel
            .receive(soon())
            .unwrap()
            .expect("the receiver is silent")
    }

    fn ask(&mut self, request: &Request) -> Answer {
        self.channel.send(request).unwrap();
        self.answer()
    }

    fn refusal(&mut self, offer: Offer) -> Refusal {
        match self.ask(&Request::Offer { offer }) {
            Answer::Refused(refusal) => refusal,
            answer => panic!("not refused: {answer:?}"),
        }
    }

    fn accepted(&mut self, offer: Offer) -> (Vec<Place>, Vec<Option<u64>>) {
        match self.ask(&Request::Offer { offer }) {
            Answer::Accepted { places, paces } => (places, paces),
            answer => panic!("not accepted: {answer:?}"),
        }
    }

    /// Agrees on `offer` of one UDP flow, and tells where to send, from where, and with which tag.
    fn begin(&mut self, offer: Offer) -> (SocketAddr, SocketAddr, u16) {
        let (places, _) = self.accepted(offer);
        let rendezvous = places[0].rendezvous.as_ref().unwrap();
        let there = with_port(self.receiver, rendezvous.port);
        let own = meet(
            ([127, 0, 0, 1], 0).into(),
            there,
            &rendezvous.token,
            soon(),
            || false,
        );
        let answer = self.ask(&Request::Start { lead: 1_000_000 });
        assert!(matches!(answer, Answer::Started { .. }), "{answer:?}");
        (there, own.unwrap(), places[0].session as u16)
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

fn offer(direction: Direction, departures: Departures, measure: Duration) -> Offer {
    let traffic = Traffic::Udp(UdpTraffic {
        departures,
        sizes: Sizes::constant(100),
        seed: 1,
        mode: SendMode::PerPacket,
        content: Content::Zeros,
        voice: None,
        socket: SocketOptions::default(),
    });
    Offer {
        warm_up: 0,
        measure: measure.as_nanos() as u64,
        step: 100_000_000,
        flows: vec![Flow {
            name: None,
            direction,
            delay: 0,
            length: None,
            traffic,
        }],
    }
}

fn slow(measure: Duration) -> Offer {
    offer(
        Direction::Forward,
        Departures::PacketsPerSecond { value: 10 },
        measure,
    )
}

const MOMENT: Duration = Duration::from_millis(600);

#[test]
fn a_replayed_conversation_starts_nothing() {
    let trust = Trust::Key(Key::generate().unwrap());
    let host = Host::start(trust.clone(), None);
    let mut recorded = Vec::new();
    let mut say = |stream: &mut TcpStream, bytes: &[u8]| {
        recorded.extend_from_slice(bytes);
        stream.write_all(bytes).unwrap();
    };
    let mut stream = host.connect();
    let mut handshake = Handshake::initiate(&trust);
    let mut first = Vec::new();
    frames::encode(&handshake.write().unwrap(), &mut first);
    say(&mut stream, &first);
    let mut decoder = Decoder::default();
    let answer = loop {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        decoder.feed(&byte);
        if let Some(frame) = decoder.next(100).unwrap() {
            break frame;
        }
    };
    handshake.read(&answer).unwrap();
    let mut sealed = handshake.finish(1_000).unwrap();
    for request in [
        Request::Hello(Hello::own()),
        Request::Offer {
            offer: slow(MOMENT),
        },
    ] {
        say(
            &mut stream,
            &sealed
                .seal(&rmp_serde::to_vec_named(&request).unwrap())
                .unwrap(),
        );
    }
    drop(stream);

    let mut again = host.connect();
    again.write_all(&recorded).unwrap();
    let mut answers = Vec::new();
    // The receiver may reset the connection, because it has not read all of it.
    let _ = again.read_to_end(&mut answers);
    assert!(
        answers.len() <= 2 + answer.len(),
        "{} bytes came back",
        answers.len()
    );
}

#[test]
fn an_oversized_frame_ends_the_conversation_and_no_other() {
    let host = Host::open();
    let mut stream = host.connect();
    stream.write_all(&[0xff, 0xff, 1, 2, 3]).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty());
    host.client();
}

#[test]
fn a_silent_client_keeps_nobody_else_from_being_served() {
    let host = Host::open();
    let silent: Vec<TcpStream> = (0..5).map(|_| host.connect()).collect();
    host.client().accepted(slow(MOMENT));
    drop(silent);
}

#[test]
fn more_connections_than_the_receiver_takes_are_hung_up_on() {
    let host = Host::open();
    let mut many: Vec<TcpStream> = (0..MOST_CONNECTIONS + 8).map(|_| host.connect()).collect();
    let last = many.last_mut().unwrap();
    assert!(matches!(last.read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn one_session_runs_at_a_time_and_a_client_that_vanishes_frees_its_place() {
    let host = Host::open();
    let mut first = host.client();
    first.begin(slow(Duration::from_secs(5)));
    let refusal = host.client().refusal(slow(MOMENT));
    assert_eq!(refusal.why, Why::Busy);
    drop(first);
    host.accepted_when_free(&slow(MOMENT));
}

#[test]
fn what_is_beyond_the_limits_is_refused() {
    let host = Host::start(Trust::Anybody, Some(1_000_000));
    let long = slow(Duration::from_secs(6));
    assert_eq!(host.client().refusal(long).why, Why::Limit);
    for direction in [Direction::Forward, Direction::Reverse] {
        let fast = offer(
            direction,
            Departures::BitsPerSecond { value: 1_000_001 },
            MOMENT,
        );
        let refusal = host.client().refusal(fast);
        assert_eq!(refusal.why, Why::Limit);
        assert!(refusal.reason.contains("1 Mbit/s"), "{}", refusal.reason);
        let paces = host.accepted_when_free(&offer(direction, Departures::Max, MOMENT));
        assert_eq!(paces, [Some(1_000_000)]);
    }
}

#[test]
fn nothing_is_sent_to_who_has_not_proved_to_receive() {
    let host = Host::open();
    let mut client = host.client();
    let reverse = offer(
        Direction::Reverse,
        Departures::PacketsPerSecond { value: 10 },
        MOMENT,
    );
    let (places, _) = client.accepted(reverse);
    let rendezvous = places[0].rendezvous.clone().unwrap();
    let there = with_port(host.address, rendezvous.port);
    // Even with the token, another address is not the client's.
    let elsewhere = ([127, 0, 0, 2], 0).into();
    let short = Instant::now() + Duration::from_millis(300);
    assert!(meet(elsewhere, there, &rendezvous.token, short, || false).is_err());
    let answer = client.ask(&Request::Start { lead: 0 });
    assert!(matches!(answer, Answer::Refused(_)), "{answer:?}");
}

#[test]
fn a_third_partys_datagrams_do_not_count() {
    let host = Host::open();
    let mut client = host.client();
    let (there, own, tag) = client.begin(slow(MOMENT));
    let datagram = |sequence: u32| {
        let mut bytes = vec![0; 100];
        bytes[..4].copy_from_slice(&sequence.to_be_bytes());
        bytes[4..6].copy_from_slice(&tag.to_be_bytes());
        bytes
    };
    let stranger = UdpSocket::bind("127.0.0.2:0").unwrap();
    (0..20).for_each(|sequence| {
        stranger.send_to(&datagram(sequence), there).unwrap();
    });
    thread::sleep(Duration::from_millis(50));
    let socket = UdpSocket::bind(own).unwrap();
    (0..3).for_each(|sequence| {
        socket.send_to(&datagram(sequence), there).unwrap();
    });
    let received = results(&mut client);
    assert_eq!(received.flow.total.packets, 3);
    assert_eq!(received.foreign, 20);
}

#[test]
fn what_is_no_message_ends_the_conversation_and_no_other() {
    let host = Host::open();
    for nonsense in ["not a map", "\u{7f}"] {
        let mut client = host.client();
        client.channel.send(&nonsense).unwrap();
        assert!(client.channel.receive::<Answer>(soon()).is_err());
    }
    let mut client = host.client();
    let answer = client.ask(&Request::Start { lead: 0 });
    assert!(
        matches!(
            answer,
            Answer::Refused(Refusal {
                why: Why::Invalid,
                ..
            })
        ),
        "{answer:?}"
    );
    host.client();
}

fn results(client: &mut Client) -> UdpReceived {
    loop {
        let Answer::Results { mut flows } = client.answer() else {
            continue;
        };
        match flows.remove(0).outcome() {
            Some(Outcome::UdpReceive(received)) => return received.clone(),
            other => panic!("{other:?}"),
        }
    }
}
