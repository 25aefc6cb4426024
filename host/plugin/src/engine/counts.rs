//! Counts of the work of an engine, and how much of it is in use, for the metrics of the process.

use std::time::Duration;

use crate::{CallFailure, CallReport};
use crawler_model::crawl::Kill;
use crawler_process::metrics::{Count, Durations, WordCounts};

/// Kinds of calls that the host ended.
const KILLS: [Kill; 9] = [
    Kill::Trapped,
    Kill::StackOverflow,
    Kill::OutOfFuel,
    Kill::OutOfCpu,
    Kill::OutOfTime,
    Kill::OutOfMemory,
    Kill::OverBudget,
    Kill::Denied,
    Kill::NoRoom,
];

/// Counts of an engine since its start.
#[derive(Debug)]
pub struct EngineCounts {
    /// Calls of rules by their result: `ok`, `rule-error` or `killed`.
    pub calls: WordCounts,
    /// Calls that the host ended, by the kind of the [`Kill`].
    pub kills: WordCounts,
    /// Fuel that calls have used.
    pub fuel: Count,
    /// Durations of calls, without their waits for room.
    pub durations: Durations,
    /// Times that calls have waited for room.
    pub waits: Durations,
    /// Plugins that were loaded, by where their code came from: `cache`, or `compiled`.
    pub loads: WordCounts,
    /// Times that plugins took to compile, in a process of their own.
    pub compiles: Durations,
}

/// Use of an engine at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineUse {
    /// Number of calls that run, or may begin.
    pub calls: u64,
    /// Largest number of calls that run at once: setting `pool-instances`.
    pub max_calls: u64,
    /// Bytes that the calls in `calls` may use together.
    pub memory: u64,
    /// Largest number of such bytes: half of setting `memory`.
    pub max_memory: u64,
    /// Number of plugins that are ready to run.
    pub plugins: u64,
}

impl Default for EngineCounts {
    fn default() -> Self {
        Self {
            calls: WordCounts::starting_with(["ok", "rule-error", "killed"]),
            kills: WordCounts::starting_with(KILLS.map(Kill::as_str)),
            fuel: Count::default(),
            durations: Durations::default(),
            waits: Durations::default(),
            loads: WordCounts::starting_with(["cache", "compiled"]),
            compiles: Durations::default(),
        }
    }
}

impl EngineCounts {
    /// Counts a call that has ended, and had waited so long for room.
    pub(super) fn note(&self, report: &CallReport, waited: Duration) {
        self.waits.add(waited);
        self.durations.add(report.usage.elapsed);
        self.fuel.add(report.usage.fuel);
        let result = match &report.result {
            Ok(_) => "ok",
            Err(CallFailure::Rule(_)) => "rule-error",
            Err(CallFailure::Killed(killed)) => {
                self.kills.add(killed.kill.as_str(), 1);
                "killed"
            }
        };
        self.calls.add(result, 1);
    }
}
