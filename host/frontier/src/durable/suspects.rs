//! Pages that may have ended the process.
//!
//! A page is recorded before it enters its rule, without waiting for the record to be durable. After an
//! unclean end, the pages whose records are still there are tried one at a time. Only then does an end count
//! against a page: between the moment at which "it is alone now" is durable and its commit. After three such
//! ends the page is given up as `poison`. Only one page is tried alone at a time in all frontiers of a
//! process, so that an end counts against one page only.
//!
//! A page that ends the process at once may do so before its record is durable. After an unclean end, the
//! record is therefore awaited for as many pages as may have been in flight.

use prost::Message as _;
use slatedb::WriteBatch;

use super::inner::Inner;
use crate::{Claim, FrontierError, keys, records};

/// Number of process ends that a page may cause before it is given up.
pub(super) const MAX_ALONE: u32 = 3;

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
            state.n_careful -= usize::from(is_careful);
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
        let written = self.db.write(batch).await;
        if let Err(error) = written {
            let error = super::writer::failed(self.shard, "write", &error);
            self.broken(error.clone());
            return Err(error);
        }
        if is_waited_for {
            self.settle().await?;
        }
        Ok(())
    }
}
