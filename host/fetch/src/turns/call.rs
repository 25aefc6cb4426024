//! The calls by which workers share the turns of hosts, and the bounds of one call.
//!
//! A call carries durations and never moments, so that no two clocks are compared. The time that a call takes
//! makes everything later. The requester counts its lease from before the call, the owner from after it. The
//! owner counts the end of a request as if the call had taken no time, and the requester comes again later than
//! it was told, by the duration of the call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crawler_model::id::{Incarnation, NodeId};
use crawler_model::node::Node;
use crawler_model::settings::MAX_DELAY;

/// The longest time for which a lease may be used.
pub const LEASE: Duration = Duration::from_secs(5);
/// Maximum number of requests that one lease allows.
pub const MAX_TURNS: u32 = 4;
/// Time within which an owner has to answer.
pub const DEADLINE: Duration = Duration::from_secs(1);
/// Maximum number of hosts in one call.
pub const MAX_ASKS: usize = 1_024;
/// Maximum length in bytes of the name of a host's clock. A DNS name has at most 253.
pub const MAX_NAME: usize = 512;
/// The longest time that a worker is told to wait before it asks again.
pub const MAX_AFTER: Duration = Duration::from_secs(5 * 60);

/// Identity of a worker's process: a process that starts again under the same id is another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerProcess {
    /// Id of the worker.
    pub worker: NodeId,
    /// Number that tells the process from an earlier one under the same id.
    pub incarnation: Incarnation,
}

/// Requests and news of a worker for one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRequests {
    /// The worker that asks.
    pub from: WorkerProcess,
    /// Requests and news, one for each host.
    pub asks: Vec<TurnRequest>,
}

/// A worker's use of one host. It returns the lease if the host is neither wanted nor has a request in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRequest {
    /// Name of the host's [clock](crawler_model::crawl::clock_of).
    pub host: Arc<str>,
    /// Delay that the crawls of the worker ask for.
    pub delay: Duration,
    /// True if the worker wants a lease.
    pub is_wanted: bool,
    /// True if a request is in flight: no other worker gets the host meanwhile.
    pub is_in_flight: bool,
    /// End of the last request, if the owner was not told of it before.
    pub ended: Option<Ended>,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Time since the end.
    pub ago: Duration,
    /// Time from the end for which the worker leaves the host alone: its delay, or longer for a host in trouble.
    pub pause: Duration,
}

/// An owner's answer about one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The owner took note; no lease was wanted.
    Noted,
    /// The host may be asked.
    Granted(Grant),
    /// Another worker has the host, or its delay is not over.
    Later {
        /// Time after which the worker should ask again.
        after: Duration,
    },
}

/// A lease of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Number of requests that may be begun.
    pub turns: u32,
    /// Time within which they may be begun, counted from before the call.
    pub lasts: Duration,
    /// The longest delay that any worker asked for lately.
    pub delay: Duration,
}

/// Failure of a call about turns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct TurnCallError {
    /// Cause of the failure, in words for people.
    pub why: String,
}

/// Reason why an owner refuses a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnRequestsError {
    /// The call has more hosts than it may have.
    #[error("{n} hosts at once, at most {MAX_ASKS}")]
    TooMany {
        /// Number of hosts.
        n: usize,
    },
    /// The name of a host is empty or too long.
    #[error("the name of a host has {n_bytes} bytes; it has 1 to {MAX_NAME}")]
    Name {
        /// Length of the name.
        n_bytes: usize,
    },
    /// The delay is longer than any setting allows.
    #[error("a delay of {delay:?}, at most {MAX_DELAY:?}")]
    Delay {
        /// The delay.
        delay: Duration,
    },
}

impl TurnRequests {
    /// Refuses calls that no worker of this version sends. The times of ends are reduced to their limits.
    pub fn checked(mut self) -> Result<Self, TurnRequestsError> {
        let n = self.asks.len();
        if n > MAX_ASKS {
            return Err(TurnRequestsError::TooMany { n });
        }
        for ask in &mut self.asks {
            let n_bytes = ask.host.len();
            if n_bytes == 0 || n_bytes > MAX_NAME {
                return Err(TurnRequestsError::Name { n_bytes });
            }
            let delay = ask.delay;
            if delay > MAX_DELAY {
                return Err(TurnRequestsError::Delay { delay });
            }
            if let Some(ended) = &mut ask.ended {
                ended.ago = ended.ago.min(MAX_DELAY);
                ended.pause = ended.pause.min(MAX_DELAY);
            }
        }
        Ok(self)
    }
}

impl Grant {
    /// Returns the lease, reduced to the limits of this version.
    pub(super) fn bounded(self) -> Self {
        Self {
            turns: self.turns.min(MAX_TURNS),
            lasts: self.lasts.min(LEASE),
            delay: self.delay.min(MAX_DELAY),
        }
    }
}

/// Transport of calls to other workers. One task uses it, for several owners at once but never twice at once
/// for the same owner. A call that is given up may have arrived.
#[async_trait]
pub trait AskTurns: Send + Sync + 'static {
    /// Returns the answers of an owner, one for each host of the call, in the same order. The caller gives
    /// the call up after [`DEADLINE`].
    async fn ask(&self, owner: &Node, asks: TurnRequests) -> Result<Vec<Answer>, TurnCallError>;
}
