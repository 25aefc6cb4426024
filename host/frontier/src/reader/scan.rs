//! Scan of a part of a frontier from its first key to its last.

use bytes::Bytes;
use prost::Message;
use slatedb::DbIterator;

use super::{FrontierReader, failed};
use crate::FrontierError;

/// Iterator over records in the order of their keys.
pub(super) struct Records<'a> {
    pub(super) reader: &'a FrontierReader,
    pub(super) entries: DbIterator,
}

impl Records<'_> {
    pub(super) async fn next_bytes(&mut self) -> Result<Option<(Bytes, Bytes)>, FrontierError> {
        let entry = self.entries.next().await;
        let entry = entry.map_err(|e| failed(self.reader.shard, "read", &e))?;
        Ok(entry.map(|entry| (entry.key, entry.value)))
    }

    pub(super) async fn next<T: Message + Default>(
        &mut self,
        what: &str,
    ) -> Result<Option<(Bytes, T)>, FrontierError> {
        match self.next_bytes().await? {
            Some((key, value)) => Ok(Some((key, self.reader.decode(&value, what)?))),
            None => Ok(None),
        }
    }
}
