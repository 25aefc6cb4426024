//! A saved call made by two plugins: their outcomes and their costs.

use std::path::Path;

use super::changes::Changes;
use super::saved::SavedCall;
use super::trial::{Trial, TrialError, TrialResult, Verdict};

/// A call that two plugins made.
#[derive(Debug)]
pub struct SideBySide {
    /// Result of the first plugin.
    pub before: Result<TrialResult, TrialError>,
    /// Result of the second plugin.
    pub after: Result<TrialResult, TrialError>,
    /// Changes of the second outcome from the first. If `None`, one of the two is missing.
    pub changes: Option<Changes>,
}

impl SideBySide {
    /// Returns true if both plugins made the call and had the same outcome each time.
    pub fn is_same(&self) -> bool {
        let is_steady = |tried: &Result<TrialResult, TrialError>| {
            matches!(
                tried,
                Ok(TrialResult {
                    verdict: Verdict::New,
                    ..
                })
            )
        };
        let is_same = self.changes.as_ref().is_some_and(Changes::is_none);
        is_same && is_steady(&self.before) && is_steady(&self.after)
    }
}

/// Has two plugins make a call. The outcome that was kept does not count.
pub async fn side_by_side(
    before: &Trial,
    after: &Trial,
    folder: &Path,
    call: &SavedCall,
) -> SideBySide {
    let call = SavedCall {
        outcome: None,
        ..call.clone()
    };
    let before = before.make(folder, &call).await;
    let after = after.make(folder, &call).await;
    let outcome = |tried: &Result<TrialResult, TrialError>| tried.as_ref().ok()?.outcome.clone();
    let changes = outcome(&before).zip(outcome(&after));
    SideBySide {
        changes: changes.map(|(before, after)| Changes::between(&before, &after)),
        before,
        after,
    }
}
