//! Hosts that could not be reached.

use slatedb::WriteBatch;

use super::Inner;
use crate::frontier::{Claim, FrontierError, HostFailure};

impl Inner {
    /// Puts a claim back and its host off, and writes that: a crash must not begin the count anew.
    pub(super) async fn put_off(
        &self,
        claim: Claim,
        failure: &HostFailure,
    ) -> Result<(), FrontierError> {
        let turn = self.writer.lock().await;
        self.check()?;
        let mut batch = WriteBatch::new();
        {
            let mut state = self.state();
            let Some(page) = state.landed(&claim) else {
                return Ok(());
            };
            let host = page.lane.host;
            let n_before = claim.host.n_failures;
            if state.bench.live(host, |life| life.fail(n_before, failure)) {
                let until = state.time.of_wall(failure.until);
                state.bench.postpone(host, until);
            }
            state.wait_again(claim, page);
            state.save_host(host, &mut batch);
        }
        self.write(&turn, batch, 0).await.map(drop)
    }
}
