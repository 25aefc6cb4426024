//! Scan of a part of a frontier from its first key to its last.

use bytes::Bytes;
use prost::Message;
use slatedb::DbIterator;

use super::FrontierReader;
use crate::FrontierError;
use crate::durable::{decode, failed};
use crawler_model::resource::ShardId;

/// Iterator over records in the order of their keys.
pub(super) struct Records {
    pub(super) shard: ShardId,
    pub(super) entries: DbIterator,
}

impl FrontierReader {
    pub(super) fn damaged(&self, why: String) -> FrontierError {
        let shard = self.shard;
        FrontierError::Damaged { shard, why }
    }
}

impl Records {
    pub(super) async fn next_bytes(&mut self) -> Result<Option<(Bytes, Bytes)>, FrontierError> {
        let entry = self.entries.next().await;
        let entry = entry.map_err(|e| failed(self.shard, "read", &e))?;
        Ok(entry.map(|entry| (entry.key, entry.value)))
    }

    pub(super) async fn next<T: Message + Default>(
        &mut self,
        what: &str,
    ) -> Result<Option<(Bytes, T)>, FrontierError> {
        match self.next_bytes().await? {
            Some((key, value)) => Ok(Some((key, decode(self.shard, &value, what)?))),
            None => Ok(None),
        }
    }
}
