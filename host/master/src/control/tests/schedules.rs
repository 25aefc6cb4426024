//! Tests of schedules: what a due time does, and that each starts one run whoever leads and whatever the clock does.
//! The clock of tokio is paused, and the wall clock follows it until a test sets it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::StreamExt as _;
use tokio::time::{Instant, timeout};

use super::passes::frozen;
use super::*;
use crate::control::events::EventQuery;
use crate::control::schedules::{Looked, Seen};
use crate::lists::records;
use crate::schedules;
use crate::twin::{Answer, Workers};
use crawler_model::crawl::UnixMillis;
use crawler_model::event::EventKind;
use crawler_model::id::{ResourceId, Run};
use crawler_model::resource::{ShardId, ShardRecord};
use crawler_model::schedule::{
    RawSchedule, Schedule, ScheduleDecision, ScheduleOutcome, ScheduleSpec,
};
use crawler_store::catalog::{decode, encode};
use crawler_store::election::{Leadership, take_lead};
use crawler_store::keys::Keys;
use crawler_store::{Entry, LeaseId, Listing, Store, Watch, WatchEvent};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Time of the wall clock at which tests begin: midnight, on 1 January 2026.
const BEGIN: UnixMillis = 1_767_225_600_000;

/// Wall clock that goes on with that of tokio, and can be set.
struct SetClock {
    started: Instant,
    offset_ms: AtomicI64,
}

impl SetClock {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            offset_ms: AtomicI64::new(0),
        })
    }

    fn step(&self, by_ms: i64) {
        self.offset_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn unix_nanos(&self) -> u64 {
        let passed = u64::try_from(self.started.elapsed().as_millis()).unwrap();
        let offset = self.offset_ms.load(Ordering::Relaxed);
        (BEGIN + passed).saturating_add_signed(offset) * 1_000_000
    }
}

/// Store that answers late, is away for a while, or loses the answers of some writes, whether they were carried out or
/// not.
struct FaultyStore {
    store: Arc<dyn Store>,
    latency: Duration,
    is_lossy: bool,
    /// Times at which it does not answer.
    away: Range<Instant>,
    n_commits: AtomicUsize,
}

impl FaultyStore {
    fn new(bench: &Bench) -> Self {
        let now = Instant::now();
        Self {
            store: bench.store.clone(),
            latency: Duration::ZERO,
            is_lossy: false,
            away: now..now,
            n_commits: AtomicUsize::new(0),
        }
    }

    fn catalog(self) -> Catalog {
        Catalog::new(Arc::new(self), Keys::default())
    }

    /// Waits for the latency. Others come first now and then.
    async fn pause(&self) -> Result<(), StoreError> {
        tokio::task::yield_now().await;
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        match self.away.contains(&Instant::now()) {
            true => Err(StoreError::Unavailable {
                why: "it is away".to_owned(),
            }),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.pause().await?;
        self.store.get(key).await
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.pause().await?;
        self.store.list(prefix).await
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        self.pause().await?;
        if !self.is_lossy {
            return self.store.commit(txn).await;
        }
        match self.n_commits.fetch_add(1, Ordering::Relaxed) % 5 {
            1 => Ok(Outcome::Unknown),
            3 => {
                self.store.commit(txn).await?;
                Ok(Outcome::Unknown)
            }
            _ => self.store.commit(txn).await,
        }
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        self.store.watch(prefix, from).await
    }

    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        self.store.grant_lease(ttl).await
    }

    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.store.renew_lease(lease).await
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.store.revoke_lease(lease).await
    }

    async fn compact(&self, keep: u64) -> Result<(), StoreError> {
        self.store.compact(keep).await
    }
}

fn parsed(raw: RawSchedule) -> ScheduleSpec {
    ScheduleSpec::try_from(raw).unwrap()
}

fn hourly(overlap: &str) -> ScheduleSpec {
    parsed(RawSchedule {
        cron: "0 * * * *".to_owned(),
        overlap: overlap.to_owned(),
        ..RawSchedule::default()
    })
}

/// Creates a bench with the resource `a` and a wall clock that can be set.
async fn clocked() -> (Bench, Arc<SetClock>) {
    let (mut bench, clock) = (bench().await, SetClock::new());
    bench.set_clock(clock.clone());
    bench.add("a").await.unwrap();
    (bench, clock)
}

async fn set(bench: &Bench, spec: ScheduleSpec) -> Schedule {
    let (name, request) = ("a".parse().unwrap(), RequestId::random());
    let set = bench.control.set_schedule(&name, spec, &request);
    set.await.unwrap().schedule
}

