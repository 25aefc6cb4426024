//! Tests with resources of several shards, on one worker and on two.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::bench::{Wanted, data_in, stay_registered};
use super::*;
use crate::crawls::Crawls;
use crate::links::{LinkDelivery, LinkDeliveryError, SendLinks};
use crate::shard_owners::ShardOwners;
use crawler_crawl::doubles::{Graph, Site, settings, whole};
use crawler_data::DataRoot;
use crawler_frontier::{LinkBatch, NewRequest};
use crawler_model::crawl::{Counts, ItemRecord, Request};
use crawler_model::id::{Incarnation, NodeId, ResourceId, Run, Shard};
use crawler_model::links::shard_of;
use crawler_model::node::{Node, Role};
use crawler_model::resource::{
    DEFAULT_DELAY, LinkTotals, Owner, ShardState, Unchanged, is_complete,
};
use crawler_process::memory::Memory;
use crawler_store::Txn;
use crawler_store::catalog::encode;

const N_SHARDS: u32 = 4;

fn id(shard: u32) -> ShardId {
    ShardId {
        resource: ResourceId(1),
        shard: Shard(shard),
    }
}

struct OnlyGraph;

#[async_trait]
impl LoadRules for OnlyGraph {
    async fn load(&self, _digest: Digest) -> Result<Arc<dyn Rules>, PluginError> {
        Ok(Arc::new(Graph::default()))
    }
}

/// Transport of links of one worker to the other, in this process. Each knows by whom it is called.
struct LocalLinks {
    own: NodeId,
    crawls: BTreeMap<&'static str, Crawls>,
    owners: ShardOwners,
}

#[async_trait]
impl SendLinks for LocalLinks {
    async fn send(&self, worker: &Node, links: LinkDelivery) -> Result<u64, LinkDeliveryError> {
        let gone = || LinkDeliveryError::NotNow("nobody is there".to_owned());
        let crawls = self.crawls.get(worker.address.as_str());
        let crawls = crawls.ok_or_else(gone)?;
        crawls.deliver_of(&self.own, &self.owners, links).await
    }
}

/// Two workers of one cluster.
struct Pair {
    data: DataRoot,
    workers: Vec<(Arc<AgentParts>, TaskScope)>,
    _folder: tempfile::TempDir,
}

impl Pair {
    async fn new() -> Self {
        let (folder, store, first) = parts(Arc::new(OnlyGraph), Arc::new(Site));
        let names = ["worker-1", "worker-2"];
        let crawls = names.map(|name| (name, Crawls::default()));
        let all = BTreeMap::from(crawls.clone());
        let mut workers = Vec::new();
        for (name, crawls) in crawls {
            let node = Node {
                id: name.parse().unwrap(),
                address: name.to_owned(),
                ..first.node.clone()
            };
            let key = first.catalog.keys().node(Role::Worker, &node.id);
            let txn = Txn::new().put(key, encode(&node));
            first.catalog.store().commit(txn).await.unwrap();
            let registered = watch::Sender::new(None);
            let links = Arc::new(LocalLinks {
                own: node.id.clone(),
                crawls: all.clone(),
                owners: ShardOwners::new(first.catalog.clone()),
            });
            let parts = Arc::new(AgentParts {
                node,
                registered: registered.subscribe(),
                catalog: first.catalog.clone(),
                data: first.data.clone(),
                sinks: first.sinks.clone(),
                plugins: first.plugins.clone(),
                fetch: first.fetch.clone(),
                clock: first.clock.clone(),
                cluster: first.cluster.clone(),
                frontiers: first.frontiers.clone(),
                links,
                limit_ceilings: first.limit_ceilings.clone(),
                memory: Memory::unwatched(),
                tracer: Default::default(),
                crawls,
            });
            let scope = TaskScope::new();
            scope.spawn("agent", run(parts.clone(), scope.stop_signal()));
            scope.spawn("registration", stay_registered(store.clone(), registered));
            workers.push((parts, scope));
        }
        Self {
            data: data_in(&folder),
            workers,
            _folder: folder,
        }
    }

    async fn assign(&self, shard: u32, worker: &'static str, epoch: u64) {
        let assigned = Wanted {
            worker,
            epoch: Epoch(epoch),
            present: self.record(shard).await,
            crawl: settings(),
            shard: (shard, N_SHARDS),
            ..Wanted::default()
        };
        self.want(assigned).await;
    }

