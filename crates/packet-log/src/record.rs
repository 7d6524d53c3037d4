//! One packet.

/// What is known of one packet at the place where the log is written. All times are ns of CLOCK_REALTIME there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The flow that the packet belongs to; [`crate::LogHead`] has its name.
    pub flow: u16,
    /// Its number in the flow, from 0, counted without end.
    pub sequence: u64,
    /// When it should have been sent.
    pub intended: i64,
    /// When it was sent; none where the receiver can't know.
    pub sent: Option<i64>,
    /// When it arrived; none in a sender's log.
    pub received: Option<i64>,
    /// Its payload.
    pub bytes: u32,
}
