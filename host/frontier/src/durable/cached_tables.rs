//! Object store of a data root in a bucket, with a cache of tables on the disk of this machine.
//!
//! The database tells what each read is for. Only reads of tables by a frontier or a reader go through the cache, in
//! whole pieces; one request fetches all pieces that a read lacks. Everything else passes by:
//!
//! - manifests and the state of compactions, which other processes change;
//! - the log, which is read once, when a frontier is opened;
//! - reads of compactions, which read each table once;
//! - writes. The database keeps the blocks that it flushes in memory, and those of a compaction are fetched when they
//!   are needed.
//!
//! The database verifies each block that it reads. If the checksum is wrong, it reads once more and says so; the cache
//! forgets the table then.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use chrono::DateTime;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path as ObjectPath;
use object_store::{
    Attributes, CopyOptions, Error, Extensions, GetOptions, GetRange, GetResult, GetResultPayload,
    ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, RenameOptions, Result,
};
use slatedb::object_store_tag::{ObjectStoreCallTag, SstType, TableStoreKind};

use super::disk_cache::{DiskCache, PIECE_BYTES, Pieces};

#[cfg(test)]
mod tests;

/// Object store whose tables are cached.
#[derive(Debug)]
pub(super) struct CachedTables {
    inner: Arc<dyn ObjectStore>,
    cache: Arc<DiskCache>,
}

impl CachedTables {
    /// Creates a store that caches the tables of this one.
    pub(super) fn new(inner: Arc<dyn ObjectStore>, cache: DiskCache) -> Self {
        Self {
            inner,
            cache: Arc::new(cache),
        }
    }

    /// Reads a range of a table, and fetches what is not cached of it. A retry fetches all of it.
    async fn read(
        &self,
        table: &ObjectPath,
        range: Range<u64>,
        is_retry: bool,
        options: GetOptions,
    ) -> Result<GetResult> {
        let cached = match is_retry {
            true => {
                self.cache.forget(table.as_ref());
                None
            }
            false => self.cache.read(table.as_ref(), numbers_of(&range)).await,
        };
        let is_known = cached.is_some();
        // The store tells the size of a table that is not known.
        let (mut table_bytes, mut pieces) = cached.unwrap_or((u64::MAX, Pieces::new()));
        let numbers = numbers_of(&(range.start..range.end.min(table_bytes)));
        let is_missing = |number: &u64| !pieces.contains_key(number);
        let first = numbers.clone().find(is_missing);
        let last = numbers.clone().rfind(is_missing);
        if let Some((first, last)) = first.zip(last) {
            let (fetched_bytes, fetched) = self.fetch(table, first..last + 1, options).await?;
            if is_known && fetched_bytes != table_bytes {
                self.cache.forget(table.as_ref());
                return Err(failed("the table has another size than before"));
            }
            table_bytes = fetched_bytes;
            let new = fetched.iter().filter(|(number, _)| is_missing(number));
            let new = new
                .map(|(number, piece)| (*number, piece.clone()))
                .collect();
            self.cache.write(table.as_ref(), table_bytes, new);
            pieces.extend(fetched);
        }
        let range = range.start..range.end.min(table_bytes);
        let joined = join(&pieces, &range);
        let bytes = joined.ok_or_else(|| failed("the table ends before what is to be read"))?;
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::once(async move { Ok(bytes) }).boxed()),
            meta: ObjectMeta {
                location: table.clone(),
                // The database asks for the size only.
                last_modified: DateTime::UNIX_EPOCH,
                size: table_bytes,
                e_tag: None,
                version: None,
            },
            range,
            attributes: Attributes::new(),
            extensions: Extensions::new(),
        })
    }

    /// Fetches pieces of a table with one request. Returns the size of the table in bytes, and the pieces.
    async fn fetch(
        &self,
        table: &ObjectPath,
        numbers: Range<u64>,
        options: GetOptions,
    ) -> Result<(u64, Pieces)> {
        let start = numbers.start.saturating_mul(PIECE_BYTES);
        let end = numbers.end.saturating_mul(PIECE_BYTES);
        let options = GetOptions {
            range: Some(GetRange::Bounded(start..end)),
            ..options
        };
        let answer = self.inner.get_opts(table, options).await?;
        let table_bytes = answer.meta.size;
        let mut rest = answer.bytes().await?;
        if rest.len() as u64 != end.min(table_bytes).saturating_sub(start) {
            return Err(failed("the answer has not all bytes that were asked for"));
        }
        let mut pieces = Pieces::new();
        for number in numbers {
            let piece = rest.split_to(rest.len().min(PIECE_BYTES as usize));
            if piece.is_empty() {
                break;
            }
            pieces.insert(number, piece);
        }
        Ok((table_bytes, pieces))
    }
}

/// Returns the tag and the range of a read that goes through the cache; `None` if it passes by.
fn cached_range(options: &GetOptions) -> Option<(ObjectStoreCallTag, Range<u64>)> {
    let tag = ObjectStoreCallTag::from_extensions(&options.extensions)?;
    let is_kept = matches!(tag.kind, TableStoreKind::Main | TableStoreKind::Reader);
    let is_cached = is_kept && tag.sst_type == SstType::Compacted && !options.head;
    match &options.range {
        Some(GetRange::Bounded(range)) if is_cached && !range.is_empty() => {
            Some((tag, range.clone()))
        }
        _ => None,
    }
}

/// Returns the numbers of the pieces that cover a range.
fn numbers_of(range: &Range<u64>) -> Range<u64> {
    range.start / PIECE_BYTES..range.end.div_ceil(PIECE_BYTES)
}

/// Returns the bytes of a range. `None` if the range is empty, or the pieces do not cover it.
///
/// The bytes are copied: the database keeps them in memory, and a slice would keep whole pieces there.
fn join(pieces: &Pieces, range: &Range<u64>) -> Option<Bytes> {
    if range.is_empty() {
        return None;
    }
    let mut joined = BytesMut::with_capacity((range.end - range.start) as usize);
    for number in numbers_of(range) {
        let start = number * PIECE_BYTES;
        let from = range.start.saturating_sub(start) as usize;
        let to = (range.end - start).min(PIECE_BYTES) as usize;
        joined.extend_from_slice(pieces.get(&number)?.get(from..to)?);
    }
    Some(joined.freeze())
}

fn failed(why: &'static str) -> Error {
    Error::Generic {
        store: "cache of blocks",
        source: why.into(),
    }
}

impl fmt::Display for CachedTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ObjectStore for CachedTables {
    async fn put_opts(
        &self,
        location: &ObjectPath,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        // A table is written again only if an answer was lost.
        self.cache.forget(location.as_ref());
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.cache.forget(location.as_ref());
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        let Some((tag, range)) = cached_range(&options) else {
            return self.inner.get_opts(location, options).await;
        };
        self.read(location, range, tag.retry.is_some(), options)
            .await
    }

    async fn get_ranges(&self, location: &ObjectPath, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<ObjectPath>>,
    ) -> BoxStream<'static, Result<ObjectPath>> {
        let cache = Arc::clone(&self.cache);
        let deleted = self.inner.delete_stream(locations);
        let forget = move |location: &ObjectPath| cache.forget(location.as_ref());
        deleted.inspect_ok(forget).boxed()
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&ObjectPath>,
        offset: &ObjectPath,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: CopyOptions,
    ) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: RenameOptions,
    ) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}
