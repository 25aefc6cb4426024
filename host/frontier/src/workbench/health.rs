//! Health of a host in one run of one shard, apart from its clock.
//!
//! ```text
//!            ready                 page answered
//! unknown ──────────▶ ready ◀──────────────────────┐
//!    ▲                 │  └──────────────────────────┘
//!    │ unready         │ could not be reached
//!    └───────────┬─────┘
//!                ▼            one time too many
//!           backing off ─────────────────────────▶ given up
//!                │ time is over                       │ time is over
//!                └──────────▶ unknown ◀───────────────┘
//! ```
//!
//! Ready means that everything is known that must be known before its pages are fetched: the addresses of its
//! name, and its robots.txt. Each opening begins with `unknown`: addresses are looked up again, and the robots.txt is
//! read from the frontier, if it was kept. Failures are stored. The URLs of a host that is given up come one by one, so
//! that each is given up for the host's reason without being fetched. Once the time is over, a single try decides for
//! the next such time.

use crawler_model::crawl::UnixMillis;
use crawler_model::frontier::{DelaySource, HostState};

/// Kind of a host by what is known of it, in the order in which hosts come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostKind {
    /// Everything that must be known before its pages are fetched is known.
    Ready,
    /// Something has to be found out again. The host has answered, and has not failed since.
    Answered,
    /// Something has to be found out first. The host has never answered, or could not be reached since.
    Unreached,
}

/// Knowledge about a host beyond its clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HostHealth {
    is_ready: bool,
    /// True if this run has, or had, a URL of it.
    pub(crate) is_met: bool,
    /// True if it has answered in this run. This is forgotten with a host that has no URLs left.
    pub(crate) has_answered: bool,
    /// Origin of the delay after its last answer.
    pub(crate) delay_by: DelaySource,
    /// Failures since the host last answered. `None` if there are none.
    pub(crate) failures: Option<Box<FailureStreak>>,
}

/// Consecutive failures of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailureStreak {
    pub(crate) n: u32,
    /// Word by which the last failure is counted.
    pub(crate) reason: String,
    pub(crate) is_given_up: bool,
}

/// Facts about its host that a claim carries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostStanding {
    /// True if everything that must be known before its pages are fetched is known.
    pub is_ready: bool,
    /// True if it has answered in this run.
    pub has_answered: bool,
    /// Number of consecutive failures to reach it.
    pub n_failures: u32,
    /// Reason for which the host, with its URLs, is given up at present.
    pub given_up: Option<String>,
}

/// Failure to reach a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFailure {
    /// Time before which the host is not asked.
    pub until: UnixMillis,
    /// Word by which the failure is counted and dead letters are recorded.
    pub reason: String,
    /// True if the URLs of the host are given up until that moment.
    pub gives_up: bool,
}

/// Host that is left alone for a while, because it has asked for that or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestingHost {
    /// Name and port of the host.
    pub name: String,
    /// Time before which it is not asked.
    pub until: UnixMillis,
}

/// Knowledge about its host that a claim brings when it is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostUpdate {
    /// Nothing is known: the host may or may not have been asked.
    None,
    /// The host was not asked, and it is not asked before this moment.
    NotBefore(UnixMillis),
    /// Everything that must be known before pages of the host are fetched is known.
    Ready {
        /// Time before which the host is not asked; 0 if nothing was asked of it.
        not_before: UnixMillis,
        /// Origin of the delay until then.
        delay_by: DelaySource,
        /// True if it has answered.
        has_answered: bool,
    },
    /// Something that must be known before pages of the host are fetched is not known any more.
    Unready,
}

impl HostHealth {
    /// Restores the health of a host of this run, as an earlier opening has left it.
    pub(crate) fn restored(
        is_met: bool,
        has_answered: bool,
        failures: Option<FailureStreak>,
    ) -> Self {
        Self {
            is_ready: false,
            is_met,
            has_answered,
            delay_by: DelaySource::default(),
            failures: failures.map(Box::new),
        }
    }

    /// Creates the health of a host that this run has not met. The origin of its delay is kept from an earlier run.
    pub(crate) fn unmet(delay_by: DelaySource) -> Self {
        Self {
            delay_by,
            ..Self::default()
        }
    }

    /// Returns the kind of the host.
    pub(crate) fn kind(&self) -> HostKind {
        if self.is_ready {
            HostKind::Ready
        } else if self.has_answered && self.failures.is_none() {
            HostKind::Answered
        } else {
            HostKind::Unreached
        }
    }

