//! Reads items from part objects while more of them are written, from any process that reaches the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};

use super::{failed, names};
use crate::SinkError;
use crate::items::{Extents, ItemBatch, ReadItems};
use crawler_model::crawl::ItemRecord;
use crawler_model::id::{Run, Shard};

/// Size in bytes of the lines after which a read ends, even with fewer items than were asked for.
const MAX_READ_BYTES: usize = 16 << 20;
/// Number of parts that are listed at once.
const LISTED_AT_ONCE: usize = 1_000;
/// Number of bytes of a part that are read at once; more if a line is longer.
const PIECE_BYTES: u64 = 1 << 20;

/// Reads the items of one run of a resource, in all shards, from the first on.
#[derive(Debug)]
pub(super) struct PartReader {
    objects: Arc<dyn ObjectStore>,
    /// Path of the resource's items.
    folder: ObjectPath,
    run: Run,
    positions: Positions,
}

/// Positions up to which each shard was read, and the shard that was read last.
#[derive(Debug, Clone, Default)]
struct Positions {
    by_shard: BTreeMap<Shard, Position>,
    last: Option<Shard>,
}

#[derive(Debug, Clone, Default)]
struct Position {
    /// Last part that was read to its end.
    done: Option<ObjectPath>,
    /// Number of bytes that were read of the part after it.
    offset: u64,
}

impl PartReader {
    /// Creates a reader of `items/<resource id>`, where there may be nothing yet.
    pub(super) fn new(objects: Arc<dyn ObjectStore>, folder: ObjectPath, run: Run) -> Self {
        Self {
            objects,
            folder,
            run,
            positions: Positions::default(),
        }
    }

    /// Returns the next parts of a shard after the last one that was read, in the order of their items.
    async fn parts(&self, shard: Shard, position: &Position) -> Result<Vec<ObjectMeta>, SinkError> {
        let folder = self.folder.clone().join(shard.to_string());
        let folder = names::of_run(&folder, self.run);
        let listed = match &position.done {
            Some(done) => self.objects.list_with_offset(Some(&folder), done),
            None => self.objects.list(Some(&folder)),
        };
        // Object stores list in the order of names.
        let listed = listed.take(LISTED_AT_ONCE).try_collect().await;
        listed.map_err(|e| failed("list", &folder, e))
    }

    /// Reads the rest of a part. Returns false if the budget was spent before its end.
    async fn read_part(
        &self,
        part: &ObjectMeta,
        offset: &mut u64,
        budget: &mut Budget,
        (shard, items): (Shard, &mut Vec<(Shard, ItemRecord)>),
    ) -> Result<bool, SinkError> {
        let path = &part.location;
        let mut piece_bytes = PIECE_BYTES;
        while *offset < part.size {
            let end = part.size.min(*offset + piece_bytes);
            let piece = self.objects.get_range(path, *offset..end).await;
            let piece: Bytes = piece.map_err(|e| failed("read", path, e))?;
            let mut is_longer = true;
            let is_whole = |line: &&[u8]| line.last() == Some(&b'\n') || end == part.size;
            let lines = piece.split_inclusive(|byte| *byte == b'\n');
            for line in lines.take_while(is_whole) {
                if budget.is_spent(items.len()) {
                    return Ok(false);
                }
                is_longer = false;
                items.push((shard, parse(path, line)?));
                *offset += line.len() as u64;
                budget.n_bytes = budget.n_bytes.saturating_sub(line.len());
            }
            piece_bytes = if is_longer {
                piece_bytes * 2
            } else {
                PIECE_BYTES
            };
        }
        Ok(true)
    }
}

#[async_trait]
impl ReadItems for PartReader {
    async fn read(&mut self, extents: &Arc<Extents>, max: usize) -> Result<ItemBatch, SinkError> {
        let mut positions = self.positions.clone();
        let mut shards: Vec<Shard> = extents.keys().copied().collect();
        // A shard that always has more must not keep the others waiting.
        let n_before = shards.partition_point(|shard| Some(*shard) <= positions.last);
        shards.rotate_left(n_before);
        let mut batch = ItemBatch {
            items: Vec::new(),
            is_end: true,
        };
        let mut budget = Budget {
            max_items: max,
            n_bytes: MAX_READ_BYTES,
        };
        'all: for shard in shards {
            let position = positions.by_shard.entry(shard).or_default();
            loop {
                let parts = self.parts(shard, position).await?;
                let is_last = parts.len() < LISTED_AT_ONCE;
                for part in parts {
                    positions.last = Some(shard);
                    let items = (shard, &mut batch.items);
                    let offset = &mut position.offset;
                    if !self.read_part(&part, offset, &mut budget, items).await? {
                        batch.is_end = false;
                        break 'all;
                    }
                    *position = Position {
                        done: Some(part.location),
                        offset: 0,
                    };
                }
                if is_last {
                    break;
                }
            }
        }
        self.positions = positions;
        Ok(batch)
    }
}

/// Budget that ends a read.
struct Budget {
    max_items: usize,
    n_bytes: usize,
}

impl Budget {
    fn is_spent(&self, n_items: usize) -> bool {
        n_items >= self.max_items || self.n_bytes == 0
    }
}

/// Parses a line of a part.
pub(super) fn parse(path: &ObjectPath, line: &[u8]) -> Result<ItemRecord, SinkError> {
    serde_json::from_slice(line).map_err(|e| SinkError::Permanent {
        message: format!("{path} has a line that is no item"),
        source: Some(e.into()),
    })
}
