//! Tests of masters and workers in one process, on one embedded store, with clocks that a test turns.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::*;
use crate::cli::engine::EngineOptions;
use crate::cli::exposure::Exposure;
use crate::cli::{CallOptions, MetricsOptions, WantedId};
use crate::config::{EtcdConfig, FileConfig};
use crawler_api::requests::RequestSettings;
use crawler_master::reconcile::PlacementSettings;
use crawler_model::node::Contender;
use crawler_model::plugin::LimitOverrides;
use crawler_store::Revision;
use crawler_store::catalog::Catalog;
use crawler_store::embedded::{EmbeddedStore, Settings};
use crawler_store::keys::Keys;

mod apply;
mod traces;

const TTL: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);
const DAY: i64 = 24 * 60 * 60 * 1_000_000_000;

/// The machine's clock with an offset.
#[derive(Default)]
struct TurnedClock {
    turned: AtomicI64,
}

impl Clock for TurnedClock {
    fn unix_nanos(&self) -> u64 {
        let turned = self.turned.load(Ordering::Relaxed);
        SystemClock.unix_nanos().saturating_add_signed(turned)
    }
}

pub(in crate::app) fn options(folder: &Path, id: &str) -> NodeOptions {
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    NodeOptions {
        id: WantedId::Is(id.parse().unwrap()),
        http: free,
        grpc: free,
        exposure: Exposure::default(),
        pprof: None,
        advertise: None,
        join: None,
        etcd: EtcdConfig::default(),
        data: folder.join("data").display().to_string(),
        config: FileConfig::default(),
        engine: EngineOptions::in_folder(folder.join(id)),
        requests: RequestSettings::default(),
        metrics: MetricsOptions::default(),
        lease_ttl: TTL,
        limit_ceilings: LimitOverrides::default(),
        frontier_min_age: Duration::from_secs(60),
    }
}

/// Returns the keys of all nodes and of the election, each with the revision that wrote it.
async fn members(catalog: &Catalog) -> Vec<(String, Revision)> {
    let keys = catalog.keys();
    let mut members = Vec::new();
    for prefix in [keys.all_nodes(), keys.election()] {
        let listing = catalog.store().list(&prefix).await.unwrap();
        members.extend(listing.entries.into_iter().map(|e| (e.key, e.revision)));
    }
    members
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_that_step_a_day_both_ways_move_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(&store, Settings::default()).unwrap());
    let catalog = Catalog::new(store.clone(), Keys::default());
    let clock = Arc::new(TurnedClock::default());
    let mut processes = Vec::new();
    for id in ["master-1", "master-2"] {
        let options = MasterOptions {
            node: options(folder.path(), id),
            calls: CallOptions::default(),
            compaction: None,
            placement: PlacementSettings::default(),
        };
        let master = start_master(&options, store.clone(), clock.clone());
        processes.push(master.await.unwrap());
    }
    let worker = ClusterWorkerOptions {
        node: options(folder.path(), "worker-1"),
        capacity: 1,
        labels: BTreeMap::new(),
        allow_networks: Vec::new(),
        allow_ports: Vec::new(),
        drain_timeout: Duration::ZERO,
        shared_turns: true,
    };
    let worker = start_worker(&worker, store.clone(), clock.clone());
    processes.push(worker.await.unwrap());
    let all_there = async {
        while members(&catalog).await.len() < 5 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all_there)
        .await
        .expect("in time");
    let before = members(&catalog).await;
    let leader: Contender = crawler_store::election::current_leader(&catalog)
        .await
        .unwrap()
        .expect("one of them leads");
    for turned in [DAY, -DAY] {
        clock.turned.store(turned, Ordering::Relaxed);
        // A lease that went by the clock would be over by now.
        tokio::time::sleep(TTL * 2).await;
        assert_eq!(members(&catalog).await, before);
    }
    let present = crawler_store::election::current_leader(&catalog)
        .await
        .unwrap();
    assert_eq!(present, Some(leader));
    for process in processes {
        process.stop().await;
    }
    assert_eq!(members(&catalog).await, []);
}
