//! Test bench of the calls: twins of the store and of admission.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use bytes::Bytes;
use tempfile::TempDir;

use super::super::*;
use crate::cleanup::DataRootCleanup;
use crate::lists::records;
use crate::reconcile::{
    DeletionSettings, PlacementSettings, ReconcileParts, Reconciler, line_folders,
};
use crate::replica::Replica;
use crate::twin::Workers;
use crate::{Code, ResourceView};
use crawler_model::guest_text::GuestText;
use crawler_model::id::{Digest, Incarnation, RequestId};
use crawler_model::node::{CallToken, Node, Role};
use crawler_model::plugin::{Description, Param, PluginRecord, Schema};
use crawler_model::resource::{
    Assignment, CrawlSettings, Phase, ResourceSpec, ShardId, ShardRecord, ShardState,
};
use crawler_plugin::{Admitted, PluginError};
use crawler_process::clock::SystemClock;
use crawler_process::task::TaskScope;
use crawler_store::catalog::encode;
use crawler_store::election::take_lead;
use crawler_store::keys::Keys;
use crawler_store::racing_store::RacingStore;
use crawler_store::twin::StoreTwin;

fn book((_, schema): (&str, &str)) -> Schema {
    Schema {
        name: "book".to_owned(),
        json_schema: format!("{{{schema}"),
    }
}

fn needed((_, name): (&str, &str)) -> Vec<Param> {
    vec![Param {
        name: name.to_owned(),
        about: GuestText::default(),
        default: None,
        required: true,
    }]
}

/// Admission of bytes like `books@1.0.0`, which stand for a plugin of that name and version.
struct ByText;

#[async_trait]
impl Admit for ByText {
    async fn admit(&self, bytes: Bytes) -> Result<Admitted, PluginError> {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        // The text after a blank distinguishes builds of one version, describes its books, or names a required
        // param. The text after "from" stands for its sources.
        let (name, version) = text.split(' ').next().unwrap().split_once('@').unwrap();
        Ok(Admitted {
            digest: Digest::of(&bytes),
            size: bytes.len() as u64,
            interface: "0.1.0".into(),
            sources: text
                .split_once(" from ")
                .map(|(_, sources)| Digest::of(sources.as_bytes())),
            description: Description {
                name: name.parse().unwrap(),
                version: version.parse().unwrap(),
                rules: Vec::new(),
                schemas: text.split_once(" {").map(book).into_iter().collect(),
                plans: Vec::new(),
                hosts: Vec::new(),
                params: text.split_once(" needs ").map(needed),
                limits: BTreeMap::new(),
            },
        })
    }
}

