//! Faults of the server: which ones are planned, which one a request meets, and how many requests there were.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Faults that the server shows until the next plan. The default plan has none.
///
/// Probabilities are between 0 and 1 and are drawn for each request. A request meets at most one of `unavailable`,
/// `reset` and `lost_answer`, in this order of precedence; `expired` and `read_only` come before all three.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    /// Time that passes before every operation.
    pub latency: Duration,
    /// Seed of the generator that the probabilities are drawn from.
    pub seed: u64,
    /// Probability of an answer 503 `SlowDown` instead of the operation.
    pub unavailable: f64,
    /// Probability of a TCP reset instead of the operation.
    pub reset: f64,
    /// Probability that the operation runs, and the connection is then closed without an answer.
    pub lost_answer: f64,
    /// Probability that the answer waits for `slow_for`, after the operation ran.
    pub slow: f64,
    /// Additional time that a slow answer takes.
    pub slow_for: Duration,
    /// True if every write is refused with 403 `AccessDenied`.
    pub read_only: bool,
    /// True if conditions on writes are ignored, as some S3-compatible servers do: each such write succeeds.
    pub without_conditions: bool,
    /// True if every request is refused with 403 `ExpiredToken`.
    pub expired: bool,
    /// Seconds by which the server's clock is ahead, in `Date`, `Last-Modified` and listings; negative if it is behind.
    pub clock_offset: i64,
}

/// Numbers of requests since the start of a server, including those that met a fault.
///
/// A client that tries again after a fault sends another request; each one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Writes, copies, and uploads of parts.
    pub put: u64,
    /// Reads of objects.
    pub get: u64,
    /// Pages of listings.
    pub list: u64,
    /// Deletions of one object, and aborted multipart uploads.
    pub delete: u64,
    /// Reads of metadata alone.
    pub head: u64,
    /// Deletions of several objects, and starts and ends of multipart uploads.
    pub post: u64,
    /// Requests of all kinds that met a fault other than latency and the clock's offset.
    pub faults: u64,
}

/// Kind of a request, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Put,
    Get,
    List,
    Delete,
    Head,
    Post,
}

/// Fault that takes the place of a proper answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Expired,
    ReadOnly,
    Unavailable,
    Reset,
    LostAnswer,
}

/// Treatment of one request.
#[derive(Debug)]
pub(super) struct Treatment {
    /// Time before the operation.
    pub(super) before: Duration,
    pub(super) fault: Option<Fault>,
    /// Time between the operation and its answer.
    pub(super) after: Duration,
}

/// The plan in force, shared by all connections.
#[derive(Debug)]
pub(super) struct Faults {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    plan: FaultPlan,
    random: StdRng,
    counts: RequestCounts,
}

impl Default for Faults {
    fn default() -> Self {
        let plan = FaultPlan::default();
        Self {
            state: Mutex::new(State {
                random: StdRng::seed_from_u64(plan.seed),
                plan,
                counts: RequestCounts::default(),
            }),
        }
    }
}

impl Faults {
    pub(super) fn set(&self, plan: FaultPlan) {
        let mut state = self.state();
        state.random = StdRng::seed_from_u64(plan.seed);
        state.plan = plan;
    }

    pub(super) fn counts(&self) -> RequestCounts {
        self.state().counts
    }

    /// Returns true if conditions on writes are ignored.
    pub(super) fn without_conditions(&self) -> bool {
        self.state().plan.without_conditions
    }

    /// Returns a time as the server's clock would have shown it.
    pub(super) fn shift(&self, time: SystemTime) -> SystemTime {
        let offset = self.state().plan.clock_offset;
        let distance = Duration::from_secs(offset.unsigned_abs());
        if offset < 0 {
            time - distance
        } else {
            time + distance
        }
    }

    /// Counts a request, and decides what becomes of it.
    pub(super) fn treat(&self, kind: RequestKind) -> Treatment {
        let mut state = self.state();
        state.counts.add(kind);
        // Each request draws as often as any other: the sequence of one fault does not depend on the other faults.
        let draws: [f64; 4] = std::array::from_fn(|_| state.random.random());
        let plan = &state.plan;
        let fault = if plan.expired {
            Some(Fault::Expired)
        } else if plan.read_only && kind.is_write() {
            Some(Fault::ReadOnly)
        } else if draws[0] < plan.unavailable {
            Some(Fault::Unavailable)
        } else if draws[1] < plan.reset {
            Some(Fault::Reset)
        } else if draws[2] < plan.lost_answer {
            Some(Fault::LostAnswer)
        } else {
            None
        };
        let is_slow = fault.is_none() && draws[3] < plan.slow;
        let treatment = Treatment {
            before: plan.latency,
            fault,
            after: if is_slow {
                plan.slow_for
            } else {
                Duration::ZERO
            },
        };
        state.counts.faults += u64::from(fault.is_some() || is_slow);
        treatment
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestKind {
    fn is_write(self) -> bool {
        matches!(self, Self::Put | Self::Delete | Self::Post)
    }
}

impl RequestCounts {
    fn add(&mut self, kind: RequestKind) {
        let count = match kind {
            RequestKind::Put => &mut self.put,
            RequestKind::Get => &mut self.get,
            RequestKind::List => &mut self.list,
            RequestKind::Delete => &mut self.delete,
            RequestKind::Head => &mut self.head,
            RequestKind::Post => &mut self.post,
        };
        *count += 1;
    }
}
