//! Counts of the calls of clients, for the metrics of a master.
//!
//! Calls are counted where they end, by the table of calls and the code of the answer, so there are at most as many counts
//! as these two have entries together.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crawler_process::metrics::{Durations, DurationsRead};

/// Counts of the calls of clients since the start of the process.
#[derive(Debug, Default)]
pub struct CallCounts(Mutex<BTreeMap<&'static str, MethodCounts>>);

#[derive(Debug, Default)]
struct MethodCounts {
    results: BTreeMap<&'static str, u64>,
    durations: Durations,
}

/// Counts of one call of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodRead {
    /// Name of the call, or `unknown` for those that are not in the table.
    pub method: &'static str,
    /// Numbers of calls by the name of their code, such as `OK`.
    pub results: BTreeMap<&'static str, u64>,
    /// Durations of the calls; of a stream, until it was open.
    pub durations: DurationsRead,
}

impl CallCounts {
    /// Counts a call that has ended.
    pub(crate) fn note(&self, method: &'static str, result: &'static str, took: Duration) {
        let methods = self.0.lock();
        let mut methods = methods.unwrap_or_else(PoisonError::into_inner);
        let counts = methods.entry(method).or_default();
        *counts.results.entry(result).or_default() += 1;
        counts.durations.add(took);
    }

    /// Returns the counts so far, of each call that was made.
    pub fn read(&self) -> Vec<MethodRead> {
        let methods = self.0.lock();
        let methods = methods.unwrap_or_else(PoisonError::into_inner);
        let read = methods.iter().map(|(method, counts)| MethodRead {
            method,
            results: counts.results.clone(),
            durations: counts.durations.read(),
        });
        read.collect()
    }
}
