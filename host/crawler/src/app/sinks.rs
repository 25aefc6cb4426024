//! Sinks of this process: the kinds that there are, by name, and the items that can be read back.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crawler_data::DataRoot;
use crawler_model::resource::ResourceSpec;
use crawler_sink::items::ItemStore;
use crawler_sink::lines::{LineFolders, LineSettings};
use crawler_sink::parts::{PartFolders, PartSettings};
use crawler_sink::{Delivery, OpenSinks, Sink, SinkError};

/// Name of lines in the data root: files in a folder, part objects in a bucket.
const LINES: &str = "lines";

/// Returns the sinks that the resources of this process can have.
pub(super) fn sinks(data: &DataRoot, parts: PartSettings) -> Arc<dyn OpenSinks> {
    let lines: Arc<dyn OpenSinks> = match data.items_root() {
        Some(folder) => Arc::new(files(folder)),
        None => Arc::new(objects(data, parts)),
    };
    Arc::new(SinkKinds(BTreeMap::from([(LINES, lines)])))
}

/// Returns the items that masters read and remove.
pub(super) fn items(data: &DataRoot, parts: PartSettings) -> Arc<dyn ItemStore> {
    match data.items_root() {
        Some(folder) => Arc::new(files(folder)),
        None => Arc::new(objects(data, parts)),
    }
}

fn files(folder: PathBuf) -> LineFolders {
    LineFolders::new(folder, LineSettings::default())
}

fn objects(data: &DataRoot, parts: PartSettings) -> PartFolders {
    PartFolders::new(data.object_store(), data.items_path(), parts)
}

/// Kinds of sinks by name.
struct SinkKinds(BTreeMap<&'static str, Arc<dyn OpenSinks>>);

#[async_trait]
impl OpenSinks for SinkKinds {
    async fn open(&self, delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError> {
        let kind = kind_of(&delivery.spec);
        let Some(sinks) = self.0.get(kind) else {
            let version = env!("CARGO_PKG_VERSION");
            // The items wait: the worker that takes the shard over may know the kind.
            return Err(SinkError::Retry {
                message: format!("crawler {version} has no sink {kind}; upgrade this worker"),
                source: None,
            });
        };
        sinks.open(delivery).await
    }
}

/// Returns the kind of sink that a resource asks for. As yet, there is no setting to ask with.
fn kind_of(_spec: &ResourceSpec) -> &'static str {
    LINES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::{ResourceId, Run};
    use crawler_model::resource::ShardId;

    #[tokio::test]
    async fn a_kind_of_sink_that_is_not_there_is_named() {
        let delivery = Delivery {
            shard: ShardId::only(ResourceId(7)),
            run: Run(1),
            storage_epoch: 1,
            spec: serde_json::from_str(r#"{"name":"books","plugin":"books"}"#).unwrap(),
        };
        let opened = SinkKinds(BTreeMap::new()).open(&delivery).await;
        let error = opened.err().unwrap().to_string();
        assert!(error.contains(" has no sink lines; "), "{error}");
    }
}
