//! Real-time scheduling of a thread that must be on time and needs little.

/// While this lives, the thread that made it runs before all ordinary ones (SCHED_FIFO).
///
/// On a machine whose processors are shared with the tunnel's own programs, an ordinary thread waits milliseconds for
/// its turn, which would count as the tunnel's delay or loss.
pub(crate) struct RealTime(());

impl RealTime {
    /// None where the caller may not: then the departure error and the buffer drops tell what that cost.
    pub fn enter() -> Option<Self> {
        schedule(libc::SCHED_FIFO, 1).then_some(Self(()))
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        schedule(libc::SCHED_OTHER, 0);
    }
}

fn schedule(policy: libc::c_int, priority: libc::c_int) -> bool {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the pointer is to live parameters; 0 means the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}
