//! Pages that may have ended the process.
//!
//! A page is recorded if the call of its rule takes long, without waiting for the record to be durable. After an
//! unclean end, the pages whose records are still there are tried one at a time. Only then does an end count
//! against a page: between the moment at which "it is alone now" is durable and its commit. After three such
//! ends the page is given up as `poison`. Only one page is tried alone at a time in all frontiers of a
//! process, so that an end counts against one page only.
//!
//! A page that ends the process at once does so before it is recorded. After an unclean end, twice as many pages as can
//! be in flight are therefore recorded before their rules are called, and the record is awaited. The page that ended the
//! process may come later, because its host has to wait. So each further unclean end in a row doubles the number.

use prost::Message as _;
use slatedb::WriteBatch;

use super::inner::Inner;
use crate::{Claim, FrontierError, keys, records};

/// Number of process ends that a page may cause before it is given up.
pub(super) const MAX_ALONE: u32 = 3;

/// Largest number of doublings: further unclean ends in a row do not change the number of recorded pages.
const MAX_DOUBLED: u32 = 32;

/// Returns the number of pages that are recorded before their rules are called, after this number of unclean ends in a
/// row.
pub(super) fn n_careful(n_unclean_stops: u32, max_undurable: usize) -> u64 {
    match n_unclean_stops.checked_sub(1) {
        None => 0,
        Some(n) => (2 * max_undurable as u64) << n.min(MAX_DOUBLED),
    }
}

impl Inner {
    pub(super) async fn suspect(&self, claim: &Claim) -> Result<(), FrontierError> {
        self.check()?;
        let key = keys::suspect(claim.fingerprint);
        if claim.alone {
            let permit = self.frontiers.alone.clone().acquire_owned().await;
            self.state().find(claim)?.permit = permit.ok();
        }
        let (mut note, is_waited_for) = {
            let mut state = self.state();
            let is_careful = state.n_careful > 0;
            // A page that is tried alone is not one of those that were in flight unrecorded.
            state.n_careful -= u64::from(is_careful && !claim.alone);
            let page = state.find(claim)?;
            page.is_suspect = true;
            let note = records::Suspect {
                host: page.lane.host.0,
                priority: page.lane.priority,
                due: page.position.due,
                entry: page.position.entry,
                n_alone: 0,
            };
            (note, is_careful || claim.alone)
        };
        if claim.alone {
            let earlier = self.get(key.clone()).await?;
            let earlier = earlier.map(|bytes| self.decode::<records::Suspect>(&bytes, "suspect"));
            note.n_alone = earlier.transpose()?.map_or(0, |earlier| earlier.n_alone) + 1;
        }
        let mut batch = WriteBatch::new();
        batch.put(key, note.encode_to_vec());
        // It changes nothing that another batch builds on, so it needs no guard and no number.
        let write = async {
            let written = self.db.write(batch).await;
            written.map_err(|e| super::writer::failed(self.shard, "write", &e))
        };
        let written = match self.in_time("write", Box::pin(write)).await {
            Ok(written) => written,
            Err(error) => {
                self.broken(error.clone());
                return Err(error);
            }
        };
        if is_waited_for {
            self.flush_to(written.seqnum()).await?;
        }
        Ok(())
    }
}
