//! Tests that the checker finds the violation in histories that break each invariant.

use super::*;
use crawler_frontier::twin::Event;
use crawler_master::placement::testing as placed;
use crawler_model::crawl::ItemKey;
use crawler_model::id::{Incarnation, Run};
use crawler_model::node::{Contender, Role};
use crawler_model::resource::{Owner, ShardRecord, ShardState};
use crawler_store::catalog::encode;
use crawler_store::keys::Keys;
use crawler_store::twin::{CommittedTxn, Stored};
use crawler_store::{Entry, LeaseId, Revision, WatchEvent};

const LIFE: u64 = 3;

/// A history of writes with the checker that judges them.
#[derive(Default)]
struct History {
    checker: Checker,
    present: BTreeMap<String, Stored>,
    n_writes: u64,
}

impl History {
    /// Begins with two masters of which the first leads, two workers, and one resource with one shard.
    fn begin() -> Self {
        let mut history = Self::default();
        let keys = Keys::default();
        let site = Site {
            life: LIFE,
            n_hosts: 1,
            n_pages: 9,
            n_shards: 1,
        };
        history.checker.on_site(site);
        for (n, master) in ["master-1#1", "master-2#1"].into_iter().enumerate() {
            let contender = Contender {
                id: master[..8].parse().unwrap(),
                address: master.to_owned(),
                tls: false,
            };
            let lease = LeaseId(n as u64 + 1);
            history
                .put(master, &keys.contender(lease), encode(&contender))
                .unwrap();
        }
        for worker in ["worker-1", "worker-2"] {
            let node = placed::worker(worker, 10, &[]);
            let key = keys.node(Role::Worker, &node.id);
            history
                .put(&format!("{worker}#1"), &key, encode(&node))
                .unwrap();
        }
        let mut resource = placed::resource(shard().resource.0, Default::default());
        resource.spec.params = site.params();
        let key = keys.resource(&resource.spec.name);
        history.put("master-1#1", &key, encode(&resource)).unwrap();
        history
    }

    fn put(&mut self, author: &str, key: &str, value: bytes::Bytes) -> Found {
        self.write(author, key, Some(value))
    }

    fn write(&mut self, author: &str, key: &str, value: Option<bytes::Bytes>) -> Found {
        self.n_writes += 1;
        let revision = Revision(self.n_writes);
        let stored = value.map(|value| Stored {
            value,
            created: self
                .present
                .get(key)
                .map_or(revision, |stored| stored.created),
            revision,
            lease: None,
        });
        let event = match &stored {
            Some(stored) => WatchEvent::Put(Entry {
                key: key.to_owned(),
                value: stored.value.clone(),
                created: stored.created,
                revision,
            }),
            None => WatchEvent::Delete {
                key: key.to_owned(),
                revision,
            },
        };
        let found = self.checker.on_store(&CommittedTxn {
            author,
            guards: &[],
            events: &[event],
            before: &self.present,
        });
        match stored {
            Some(stored) => self.present.insert(key.to_owned(), stored),
            None => self.present.remove(key),
        };
        found
    }

    /// Writes that the shard has this owner, under this epoch.
    fn own(&mut self, author: &str, worker: &str, epoch: u64) -> Found {
        let record = record(Some(worker), epoch);
        self.put(author, &Keys::default().shard(shard()), encode(&record))
    }

    fn open(&mut self, epoch: u64, at: u64) -> Found {
        let event = Event::Opened {
            shard: shard(),
            epoch: Epoch(epoch),
            storage_epoch: epoch,
            hosts: vec![HOST.to_owned()],
        };
        self.checker.on_frontier(&event, Duration::from_secs(at))
    }

    fn ask(&mut self, worker: &str, at_millis: u64) -> Found {
        let now = Duration::from_millis(at_millis);
        self.checker
            .on_request(&format!("{worker}#1"), LIFE, HOST, now)
    }
}

const HOST: &str = "h0.l3.test";

fn shard() -> ShardId {
    ShardId::only(ResourceId(7))
}

fn record(owner: Option<&str>, epoch: u64) -> ShardRecord {
    ShardRecord {
        owner: owner.map(|id| Owner {
            node: id.parse().unwrap(),
            incarnation: Incarnation(1),
        }),
        epoch: Epoch(epoch),
        state: ShardState::Assigned,
        ..ShardRecord::new("r7".parse().unwrap())
    }
}

#[track_caller]
fn finds(found: Found, text: &str) {
    let why = found.unwrap_err();
    assert!(why.contains(text), "{why}");
}

#[test]
fn a_master_that_does_not_lead_writes_nothing_but_its_own() {
    let keys = Keys::default();
    for key in [
        keys.shard(shard()),
        keys.draining(&"worker-1".parse().unwrap()),
        keys.ended(&"r7".parse().unwrap(), &"call".parse().unwrap()),
    ] {
        let mut history = History::begin();
        let found = history.put("master-2#1", &key, "{}".into());
        finds(found, "as the leader, which is Some(\"master-1#1\")");
        history.put("master-1#1", &key, "{}".into()).unwrap();
    }
}

