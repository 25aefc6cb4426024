//! Clock of the deadline: time on the processor, so that a busy machine fails no page.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::ExtractError;

/// Returns the time that this thread has had on the processor.
pub fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

#[derive(Clone, Copy)]
pub(super) struct Clock {
    begun: Duration,
    deadline: Duration,
}

impl Clock {
    pub(super) fn new(deadline: Duration) -> Self {
        Self {
            begun: processor_time(),
            deadline,
        }
    }

    pub(super) fn check(&self) -> Result<(), ExtractError> {
        if processor_time().saturating_sub(self.begun) >= self.deadline {
            return Err(ExtractError::TooSlow {
                deadline: self.deadline,
            });
        }
        Ok(())
    }
}