async fn schedule(bench: &Bench) -> Schedule {
    let name = "a".parse().unwrap();
    bench.control.schedule(&name).await.unwrap().schedule
}

/// Looks at the schedule of `a` once, as the leader does.
async fn look(bench: &Bench) -> Looked {
    let name = "a".parse().unwrap();
    let key = bench.catalog().keys().schedule(&name);
    let schedule = bench.catalog().read(&key).await.unwrap().unwrap();
    let leadership = bench.control.leadership().unwrap();
    let (now, seen) = (bench.control.now(), Seen::default());
    let looked = bench
        .control
        .look_at_schedule(&leadership, &name, &schedule, now, seen);
    looked.await.unwrap()
}

/// Looks at the schedule a number of hours later. Returns what became of the due time.
async fn outcome(bench: &Bench, clock: &SetClock, hours: u64) -> ScheduleOutcome {
    clock.step(i64::try_from(hours * HOUR).unwrap());
    assert_eq!(look(bench).await, Looked::Changed);
    schedule(bench).await.last.unwrap().outcome
}

async fn pause(bench: &Bench, pause: bool) {
    let (name, request) = ("a".parse().unwrap(), RequestId::random());
    let paused = bench.control.pause_resource(&name, pause, &request);
    paused.await.unwrap();
}

async fn run_of(bench: &Bench) -> Run {
    let name = "a".parse().unwrap();
    bench.control.resource(&name).await.unwrap().resource.run
}

#[tokio::test(start_paused = true)]
async fn a_due_time_starts_a_run_only_if_the_one_before_is_over() {
    let (bench, clock) = clocked().await;
    set(&bench, hourly("skip")).await;
    assert_eq!(look(&bench).await, Looked::Waits);
    let skipped = outcome(&bench, &clock, 1).await;
    assert_eq!(
        (skipped, run_of(&bench).await),
        (ScheduleOutcome::Skipped, Run(1))
    );
    for state in [
        ShardState::Finished,
        ShardState::Failed {
            reason: "no".into(),
        },
    ] {
        bench.end("a", state).await;
        let run = run_of(&bench).await.next();
        assert_eq!(
            outcome(&bench, &clock, 1).await,
            ScheduleOutcome::Started { run }
        );
        assert_eq!(run_of(&bench).await, run);
        assert_eq!(look(&bench).await, Looked::Waits, "each due time once");
    }
    let (_, shard) = bench.shard("a").await;
    assert_eq!(
        shard.state,
        ShardState::Free,
        "it is assigned as any new run is"
    );
}

#[tokio::test(start_paused = true)]
async fn due_times_that_start_nothing_in_a_row_are_one_event() {
    let (bench, clock) = clocked().await;
    set(&bench, hourly("skip")).await;
    for _ in 0..3 {
        let skipped = outcome(&bench, &clock, 1).await;
        assert_eq!(skipped, ScheduleOutcome::Skipped);
    }
    pause(&bench, true).await;
    assert_eq!(outcome(&bench, &clock, 1).await, ScheduleOutcome::Paused);
    pause(&bench, false).await;
    assert_eq!(outcome(&bench, &clock, 1).await, ScheduleOutcome::Skipped);
    let name = "a".parse().unwrap();
    let id = bench.control.resource_id(&name).await.unwrap();
    let query = EventQuery::default();
    let told = bench.control.events(&name, id, query).await.unwrap();
    let told: Vec<_> = told.map(|told| told.unwrap().event).collect().await;
    let skips = told
        .iter()
        .filter(|event| event.kind == EventKind::ScheduleSkipped);
    let whys: Vec<&str> = skips.map(|event| event.why.as_str()).collect();
    assert_eq!(whys, ["skipped", "paused", "skipped"]);
}

#[tokio::test(start_paused = true)]
async fn a_resource_whose_run_is_over_tells_if_it_is_paused() {
    let (bench, clock) = clocked().await;
    set(&bench, hourly("skip")).await;
    bench.end("a", ShardState::Finished).await;
    let told = async || {
        let name = "a".parse().unwrap();
        let view = bench.control.resource(&name).await.unwrap();
        (view.phase, view.resource.paused)
    };
    pause(&bench, true).await;
    assert_eq!(told().await, (Phase::Finished, true));
    assert_eq!(outcome(&bench, &clock, 1).await, ScheduleOutcome::Paused);
    assert_eq!(told().await, (Phase::Finished, true));
    // The last due time goes on telling of the pause.
    pause(&bench, false).await;
    assert_eq!(told().await, (Phase::Finished, false));
    let last = schedule(&bench).await.last.unwrap();
    assert_eq!(last.outcome, ScheduleOutcome::Paused);
}

