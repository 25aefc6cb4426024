//! Calls of `root` that may have ended the process.
//!
//! A call is recorded durably before it begins, and the record is cleared when it returns. If a later process
//! finds the record, an earlier one ended meanwhile. Only that counts, and not that this frontier was opened
//! anew. Like a page that is tried alone, a call counts only while it holds the permit, of which the process
//! has one. A first call goes on without the permit if it is taken, and does not count then.

use prost::Message as _;
use slatedb::WriteBatch;

use super::inner::Inner;
use super::state::State;
use crate::records::Head;
use crate::{FrontierError, keys};

impl Head {
    /// Forgets calls of `root`: one has returned, or another run or plugin is to be tried.
    pub(super) fn forget_root(&mut self) {
        (self.in_root, self.in_root_alone, self.n_root_ends) = (0, false, 0);
    }

    /// Counts the end of a process within `root`. Returns true if a process has ended, even if it does not count.
    pub(super) fn count_root_end(&mut self, process: u64) -> bool {
        let has_ended = self.in_root != 0 && self.in_root != process;
        self.n_root_ends += u32::from(has_ended && self.in_root_alone);
        (self.in_root, self.in_root_alone) = (0, false);
        has_ended
    }
}

impl State {
    /// Forgets the present call, which has not ended the process.
    pub(super) fn root_is_cut_off(&mut self) {
        (self.head.in_root, self.head.in_root_alone) = (0, false);
        self.root_permit = None;
    }
}

impl Inner {
    pub(super) async fn acquire_root_permit(&self) {
        if self.state().root_is_suspect {
            let permit = self.frontiers.alone.clone().acquire_owned().await;
            self.state().root_permit = permit.ok();
        }
    }

    pub(super) async fn enter_root(&self) -> Result<(), FrontierError> {
        self.check()?;
        {
            let mut state = self.state();
            if state.root_permit.is_none() {
                state.root_permit = self.frontiers.alone.clone().try_acquire_owned().ok();
            }
            state.head.in_root = self.frontiers.process;
            state.head.in_root_alone = state.root_permit.is_some();
            state.head.root_plugin = self.plugin;
        }
        self.write_head().await
    }

    pub(super) async fn leave_root(&self) -> Result<(), FrontierError> {
        self.check()?;
        self.state().head.forget_root();
        let written = self.write_head().await;
        // Until then an end of the process counts against the call.
        let mut state = self.state();
        (state.root_permit, state.root_is_suspect) = (None, false);
        written
    }

    /// Makes the head record durable.
    pub(super) async fn write_head(&self) -> Result<(), FrontierError> {
        let guard = self.writer.lock().await;
        let mut batch = WriteBatch::new();
        batch.put(keys::HEAD, self.state().head.encode_to_vec());
        self.write(&guard, batch, 0).await?;
        drop(guard);
        self.settle().await
    }
}
