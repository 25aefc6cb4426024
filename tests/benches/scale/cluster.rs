//! Etcd, masters and simulated workers, with everything in the store before the masters lead.

use std::time::Instant;

use crawler_model::id::ResourceId;
use crawler_model::plugin::PluginRecord;
use crawler_model::resource::{ShardId, ShardRecord};
use crawler_store::keys::Keys;
use crawler_tests::cluster::{Cluster as Base, Node};
use crawler_tests::etcd::Etcd;
use crawler_tests::http::block_on;
use crawler_tests::{PATIENCE, until};
use etcd_client::{Client, Txn};

use crate::Size;
use crate::seed::Seeds;
use crate::workers::{Workers, connect};

pub(crate) struct Cluster {
    pub(crate) size: Size,
    /// Masters; they end before the store and the workers.
    pub(crate) masters: Vec<Node>,
    pub(crate) workers: Workers,
    pub(crate) seeds: Seeds,
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) etcd: Client,
    /// Client over HTTP. Its connections are kept, as those to etcd are.
    pub(crate) http: reqwest::Client,
    pub(crate) base: Base,
    n_started: u64,
    n_unplaced: u64,
}

impl Cluster {
    /// Starts everything. If etcd is not installed, it says so and returns `None`.
    pub(crate) fn begin(size: Size) -> Option<Self> {
        let base = Base::on(Etcd::with(&["--quota-backend-bytes=8589934592"])?);
        let endpoint = base.etcd.endpoints().remove(0);
        let plugin = push(&base);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime starts");
        let etcd = runtime.block_on(connect(&endpoint));
        let seeds = Seeds {
            keys: Keys::default(),
            plugin,
            n_workers: size.n_workers,
        };
        let begun = Instant::now();
        let workers = Workers::begin(&endpoint, size);
        println!("workers registered in {:.1?}", begun.elapsed());
        let begun = Instant::now();
        runtime.block_on(seeds.write(&etcd, size.n_resources));
        println!("resources written in {:.1?}", begun.elapsed());
        let mut cluster = Self {
            size,
            masters: Vec::new(),
            workers,
            seeds,
            runtime,
            etcd,
            http: crawler_tests::http::client(),
            base,
            n_started: 0,
            n_unplaced: 0,
        };
        for _ in 0..size.n_masters {
            cluster.start_master();
        }
        cluster.base.leader_beside(&[]);
        let first = cluster.add_unplaced("first");
        cluster.placed(first);
        Some(cluster)
    }

    /// Writes a resource without a worker straight to the store: the leader finds it in its next full pass.
    /// Returns its id.
    pub(crate) fn add_unplaced(&mut self, name: &str) -> u64 {
        self.n_unplaced += 1;
        let id = self.size.n_resources + self.n_unplaced;
        let puts = self.seeds.unplaced(name, id);
        wait(self, async {
            let mut client = self.etcd.clone();
            let put = client.txn(Txn::new().and_then(puts)).await;
            put.expect("etcd takes a resource");
        });
        id
    }

    /// Waits until the resource of this id has a worker.
    pub(crate) fn placed(&self, id: u64) {
        // The record is read without etcdctl, which would take a part of the processors each time.
        let shard = self.seeds.keys.shard(ShardId::only(ResourceId(id)));
        until("a pass of the leader", PATIENCE * 5, || {
            let mut client = self.etcd.clone();
            let got = wait(self, async { client.get(shard.as_str(), None).await });
            let got = got.expect("etcd answers");
            let record = got.kvs().first().expect("it was written").value().to_vec();
            let record: ShardRecord = serde_json::from_slice(&record).expect("it is a shard");
            record.owner.map(drop)
        });
    }

    pub(crate) fn start_master(&mut self) {
        self.n_started += 1;
        let lease = format!("--lease-ttl={}s", self.size.lease.as_secs());
        let id = self.n_started.to_string();
        let master = self.base.master(&id, &[&lease, "--pprof=:0"]);
        self.masters.push(master);
    }

    pub(crate) fn leader(&self) -> &Node {
        let leader = self.base.leader_beside(&[]);
        let leader = self.masters.iter().find(|master| master.id == leader);
        leader.expect("one of the masters leads")
    }
}

/// Pushes the plugin that all resources run, through a master that is gone afterwards.
fn push(base: &Base) -> PluginRecord {
    let master = base.master("0", &["--lease-ttl=2s"]);
    base.leader_beside(&[]);
    until("the plugin", PATIENCE, || {
        let path = crawler_tests::guests::guest("puppet").display().to_string();
        (master.cli(base, &["plugin", "push", &path]).code == Some(0)).then_some(())
    });
    master.stop();
    let key = base.keys("plugins/puppet/").remove(0);
    let record = base.record(&format!("plugins/puppet/{key}"));
    serde_json::from_value(record.expect("it was listed")).expect("a plugin's record")
}

/// Waits for a future on the cluster's own runtime.
pub(crate) fn wait<T>(cluster: &Cluster, work: impl Future<Output = T>) -> T {
    cluster.runtime.block_on(work)
}

/// Size of the whole database, as etcd counts it: bytes on the disk.
pub(crate) fn database_bytes(endpoint: &str) -> u64 {
    block_on(async {
        let mut client = connect(endpoint).await;
        let status = client.status().await.expect("etcd tells its size");
        u64::try_from(status.db_size()).expect("a size is not negative")
    })
}
