//! Clock of a deadline: time on the processor, so that a busy machine fails no page.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Returns the time that this thread has had on the processor.
pub fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

#[derive(Clone, Copy)]
pub(crate) struct Clock {
    processor_begun: Duration,
    begun_at: Instant,
    pub(crate) deadline: Duration,
}

impl Clock {
    pub(crate) fn new(deadline: Duration) -> Self {
        Self {
            processor_begun: processor_time(),
            begun_at: Instant::now(),
            deadline,
        }
    }

    /// Returns true if the deadline has passed.
    pub(crate) fn is_over(&self) -> bool {
        // Processor time is never more than the time that has passed, and reading it is a system call.
        self.begun_at.elapsed() >= self.deadline
            && processor_time().saturating_sub(self.processor_begun) >= self.deadline
    }
}
