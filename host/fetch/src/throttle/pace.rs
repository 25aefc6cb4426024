//! Pace at which a resource wants a host to be asked, and the delay that comes of it.

use std::time::Duration;

use crawler_model::frontier::DelaySource;
use crawler_model::settings::Rates;

/// Pace at which a resource wants a host to be asked.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    /// Time between the end of an answer and the next request.
    pub delay: Duration,
    /// Origin of that delay.
    pub delay_by: DelaySource,
    /// Upper bound of a random time that is added to the delay.
    pub random: Duration,
    /// Maximum numbers of requests within periods.
    pub rates: Rates,
}

impl Pace {
    /// Creates a pace with this delay and no other limit.
    pub fn of_delay(delay: Duration) -> Self {
        Self {
            delay,
            ..Self::default()
        }
    }

    /// Returns true if there is one request at a time.
    pub(crate) fn is_spaced(&self) -> bool {
        !self.delay.is_zero() || !self.random.is_zero()
    }
}

/// Time for which a host is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostDelay {
    /// Time from now on.
    pub time: Duration,
    /// Origin of this time.
    pub by: DelaySource,
}

impl HostDelay {
    pub(super) fn or_longer(self, time: Duration, by: DelaySource) -> Self {
        match time > self.time {
            true => Self { time, by },
            false => self,
        }
    }
}
