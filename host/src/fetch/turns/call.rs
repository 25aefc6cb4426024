//! The calls by which workers share the turns of hosts, and the bounds of one call.
//!
//! A call tells durations and never moments, so that no two clocks are compared. The time that a call is on its
//! way makes everything later: the asker counts its lease from before the call, the owner from after
//! it; the owner counts the end of a request as if the call had taken no time, and the asker comes again that
//! much later than it was told.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::model::id::{Incarnation, NodeId};
use crate::model::node::Node;
use crate::model::settings::MAX_DELAY;

/// The longest time for which a lease may be used.
pub const LEASE: Duration = Duration::from_secs(5);
/// Requests that one lease allows at the most.
pub const MAX_TURNS: u32 = 4;
/// Time that an owner has for its answer.
pub const DEADLINE: Duration = Duration::from_secs(1);
/// Hosts in one call.
pub const MAX_ASKS: usize = 1_024;
/// Bytes of the name of a host's clock. A name of DNS has 253 at the most.
pub const MAX_NAME: usize = 512;
/// The longest time that a worker is told to wait before it asks again.
pub const MAX_AFTER: Duration = Duration::from_secs(5 * 60);

/// One life of a worker: a process that starts again under the same id is another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Life {
    /// Id of the worker.
    pub worker: NodeId,
    /// Tells the process from an earlier one under the same id.
    pub incarnation: Incarnation,
}

/// Everything that a worker has to say to one owner at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asks {
    /// The worker that asks.
    pub from: Life,
    /// One for each host.
    pub asks: Vec<Ask>,
}

/// A worker's use of one host. Without a wish and without a request in flight it returns the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Name of the host's [clock](crate::model::crawl::clock_of).
    pub host: Arc<str>,
    /// Delay that the crawls of the worker ask for.
    pub delay: Duration,
    /// True if the worker wants a lease.
    pub is_wanted: bool,
    /// True if a request is in flight: nobody else gets the host meanwhile.
    pub is_in_flight: bool,
    /// End of the last request, if it was not told before.
    pub ended: Option<Ended>,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Time since then.
    pub ago: Duration,
    /// Time from then on for which the worker leaves the host alone: its delay, and longer for a host in trouble.
    pub pause: Duration,
}

/// An owner's answer about one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Nothing was wanted.
    Noted,
    /// The host may be asked.
    Granted(Grant),
    /// Another has the host, or its delay is not over.
    Later {
        /// Time after which the worker should ask again.
        after: Duration,
    },
}

/// A lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Requests that may be begun.
    pub turns: u32,
    /// Time in which they may be begun, from before the call.
    pub lasts: Duration,
    /// The longest delay that any worker asked for lately.
    pub delay: Duration,
}

/// Why a call about turns brought no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct AskError {
    /// Cause, for people.
    pub why: String,
}

/// Why an owner does not read a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AsksError {
    /// More hosts than one call may have.
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
    /// A delay that no setting allows.
    #[error("a delay of {delay:?}, at most {MAX_DELAY:?}")]
    Delay {
        /// The delay.
        delay: Duration,
    },
}

impl Asks {
    /// Refuses what no worker of this version sends. The times of ends are cut to what may be counted.
    pub fn checked(mut self) -> Result<Self, AsksError> {
        let n = self.asks.len();
        if n > MAX_ASKS {
            return Err(AsksError::TooMany { n });
        }
        for ask in &mut self.asks {
            let n_bytes = ask.host.len();
            if n_bytes == 0 || n_bytes > MAX_NAME {
                return Err(AsksError::Name { n_bytes });
            }
            let delay = ask.delay;
            if delay > MAX_DELAY {
                return Err(AsksError::Delay { delay });
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
    /// The lease without what no owner of this version grants.
    pub(super) fn bounded(self) -> Self {
        Self {
            turns: self.turns.min(MAX_TURNS),
            lasts: self.lasts.min(LEASE),
            delay: self.delay.min(MAX_DELAY),
        }
    }
}

/// Carries calls to other workers. Called by one task, for several owners at once and never twice at
/// once for one of them; a call that is given up may have arrived.
#[async_trait]
pub trait AskTurns: Send + Sync + 'static {
    /// Returns the answers of an owner, one for each host of the call, in the same order. Whoever asks gives the
    /// call up after [`DEADLINE`].
    async fn ask(&self, owner: &Node, asks: Asks) -> Result<Vec<Answer>, AskError>;
}