    async fn want(&self, wanted: Wanted) {
        let wanted = Wanted {
            name: "graph",
            id: id(0).resource.0,
            ..wanted
        };
        let txn = wanted.txn(&self.workers[0].0);
        self.workers[0].0.catalog.store().commit(txn).await.unwrap();
    }

    async fn record(&self, shard: u32) -> Option<ShardRecord> {
        let catalog = &self.workers[0].0.catalog;
        let key = catalog.keys().shard(id(shard));
        let record = catalog.read::<ShardRecord>(&key).await.unwrap();
        record.map(|record| record.value)
    }

    /// Begins a run of this number of shards, as a master does.
    async fn restart(&self, run: u64, n_shards: u32, resharded_at: u64) {
        let (parts, _) = &self.workers[0];
        let keys = parts.catalog.keys();
        let mut txn = Txn::new();
        for shard in 0..N_SHARDS {
            for (parts, _) in &self.workers {
                txn = txn.delete(keys.assignment(&parts.node.id, id(shard)));
            }
        }
        parts.catalog.store().commit(txn).await.unwrap();
        for shard in 0..n_shards {
            let present = self.record(shard).await.map(|record| ShardRecord {
                counts: Counts::default(),
                links: LinkTotals::default(),
                ..record
            });
            let wanted = Wanted {
                worker: ["worker-1", "worker-2"][shard as usize % 2],
                epoch: Epoch(present.as_ref().map_or(1, |record| record.epoch.0 + 1)),
                present,
                crawl: CrawlSettings {
                    unchanged: Some(Unchanged::Skip),
                    ..settings()
                },
                shard: (shard, n_shards),
                run,
                resharded_at,
                ..Wanted::default()
            };
            self.want(wanted).await;
        }
    }

    async fn wait_until_complete(&self) -> Vec<ShardRecord> {
        self.wait_until_all_of(N_SHARDS).await
    }

