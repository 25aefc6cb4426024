//! Sink of items in files of a folder or a bucket: JSON lines, CSV and Parquet, in folders that a template names.
//!
//! Items gather for one write, and each kind and folder of them is a file of it. Before the first file is written, the
//! frontier keeps the plan of the write: how many items it has, and the names of all files. So whoever goes on after a crash
//! writes the same files: those that are there are taken over, whole as they are, and the others are made. Then the frontier
//! forgets the plan in the batch that removes the items. No item is lost, and none is there twice.
//!
//! If the settings of the sink have changed in between, the files of the plan are removed and the items are planned anew.
//!
//! ```text
//! settings    formats, settings, and their ranges
//! partition   template of the folders of files
//! table       items as rows of a table
//! encode      items as the bytes of a file
//! columns     files of Parquet
//! plan        files that a range of items becomes, as the frontier keeps it
//! place       folders and buckets
//! compact     many small files become few large ones
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::ObjectStore;
use object_store::path::Path as ObjectPath;

use crawler_model::crawl::ItemRecord;
use crawler_model::plugin::Schema;
use crawler_model::resource::ShardId;
use crawler_process::task;
use crawler_sink::settings::SettingError;
use crawler_sink::{
    CheckSink, Delivery, Gathering, OpenSinks, Sink, SinkCheck, SinkError, Written,
};

use encode::Contents;
use place::{OpenPlace, Place};
use plan::{MAX_ITEMS, Plan, PlannedFile};
use table::Table;

mod columns;
mod compact;
mod encode;
mod partition;
mod place;
mod plan;
mod settings;
mod table;
#[cfg(test)]
mod tests;

pub use compact::{CompactSettings, Compacted, Made, Notice};
pub use partition::{Partition, PartitionError};
pub use settings::{FileSettings, Format, FormatError};

/// Files of all shards of a process in one place.
#[derive(Debug, Clone)]
pub struct FileSinks {
    place: Place,
    settings: FileSettings,
}

impl FileSinks {
    /// Creates the sinks of a folder, which is never made: it may be a disk that is not mounted.
    ///
    /// # Errors
    ///
    /// A setting is out of range.
    pub fn in_folder(folder: PathBuf, settings: FileSettings) -> Result<Self, SettingError> {
        settings.check()?;
        let place = Place::Folder(folder);
        Ok(Self { place, settings })
    }

    /// Creates the sinks of a bucket, which messages call `shown`. Nothing is sent before the first write.
    ///
    /// # Errors
    ///
    /// A setting is out of range.
    pub fn in_bucket(
        objects: Arc<dyn ObjectStore>,
        shown: String,
        settings: FileSettings,
    ) -> Result<Self, SettingError> {
        settings.check()?;
        let place = Place::Bucket(objects, shown);
        Ok(Self { place, settings })
    }
}

#[async_trait]
impl OpenSinks for FileSinks {
    async fn open(&self, delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError> {
        let plan = Plan::pending(&delivery.marks)?;
        let schemas = delivery.schemas.iter();
        let tables = schemas.map(|schema| (schema.name.clone(), Table::new(Some(schema))));
        let other_kinds = delivery.other_kinds.clone().map(|json_schema| Schema {
            name: String::new(),
            json_schema,
        });
        Ok(Box::new(FileSink {
            place: self.place.clone(),
            opened: None,
            settings: self.settings.clone(),
            shard: delivery.shard,
            resource: delivery.spec.name.to_string(),
            tables: tables.collect(),
            other_kinds: other_kinds
                .map_or_else(Table::default, |schema| Table::new(Some(&schema))),
            has_begun: plan.is_some(),
            plan,
            has_asked: false,
            is_new: true,
        }))
    }
}

#[async_trait]
impl CheckSink for FileSinks {
    async fn check(&self) -> Result<SinkCheck, SinkError> {
        self.place.open().await?.try_out().await?;
        let (place, format) = (self.place.shown(), self.settings.format);
        let partition = &self.settings.partition;
        Ok(SinkCheck {
            would_create: vec![format!(
                "files of {format}: {place}/{partition}/RESOURCE-ID-SHARD-NUMBER-DIGEST.{format}"
            )],
        })
    }
}

/// Files of one shard.
struct FileSink {
    place: Place,
    /// `None` until it is needed, and after an error.
    opened: Option<OpenPlace>,
    settings: FileSettings,
    shard: ShardId,
    /// Name of the resource.
    resource: String,
    /// Columns by kind of items.
    tables: BTreeMap<String, Table>,
    /// Table of all other kinds.
    other_kinds: Table,
    /// Plan whose files may be there in part.
    plan: Option<Plan>,
    /// True if somebody may have begun to write the files of the plan. A compaction may have taken them since.
    has_begun: bool,
    /// True if the caller was asked for as many items as the plan has.
    has_asked: bool,
    /// True until the first write, for which items do not gather.
    is_new: bool,
}

#[async_trait]
impl Sink for FileSink {
    async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        if items.is_empty() {
            return Ok(Written::default());
        }
        let written = Box::pin(self.try_write(first, items)).await;
        if written.is_err() {
            // A folder that comes back is another one.
            self.opened = None;
        }
        written
    }

