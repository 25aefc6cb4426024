//! Tests of crawls of several shards in one process, over a site of many hosts.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use object_store::memory::InMemory;

use super::*;
use crate::doubles::{Graph, Kept, in_time, memory, parts, report, settings, whole};
use crate::end::CrawlEnd;
use crate::parts::CrawlParts;
use crate::peers::{Idle, LinkTransport, LinkTransportError};
use crate::run::run;
use crawler_frontier::durable::{DurableSettings, Frontiers};
use crawler_frontier::suite::links::ALL;
use crawler_frontier::{Frontier, LinkBatch, OpenFrontiers as _, OpenOptions};
use crawler_model::crawl::{Page, PageContext};
use crawler_model::id::ResourceId;
use crawler_model::plugin::Description;
use crawler_model::resource::{CrawlSettings, ShardId};
use crawler_plugin::{CallConfig, CallReport, Rules};
use crawler_process::task::TaskScope;

mod nobody;

/// Owners of the shards; every third call has no answer, and every fifth does not arrive.
struct Process {
    frontiers: Mutex<Vec<Arc<dyn Frontier>>>,
    idle: Vec<Idle>,
    n_calls: AtomicUsize,
    receivers: TaskScope,
}

struct Neighbours {
    own: Shard,
    process: Arc<Process>,
}

#[async_trait]
impl LinkTransport for Neighbours {
    async fn send_links(&self, to: Shard, batch: LinkBatch) -> Result<u64, LinkTransportError> {
        let failed = |why: &str| LinkTransportError {
            to,
            why: why.to_owned(),
        };
        let n_calls = self.process.n_calls.fetch_add(1, Ordering::Relaxed);
        if n_calls % 5 == 4 {
            return Err(failed("lost"));
        }
        let frontier = self.process.frontiers.lock().unwrap()[to.0 as usize].clone();
        let (from, batch) = (self.own, batch.clone());
        let (tell, told) = tokio::sync::oneshot::channel();
        // The sender of links may be killed meanwhile, which must not affect this task.
        self.process.receivers.spawn("receiver", async move {
            let applied = frontier.apply(from, batch, ALL).await;
            let settled = frontier.settle().await;
            drop(tell.send(settled.and(applied)));
        });
        let applied = told.await.map_err(|_| failed("gone"))?;
        let applied = applied.map_err(|e| failed(&e.to_string()))?;
        self.process.idle[to.0 as usize].end();
        match n_calls % 3 {
            2 => Err(failed("no answer")),
            _ => Ok(applied),
        }
    }
}

impl Process {
    fn is_over(&self) -> bool {
        let totals = || {
            let frontiers = self.frontiers.lock().unwrap();
            frontiers
                .iter()
                .map(|f| f.link_totals())
                .collect::<Vec<_>>()
        };
        if !self.idle.iter().all(Idle::is_on) {
            return false;
        }
        let totals = totals();
        let n = |map: &BTreeMap<u32, u64>, other: usize| map.get(&(other as u32)).copied();
        totals.iter().enumerate().all(|(a, one)| {
            let mut others = totals.iter().enumerate();
            others.all(|(b, other)| n(&one.sent, b) == n(&other.applied, a))
        })
    }
}

/// Creates a process with these frontiers.
fn process(frontiers: Vec<Arc<dyn Frontier>>) -> Arc<Process> {
    Arc::new(Process {
        idle: frontiers.iter().map(|_| Idle::default()).collect(),
        frontiers: Mutex::new(frontiers),
        n_calls: AtomicUsize::new(0),
        receivers: TaskScope::new(),
    })
}

impl Process {
    fn peers(self: &Arc<Self>, own: u32) -> PeerShards {
        let own = Shard(own);
        let transport = Arc::new(Neighbours {
            own,
            process: self.clone(),
        });
        PeerShards {
            own,
            n_shards: NonZeroU32::new(self.idle.len() as u32).unwrap(),
            transport,
            idle: self.idle[own.0 as usize].clone(),
        }
    }

    async fn crawl(
        self: &Arc<Self>,
        own: u32,
        settings: CrawlSettings,
        kept: Kept,
        stop: CancellationToken,
    ) -> CrawlEnd {
        let frontier = self.frontiers.lock().unwrap()[own as usize].clone();
        let parts = parts(frontier, Some(self.peers(own)), settings);
        run(parts, Box::new(kept), stop).await
    }

    /// Ends all crawls once everything is done.
    async fn stop_when_over(&self, stop: &CancellationToken) {
        while !self.is_over() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    }
}