    /// Returns true if its URLs come whatever its clock says, to be given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.failures
            .as_ref()
            .is_some_and(|failures| failures.is_given_up)
    }

    /// Returns what the host waits for at `now`, if it is not asked before `clock`.
    pub(crate) fn state(&self, has_urls: bool, clock: UnixMillis, now: UnixMillis) -> HostState {
        let failures = self.failures.as_ref();
        let is_given_up = failures.map(|failures| failures.is_given_up);
        HostState::of(has_urls, clock > now, is_given_up)
    }

    /// Returns the standing for a claim that is taken at `now`, of a host that is not asked before `clock`.
    pub(crate) fn standing(&self, clock: UnixMillis, now: UnixMillis) -> HostStanding {
        let failures = self.failures.as_deref();
        let given_up = failures.filter(|failures| failures.is_given_up && now < clock);
        HostStanding {
            is_ready: self.is_ready,
            has_answered: self.has_answered,
            n_failures: failures.map_or(0, |failures| failures.n),
            given_up: given_up.map(|failures| failures.reason.clone()),
        }
    }

    /// Records what a claim brings that is given back.
    pub(crate) fn apply(&mut self, update: HostUpdate) {
        // The host was not given up, or this claim would not come back; the next failure gives it up again.
        if let Some(failures) = &mut self.failures {
            failures.is_given_up = false;
        }
        match update {
            HostUpdate::None | HostUpdate::NotBefore(_) => {}
            HostUpdate::Ready { has_answered, .. } => {
                self.is_ready = true;
                if has_answered {
                    self.record_answer();
                }
            }
            HostUpdate::Unready => self.is_ready = false,
        }
    }

    /// Records an answer, which ends the failures.
    pub(crate) fn record_answer(&mut self) {
        self.has_answered = true;
        self.failures = None;
    }

    /// Records a failure to reach the host, by a claim that was told of `n_before` failures. Returns true if
    /// it counts: requests that fail side by side count once.
    pub(crate) fn record_failure(&mut self, n_before: u32, failure: &HostFailure) -> bool {
        self.is_ready = false;
        let n = self.failures.as_ref().map_or(0, |failures| failures.n);
        if n != n_before {
            return false;
        }
        self.failures = Some(Box::new(FailureStreak {
            n: n.saturating_add(1),
            reason: failure.reason.clone(),
            is_given_up: failure.gives_up,
        }));
        true
    }

    /// Forgets the failures: the URLs are to be tried again.
    pub(crate) fn clear_failures(&mut self) {
        self.failures = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: HostUpdate = HostUpdate::Ready {
        not_before: 0,
        delay_by: DelaySource::Setting,
        has_answered: false,
    };

    fn failure(until: UnixMillis, gives_up: bool) -> HostFailure {
        HostFailure {
            until,
            reason: "resolve".to_owned(),
            gives_up,
        }
    }

    #[test]
    fn failures_side_by_side_count_once_and_an_answer_ends_them() {
        let mut health = HostHealth::default();
        for _ in 0..3 {
            health.record_failure(0, &failure(10, false));
        }
        assert_eq!(health.standing(10, 0).n_failures, 1);
        health.record_failure(1, &failure(20, false));
        assert_eq!(health.standing(20, 0).n_failures, 2);
        health.record_answer();
        let standing = health.standing(20, 0);
        assert_eq!((standing.n_failures, standing.has_answered), (0, true));
        // A claim that was told of failures before the answer says nothing new.
        health.record_failure(2, &failure(30, true));
        assert_eq!(health.standing(30, 0).n_failures, 0);
    }

    #[test]
    fn a_host_is_given_up_until_its_time_is_over() {
        let mut health = HostHealth::default();
        health.apply(READY);
        health.record_failure(0, &failure(100, true));
        assert!(health.kind() == HostKind::Unreached && health.is_given_up());
        assert_eq!(
            health.standing(100, 99).given_up.as_deref(),
            Some("resolve")
        );
        assert_eq!(health.standing(100, 100).given_up, None);
        // A single try decides for the next time.
        health.record_failure(1, &failure(200, true));
        assert_eq!(
            health.standing(200, 150).given_up.as_deref(),
            Some("resolve")
        );
        health.clear_failures();
        assert_eq!(health.standing(200, 150), HostStanding::default());
    }

    #[test]
    fn an_opening_knows_failures_and_finds_out_the_rest_anew() {
        let mut health = HostHealth::default();
        health.apply(READY);
        health.record_answer();
        health.record_failure(0, &failure(10, false));
        let failures = health.failures.clone().map(|failures| *failures);
        let opened = HostHealth::restored(true, health.has_answered, failures);
        let standing = opened.standing(10, 0);
        assert_eq!(
            (
                standing.is_ready,
                standing.has_answered,
                standing.n_failures
            ),
            (false, true, 1)
        );
    }
}
