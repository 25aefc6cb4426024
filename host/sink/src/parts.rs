//! Items as part objects in an object store. Objects cannot be appended to, so each write makes one of its own.
//!
//! ```text
//! items/<resource id>/<shard>/<run>/<number of the first item>-<its key>.jsonl    one item record a line
//! ```
//!
//! The name of a part follows from the outbox: it has the number and the key of the first item. A part is created and
//! never replaced, so of all who deliver the same items exactly one has its part kept: an owner before a crash or the
//! one after it, or a leader that delivers what a deleted resource left. A writer whose part exists already takes it
//! over, with all the items that are in it. So no item is lost, and none is stored twice. Every part counts as soon as
//! it exists, and no marks are kept.
//!
//! Items gather for a while, because each part costs a request. After a write that is given up, the part is whole or
//! absent.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::path::Path as ObjectPath;
use object_store::{
    Attribute, Attributes, Error as ObjectError, ObjectStore, ObjectStoreExt as _, PutMode,
    PutOptions,
};

use super::{Gathering, Sink, SinkError, Written, push_line};
use crawler_model::crawl::ItemRecord;

mod folders;
mod names;
mod reader;
#[cfg(test)]
mod tests;

pub use folders::PartFolders;

/// Largest number of items that gather for one part.
const MAX_ITEMS: usize = 20_000;
/// Media type of a part.
const MEDIA_TYPE: &str = "application/x-ndjson";

/// Bounds of part objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartSettings {
    /// Size in bytes at which a part is written. An item is never split, so a part may be larger by one item.
    pub part_bytes: u64,
    /// Time for which items gather until a smaller part is written.
    pub max_wait: Duration,
}

impl Default for PartSettings {
    fn default() -> Self {
        Self {
            part_bytes: 4 << 20,
            max_wait: Duration::from_secs(5),
        }
    }
}

/// Part objects of one shard.
#[derive(Debug)]
struct Parts {
    objects: Arc<dyn ObjectStore>,
    /// Path of the shard's items.
    folder: ObjectPath,
    settings: PartSettings,
}

#[async_trait]
impl Sink for Parts {
    async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let Some(head) = items.first() else {
            return Ok(Written::default());
        };
        let path = names::part(&self.folder, head.run, first, &head.key);
        let (n_items, lines) = self.lines(items)?;
        let options = PutOptions {
            mode: PutMode::Create,
            attributes: Attributes::from_iter([(Attribute::ContentType, MEDIA_TYPE)]),
            ..PutOptions::default()
        };
        match self.objects.put_opts(&path, lines.into(), options).await {
            Ok(_) => Ok(Written {
                n_items,
                ..Written::default()
            }),
            Err(ObjectError::AlreadyExists { .. }) => self.take_over(&path, items).await,
            Err(error) => Err(failed("write", &path, error)),
        }
    }

    fn is_cancel_safe(&self) -> bool {
        true
    }

    fn gathering(&self) -> Gathering {
        Gathering {
            max_items: MAX_ITEMS,
            n_bytes: self.settings.part_bytes,
            max_wait: self.settings.max_wait,
        }
    }
}

impl Parts {
    /// Returns the number of items in the next part, which are all of one run, and the lines of the part.
    fn lines(&self, items: &[ItemRecord]) -> Result<(u64, Vec<u8>), SinkError> {
        let mut lines = Vec::new();
        let mut n_items = 0;
        let run = items.first().map(|head| head.run);
        for record in items.iter().take_while(|item| Some(item.run) == run) {
            if n_items > 0 && lines.len() as u64 >= self.settings.part_bytes {
                break;
            }
            push_line(&mut lines, record)?;
            n_items += 1;
        }
        Ok((n_items, lines))
    }

    /// Takes over a part that exists, after comparing its items with the given ones. It may have more or fewer items.
    async fn take_over(
        &self,
        path: &ObjectPath,
        items: &[ItemRecord],
    ) -> Result<Written, SinkError> {
        let read = async { self.objects.get(path).await?.bytes().await };
        let bytes = read.await.map_err(|e| failed("read", path, e))?;
        let mut n_items = 0;
        for line in bytes.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()) {
            let record = reader::parse(path, line)?;
            if items
                .get(n_items)
                .is_some_and(|item| item.key != record.key)
            {
                return Err(SinkError::Permanent {
                    message: format!(
                        "{path} has other items than the frontier, as if the frontier had been removed; delete the items of the resource, too"
                    ),
                    source: None,
                });
            }
            n_items += 1;
        }
        if n_items == 0 {
            return Err(SinkError::Permanent {
                message: format!("{path} is empty; delete it"),
                source: None,
            });
        }
        Ok(Written {
            n_items: n_items as u64,
            ..Written::default()
        })
    }
}

/// Returns the error of an operation on an object, such as "write". Another try may succeed.
fn failed(doing: &str, path: &ObjectPath, source: ObjectError) -> SinkError {
    SinkError::Retry {
        message: format!("cannot {doing} {path}"),
        source: Some(source.into()),
    }
}
