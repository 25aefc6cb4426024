//! Record of the page whose rule is being called, in case it ends the process.

use std::pin::pin;

use crawler_frontier::{Claim, Frontier, FrontierError};
use crawler_plugin::CallReport;
use tokio::time::timeout;

/// Waits for the call of a page's rule. The page is recorded as a suspect before the call, if it is tried alone or the
/// frontier wants that, and otherwise only if the call takes long, its wait for room included: most calls end sooner,
/// so their pages cost no write.
pub(super) async fn call_recorded(
    frontier: &dyn Frontier,
    claim: &Claim,
    call: impl Future<Output = CallReport>,
) -> Result<CallReport, FrontierError> {
    let Some(after) = frontier.suspect_after() else {
        return Ok(call.await);
    };
    if claim.alone || after.is_zero() {
        frontier.suspect(claim).await?;
        return Ok(call.await);
    }
    let mut call = pin!(call);
    if let Ok(report) = timeout(after, &mut call).await {
        return Ok(report);
    }
    // The call goes on meanwhile: its time runs, and it holds room that others wait for.
    let (recorded, report) = tokio::join!(frontier.suspect(claim), call);
    recorded?;
    Ok(report)
}
