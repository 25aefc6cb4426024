//! Calls of `root` that may have ended the process.
//!
//! A call is noted durably before it begins and cleared when it comes back, so a note that is found
//! at the next opening means that the process ended meanwhile. Like a page that is tried alone, a
//! call counts only while it holds the permit of which the process has one; a first call goes on
//! without it where another has it, and counts for nothing then.

use prost::Message as _;
use slatedb::WriteBatch;

use super::Inner;
use crate::frontier::records::Head;
use crate::frontier::{FrontierError, keys};

impl Head {
    /// Forgets calls of `root`: one has come back, or another run or plugin is to be tried.
    pub(super) fn forget_root(&mut self) {
        (self.is_in_root, self.n_root_ends) = (false, 0);
    }
}

impl Inner {
    pub(super) async fn enter_root(&self) -> Result<(), FrontierError> {
        self.check()?;
        let alone = self.frontiers.alone.clone();
        let is_suspect = self.state().head.is_in_root;
        let permit = match is_suspect {
            true => alone.acquire_owned().await.ok(),
            false => alone.try_acquire_owned().ok(),
        };
        {
            let mut state = self.state();
            state.head.is_in_root = true;
            state.head.root_plugin = self.plugin;
            state.head.n_root_ends += u32::from(permit.is_some());
            state.root_permit = permit;
        }
        self.write_head().await
    }

    pub(super) async fn leave_root(&self) -> Result<(), FrontierError> {
        self.check()?;
        self.state().head.forget_root();
        let written = self.write_head().await;
        // Until then an end of the process counts against it.
        self.state().root_permit = None;
        written
    }

    /// Makes what the head says durable.
    pub(super) async fn write_head(&self) -> Result<(), FrontierError> {
        let turn = self.writer.lock().await;
        let mut batch = WriteBatch::new();
        batch.put(keys::HEAD, self.state().head.encode_to_vec());
        self.write(&turn, batch, 0).await?;
        drop(turn);
        self.settle().await
    }
}