    /// A file that is given up is there as a whole, or not at all, and the frontier keeps the plan.
    fn is_cancel_safe(&self) -> bool {
        true
    }

    /// Returns no time to wait if items are planned: they have gathered.
    fn gathering(&self) -> Gathering {
        Gathering {
            max_items: MAX_ITEMS,
            n_bytes: self.settings.max_file_bytes,
            max_wait: match &self.plan {
                Some(_) => Duration::ZERO,
                None => self.settings.max_wait,
            },
        }
    }
}

/// Returns the result of a write that only keeps a plan in the frontier.
fn announced(plan: &Plan) -> Written {
    Written {
        mark: Some(plan.to_mark()),
        ..Written::default()
    }
}

impl FileSink {
    async fn try_write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let is_new = std::mem::take(&mut self.is_new);
        let Some(plan) = self.plan.clone() else {
            return match is_new {
                // The next items gather first, so that each opening does not begin with a small file.
                true => Ok(announced(&Plan::default())),
                false => self.announce(first, items),
            };
        };
        if plan.is_dropped(&self.settings, first) {
            // The resource had lost the sink, and its items were dropped. The files that are there stay.
            return self.announce(first, items);
        }
        let is_same = plan.first == first;
        if is_same && plan.n_items > items.len() as u64 && !self.has_asked {
            self.has_asked = true;
            return Ok(Written {
                n_items: plan.n_items,
                ..Written::default()
            });
        }
        let given = items.get(..plan.n_items as usize).filter(|_| is_same);
        let files = given.map(|given| self.files(first, given)).transpose()?;
        let files = files.filter(|files| plan.is_of(files));
        let Some((given, files)) = given.zip(files) else {
            self.undo(&plan).await?;
            return self.announce(first, items);
        };
        self.finish(given, &files).await?;
        self.plan = None;
        self.has_asked = false;
        Ok(Written {
            n_items: plan.n_items,
            ..announced(&Plan::default())
        })
    }

    /// Plans the next write, which begins once the frontier has the plan.
    fn announce(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let n_items = plan::n_planned(&self.settings, &self.resource, items);
        let files = self.files(first, &items[..n_items])?;
        let plan = Plan::of(&self.settings, first, n_items, &files);
        let written = announced(&plan);
        self.plan = Some(plan);
        self.has_begun = false;
        self.has_asked = false;
        Ok(written)
    }

    fn files(&self, first: u64, items: &[ItemRecord]) -> Result<Vec<PlannedFile>, SinkError> {
        let of = (self.shard, self.resource.as_str());
        plan::files(&self.settings, of, first, items)
    }

    /// Writes the files of a plan that are not there.
    async fn finish(
        &mut self,
        items: &[ItemRecord],
        files: &[PlannedFile],
    ) -> Result<(), SinkError> {
        let opened = self.opened().await?;
        let format = self.settings.format;
        let is_repeated = std::mem::replace(&mut self.has_begun, true);
        for file in files {
            if is_repeated && compact::was_taken(&opened, &file.path).await? {
                continue;
            }
            let records = file.places.iter().map(|place| items[*place].clone());
            let contents = Contents {
                resource: self.resource.clone(),
                table: self
                    .tables
                    .get(&file.kind)
                    .unwrap_or(&self.other_kinds)
                    .clone(),
                records: records.collect(),
            };
            let encoded = task::blocking(move || contents.encode(format)).await;
            let bytes = encoded.map_err(|stopping| SinkError::Retry {
                message: format!("cannot encode {}", file.path),
                source: Some(stopping.into()),
            })??;
            let media_type = format.media_type();
            opened.create(&file.path, bytes, media_type).await?;
            // It may have been taken, and removed, just before it was written.
            if is_repeated && compact::was_taken(&opened, &file.path).await? {
                opened.remove(&file.path).await?;
            }
        }
        Ok(())
    }

    /// Removes the files of a plan that nobody can finish, because the settings of the sink have changed.
    async fn undo(&mut self, plan: &Plan) -> Result<(), SinkError> {
        let opened = self.opened().await?;
        tracing::warn!(
            resource = self.resource,
            n_files = plan.paths.len(),
            "the settings of a sink have changed while files were written; they are written anew"
        );
        for path in &plan.paths {
            let path = ObjectPath::parse(path).map_err(|error| SinkError::Permanent {
                message: format!("{path:?} is no path of a file"),
                source: Some(error.into()),
            })?;
            opened.remove(&path).await?;
            if !compact::take_back(&opened, &path).await? {
                let shown = opened.path_shown(&path);
                let why = "it was compacted before its write was done";
                return Err(SinkError::Retry {
                    message: format!(
                        "cannot write the items of {shown} by other settings, because {why}; give the sink the settings that it had, until nothing is undelivered"
                    ),
                    source: None,
                });
            }
        }
        Ok(())
    }

    async fn opened(&mut self) -> Result<OpenPlace, SinkError> {
        if let Some(opened) = &self.opened {
            return Ok(opened.clone());
        }
        let opened = self.place.open().await?;
        self.opened = Some(opened.clone());
        Ok(opened)
    }
}
