//! Line files of all resources below one folder, as workers open them and masters read and remove them.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use super::super::items::{Extents, ItemStore, ReadItems};
use super::super::{Delivery, OpenSinks, Sink, SinkError};
use super::disk::{blocking, failed};
use super::{LineFiles, LineReader, LineSettings, names, reader, truncate};
use crawler_model::frontier::SinkMark;
use crawler_model::id::{ResourceId, Run, Shard};
use crawler_model::resource::ShardId;

/// Line files of all shards, below one folder.
#[derive(Debug, Clone)]
pub struct LineFolders {
    items: PathBuf,
    settings: LineSettings,
}

impl LineFolders {
    /// Creates sinks below `items`, with one folder for each resource and in it one for each shard.
    pub fn new(items: PathBuf, settings: LineSettings) -> Self {
        Self { items, settings }
    }

    fn folder(&self, resource: ResourceId) -> PathBuf {
        self.items.join(resource.to_string())
    }

    fn shard_folder(&self, shard: ShardId) -> PathBuf {
        self.folder(shard.resource).join(shard.shard.to_string())
    }
}

#[async_trait]
impl OpenSinks for LineFolders {
    async fn open(&self, delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError> {
        let folder = self.shard_folder(delivery.shard);
        let files = LineFiles::open(folder, delivery.storage_epoch, self.settings.clone());
        Ok(Box::new(files))
    }
}

#[async_trait]
impl ItemStore for LineFolders {
    fn reader(&self, resource: ResourceId, run: Run) -> Box<dyn ReadItems> {
        Box::new(LineReader::new(self.folder(resource), run))
    }

    async fn shards(&self, resource: ResourceId) -> Result<Vec<Shard>, SinkError> {
        let folder = self.folder(resource);
        blocking(&folder.clone(), move || names::shards(&folder)).await
    }

    async fn newest_run(
        &self,
        resource: ResourceId,
        extents: &Arc<Extents>,
    ) -> Result<Option<Run>, SinkError> {
        reader::newest_run(self.folder(resource), extents).await
    }

    async fn settle(&self, shard: ShardId, marks: Vec<SinkMark>) -> Result<(), SinkError> {
        truncate::truncate_to_marks(self.shard_folder(shard), marks).await
    }

    fn open_rest(&self, shard: ShardId, by: u64) -> Box<dyn Sink> {
        let folder = self.folder(shard.resource);
        Box::new(truncate::open_rest(
            &folder,
            shard.shard,
            by,
            self.settings.clone(),
        ))
    }

    async fn publish_rest(&self, resource: ResourceId, by: u64) -> Result<(), SinkError> {
        truncate::publish_rest(self.folder(resource), by).await
    }

    async fn delete(&self, resource: ResourceId) -> Result<(), SinkError> {
        let folder = self.folder(resource);
        match tokio::fs::remove_dir_all(&folder).await {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(failed("delete", &folder)(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_items_of_one_resource_are_deleted_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let lines = LineFolders::new(folder.path().to_owned(), LineSettings::default());
        let path_of = |id| lines.shard_folder(ShardId::only(id)).join("1-1.jsonl");
        for id in [ResourceId(1), ResourceId(11)] {
            std::fs::create_dir_all(path_of(id).parent().unwrap()).unwrap();
            std::fs::write(path_of(id), "{}\n").unwrap();
        }
        for _ in 0..2 {
            lines.delete(ResourceId(1)).await.unwrap();
        }
        assert!(!folder.path().join("1").exists());
        assert!(path_of(ResourceId(11)).exists());
    }
}
