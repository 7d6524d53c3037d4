//! How much the receive buffer lost.

use socket2::Socket;

use crate::error::TrafficError;
use crate::schedule::Schedule;
use crate::socket::buffer_drops;

/// Tells the drops in the measured window from those before and after, as exactly as the receiver looks.
#[derive(Default)]
pub(super) struct DropCounter {
    before: Option<u64>,
    up_to_end: Option<u64>,
}

impl DropCounter {
    pub fn look(
        &mut self,
        socket: &Socket,
        now: i64,
        schedule: Schedule,
    ) -> Result<(), TrafficError> {
        let place = match now {
            _ if self.before.is_none() && now >= schedule.measured_from() => &mut self.before,
            _ if self.up_to_end.is_none() && now >= schedule.measured_to() => &mut self.up_to_end,
            _ => return Ok(()),
        };
        let drops = buffer_drops(socket);
        *place = Some(drops.map_err(TrafficError::io("read how much the receive buffer lost"))?);
        Ok(())
    }

    pub fn measured(&self) -> u64 {
        match (self.before, self.up_to_end) {
            (Some(before), Some(up_to_end)) => up_to_end - before,
            _ => 0,
        }
    }
}