#[test]
fn a_worker_writes_the_records_of_its_own_shards_alone() {
    let mut history = History::begin();
    history.own("master-1#1", "worker-1", 1).unwrap();
    history.own("worker-1#1", "worker-1", 1).unwrap();
    finds(
        history.own("worker-2#1", "worker-1", 1),
        "which Some(\"worker-1#1\") has",
    );
    let key = Keys::default().shard(shard());
    finds(
        history.write("worker-1#1", &key, None),
        "deleted the record",
    );
    let mirror = Keys::default().assignment(&"worker-1".parse().unwrap(), shard());
    history.write("worker-1#1", &mirror, None).unwrap();
    finds(history.write("worker-2#1", &mirror, None), "not its own");
}

#[test]
fn an_epoch_has_one_owner_and_never_falls_and_what_was_deleted_stays_away() {
    let mut history = History::begin();
    history.own("master-1#1", "worker-1", 2).unwrap();
    finds(
        history.own("master-1#1", "worker-2", 2),
        "two owners under epoch 2",
    );
    finds(history.own("master-1#1", "worker-2", 1), "fell from 2 to 1");
    let key = Keys::default().shard(shard());
    history.write("master-1#1", &key, None).unwrap();
    finds(
        history.own("master-1#1", "worker-1", 9),
        "back after its deletion",
    );
}

#[test]
fn nothing_is_durable_under_an_epoch_that_is_over() {
    let mut history = History::begin();
    history.open(2, 1).unwrap();
    finds(history.open(1, 2), "after 2 (2)");
    let late = Event::Durable {
        shard: shard(),
        epoch: Epoch(1),
        storage_epoch: 1,
    };
    let found = history.checker.on_frontier(&late, Duration::from_secs(3));
    finds(found, "was written to under epoch 1");
}

#[test]
fn nobody_asks_without_a_lease_or_a_frontier() {
    let mut history = History::begin();
    finds(history.ask("worker-3", 0), "has no lease");
    finds(history.ask("worker-1", 0), "has never opened it");
    history.own("master-1#1", "worker-1", 1).unwrap();
    history.open(1, 0).unwrap();
    history.ask("worker-1", 0).unwrap();
    let node = Keys::default().node(Role::Worker, &"worker-1".parse().unwrap());
    history.write("", &node, None).unwrap();
    finds(history.ask("worker-1", 60_000), "has no lease");
}

#[test]
fn a_host_is_asked_at_its_distance_by_one_owner_and_by_the_next() {
    let delay = u64::try_from(DELAY.as_millis()).unwrap();
    let mut history = History::begin();
    history.own("master-1#1", "worker-1", 1).unwrap();
    history.open(1, 0).unwrap();
    history.ask("worker-1", 1_000).unwrap();
    finds(history.ask("worker-1", 90_000), "again too soon");
    history
        .checker
        .on_answer("worker-1#1", HOST, Duration::from_millis(1_100));
    finds(history.ask("worker-1", 1_100 + delay - 1), "again too soon");
    history.ask("worker-1", 1_100 + delay).unwrap();
    // The next owner keeps the distance from what began before it opened.
    history.own("master-1#1", "worker-2", 2).unwrap();
    history.open(2, 2).unwrap();
    finds(
        history.ask("worker-2", 1_100 + 2 * delay - 1),
        "too soon after worker-1#1",
    );
    history.ask("worker-2", 2_000 + delay).unwrap();
    // An earlier owner stops within a lease time.
    let over = 2_001 + u64::try_from(LEASE_TTL.as_millis()).unwrap();
    history
        .checker
        .on_answer("worker-1#1", HOST, Duration::from_millis(2_000));
    finds(history.ask("worker-1", over), "long after it has lost it");
}

#[test]
fn a_page_is_given_up_after_all_its_attempts_only() {
    let mut history = History::begin();
    for _ in 1..DEFAULT_MAX_ATTEMPTS {
        history.checker.on_failure(LIFE, 4);
    }
    finds(
        history.checker.on_dead(LIFE, 4, "timeout"),
        "given up as timeout after 4",
    );
    history.checker.on_failure(LIFE, 4);
    history.checker.on_dead(LIFE, 4, "timeout").unwrap();
}

#[test]
fn items_of_one_life_are_not_among_those_of_another() {
    let mut history = History::begin();
    let item = |life: u64| ItemRecord {
        key: ItemKey("k".to_owned()),
        url: format!("http://h0.l{life}.test/1"),
        rule: "page".to_owned(),
        schema: "page".to_owned(),
        run: Run(1),
        fetched_at: 1,
        item: serde_json::value::to_raw_value(&()).unwrap(),
        change: None,
    };
    history.checker.on_items(shard(), &[item(LIFE)]).unwrap();
    let found = history.checker.on_items(shard(), &[item(LIFE), item(4)]);
    finds(found, "is among the items of life 3");
}