#[tokio::test(start_paused = true)]
async fn a_queued_start_waits_for_the_end_and_is_not_missed() {
    let (bench, clock) = clocked().await;
    let spec = ScheduleSpec {
        makes_up: false,
        ..hourly("queue")
    };
    set(&bench, spec).await;
    clock.step(HOUR as i64);
    assert_eq!(look(&bench).await, Looked::Changed);
    assert!(schedule(&bench).await.waits);
    clock.step(3 * HOUR as i64);
    assert_eq!(look(&bench).await, Looked::Waits);
    bench.end("a", ShardState::Finished).await;
    let started = outcome(&bench, &clock, 0).await;
    assert_eq!(started, ScheduleOutcome::Started { run: Run(2) });
    // What was due meanwhile is the same start.
    let schedule = schedule(&bench).await;
    assert_eq!(schedule.due, Some(BEGIN + 5 * HOUR));
    assert!(!schedule.waits);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_waits_reads_nothing_while_the_run_goes_on() {
    let (mut bench, clock) = clocked().await;
    set(&bench, hourly("queue")).await;
    clock.step(HOUR as i64);
    assert_eq!(look(&bench).await, Looked::Changed);
    let running = frozen(&bench).await;
    let unfed = std::mem::replace(&mut bench.control.parts.replica, running);
    // The record cannot be read, and nobody asks for it.
    let key = bench.catalog().keys().resource(&"a".parse().unwrap());
    let resource = bench.catalog().store().get(&key).await.unwrap().unwrap();
    bench.write(Txn::new().put(key.clone(), "{}")).await;
    assert_eq!(look(&bench).await, Looked::Waits);
    bench.write(Txn::new().put(key, resource.value)).await;
    bench.end("a", ShardState::Finished).await;
    // Nothing is known of the run without a replica, so the end is read.
    bench.control.parts.replica = unfed;
    let started = outcome(&bench, &clock, 0).await;
    assert_eq!(started, ScheduleOutcome::Started { run: Run(2) });
}

#[tokio::test(start_paused = true)]
async fn a_queued_start_outlasts_a_pause() {
    let (bench, clock) = clocked().await;
    set(&bench, hourly("queue")).await;
    clock.step(HOUR as i64);
    assert_eq!(look(&bench).await, Looked::Changed);
    pause(&bench, true).await;
    bench.end("a", ShardState::Finished).await;
    assert_eq!(look(&bench).await, Looked::Waits);
    assert!(schedule(&bench).await.waits);
    pause(&bench, false).await;
    let started = outcome(&bench, &clock, 0).await;
    assert_eq!(started, ScheduleOutcome::Started { run: Run(2) });
}

#[tokio::test(start_paused = true)]
async fn a_restart_by_schedule_ends_the_run_before() {
    let (bench, clock) = clocked().await;
    set(&bench, hourly("restart")).await;
    let (_, before) = bench.shard("a").await;
    let started = outcome(&bench, &clock, 1).await;
    assert_eq!(started, ScheduleOutcome::Started { run: Run(2) });
    let (_, after) = bench.shard("a").await;
    assert!(before.owner.is_some() && after.owner.is_none());
    assert!(after.epoch > before.epoch);
}

#[tokio::test(start_paused = true)]
async fn a_paused_resource_is_not_started_and_a_late_one_as_it_says() {
    let (bench, clock) = clocked().await;
    bench.end("a", ShardState::Finished).await;
    set(&bench, hourly("skip")).await;
    pause(&bench, true).await;
    assert_eq!(outcome(&bench, &clock, 1).await, ScheduleOutcome::Paused);
    pause(&bench, false).await;
    let started = outcome(&bench, &clock, 25).await;
    assert_eq!(
        started,
        ScheduleOutcome::Started { run: Run(2) },
        "one for all"
    );
    bench.end("a", ShardState::Finished).await;
    let spec = ScheduleSpec {
        makes_up: false,
        ..hourly("skip")
    };
    set(&bench, spec).await;
    clock.step(30 * MINUTE as i64);
    assert_eq!(outcome(&bench, &clock, 1).await, ScheduleOutcome::Missed);
    assert_eq!(run_of(&bench).await, Run(2));
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_is_tried_again_for_five_minutes() {
    let (bench, _clock) = clocked().await;
    bench.end("a", ShardState::Finished).await;
    set(&bench, hourly("skip")).await;
    let leadership = bench.control.leadership().unwrap();
    // As a later version may write it.
    let (id, shard) = bench.shard("a").await;
    let key = bench.catalog().keys().shard(id);
    let broken = || Txn::new().put(key.clone(), "{}");
    bench.write(broken()).await;
    let mend = async {
        tokio::time::sleep(Duration::from_millis(HOUR + 2 * MINUTE)).await;
        assert_eq!(schedule(&bench).await.last, None);
        let mended = Txn::new().put(key.clone(), encode(&shard));
        bench.write(mended).await;
    };
    tokio::join!(lead(&bench.control, &leadership, HOUR + 4 * MINUTE), mend);
    let last = schedule(&bench).await.last.unwrap();
    assert_eq!(last.outcome, ScheduleOutcome::Started { run: Run(2) });
    bench.write(broken()).await;
    lead(&bench.control, &leadership, HOUR + 4 * MINUTE).await;
    let last = schedule(&bench).await.last.unwrap();
    assert_eq!(last.due, BEGIN + 2 * HOUR);
    assert!(last.at >= last.due + 5 * MINUTE, "{last:?}");
    assert!(
        matches!(&last.outcome, ScheduleOutcome::Failed { why } if why.contains("does not decode")),
        "{last:?}"
    );
    // The next one is tried as usual.
    bench.write(Txn::new().put(key, encode(&shard))).await;
    lead(&bench.control, &leadership, HOUR).await;
    let last = schedule(&bench).await.last.unwrap();
    assert_eq!(last.outcome, ScheduleOutcome::Started { run: Run(3) });
}

#[tokio::test(start_paused = true)]
async fn a_start_that_failed_is_recorded_soon_after_a_lost_write() {
    let (bench, clock) = clocked().await;
    bench.end("a", ShardState::Finished).await;
    set(&bench, hourly("skip")).await;
    let leadership = bench.control.leadership().unwrap();
    let (id, _) = bench.shard("a").await;
    let key = bench.catalog().keys().shard(id);
    // As a later version may write it.
    bench.write(Txn::new().put(key, "{}")).await;
    let lossy = FaultyStore {
        is_lossy: true,
        ..FaultyStore::new(&bench)
    };
    let control = bench.another(clock, lossy.catalog());
    // The second write of this master is the first one that is lost: that of the failure at two o'clock.
    lead(&control, &leadership, 2 * HOUR + 20 * MINUTE).await;
    let last = schedule(&bench).await.last.unwrap();
    assert!(
        matches!(&last.outcome, ScheduleOutcome::Failed { .. }),
        "{last:?}"
    );
    assert_eq!(last.due, BEGIN + 2 * HOUR);
    let after_ms = last.at - last.due;
    assert!(
        (5 * MINUTE..6 * MINUTE).contains(&after_ms),
        "after {after_ms} ms"
    );
}

#[tokio::test(start_paused = true)]
async fn a_schedule_is_set_replaced_and_taken_away() {
    let (bench, clock) = clocked().await;
    let name = "a".parse().unwrap();
    let none = "resource a has no schedule";
    check_refused(bench.control.schedule(&name).await, Code::NotFound, none);
    let first = set(&bench, hourly("skip")).await;
    assert_eq!((first.since, first.due), (BEGIN, Some(BEGIN + HOUR)));
    clock.step(10 * MINUTE as i64);
    let [same, again, other] = ["same", "set", "off"].map(|id| id.parse::<RequestId>().unwrap());
    let unchanged = bench.control.set_schedule(&name, hourly("skip"), &same);
    let unchanged = unchanged.await.unwrap().schedule;
    assert_eq!(unchanged, first, "the same goes on");
    for _ in 0..2 {
        let replaced = bench.control.set_schedule(&name, hourly("queue"), &again);
        let replaced = replaced.await.unwrap().schedule;
        assert_eq!(replaced.spec, hourly("queue"));
        assert_eq!((replaced.since, replaced.due), (first.since, first.due));
    }
    // The first call comes late a second time, and does not set its schedule again.
    let late = bench.control.set_schedule(&name, hourly("skip"), &same);
    assert_eq!(late.await.unwrap().schedule.spec, hourly("queue"));
    for _ in 0..2 {
        bench.control.delete_schedule(&name, &other).await.unwrap();
    }
    // The call before it comes late a second time, and changes nothing.
    let late = bench.control.set_schedule(&name, hourly("queue"), &again);
    check_refused(late.await, Code::NotFound, none);
    let request = RequestId::random();
    let deleted = bench.control.delete_schedule(&name, &request).await;
    check_refused(deleted, Code::NotFound, none);
    let absent = "b".parse().unwrap();
    let set = bench
        .control
        .set_schedule(&absent, hourly("skip"), &request);
    check_refused(set.await, Code::NotFound, "there is no resource b");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_schedule_can_be_replaced_and_taken_away() {
    let (bench, _clock) = clocked().await;
    let name = "a".parse().unwrap();
    let key = bench.catalog().keys().schedule(&name);
    // As a later version may write it.
    let unknown = || Txn::new().put(key.clone(), "{}");
    bench.write(unknown()).await;
    check_refused(
        bench.control.schedule(&name).await,
        Code::FailedPrecondition,
        "the schedule of resource a was written by a later version, or is damaged",
    );
    let replaced = set(&bench, hourly("skip")).await;
    assert_eq!(schedule(&bench).await, replaced);
    bench.write(unknown()).await;
    let request = RequestId::random();
    let deleted = bench.control.delete_schedule(&name, &request);
    deleted.await.unwrap();
    let none = "resource a has no schedule";
    check_refused(bench.control.schedule(&name).await, Code::NotFound, none);
}

#[tokio::test(start_paused = true)]
async fn schedules_are_listed_by_name_as_the_caller_may_see_them() {
    let (bench, _clock) = clocked().await;
    for name in ["b/1", "b/2", "b/3", "c", "d/1"] {
        bench.add(name).await.unwrap();
    }
    for name in ["a", "b/1", "b/3", "c", "d/1"] {
        let (name, request) = (name.parse().unwrap(), RequestId::random());
        let set = bench.control.set_schedule(&name, hourly("skip"), &request);
        set.await.unwrap();
    }
    let keys = bench.catalog().keys().clone();
    let key_of = |name: &str| keys.schedule(&name.parse().unwrap());
    // One is of a later version, one of a resource that had the name before, and one of none.
    bench.write(Txn::new().put(key_of("b/3"), "{}")).await;
    let c = "c".parse().unwrap();
    let other = bench.control.resource_id(&c);
    let former = Schedule::new(other.await.unwrap(), hourly("skip"), BEGIN);
    let former = Txn::new()
        .put(key_of("b/2"), encode(&former))
        .put(key_of("b/4"), encode(&former));
    bench.write(former).await;
    bench.end("b/1", ShardState::Finished).await;
    let listed = async |prefix: &str, grants: &Grants, max: usize| {
        let (mut told, mut after) = (Vec::new(), None);
        loop {
            let control = &bench.control;
            let page = control.scheduled_resources(after.as_ref(), max, prefix, grants);
            let page = page.await.unwrap();
            assert!(page.entries.len() <= max);
            told.extend(page.entries.into_iter().map(|entry| {
                let name = entry.view.resource.spec.name.to_string();
                let phase = entry.view.phase.as_str();
                let spec = entry.schedule.map(|schedule| schedule.spec);
                assert!(spec.is_none_or(|spec| spec == hourly("skip")), "{name}");
                format!("{name} {phase}")
            }));
            after = page.next;
            match &after {
                None => break told,
                Some(next) => assert!(grants.covers(next.as_str()), "the token names {next}"),
            }
        }
    };
    let team = Grants {
        roles: [Role::Viewer].into(),
        namespaces: ["b".parse().unwrap()].into(),
    };
    let own = ["b/1 Finished", "b/3 Running"];
    for max in 1..7 {
        let all = listed("", &Grants::all(), max).await;
        assert_eq!(
            all,
            ["a Running", own[0], own[1], "c Running", "d/1 Running"]
        );
        assert_eq!(listed("", &team, max).await, own);
        assert_eq!(listed("b/", &Grants::all(), max).await, own);
        assert_eq!(listed("b/3", &team, max).await, own[1..]);
        assert!(listed("c", &team, max).await.is_empty());
    }
    let all = Grants::all();
    let page = bench.control.scheduled_resources(None, 10, "b/", &all);
    let page = page.await.unwrap();
    let known: Vec<bool> = page
        .entries
        .iter()
        .map(|one| one.schedule.is_some())
        .collect();
    assert_eq!(known, [true, false], "one that is not known is told");
}

#[tokio::test(start_paused = true)]
async fn a_list_of_schedules_asks_no_worker() {
    let workers = Arc::new(Workers::new(Answer::Mute));
    let bench = Bench::with(workers.clone()).await;
    bench.push("books@1.0.0").await.unwrap();
    bench.register("worker-1", 1_000).await;
    bench.add("a").await.unwrap();
    set(&bench, hourly("skip")).await;
    let begun = Instant::now();
    let all = Grants::all();
    let page = bench.control.scheduled_resources(None, 10, "", &all);
    let page = page.await.unwrap();
    assert_eq!(page.entries.len(), 1);
    assert!(!page.entries[0].view.shards[0].is_live);
    assert_eq!((workers.n_asked(), begun.elapsed()), (0, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_page_of_schedules_ends_early_where_the_store_is_slow() {
    const N_SCHEDULES: usize = 450;
    let (bench, clock) = clocked().await;
    let keys = bench.catalog().keys().clone();
    let name = "a".parse().unwrap();
    let id = bench.control.resource_id(&name).await.unwrap();
    let schedule = encode(&Schedule::new(id, hourly("skip"), BEGIN));
    for n in 0..N_SCHEDULES {
        let key = keys.schedule(&format!("n{n:03}").parse().unwrap());
        bench.write(Txn::new().put(key, schedule.clone())).await;
    }
    bench.add("n449").await.unwrap();
    let mut slow = FaultyStore::new(&bench);
    slow.latency = Duration::from_secs(1);
    let control = bench.another(clock, slow.catalog());
    let all = Grants::all();
    let (mut n_pages, mut after) = (0, None);
    loop {
        let page = control.scheduled_resources(after.as_ref(), 1_000, "n", &all);
        let page = page.await.unwrap();
        n_pages += 1;
        after = page.next;
        assert!(page.entries.is_empty(), "it is that of another resource");
        match &after {
            Some(next) => assert_eq!(next.as_str(), format!("n{:03}", n_pages * 200 - 1)),
            None => break,
        }
    }
    assert_eq!(n_pages, 3);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_replaced_at_a_due_time_starts_it_once() {
    let (bench, clock) = clocked().await;
    bench.end("a", ShardState::Finished).await;
    set(&bench, hourly("skip")).await;
    clock.step(HOUR as i64);
    set(&bench, hourly("restart")).await;
    let started = outcome(&bench, &clock, 0).await;
    assert_eq!(started, ScheduleOutcome::Started { run: Run(2) });
    let decided = schedule(&bench).await;
    // The clock is set back to before it.
    clock.step(-(MINUTE as i64));
    let half_hourly = parsed(RawSchedule {
        cron: "0,30 * * * *".to_owned(),
        ..RawSchedule::default()
    });
    let replaced = set(&bench, half_hourly).await;
    assert_eq!(replaced.last, decided.last);
    assert_eq!(replaced.due, Some(BEGIN + HOUR + 30 * MINUTE));
}

#[tokio::test(start_paused = true)]
async fn a_schedule_ends_with_its_resource() {
    let (bench, clock) = clocked().await;
    let before = set(&bench, hourly("skip")).await;
    let key = bench.catalog().keys().schedule(&"a".parse().unwrap());
    bench.delete("a").await.unwrap();
    let left: Option<Versioned<Schedule>> = bench.catalog().read(&key).await.unwrap();
    assert_eq!(left, None);
    // A master of an earlier version leaves it behind.
    bench.add("a").await.unwrap();
    bench.end("a", ShardState::Finished).await;
    let runs = bench.catalog().keys().runs(before.resource);
    let left = Txn::new().put(key.clone(), encode(&before));
    bench.write(left.put(runs.clone(), "{}")).await;
    let name = "a".parse().unwrap();
    let text = "resource a has no schedule";
    check_refused(bench.control.schedule(&name).await, Code::NotFound, text);
    clock.step(HOUR as i64);
    assert_eq!(look(&bench).await, Looked::Changed);
    assert_eq!(run_of(&bench).await, Run(1));
    for key in [key, runs] {
        assert_eq!(bench.catalog().store().get(&key).await.unwrap(), None);
    }
}

/// All decisions of a history, by resource and due time. Checks that none was made twice, and that each run was
/// started by one due time.
async fn decisions(catalog: &Catalog) -> BTreeMap<(ResourceName, UnixMillis), ScheduleOutcome> {
    let keys = catalog.keys();
    let prefix = keys.schedules();
    let mut watch = catalog.store().watch(&prefix, Revision(0)).await.unwrap();
    let mut decisions = BTreeMap::new();
    while let Some(event) = futures::FutureExt::now_or_never(watch.next()) {
        let WatchEvent::Put(entry) = event.unwrap() else {
            panic!("the history is whole, and nothing is deleted");
        };
        let name = keys.parse_schedule(&entry.key).unwrap();
        let schedule: Versioned<Schedule> = decode(&entry).unwrap();
        if let Some(ScheduleDecision { due, outcome, .. }) = schedule.value.last {
            let before = decisions.insert((name, due), outcome.clone());
            assert!(
                before.is_none_or(|before| before == outcome),
                "decided twice"
            );
        }
    }
    let mut runs = BTreeSet::new();
    for ((name, _), outcome) in &decisions {
        if let ScheduleOutcome::Started { run } = outcome {
            assert!(
                runs.insert((name.clone(), *run)),
                "{name} {run} began twice"
            );
        }
    }
    let mut n_runs = 0;
    for (_, resource) in records::<Resource>(catalog, &keys.resources())
        .await
        .unwrap()
    {
        n_runs += resource.value.run.0 - 1;
    }
    assert_eq!(n_runs, runs.len() as u64, "no run began otherwise");
    decisions
}

/// Writes further resources that are like `a`, each with a schedule.
async fn write_scheduled(bench: &Bench, n: u64, spec: impl Fn(u64) -> ScheduleSpec) {
    let keys = bench.catalog().keys();
    let like = bench.control.existing(&"a".parse().unwrap()).await.unwrap();
    for n in 0..n {
        let name: ResourceName = format!("r-{n}").parse().unwrap();
        let id = ResourceId(1_000 + n);
        let mut resource = Resource {
            id,
            assigned_node: String::new(),
            ..like.value.clone()
        };
        resource.spec.name = name.clone();
        let shard = ShardRecord::new(name.clone());
        let schedule = Schedule::new(id, spec(n), bench.control.now());
        let txn = Txn::new()
            .put(keys.resource(&name), encode(&resource))
            .put(keys.shard(ShardId::only(id)), encode(&shard))
            .put(keys.schedule(&name), encode(&schedule));
        bench.write(txn).await;
    }
}

/// Lets a leader run for a time of the clock.
async fn lead(control: &Control, leadership: &Leadership, for_ms: u64) {
    let term = schedules::run(control, leadership);
    let ended = timeout(Duration::from_millis(for_ms), term).await;
    assert!(ended.is_err(), "a term ends only when it is cancelled");
}

fn leadership_of(election_status: &watch::Receiver<ElectionStatus>) -> Leadership {
    election_status.borrow().leadership().unwrap().clone()
}

/// Returns the due times of a schedule between two times.
fn due_between(schedule: &Schedule, from: UnixMillis, to: UnixMillis) -> BTreeSet<UnixMillis> {
    let mut schedule = Schedule::new(schedule.resource, schedule.spec.clone(), from);
    let mut all = BTreeSet::new();
    while let Some(due) = schedule.due.filter(|due| *due <= to) {
        all.insert(due);
        schedule = schedule.decided(ScheduleOutcome::Skipped, due);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn two_leaders_at_once_start_each_run_once() {
    let (bench, clock) = clocked().await;
    write_scheduled(&bench, 20, |_| hourly("restart")).await;
    let leadership = bench.control.leadership().unwrap();
    // Both believe that they lead, and the store does not tell: the schedules alone keep them apart.
    let other_clock = SetClock::new();
    other_clock.step(-1_500);
    let lossy = || {
        let store = FaultyStore {
            is_lossy: true,
            ..FaultyStore::new(&bench)
        };
        store.catalog()
    };
    let one = bench.another(clock, lossy());
    let other = bench.another(other_clock, lossy());
    tokio::join!(
        lead(&one, &leadership, DAY + MINUTE),
        lead(&other, &leadership, DAY + MINUTE),
    );
    let decisions = decisions(bench.catalog()).await;
    let is_started = |outcome: &ScheduleOutcome| matches!(outcome, ScheduleOutcome::Started { .. });
    assert!(decisions.values().all(is_started));
    let dues: BTreeSet<UnixMillis> = decisions.keys().map(|(_, due)| *due).collect();
    let expected: BTreeSet<UnixMillis> = (1..=24).map(|n| BEGIN + n * HOUR).collect();
    assert_eq!(dues, expected);
    assert_eq!(decisions.len(), 20 * 24);
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_makes_no_start_missed() {
    let (bench, clock) = clocked().await;
    let spec = ScheduleSpec {
        makes_up: false,
        ..hourly("restart")
    };
    write_scheduled(&bench, 200, |_| spec.clone()).await;
    let slow = FaultyStore {
        latency: Duration::from_secs(10),
        ..FaultyStore::new(&bench)
    };
    let control = bench.another(clock, slow.catalog());
    let leadership = bench.control.leadership().unwrap();
    // One after the other, they would take hours.
    lead(&control, &leadership, HOUR + 30 * MINUTE).await;
    let decisions = decisions(bench.catalog()).await;
    let is_started = |outcome: &ScheduleOutcome| matches!(outcome, ScheduleOutcome::Started { .. });
    assert!(decisions.values().all(is_started), "{decisions:?}");
    assert_eq!(decisions.len(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_makes_no_noticed_start_missed() {
    let (bench, clock) = clocked().await;
    let spec = ScheduleSpec {
        makes_up: false,
        ..hourly("restart")
    };
    set(&bench, spec).await;
    // It is away when the run is due, and when all schedules are to be read anew.
    let from = clock.started + Duration::from_millis(HOUR - MINUTE);
    let away = FaultyStore {
        away: from..from + Duration::from_millis(12 * MINUTE),
        ..FaultyStore::new(&bench)
    };
    let control = bench.another(clock, away.catalog());
    let leadership = bench.control.leadership().unwrap();
    tokio::time::sleep(Duration::from_millis(HOUR - 5 * MINUTE)).await;
    lead(&control, &leadership, 20 * MINUTE).await;
    let last = schedule(&bench).await.last.unwrap();
    assert_eq!(last.outcome, ScheduleOutcome::Started { run: Run(2) });
    assert!(last.at >= last.due + 11 * MINUTE, "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_schedules_outlast_leaders_and_clocks() {
    let (bench, clock) = clocked().await;
    let spec = |n: u64| {
        parsed(RawSchedule {
            cron: format!("{} {} * * *", n % 60, n % 24),
            jitter_ms: (n % 3) * MINUTE,
            overlap: "restart".to_owned(),
            missed: ["once", "skip"][n as usize % 2].to_owned(),
            ..RawSchedule::default()
        })
    };
    write_scheduled(&bench, 1_000, spec).await;
    let mut former: Option<Leadership> = None;
    // Times that the clock passed for the first time, without a step.
    let mut passed = Vec::new();
    let mut from = BEGIN;
    for term in 0..10 {
        let step_ms = match term {
            3 => DAY as i64,
            6 => -(DAY as i64),
            _ => 0,
        };
        if step_ms != 0 {
            let before = bench.control.now();
            passed.push(from..before);
            clock.step(step_ms);
            from = before.max(bench.control.now());
        }
        // For a minute nobody leads.
        tokio::time::sleep(Duration::from_millis(MINUTE)).await;
        let election_status = match former {
            None => bench.control.election_status().clone(),
            Some(_) => {
                let key = format!("{}test", bench.catalog().keys().election());
                bench.write(Txn::new().delete(key)).await;
                take_lead(bench.catalog()).await
            }
        };
        let leadership = leadership_of(&election_status);
        let lead_anew = lead(&bench.control, &leadership, 7 * HOUR);
        match former.replace(leadership.clone()) {
            // The one before has not noticed yet.
            Some(former) => {
                tokio::join!(lead_anew, lead(&bench.control, &former, 10 * MINUTE));
            }
            None => lead_anew.await,
        }
    }
    let decisions = decisions(bench.catalog()).await;
    let end = bench.control.now();
    passed.push(from..end);
    for n in 0..1_000 {
        let name: ResourceName = format!("r-{n}").parse().unwrap();
        let key = bench.catalog().keys().schedule(&name);
        let schedule: Versioned<Schedule> = bench.catalog().read(&key).await.unwrap().unwrap();
        let own = decisions.iter().filter(|((of, _), _)| *of == name);
        let decided: BTreeSet<UnixMillis> = own.map(|((_, due), _)| *due).collect();
        // The jitter has passed for those that were due some minutes before the end.
        let expected = due_between(&schedule.value, BEGIN, end - 3 * MINUTE);
        assert!(decided.is_superset(&expected), "{name}: {decided:?}");
        assert!(decided.iter().all(|due| *due <= end), "{name}: {decided:?}");
        // Whatever was due well away from a step of the clock has started its run.
        let margin = 10 * MINUTE;
        for Range { start, end } in &passed {
            for due in due_between(&schedule.value, start + margin, end - margin) {
                let outcome = decisions.get(&(name.clone(), due));
                assert!(
                    matches!(outcome, Some(ScheduleOutcome::Started { .. })),
                    "{name} {due}: {outcome:?}"
                );
            }
        }
    }
}
