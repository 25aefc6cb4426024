//! Clock of a deadline: time on the processor, so that a busy machine fails no page.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the time that this thread has had on the processor.
pub fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

#[derive(Clone, Copy)]
pub(crate) struct Clock {
    begun: Duration,
    pub(crate) deadline: Duration,
}

impl Clock {
    pub(crate) fn new(deadline: Duration) -> Self {
        Self {
            begun: processor_time(),
            deadline,
        }
    }

    /// Returns true if the deadline has passed.
    pub(crate) fn is_over(&self) -> bool {
        processor_time().saturating_sub(self.begun) >= self.deadline
    }
}
