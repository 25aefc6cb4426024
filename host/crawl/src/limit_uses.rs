//! Largest use of each limit by one call of a crawl: how near its rules have come to their limits.
//!
//! It tells an operator which limit a rule outgrows before a page is lost to it. Only what the report of a call has is
//! known: limits of plans and of bytes that are handed over are not among it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawler_model::plugin::{LimitName, Limits};
use crawler_model::status::LimitUse;
use crawler_plugin::CallReport;

/// Largest use of each limit since the crawl was assigned to this worker. Cheap to clone; clones share it.
#[derive(Debug, Clone, Default)]
pub struct LimitUses {
    shared: Arc<Mutex<BTreeMap<LimitName, LimitUse>>>,
}

impl LimitUses {
    /// Notes what a call has used of its limits.
    pub(super) fn note(&self, report: &CallReport, limits: &Limits) {
        let usage = &report.usage;
        let n_logs = report.logs.len() as u64 + report.n_logs_dropped;
        let output = report.result.as_ref().ok();
        let uses = [
            (LimitName::Fuel, Some(usage.fuel)),
            (LimitName::Timeout, Some(usage.elapsed.as_millis() as u64)),
            (LimitName::Memory, Some(usage.peak_memory)),
            (LimitName::Items, output.map(|o| o.items.len() as u64)),
            (LimitName::Requests, output.map(|o| o.requests.len() as u64)),
            (LimitName::LogLines, Some(n_logs)),
        ];
        let mut largest = self.largest();
        for (name, used) in uses {
            let Some(used) = used else { continue };
            let known = largest.entry(name).or_default();
            known.used = known.used.max(used);
            known.limit = limits.value(name);
        }
    }

    /// Returns the largest use of each limit, with the limit of the last call. Empty before the first call.
    pub fn all(&self) -> BTreeMap<LimitName, LimitUse> {
        self.largest().clone()
    }

    fn largest(&self) -> MutexGuard<'_, BTreeMap<LimitName, LimitUse>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crawler_model::crawl::RuleError;
    use crawler_plugin::{CallFailure, CallOutput, Usage};

    use super::*;
    use crate::doubles;

    fn use_of(used: u64, limit: u64) -> LimitUse {
        LimitUse { used, limit }
    }

    #[test]
    fn the_largest_use_of_each_limit_is_kept() {
        let uses = LimitUses::default();
        assert!(uses.all().is_empty());
        let limits = Limits::default();
        let call = |fuel, peak_memory, millis| CallReport {
            usage: Usage {
                fuel,
                peak_memory,
                elapsed: Duration::from_millis(millis),
            },
            ..doubles::report(Ok(CallOutput::default()))
        };
        uses.note(&call(70, 5, 3), &limits);
        uses.note(&call(60, 9, 2), &limits);
        let all = uses.all();
        assert_eq!(all[&LimitName::Fuel], use_of(70, limits.fuel));
        assert_eq!(all[&LimitName::Memory], use_of(9, limits.memory));
        assert_eq!(all[&LimitName::Timeout], use_of(3, 2_000));
        assert_eq!(all[&LimitName::Items], use_of(0, limits.items));
        // A limit that was changed is told as it is for calls from then on.
        let raised = Limits { fuel: 7, ..limits };
        uses.note(&call(1, 1, 1), &raised);
        assert_eq!(uses.all()[&LimitName::Fuel], use_of(70, 7));
    }

    #[test]
    fn a_call_that_failed_counts_with_what_it_used() {
        let uses = LimitUses::default();
        let failed = RuleError::Fatal("no such page".to_owned().into());
        let mut report = doubles::report(Err(CallFailure::Rule(failed)));
        report.n_logs_dropped = 300;
        report.usage.fuel = 5;
        uses.note(&report, &Limits::default());
        assert_eq!(uses.all()[&LimitName::LogLines], use_of(300, 200));
        assert_eq!(uses.all()[&LimitName::Fuel].used, 5);
        assert!(!uses.all().contains_key(&LimitName::Items));
    }
}
