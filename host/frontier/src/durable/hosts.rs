//! Hosts that could not be reached, and hosts that links lead to.

use slatedb::WriteBatch;

use super::inner::Inner;
use crate::workbench::{HostClock, HostId};
use crate::{Claim, FrontierError, HostFailure, keys, records};

impl Inner {
    /// Returns true if this run has met no URL of a host yet. A host that was forgotten while it had nothing
    /// left is known again after this, with its clock and its health.
    pub(super) async fn is_new_host(&self, host: HostId) -> Result<bool, FrontierError> {
        if self.state().bench.is_met(host) {
            return Ok(false);
        }
        let seen = &self.frontiers.seen;
        let is_met = seen.knows(seen.host_key(self.opening, host));
        if !is_met && seen.is_complete(self.opening) {
            return Ok(true);
        }
        let Some(name) = self.get(keys::host_name(host)).await? else {
            return Ok(true);
        };
        let name: records::HostName = self.decode(&name, "host name")?;
        if name.run != self.run.0 {
            return Ok(true);
        }
        let record = self.get(keys::host(host)).await?;
        let record = record.map(|record| self.decode::<records::Host>(&record, "host"));
        let record = record.transpose()?;
        let mut state = self.state();
        if let Some(record) = record
            && !state.bench.knows(host)
        {
            let clock = HostClock {
                at: record.clock,
                delay: record.delay,
            };
            let (health, cursors) = (record.health(), record.cursors());
            state.bench.restore(host, clock, health, &cursors);
        }
        state
            .bench
            .update_health(host, |health| health.is_met = true);
        Ok(false)
    }

    /// Puts a claim back and its host off, and writes that, so that a crash does not begin the count anew.
    pub(super) async fn put_off(
        &self,
        claim: Claim,
        failure: &HostFailure,
    ) -> Result<(), FrontierError> {
        let guard = self.writer.lock().await;
        self.check()?;
        let mut batch = WriteBatch::new();
        {
            let mut state = self.state();
            let Some(page) = state.released(&claim) else {
                return Ok(());
            };
            let host = page.lane.host;
            let n_before = claim.host.n_failures;
            if state
                .bench
                .update_health(host, |health| health.record_failure(n_before, failure))
            {
                let until = state.time.of_wait(failure.until);
                state.bench.postpone(host, until);
            }
            state.wait_again(claim, page);
            state.save_host(host, &mut batch);
        }
        self.write(&guard, batch, 0).await.map(drop)
    }
}
