//! What the agent does when a crawl goes wrong in a way that nobody thought of.

use std::collections::BTreeMap;

use async_trait::async_trait;
use url::Url;

use super::*;
use crate::clock::SystemClock;
use crate::fetch::{Failure, FetchRequest, Fetched};
use crate::frontier::durable::DurableSettings;
use crate::model::id::{Digest, Incarnation, ResourceId, Run, Shard};
use crate::model::node::Role;
use crate::model::resource::{CrawlSettings, Owner, PinnedPlugin, ShardRecord, ShardState};
use crate::plugin::{PluginError, Rules};
use crate::store::Txn;
use crate::store::catalog::encode;
use crate::store::embedded::{EmbeddedStore, Settings};
use crate::store::keys::Keys;

struct Faulty;

#[async_trait]
impl LoadRules for Faulty {
    async fn load(&self, _digest: Digest) -> Result<Arc<dyn Rules>, PluginError> {
        panic!("on purpose")
    }
}

#[async_trait]
impl Fetch for Faulty {
    async fn fetch(&self, _request: FetchRequest) -> Result<Fetched, Failure> {
        panic!("nothing is fetched")
    }

    fn per_host(&self, _host: &Url, _delay: Option<Duration>) -> u32 {
        1
    }
}

#[tokio::test]
async fn f27_a_panic_in_a_crawl_reaches_whoever_watches_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(&folder.path().join("store"), Settings::default()).unwrap();
    let catalog = Catalog::new(Arc::new(store), Keys::default());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let node = Node {
        id: "worker-1".parse().unwrap(),
        role: Role::Worker,
        address: "127.0.0.1:1".to_owned(),
        incarnation: Incarnation(1),
        labels: BTreeMap::new(),
        capacity: 1,
        version: "0".to_owned(),
        draining: false,
        started_at: 0,
    };
    assign(&catalog, &node).await;
    let data = DataRoot::open(&folder.path().display().to_string()).unwrap();
    let settings = DurableSettings::default();
    let parts = AgentParts {
        node,
        catalog,
        cluster: "c1".to_owned(),
        frontiers: Arc::new(Frontiers::new(data.object_store(), settings)),
        data: Arc::new(data),
        plugins: Arc::new(Faulty),
        fetch: Arc::new(Faulty),
        clock,
        limit_ceilings: LimitOverrides::default(),
        crawls: Crawls::default(),
    };
    let watched = TaskScope::new();
    watched.spawn("agent", run(Arc::new(parts), watched.stop_signal()));
    let failed = watched.failed();
    tokio::time::timeout(Duration::from_secs(60), failed.cancelled())
        .await
        .expect("noticed");
}

async fn assign(catalog: &Catalog, node: &Node) {
    let id = ShardId {
        resource: ResourceId(7),
        shard: Shard(0),
    };
    let owner = Owner {
        node: node.id.clone(),
        incarnation: node.incarnation,
    };
    let resource = Resource {
        id: id.resource,
        assigned_node: String::new(),
        creation_time: 0,
        generation: Generation(1),
        run: Run(1),
        pinned: Some(PinnedPlugin {
            version: "1.0.0".parse().unwrap(),
            digest: Digest::of(b""),
        }),
        spec: ResourceSpec {
            name: "books".parse().unwrap(),
            plugin: "books".parse().unwrap(),
            params: BTreeMap::new(),
            limits: LimitOverrides::default(),
            crawl: CrawlSettings::default(),
        },
    };
    let name = resource.spec.name.clone();
    let shard = ShardRecord {
        owner: Some(owner),
        epoch: Epoch(1),
        state: ShardState::Assigned,
        ..ShardRecord::new(name.clone())
    };
    let mirror = Assignment {
        name: name.clone(),
        epoch: Epoch(1),
        incarnation: node.incarnation,
        generation: Generation(1),
    };
    let keys = catalog.keys();
    let txn = Txn::new()
        .put(keys.resource(&name), encode(&resource))
        .put(keys.shard(id), encode(&shard))
        .put(keys.assignment(&node.id, id), encode(&mirror));
    catalog.store().commit(txn).await.unwrap();
}
