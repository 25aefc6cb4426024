//! Check that a history keeps the promises of the design. It is pure: a history in, the broken promises out.
//!
//! Each promise is checked alone, and by values that cannot be late: revisions, epochs and sequence numbers, not
//! the times of log lines. Times are compared only if one clock has taken them.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::history::History;

mod clients;
mod store;

pub(crate) use clients::life_of;

/// Settings of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// Delay between an answer and the next request of a crawl that keeps a distance.
    pub(crate) delay: Duration,
    /// Time after the answer to a deletion in which its pages may still be asked for.
    pub(crate) after_delete: Duration,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Number of the invariant in design section 10.
    pub(crate) invariant: u8,
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {}: {}", self.invariant, self.what)
    }
}

/// Returns all violations in a history.
pub(crate) fn check(history: &History, terms: Terms) -> Vec<Violation> {
    let mut found = Found::default();
    store::leaders(history, &mut found);
    store::records(&history.store, &mut found);
    store::frontiers(&history.told, &mut found);
    clients::crawls(history, &mut found);
    convergences(history, &mut found);
    clients::distances(history, terms, &mut found);
    clients::lives(history, &mut found);
    clients::after_deletions(history, terms, &mut found);
    found.0
}

/// Returns the id in the record of a resource.
fn id_of(resource: &Value) -> u64 {
    let id = resource["id"].as_str();
    id.and_then(|id| id.parse().ok()).unwrap_or_default()
}

#[derive(Default)]
struct Found(Vec<Violation>);

impl Found {
    fn add(&mut self, invariant: u8, what: String) {
        self.0.push(Violation { invariant, what });
    }
}

/// Invariant 5: every shard runs on one live worker soon after the faults have stopped.
fn convergences(history: &History, found: &mut Found) {
    for (n, convergence) in history.convergences.iter().enumerate() {
        let n = n + 1;
        match &convergence.took {
            Ok(took) if *took > convergence.bound => {
                found.add(
                    5,
                    format!("rest {n} took {took:?}, not {:?}", convergence.bound),
                );
            }
            Ok(_) => {}
            Err(unsettled) => found.add(5, format!("rest {n} never came: {unsettled:?}")),
        }
    }
}

#[cfg(test)]
mod tests;
