//! The client's end of the control channel: asks, and waits for the answer it needs.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::channel::{Channel, ChannelError};
use crate::clock::{self, Exchange, Reading};
use crate::error::StandaloneError;
use crate::key::Trust;
use crate::message::{Answer, Hello, LONGEST_ANSWER, Request};

/// How long the receiver may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Exchanges of a reading of the clocks before and after a run.
pub(super) const MANY_EXCHANGES: usize = 20;

/// And during it, where they share the way with the traffic.
pub(super) const FEW_EXCHANGES: usize = 4;

/// An open control channel after the hellos.
pub(crate) struct Conversation {
    channel: Channel,
    own: SocketAddr,
    receiver: SocketAddr,
    /// What came while something else was waited for.
    early: VecDeque<Answer>,
    pub said_to_share_clock: bool,
    pub receivers_version: String,
}

impl Conversation {
    pub fn open(
        receiver: SocketAddr,
        source: Option<IpAddr>,
        trust: &Trust,
    ) -> Result<Self, StandaloneError> {
        let stream = connect(receiver, source).map_err(|failure| {
            let advice = if failure.kind() == io::ErrorKind::ConnectionRefused {
                "; start `tbnode receive` there first"
            } else {
                ""
            };
            StandaloneError::failed(format!("cannot reach {receiver}: {failure}{advice}"))
        })?;
        let own = stream
            .local_addr()
            .map_err(|failure| broken(receiver, &failure.into()))?;
        let until = Instant::now() + PATIENCE;
        let channel = Channel::initiate(stream, trust, LONGEST_ANSWER, until)
            .map_err(|failure| broken(receiver, &failure))?;
        let mut conversation = Self {
            channel,
            own,
            receiver,
            early: VecDeque::new(),
            said_to_share_clock: false,
            receivers_version: String::new(),
        };
        let own_hello = Hello::own();
        conversation.ask(&Request::Hello(own_hello.clone()))?;
        let hello = conversation.answer(|answer| match answer {
            Answer::Hello(hello) => Ok(hello),
            other => Err(other),
        })?;
        hello.check().map_err(StandaloneError::Refused)?;
        conversation.said_to_share_clock =
            !hello.clock.is_empty() && hello.clock == own_hello.clock;
        conversation.receivers_version = hello.tool;
        Ok(conversation)
    }

    /// This end's address of the channel.
    pub fn own(&self) -> SocketAddr {
        self.own
    }

    pub fn ask(&mut self, request: &Request) -> Result<(), StandaloneError> {
        self.channel
            .send(request)
            .map_err(|failure| broken(self.receiver, &failure))
    }

    /// Waits for the answer that `select` takes; others are kept for later.
    pub fn answer<T>(
        &mut self,
        select: impl Fn(Answer) -> Result<T, Answer>,
    ) -> Result<T, StandaloneError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let Some(answer) = self.next(until)? else {
                return Err(broken(self.receiver, &ChannelError::Silent));
            };
            match select(answer) {
                Ok(found) => return Ok(found),
                Err(other) => self.early.push_back(other),
            }
        }
    }

    /// The next answer, if one comes until then.
    pub fn look(&mut self, until: Instant) -> Result<Option<Answer>, StandaloneError> {
        match self.early.pop_front() {
            Some(answer) => Ok(Some(answer)),
            None => self.next(until),
        }
    }

    fn next(&mut self, until: Instant) -> Result<Option<Answer>, StandaloneError> {
        match self
            .channel
            .receive(until)
            .map_err(|failure| broken(self.receiver, &failure))?
        {
            Some(Answer::Refused(refusal)) => Err(StandaloneError::Refused(refusal)),
            answer => Ok(answer),
        }
    }

    /// Reads how far the clocks are apart.
    pub fn read_clocks(&mut self, count: usize) -> Result<Reading, StandaloneError> {
        let mut exchanges = Vec::with_capacity(count);
        for _ in 0..count {
            let sent = clock::now();
            self.ask(&Request::Clock { sent })?;
            let exchange = self.answer(|answer| match answer {
                Answer::Clock {
                    sent: of,
                    received,
                    answered,
                } if of == sent => Ok(Exchange {
                    sent,
                    received,
                    answered,
                    returned: clock::now(),
                }),
                other => Err(other),
            })?;
            exchanges.extend(exchange.check());
        }
        Reading::of(&exchanges).ok_or_else(|| {
            StandaloneError::failed("a clock runs backwards; wait until it is set and try again")
        })
    }
}

fn connect(receiver: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(receiver), Type::STREAM, None)?;
    if let Some(source) = source {
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    socket.connect_timeout(&receiver.into(), PATIENCE)?;
    Ok(socket.into())
}

fn broken(receiver: SocketAddr, failure: &ChannelError) -> StandaloneError {
    StandaloneError::failed(format!(
        "the conversation with {receiver} failed: {failure}"
    ))
}
