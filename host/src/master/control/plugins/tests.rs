//! What calls do to plugins, against a real store and data root and a twin of admission.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use super::*;
use crate::clock::SystemClock;
use crate::master::WorkerCallError;
use crate::model::id::{PluginName, PluginVersion};
use crate::model::plugin::Description;
use crate::model::resource::ResourceSpec;
use crate::model::status::{CrawlStatus, LogLine};
use crate::plugin::{Admitted, PluginError};
use crate::store::embedded::{EmbeddedStore, Settings};
use crate::store::keys::Keys;

/// Takes any bytes.
struct Anything;

#[async_trait]
impl Admit for Anything {
    async fn admit(&self, bytes: Bytes) -> Result<Admitted, PluginError> {
        Ok(Admitted {
            digest: Digest::of(&bytes),
            size: bytes.len() as u64,
            interface: "0.1.0".to_owned(),
            description: Description {
                name: "books".parse().unwrap(),
                version: "1.0.0".parse().unwrap(),
                rules: Vec::new(),
                schemas: Vec::new(),
                hosts: Vec::new(),
                limits: BTreeMap::new(),
            },
        })
    }
}

struct NoWorkers;

#[async_trait]
impl WorkerCalls for NoWorkers {
    async fn status(
        &self,
        _address: &str,
        _name: Option<&ResourceName>,
    ) -> Result<Vec<CrawlStatus>, WorkerCallError> {
        Ok(Vec::new())
    }

    async fn logs(
        &self,
        _address: &str,
        _name: &ResourceName,
        _follow: bool,
    ) -> Result<BoxStream<'static, Result<LogLine, WorkerCallError>>, WorkerCallError> {
        Ok(futures::stream::empty().boxed())
    }
}

struct Master {
    control: Control,
    folder: tempfile::TempDir,
}

impl Master {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(&folder.path().join("store"), Settings::default());
        let catalog = Catalog::new(Arc::new(store.unwrap()), Keys::default());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let control = Control::new(ControlParts {
            node: "master-1".parse().unwrap(),
            catalog: catalog.clone(),
            data: Arc::new(DataRoot::open(&folder.path().display().to_string()).unwrap()),
            admission: Arc::new(Anything),
            ids: IdIssuer::new(catalog, clock.clone()),
            clock,
            workers: Arc::new(NoWorkers),
            wake: Arc::new(Notify::new()),
            limit_ceilings: LimitOverrides::default(),
            max_plugin_size: 1 << 20,
        });
        Self { control, folder }
    }

    async fn push(&self, name: &str, bytes: &'static str) -> PluginRecord {
        let push_as = (name.parse().unwrap(), version());
        let pushed = self.control.push_plugin(Some(push_as), bytes.into());
        pushed.await.unwrap()
    }

    async fn delete(&self, name: &str) -> Result<(), ControlError> {
        let name: PluginName = name.parse().unwrap();
        self.control.delete_plugin(&name, &version()).await
    }

    fn bytes_of(&self, plugin: &PluginRecord) -> std::path::PathBuf {
        let name = format!("plugins/{}.wasm", plugin.digest);
        self.folder.path().join(name)
    }

    async fn wait_for_plugin(&self, name: &str, plugin: &str) {
        let spec = ResourceSpec {
            name: name.parse().unwrap(),
            plugin: plugin.parse().unwrap(),
            params: BTreeMap::new(),
            limits: LimitOverrides::default(),
            crawl: CrawlSettings::default(),
        };
        assert!(self.control.seed_resource(spec).await.unwrap());
    }
}

fn version() -> PluginVersion {
    "1.0.0".parse().unwrap()
}

#[tokio::test]
async fn bytes_go_with_the_last_version_that_has_them() {
    let master = Master::new();
    let plugin = master.push("one", "bytes").await;
    master.push("two", "bytes").await;
    master.delete("one").await.unwrap();
    assert!(master.bytes_of(&plugin).exists());
    master.delete("two").await.unwrap();
    assert!(!master.bytes_of(&plugin).exists());
}

#[tokio::test]
async fn a_push_brings_back_bytes_that_were_lost_or_damaged() {
    let master = Master::new();
    let plugin = master.push("one", "bytes").await;
    std::fs::remove_file(master.bytes_of(&plugin)).unwrap();
    assert_eq!(master.push("one", "bytes").await, plugin);
    assert_eq!(std::fs::read(master.bytes_of(&plugin)).unwrap(), b"bytes");
    std::fs::write(master.bytes_of(&plugin), "other").unwrap();
    master.push("one", "bytes").await;
    assert_eq!(std::fs::read(master.bytes_of(&plugin)).unwrap(), b"bytes");
}

#[tokio::test]
async fn bytes_without_a_record_are_removed_and_those_with_one_stay() {
    let master = Master::new();
    let kept = master.push("kept", "kept").await;
    // As a push and a deletion leave it that were cut off in between.
    let orphan = PluginRecord {
        digest: Digest::of(b"orphan"),
        ..kept.clone()
    };
    std::fs::write(master.bytes_of(&orphan), "orphan").unwrap();
    assert_eq!(master.control.drop_orphan_plugins().await.unwrap(), 1);
    assert!(master.bytes_of(&kept).exists() && !master.bytes_of(&orphan).exists());
}

#[tokio::test]
async fn nothing_is_removed_where_a_record_cannot_be_read() {
    let master = Master::new();
    let plugin = master.push("one", "bytes").await;
    let catalog = &master.control.parts.catalog;
    let key = catalog.keys().plugin(&plugin.name, &plugin.version);
    let broken = Txn::new().put(key, "{");
    catalog.store().commit(broken).await.unwrap();
    assert_eq!(master.control.drop_orphan_plugins().await.unwrap(), 0);
    assert!(master.bytes_of(&plugin).exists());
}

#[tokio::test]
async fn a_plugin_that_a_resource_waits_for_is_not_deleted() {
    let master = Master::new();
    master.wait_for_plugin("waits", "one").await;
    let plugin = master.push("one", "bytes").await;
    let refused = master.delete("one").await.unwrap_err();
    assert!(
        matches!(refused, ControlError::PluginInUse { .. }),
        "{refused}"
    );
    assert!(master.bytes_of(&plugin).exists());
}
