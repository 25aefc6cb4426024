//! Outcome of one hop, and the pause of its host that comes of it.

use std::time::Duration;

use super::hop::Outcome;
use crate::{Failure, FetchError};
use crawler_model::crawl::UnixMillis;
use crawler_model::frontier::DelaySource;

/// Wait of a page when no connection can be opened; idle ones are closed meanwhile.
pub(super) const OPEN_FILES_WAIT: Duration = Duration::from_secs(1);

/// The outcome of one hop.
pub(super) struct Sent {
    pub(super) outcome: Result<Outcome, FetchError>,
    /// Time when its host may be asked again; 0 if nothing was asked of it.
    pub(super) host_ready_at: UnixMillis,
    /// Origin of the delay until `host_ready_at`.
    pub(super) delay_by: DelaySource,
    /// True if the host could not be reached.
    pub(super) is_of_host: bool,
}

impl Sent {
    /// Creates the outcome of a hop that was not made.
    pub(super) fn nothing(error: FetchError, host_ready_at: UnixMillis) -> Self {
        Self::unasked(Err(error), host_ready_at)
    }

    /// Creates the result of a hop that asked nothing of its host, with this outcome.
    pub(super) fn unasked(outcome: Result<Outcome, FetchError>, host_ready_at: UnixMillis) -> Self {
        Self {
            outcome,
            host_ready_at,
            delay_by: DelaySource::default(),
            is_of_host: false,
        }
    }
}

impl From<Failure> for Sent {
    fn from(failure: Failure) -> Self {
        Self {
            outcome: Err(failure.error),
            host_ready_at: failure.host_ready_at,
            delay_by: failure.delay_by,
            is_of_host: failure.is_of_host,
        }
    }
}

/// Time before which a host is not asked again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HostReadyAt {
    /// The moment; 0 if the host was not asked.
    pub(super) ready_at: UnixMillis,
    /// Origin of the delay until then.
    pub(super) by: DelaySource,
}

impl HostReadyAt {
    pub(super) fn lengthen(&mut self, ready_at: UnixMillis, by: DelaySource) {
        if ready_at > self.ready_at {
            *self = Self { ready_at, by };
        }
    }
}