pub(crate) struct Bench {
    pub(crate) control: Control,
    /// Store that the catalog reads from.
    pub(in crate::control) store: Arc<RacingStore>,
    /// Data root, which is removed after the test.
    folder: TempDir,
    /// Tasks that feed the replicas of reconcilers.
    feeders: TaskScope,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(Arc::new(Workers::at_rest())).await
    }

    pub(in crate::control) async fn with(workers: Arc<dyn WorkerCalls>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(RacingStore::new(Arc::new(StoreTwin::new())));
        let catalog = Catalog::new(store.clone(), Keys::default());
        let clock = Arc::new(SystemClock);
        let data = Arc::new(DataRoot::open(folder.path().to_str().unwrap()).unwrap());
        let control = Control::new(ControlParts {
            election_status: take_lead(&catalog).await,
            catalog: catalog.clone(),
            items: line_folders(&data),
            data,
            sinks: ["db", "feed"].map(|name| name.parse().unwrap()).into(),
            change_sinks: vec!["feed".parse().unwrap()],
            admission: Arc::new(ByText),
            ids: IdIssuer::new(catalog.clone(), clock.clone()),
            clock,
            workers,
            // The replica is not fed, so calls read their records from the store.
            replica: Replica::new(catalog, Strategy::default()).0,
            limit_ceilings: LimitOverrides::default(),
            max_plugin_size: 100,
            strategy: Strategy::default(),
            frontier_readers: 2,
        });
        let feeders = TaskScope::new();
        Self {
            control,
            store,
            folder,
            feeders,
        }
    }

    /// Path of the data root.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn data(&self) -> &DataRoot {
        &self.control.parts.data
    }

    pub(in crate::control) fn set_data(&mut self, data: DataRoot) {
        self.control.parts.data = Arc::new(data);
    }

    pub(in crate::control) fn set_strategy(&mut self, strategy: Strategy) {
        self.control.parts.strategy = strategy;
    }

    pub(in crate::control) fn set_clock(&mut self, clock: Arc<dyn Clock>) {
        self.control.parts.clock = clock;
    }

    /// Creates the calls of another master of the same cluster, which reads and writes by this catalog.
    pub(in crate::control) fn another(&self, clock: Arc<dyn Clock>, catalog: Catalog) -> Control {
        let parts = &self.control.parts;
        Control::new(ControlParts {
            election_status: parts.election_status.clone(),
            catalog: catalog.clone(),
            data: parts.data.clone(),
            items: parts.items.clone(),
            sinks: parts.sinks.clone(),
            change_sinks: parts.change_sinks.clone(),
            admission: parts.admission.clone(),
            ids: IdIssuer::new(catalog.clone(), clock.clone()),
            clock,
            workers: parts.workers.clone(),
            replica: Replica::new(catalog, parts.strategy).0,
            limit_ceilings: parts.limit_ceilings.clone(),
            max_plugin_size: parts.max_plugin_size,
            strategy: parts.strategy,
            frontier_readers: parts.frontier_readers,
        })
    }

    pub(in crate::control) fn catalog(&self) -> &Catalog {
        &self.control.parts.catalog
    }

    pub(in crate::control) async fn register(&self, id: &str, capacity: u32) {
        let node = Node {
            id: id.parse().unwrap(),
            role: Role::Worker,
            address: format!("{id}:1"),
            http: String::new(),
            pprof: String::new(),
            incarnation: Incarnation(1),
            labels: BTreeMap::new(),
            capacity,
            version: "0".into(),
            interface: String::new(),
            draining: false,
            started_at: 0,
            call_token: CallToken::default(),
            shares_turns: false,
            tls: false,
        };
        let key = self.catalog().keys().node(Role::Worker, &node.id);
        self.write(Txn::new().put(key, encode(&node))).await;
    }

    pub(in crate::control) async fn write(&self, txn: Txn) {
        let outcome = self.catalog().store().commit(txn).await.unwrap();
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    }

    pub(in crate::control) async fn push(&self, text: &str) -> Result<PluginRecord, ControlError> {
        let bytes = Bytes::from(text.to_owned());
        self.control.push_plugin(Push::default(), bytes).await
    }

    pub(in crate::control) async fn add(&self, name: &str) -> Result<ResourceView, ControlError> {
        let spec = spec(name, "books");
        self.control.add_resource(spec, &RequestId::random()).await
    }

    pub(in crate::control) async fn update(
        &self,
        name: &str,
        change: impl Fn(&mut ResourceSpec),
    ) -> Result<ResourceView, ControlError> {
        let name = name.parse().unwrap();
        let change = |present: &Resource| {
            let mut spec = present.spec.clone();
            change(&mut spec);
            Ok(spec)
        };
        let request = RequestId::random();
        self.control.update_resource(&name, change, &request).await
    }

    pub(in crate::control) async fn restart(
        &self,
        name: &str,
    ) -> Result<ResourceView, ControlError> {
        let request = RequestId::random();
        let name = name.parse().unwrap();
        self.control
            .restart_resource(&name, unchanged, &request)
            .await
    }

    pub(in crate::control) fn reconciler(&self) -> Reconciler {
        let strategy = self.control.parts.strategy;
        let (replica, feeder) = Replica::new(self.catalog().clone(), strategy);
        let stop = self.feeders.stop_signal();
        self.feeders.spawn("replica", feeder.run(stop));
        let parts = ReconcileParts {
            catalog: self.catalog().clone(),
            cleanup: Arc::new(DataRootCleanup {
                objects: self.control.parts.data.object_store(),
                items: self.control.parts.items.clone(),
                data: self.control.parts.data.clone(),
            }),
            clock: self.control.parts.clock.clone(),
            deletion: DeletionSettings::default(),
            workers: Arc::new(Workers::at_rest()),
            replica,
            placement: PlacementSettings {
                strategy,
                ..PlacementSettings::default()
            },
            lease_ttl: std::time::Duration::from_secs(10),
            counts: Arc::default(),
        };
        let leadership = self.control.leadership().unwrap();
        Reconciler { parts, leadership }
    }

    pub(in crate::control) async fn delete(&self, name: &str) -> Result<(), ControlError> {
        self.control
            .delete_resource(
                &name.parse().unwrap(),
                false,
                Precondition::default(),
                &RequestId::random(),
            )
            .await
    }

    pub(in crate::control) async fn phase(&self, name: &str) -> Phase {
        let name = name.parse().unwrap();
        self.control.resource(&name).await.unwrap().phase
    }

    pub(in crate::control) async fn shard(&self, name: &str) -> (ShardId, ShardRecord) {
        let name = name.parse().unwrap();
        let resource = self.control.present(&name).await.unwrap().unwrap().value;
        let shards = self.control.shards(&resource).await.unwrap();
        let (id, shard) = shards.into_iter().next().unwrap();
        (id, shard.value)
    }

    pub(in crate::control) async fn end(&self, name: &str, state: ShardState) {
        self.record(name, |shard| shard.state = state).await;
    }

    /// Changes the record of a shard, as its worker would do.
    pub(in crate::control) async fn record(
        &self,
        name: &str,
        change: impl FnOnce(&mut ShardRecord),
    ) {
        let (id, mut shard) = self.shard(name).await;
        change(&mut shard);
        let key = self.catalog().keys().shard(id);
        self.write(Txn::new().put(key, encode(&shard))).await;
    }

    /// Checks that resources, shards and assignments match one to one. Returns their number.
    pub(in crate::control) async fn check_consistent(&self) -> usize {
        let (catalog, keys) = (self.catalog(), self.catalog().keys());
        let resources = records::<Resource>(catalog, &keys.resources())
            .await
            .unwrap();
        let shards = records::<ShardRecord>(catalog, &keys.shards())
            .await
            .unwrap();
        let mirrors = records::<Assignment>(catalog, &keys.assignments())
            .await
            .unwrap();
        let by_resource: BTreeSet<_> = resources.iter().map(|(_, r)| r.value.id).collect();
        let by_shard: BTreeSet<_> = shards
            .iter()
            .map(|(key, _)| keys.parse_shard(key).unwrap().resource)
            .collect();
        let by_mirror: BTreeSet<_> = mirrors
            .iter()
            .map(|(key, _)| keys.parse_assignment(key).unwrap().1.resource)
            .collect();
        assert_eq!(
            by_resource.len(),
            resources.len(),
            "every life has its own id"
        );
        assert_eq!(by_resource, by_shard);
        assert_eq!(by_shard, by_mirror);
        assert_eq!(mirrors.len(), shards.len());
        resources.len()
    }

    pub(in crate::control) async fn loads(&self) -> Vec<u32> {
        let view = self.control.nodes().await.unwrap();
        view.nodes.iter().map(|node| node.load).collect()
    }
}

/// Change of a resource that changes nothing.
pub(in crate::control) fn unchanged(present: &Resource) -> Result<ResourceSpec, ControlError> {
    Ok(present.spec.clone())
}

pub(in crate::control) fn spec(name: &str, plugin: &str) -> ResourceSpec {
    ResourceSpec {
        name: name.parse().unwrap(),
        plugin: plugin.parse().unwrap(),
        params: BTreeMap::new(),
        limits: LimitOverrides::default(),
        crawl: CrawlSettings::default(),
        placement: Default::default(),
        labels: Default::default(),
    }
}

#[track_caller]
pub(in crate::control) fn check_refused<T: std::fmt::Debug>(
    result: Result<T, ControlError>,
    code: Code,
    text: &str,
) {
    let error = result.unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), (code, text));
}

/// Creates a bench with a plugin `books` and two workers.
pub(in crate::control) async fn bench() -> Bench {
    let bench = Bench::new().await;
    bench.push("books@1.0.0").await.unwrap();
    bench.register("worker-1", 1_000).await;
    bench.register("worker-2", 1_000).await;
    bench
}
