//! How a thread waits for a lock that another holds.

use crate::sync::{hint, thread};

/// Pauses before a thread gives up its time slice. Locks are held for less than a microsecond, which a few dozen pauses
/// cover; a holder that is still at work then was preempted, and needs the core.
const MAX_PAUSES: u32 = 64;

/// One wait: pauses at first, then yields.
pub(super) struct Wait {
    n_pauses: u32,
}

impl Wait {
    /// Starts with pauses.
    pub(super) fn new() -> Self {
        Self { n_pauses: 0 }
    }

    /// Waits a little, longer if it has done so often.
    pub(super) fn pause(&mut self) {
        if self.n_pauses < MAX_PAUSES {
            self.n_pauses += 1;
            hint::spin_loop();
        } else {
            thread::yield_now();
        }
    }
}