#[tokio::test]
async fn several_shards_give_what_one_gives() {
    let (expected, n_expected) = whole().await;
    assert!(n_expected > 200, "{n_expected}");
    let process = process((0..4).map(|_| memory()).collect());
    let (kept, stop) = (Kept::default(), CancellationToken::new());
    let crawls = (0..4).map(|own| process.crawl(own, settings(), kept.clone(), stop.clone()));
    let crawls = join_all(crawls);
    let (ends, ()) = in_time(async { tokio::join!(crawls, process.stop_when_over(&stop)) }).await;
    assert_eq!(ends, vec![CrawlEnd::Stopped; 4]);
    let n_items = kept.n_items();
    assert_eq!((kept.items(), n_items), (expected, n_expected));
    let sent = process.frontiers.lock().unwrap()[0].link_totals().sent;
    assert_eq!(sent.len(), 3, "each other has links of it: {sent:?}");
    let frontiers = process.frontiers.lock().unwrap().clone();
    let hosts: Vec<u64> = frontiers.iter().map(|f| f.counts().parsed).collect();
    assert!(hosts.iter().all(|n| *n > 0), "{hosts:?}");
}

async fn open(objects: &Arc<InMemory>, shard: u32) -> Arc<dyn Frontier> {
    open_with(objects, shard, Duration::from_millis(5)).await
}

/// Opens a frontier whose batches become durable at this interval.
async fn open_with(
    objects: &Arc<InMemory>,
    shard: u32,
    flush_interval: Duration,
) -> Arc<dyn Frontier> {
    let settings = DurableSettings {
        flush_interval,
        ..DurableSettings::default()
    };
    let frontiers = Arc::new(Frontiers::new(objects.clone(), settings));
    let shard = ShardId {
        resource: ResourceId(1),
        shard: Shard(shard),
    };
    let storage_epoch = frontiers.storage_epoch(shard).await.unwrap();
    let open_options = OpenOptions {
        created: storage_epoch > 0,
        storage_epoch,
        ..OpenOptions::first(shard)
    };
    frontiers.open(open_options).await.unwrap()
}

#[tokio::test]
async fn a_shard_that_is_killed_in_the_middle_and_goes_on_elsewhere_changes_nothing() {
    let (expected, _) = whole().await;
    let objects = Arc::new(InMemory::new());
    let mut frontiers = Vec::new();
    for shard in 0..3 {
        frontiers.push(open(&objects, shard).await);
    }
    let process = process(frontiers);
    let (kept, stop) = (Kept::default(), CancellationToken::new());
    let killed = async {
        for n_parsed in [10, 30, 50] {
            let crawl = process.crawl(1, settings(), kept.clone(), stop.clone());
            let enough = async {
                let frontier = process.frontiers.lock().unwrap()[1].clone();
                while frontier.counts().parsed < n_parsed {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                end = crawl => panic!("it has ended: {end:?}"),
                () = enough => {}
            }
            let opened = open(&objects, 1).await;
            process.frontiers.lock().unwrap()[1] = opened;
        }
        process
            .crawl(1, settings(), kept.clone(), stop.clone())
            .await
    };
    let others = [0, 2].map(|own| process.crawl(own, settings(), kept.clone(), stop.clone()));
    let others = join_all(others);
    let ended = async { tokio::join!(killed, others, process.stop_when_over(&stop)) };
    let (end, others, ()) = in_time(ended).await;
    assert_eq!(
        (end, others),
        (CrawlEnd::Stopped, vec![CrawlEnd::Stopped; 2])
    );
    assert_eq!(kept.items(), expected);
    for frontier in process.frontiers.lock().unwrap().iter() {
        assert_eq!(frontier.counts().due, 0);
    }
}

#[tokio::test]
async fn the_pages_of_a_resource_are_shared_by_its_shards() {
    let process = process((0..4).map(|_| memory()).collect());
    let peers = |own| process.peers(own);
    assert_eq!([0, 1, 2, 3].map(|own| peers(own).share(10)), [3, 3, 2, 2]);
    assert_eq!([0, 1, 2, 3].map(|own| peers(own).share(2)), [1, 1, 0, 0]);
    let settings = CrawlSettings {
        max_pages: Some(22),
        ..settings()
    };
    let (kept, stop) = (Kept::default(), CancellationToken::new());
    let crawls = (0..4).map(|own| process.crawl(own, settings.clone(), kept.clone(), stop.clone()));
    let crawls = join_all(crawls);
    in_time(async { tokio::join!(crawls, process.stop_when_over(&stop)) }).await;
    let frontiers = process.frontiers.lock().unwrap().clone();
    let pages: Vec<u64> = frontiers.iter().map(|f| f.counts().pages()).collect();
    assert_eq!(pages, [6, 6, 5, 5]);
}