    async fn wait_until_all_of(&self, n_shards: u32) -> Vec<ShardRecord> {
        let complete = async {
            loop {
                let mut records = Vec::new();
                for shard in 0..n_shards {
                    records.extend(self.record(shard).await);
                }
                if is_complete(records.iter()) {
                    return records;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let complete = tokio::time::timeout(MINUTE, complete).await;
        complete.expect("all shards are idle")
    }

    /// Returns the items by their keys.
    fn items(&self) -> BTreeMap<String, String> {
        let items = self.lines().into_iter();
        let items = items.map(|item| (item.key.0, item.item.get().to_owned()));
        items.collect()
    }

    /// Returns the items of all runs, in the order in which they were written.
    fn lines(&self) -> Vec<ItemRecord> {
        let mut items = Vec::new();
        for shard in 0..N_SHARDS {
            let folder = self.data.items_folder(ResourceId(1)).unwrap();
            let files = std::fs::read_dir(folder.join(shard.to_string()));
            for file in files.into_iter().flatten() {
                let lines = std::fs::read_to_string(file.unwrap().path()).unwrap();
                let lines = lines
                    .lines()
                    .map(|line| serde_json::from_str(line).unwrap());
                items.extend(lines);
            }
        }
        items
    }
}

#[tokio::test]
async fn several_shards_on_two_workers_give_what_one_gives_and_are_idle_together() {
    let (expected, _) = whole().await;
    let pair = Pair::new().await;
    for shard in 0..N_SHARDS {
        let worker = ["worker-1", "worker-2"][shard as usize % 2];
        pair.assign(shard, worker, 1).await;
    }
    let records = pair.wait_until_complete().await;
    assert_eq!(pair.items(), expected);
    for record in &records {
        assert_eq!(record.counts.due, 0);
        assert_eq!(record.links.sent.len(), 3);
    }
}

#[tokio::test]
async fn shards_whose_worker_is_killed_in_the_middle_go_on_at_the_other() {
    let (expected, _) = whole().await;
    let mut pair = Pair::new().await;
    for shard in 0..N_SHARDS {
        let worker = ["worker-1", "worker-2"][shard as usize % 2];
        pair.assign(shard, worker, 1).await;
    }
    let crawls = pair.workers[0].0.crawls.clone();
    let in_the_middle = async {
        while crawls
            .status(None)
            .iter()
            .filter_map(|c| c.counts.as_ref())
            .map(|counts| counts.parsed)
            .sum::<u64>()
            < 30
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(MINUTE, in_the_middle).await.unwrap();
    let (_parts, killed) = pair.workers.remove(0);
    // The worker flushes nothing and tells nobody.
    killed.stop(Duration::ZERO).await;
    for shard in [0, 2] {
        pair.assign(shard, "worker-2", 2).await;
    }
    pair.wait_until_complete().await;
    assert_eq!(pair.items(), expected);
}

#[tokio::test]
async fn a_run_with_another_number_of_shards_asks_for_every_page_once_though_they_are_unchanged() {
    let (expected, _) = whole().await;
    let mut expected: Vec<String> = expected.into_values().collect();
    expected.sort();
    for (before, after) in [(1, 2), (2, 1)] {
        let pair = Pair::new().await;
        let mut n_pages = Vec::new();
        for (run, n_shards) in [(1, before), (2, after)] {
            let began = std::time::Instant::now();
            pair.restart(run, n_shards, run).await;
            let records = pair.wait_until_all_of(n_shards).await;
            // Hosts have come from other shards, and wait for one delay first.
            assert!(run == 1 || began.elapsed() >= DEFAULT_DELAY);
            n_pages.push(records.iter().map(|r| r.counts.pages()).sum::<u64>());
            let items = pair.lines().into_iter().filter(|item| item.run == Run(run));
            let mut items: Vec<String> = items.map(|item| item.item.get().to_owned()).collect();
            items.sort();
            assert_eq!(items, expected, "run {run} of {before} shards and {after}");
        }
        assert_eq!(n_pages[0], n_pages[1], "{before} shards and {after}");
        // The number of shards is the same as before, so nothing has changed.
        pair.restart(3, after, 2).await;
        let records = pair.wait_until_all_of(after).await;
        let n_parsed: u64 = records.iter().map(|r| r.counts.parsed).sum();
        assert_eq!(n_parsed, 0, "{before} shards and {after}");
    }
}

fn given(from: u32, to: u32, first: u64, url: &str) -> LinkDelivery {
    let request = Request::get(url.parse().unwrap(), "page");
    let resource = bench::shard().resource;
    LinkDelivery {
        to: ShardId {
            resource,
            shard: Shard(to),
        },
        epoch: Epoch(1),
        run: Run(1),
        from: Shard(from),
        batch: LinkBatch {
            first,
            links: vec![NewRequest { request, depth: 1 }],
        },
    }
}

/// Assigns that one of two shards which has the chain's pages, with room for three pages.
async fn one_of_two(bench: &Bench) -> u32 {
    let url = "http://site.test/".parse().unwrap();
    let own = shard_of(&url, NonZeroU32::new(2).unwrap()).0;
    let crawl = CrawlSettings {
        max_pages: Some(6),
        ..bench::settings()
    };
    let shard = (own, 2);
    bench
        .want(Wanted {
            crawl,
            shard,
            ..Wanted::default()
        })
        .await;
    own
}

async fn record_of(bench: &Bench, shard: u32) -> ShardRecord {
    let resource = bench::shard().resource;
    let shard = Shard(shard);
    let key = bench
        .parts
        .catalog
        .keys()
        .shard(ShardId { resource, shard });
    let record = bench.parts.catalog.read(&key).await.unwrap();
    record.unwrap().value
}

fn is_open(bench: &Bench, shard: u32) -> bool {
    let resource = bench::shard().resource;
    let shard = Shard(shard);
    bench.parts.crawls.is_open(ShardId { resource, shard })
}

#[tokio::test(start_paused = true)]
async fn root_sees_the_start_of_the_run_in_every_shard_whenever_that_is_opened() {
    let bench = Bench::new().await;
    for shard in [0, 1] {
        let wanted = Wanted {
            shard: (shard, 2),
            run_started_at: Some(1_000),
            ..Wanted::default()
        };
        bench.want(wanted).await;
        bench
            .wait_for("asked", MINUTE, async |bench| {
                bench.n_roots() > shard as usize
            })
            .await;
        bench.pass(MINUTE).await;
    }
    assert_eq!(*bench.site.roots.lock().unwrap(), [1_000; 2]);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_shard_closes_its_frontier_and_says_that_it_works_before_it_stores_links() {
    let bench = Bench::new().await;
    let own = one_of_two(&bench).await;
    let other = 1 - own;
    let idle = async |bench: &Bench| record_of(bench, own).await.state == ShardState::Idle;
    bench.wait_for("idle", MINUTE, idle).await;
    assert_eq!(bench.n_asked(), 3, "its half of the pages");
    assert!(is_open(&bench, own));
    bench.pass(2 * MINUTE).await;
    assert!(!is_open(&bench, own), "nothing is to be done");
    let link = given(other, own, 1, "http://site.test/100");
    assert_eq!(bench.parts.crawls.deliver(link.clone()).await, Ok(1));
    bench.wait_for("idle again", MINUTE, idle).await;
    let applied = BTreeMap::from([(other, 1)]);
    let sent = BTreeMap::new();
    let links = LinkTotals { sent, applied };
    assert_eq!(record_of(&bench, own).await.links, links);
    // The link comes again, and changes nothing.
    assert_eq!(bench.parts.crawls.deliver(link).await, Ok(1));
    bench.wait_for("idle for good", MINUTE, idle).await;
    assert_eq!(record_of(&bench, own).await.links, links);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_cannot_say_that_it_works_stores_no_links() {
    let bench = Bench::new().await;
    let own = one_of_two(&bench).await;
    let idle = async |bench: &Bench| record_of(bench, own).await.state == ShardState::Idle;
    bench.wait_for("idle", MINUTE, idle).await;
    // The shard belongs to another worker, and this one has not heard of it.
    let taken = ShardRecord {
        epoch: Epoch(2),
        ..record_of(&bench, own).await
    };
    let resource = bench::shard().resource;
    let shard = Shard(own);
    let key = bench
        .parts
        .catalog
        .keys()
        .shard(ShardId { resource, shard });
    let txn = Txn::new().put(key, encode(&taken));
    bench.parts.catalog.store().commit(txn).await.unwrap();
    let link = given(1 - own, own, 1, "http://site.test/100");
    let answer = bench.parts.crawls.deliver(link).await;
    assert!(
        matches!(answer, Err(LinkDeliveryError::NotNow(_))),
        "{answer:?}"
    );
    assert_eq!(record_of(&bench, own).await, taken);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_crawl_that_begins_again_says_first_that_it_works() {
    let bench = Bench::new().await;
    let own = one_of_two(&bench).await;
    let idle = async |bench: &Bench| record_of(bench, own).await.state == ShardState::Idle;
    bench.wait_for("idle", MINUTE, idle).await;
    let resource = bench::shard().resource;
    let shard = Shard(own);
    let id = ShardId { resource, shard };
    let keys = bench.parts.catalog.keys();
    // The assignment is removed and restored.
    let key = keys.assignment(&bench.parts.node.id, id);
    let mirror = bench.parts.catalog.read::<Assignment>(&key).await.unwrap();
    let txn = Txn::new().delete(key.clone());
    bench.parts.catalog.store().commit(txn).await.unwrap();
    let ended = async |bench: &Bench| bench.parts.crawls.status(None).is_empty();
    bench.wait_for("ended", MINUTE, ended).await;
    assert!(idle(&bench).await);
    // There is room for more pages, one each second.
    let resource_key = keys.resource(&"books".parse().unwrap());
    let resource = bench.parts.catalog.read::<Resource>(&resource_key).await;
    let mut resource = resource.unwrap().unwrap().value;
    resource.spec.crawl.max_pages = Some(20);
    let txn = Txn::new()
        .put(resource_key, encode(&resource))
        .put(key, encode(&mirror.unwrap().value));
    bench.parts.catalog.store().commit(txn).await.unwrap();
    let goes_on = async |bench: &Bench| bench.n_asked() > 3;
    bench.wait_for("goes on", MINUTE, goes_on).await;
    assert_eq!(record_of(&bench, own).await.state, ShardState::Assigned);
    bench.wait_for("idle again", MINUTE, idle).await;
    assert_eq!(bench.n_asked(), 10);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_shard_does_nothing_until_links_come_even_where_it_may_do_more() {
    let bench = Bench::new().await;
    let own = one_of_two(&bench).await;
    let idle = async |bench: &Bench| record_of(bench, own).await.state == ShardState::Idle;
    bench.wait_for("idle", MINUTE, idle).await;
    let resource_key = bench.parts.catalog.keys();
    let resource_key = resource_key.resource(&"books".parse().unwrap());
    let resource = bench.parts.catalog.read::<Resource>(&resource_key).await;
    let mut resource = resource.unwrap().unwrap().value;
    resource.spec.crawl.max_pages = Some(20);
    resource.generation = Generation(2);
    let resource_id = bench::shard().resource;
    let id = ShardId {
        resource: resource_id,
        shard: Shard(own),
    };
    let keys = bench.parts.catalog.keys();
    let key = keys.assignment(&bench.parts.node.id, id);
    let mirror = bench.parts.catalog.read::<Assignment>(&key).await.unwrap();
    let mirror = Assignment {
        generation: Generation(2),
        ..mirror.unwrap().value
    };
    let txn = Txn::new()
        .put(resource_key, encode(&resource))
        .put(key, encode(&mirror));
    bench.parts.catalog.store().commit(txn).await.unwrap();
    bench.pass(30 * SECOND).await;
    assert!(idle(&bench).await && bench.n_asked() == 3);
    let link = given(1 - own, own, 1, "http://site.test/100");
    assert_eq!(bench.parts.crawls.deliver(link).await, Ok(1));
    bench.wait_for("idle again", MINUTE, idle).await;
    assert_eq!(bench.n_asked(), 10);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn links_that_are_not_for_this_assignment_are_not_taken_and_say_why() {
    let bench = Bench::new().await;
    let own = one_of_two(&bench).await;
    bench
        .wait_for("begun", MINUTE, async |bench| is_open(bench, own))
        .await;
    let good = || given(1 - own, own, 1, "http://site.test/100");
    let resource = bench::shard().resource;
    let not_now: [fn(&mut LinkDelivery); 4] = [
        |links| links.epoch = Epoch(2),
        |links| links.run = Run(2),
        |links| links.to.resource = ResourceId(99),
        |links| links.to.shard = Shard(1 - links.to.shard.0),
    ];
    for change in not_now {
        let mut links = good();
        change(&mut links);
        links.from = Shard(1 - links.to.shard.0);
        let to = links.to;
        let why = format!("shard {to} is not crawled here");
        assert_eq!(
            bench.parts.crawls.deliver(links).await,
            Err(LinkDeliveryError::NotNow(why))
        );
    }
    let refused = async |change: &dyn Fn(&mut LinkDelivery), why: String| {
        let mut links = good();
        change(&mut links);
        let answer = bench.parts.crawls.deliver(links).await;
        assert_eq!(answer, Err(LinkDeliveryError::Refused(why)));
    };
    let why = format!("shard {} gives links to itself", good().to);
    refused(&|links| links.from = links.to.shard, why).await;
    let why = format!("resource {resource} has 2 shards, and no 2");
    refused(&|links| links.from = Shard(2), why).await;
    refused(
        &|links| links.batch.first = 0,
        "links are numbered from 1".to_owned(),
    )
    .await;
    let many =
        |links: &mut LinkDelivery| links.batch.links = vec![links.batch.links[0].clone(); 501];
    refused(&many, "501 links at once, at most 500".to_owned()).await;
    assert_eq!(bench.parts.crawls.deliver(good()).await, Ok(1));
    let mut gap = good();
    gap.batch.first = 3;
    let answer = bench.parts.crawls.deliver(gap).await;
    assert!(
        matches!(answer, Err(LinkDeliveryError::NotNow(_))),
        "{answer:?}"
    );
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r14_a_worker_brings_links_of_its_own_shards_only() {
    let bench = Bench::new().await;
    let own = one_of_two(&bench).await;
    bench
        .wait_for("begun", MINUTE, async |bench| is_open(bench, own))
        .await;
    let (catalog, crawls) = (&bench.parts.catalog, &bench.parts.crawls);
    let owners = ShardOwners::new(catalog.clone());
    let worker: NodeId = "worker-9".parse().unwrap();
    let link = given(1 - own, own, 1, "http://site.test/100");
    let refused = crawls.deliver_of(&worker, &owners, link.clone()).await;
    assert!(
        matches!(refused, Err(LinkDeliveryError::NotOwner(_))),
        "{refused:?}"
    );
    // The shard is handed over to that worker, which sends the link again.
    let handed_over = ShardRecord {
        owner: Some(Owner {
            node: worker.clone(),
            incarnation: Incarnation(9),
        }),
        ..ShardRecord::new("books".parse().unwrap())
    };
    let key = catalog.keys().shard(ShardId {
        resource: bench::shard().resource,
        shard: link.from,
    });
    let txn = Txn::new().put(key, encode(&handed_over));
    catalog.store().commit(txn).await.unwrap();
    bench.pass(SECOND).await;
    let taken = crawls.deliver_of(&worker, &owners, link).await;
    assert_eq!(taken, Ok(1));
    bench.stop().await;
}
