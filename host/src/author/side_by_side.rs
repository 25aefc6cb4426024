//! A saved call, made by two plugins: what comes of it, and what it costs either.

use std::path::Path;

use super::changes::Changes;
use super::saved::SavedCall;
use super::trial::{Trial, TrialError, Tried, Verdict};

/// A call that two plugins made.
#[derive(Debug)]
pub struct SideBySide {
    /// By the first one.
    pub before: Result<Tried, TrialError>,
    /// By the second one.
    pub after: Result<Tried, TrialError>,
    /// How the second outcome differs. None: one of them has none.
    pub changes: Option<Changes>,
}

impl SideBySide {
    /// Both made it, and the same came of it each time.
    pub fn is_same(&self) -> bool {
        let is_steady = |tried: &Result<Tried, TrialError>| {
            matches!(
                tried,
                Ok(Tried {
                    verdict: Verdict::New,
                    ..
                })
            )
        };
        let is_same = self.changes.as_ref().is_some_and(Changes::is_none);
        is_same && is_steady(&self.before) && is_steady(&self.after)
    }
}

/// Has two plugins make a call. What was kept of it does not count.
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
    let outcome = |tried: &Result<Tried, TrialError>| tried.as_ref().ok()?.outcome.clone();
    let changes = outcome(&before).zip(outcome(&after));
    SideBySide {
        changes: changes.map(|(before, after)| Changes::between(&before, &after)),
        before,
        after,
    }
}
