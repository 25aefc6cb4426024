//! Items of pages, judged before a sink gets them: by the profile of the last good run of this shard.
//!
//! A page leaves the items of a kind that can be judged in the frontier, where they wait. This task reads them, a page at a
//! time, and moves them on when their window is full, when they have waited for some minutes, when they take much memory,
//! and when the crawl waits for nothing but them. All that it knows is in the frontier: after a crash, windows are filled
//! again with what still waits. Kinds and hosts without a profile are only learned.
//!
//! Once a kind of a host is held, all of its items are, for as long as the run has the plugin that made them. A decision
//! about held items takes the shard from its worker, and the next opening judges anew, although items may be left that were
//! held after somebody had looked.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::parts::CrawlParts;
use super::shared::Shared;
use crawler_frontier::{FrontierError, Judgement, PageResult, WaitingPage};
use crawler_model::crawl::{ItemRecord, host_of};
use crawler_model::drift::{GroupName, Hold, Sample, Sensitivity, Verdict, Watch, sampled};
use crawler_model::event::EventKind;
use crawler_model::id::Run;

/// Size in bytes of the items that wait, above which windows are judged although they are not full.
const MAX_WAITING_BYTES: u64 = 8 << 20;
/// Time between two writes of what the run has learned. A crash loses what was learned since.
const STORE_EVERY: Duration = Duration::from_secs(10);

/// Judgement of the items of one crawl.
pub(super) struct Drift {
    /// Pages that wait, each by the numbers of its items.
    watch: Mutex<Watch<Vec<u64>>>,
    /// Kinds and hosts that were held by the run when this opening began.
    held: BTreeSet<GroupName>,
    /// True if the run has learned something that is not stored.
    has_learned: AtomicBool,
    /// Signals that items wait, or that the crawl waits for them.
    pub(super) changed: Notify,
}

impl Drift {
    /// Begins with what the frontier knows. Returns `None` if it knows no earlier runs.
    pub(super) fn open(parts: &CrawlParts) -> Option<Self> {
        let profiles = parts.frontier.profiles()?;
        let sensitivity = parts.config.borrow().settings.drift();
        let schemas = &parts.rules.description().schemas;
        let mut watch = Watch::new(profiles.baseline, profiles.run, sensitivity, schemas);
        let mut held = BTreeSet::new();
        for hold in parts.frontier.holds() {
            if is_own(parts, &hold) && !hold.is_decided {
                held.insert(hold.group.clone());
                watch.hold(hold.group, hold.departure);
            }
        }
        Some(Self {
            watch: Mutex::new(watch),
            held,
            has_learned: AtomicBool::new(false),
            changed: Notify::new(),
        })
    }

    fn watch(&self) -> MutexGuard<'_, Watch<Vec<u64>>> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets those items of a page aside that are to be judged. The run learns from the others.
pub(super) fn set_aside(shared: &Shared, sensitivity: Sensitivity, result: &mut PageResult) {
    let Some(drift) = &shared.drift else {
        return;
    };
    if sensitivity == Sensitivity::Off {
        return;
    }
    let Some(first) = result.items.first() else {
        return;
    };
    drift.watch().set_sensitivity(sensitivity);
    let host = host(first);
    let kinds: BTreeSet<&String> = result.items.iter().map(|item| &item.schema).collect();
    let judged: BTreeSet<String> = {
        let watch = drift.watch();
        let judged = kinds
            .into_iter()
            .filter(|kind| watch.is_judged(kind, &host));
        judged.cloned().collect()
    };
    let learned = sampled(&result.items).into_iter();
    let learned = learned.filter(|item| !judged.contains(&item.schema));
    for item in learned {
        let sample = Sample::of(item.item.get());
        drift.watch().learn(&item.schema, &host, &sample);
        drift.has_learned.store(true, Ordering::Relaxed);
    }
    if !judged.is_empty() {
        let items = std::mem::take(&mut result.items).into_iter();
        (result.watched, result.items) = items.partition(|item| judged.contains(&item.schema));
    }
}

/// Moves items on until `pages_over` is cancelled, and then those that are left, unless the crawl has given up: then they
/// wait for the next opening.
pub(super) async fn judge(
    shared: &Shared,
    pages_over: &CancellationToken,
    gives_up: &CancellationToken,
) {
    let Some(drift) = &shared.drift else {
        return pages_over.cancelled().await;
    };
    let mut judge = Judge {
        shared,
        drift,
        begun: Instant::now(),
        next: 0,
        told: drift.held.clone(),
    };
    if let Err(error) = judge.until_over(pages_over, gives_up).await {
        shared.lost_frontier(error);
        pages_over.cancelled().await;
    }
}

/// Returns true if a hold is of this run, with the plugin that it has now.
fn is_own(parts: &CrawlParts, hold: &Hold) -> bool {
    hold.run == parts.run && parts.plugin == Some(hold.plugin)
}

/// The task that moves items on.
struct Judge<'a> {
    shared: &'a Shared,
    drift: &'a Drift,
    begun: Instant,
    /// Number of the first item that was not looked at.
    next: u64,
    /// Kinds and hosts of which an earlier opening or this one has told that they are held.
    told: BTreeSet<GroupName>,
}

impl Judge<'_> {
    async fn until_over(
        &mut self,
        pages_over: &CancellationToken,
        gives_up: &CancellationToken,
    ) -> Result<(), FrontierError> {
        self.judge_earlier().await?;
        let mut store_at = Instant::now() + STORE_EVERY;
        let mut config = self.shared.parts.config.clone();
        loop {
            // The flag is read before the frontier: items that were stored before the end are seen below.
            let is_over = pages_over.is_cancelled();
            self.look();
            let is_end = match is_over {
                true => !gives_up.is_cancelled(),
                false => self.is_waited_for(),
            };
            self.judge_all(is_end).await?;
            if is_over || Instant::now() >= store_at {
                self.store().await?;
                store_at = Instant::now() + STORE_EVERY;
            }
            if is_over {
                return Ok(());
            }
            let due_at = self.drift.watch().due_at();
            let due_at = due_at.map(|due_at| self.begun + Duration::from_millis(due_at));
            let wake_at = due_at.map_or(store_at, |due_at| due_at.min(store_at));
            tokio::select! {
                biased;
                () = pages_over.cancelled() => {}
                () = self.drift.changed.notified() => {}
                // A higher bound on held items may let a page be taken. Nobody changes settings whose sender is gone.
                Ok(()) = config.changed() => self.shared.progress.notify_one(),
                () = tokio::time::sleep_until(wake_at) => {}
            }
        }
    }

    /// Judges the pages of an earlier run or plugin by themselves: those of this run say nothing of them, nor they of this run.
    async fn judge_earlier(&mut self) -> Result<(), FrontierError> {
        let frontier = &self.shared.parts.frontier;
        let mut pages = frontier.waiting(0);
        pages.retain(|page| page.is_earlier);
        if pages.is_empty() {
            return Ok(());
        }
        let mut watch = self.drift.watch().for_earlier();
        let items = || pages.iter().flat_map(|page| &page.items);
        let runs: BTreeSet<Run> = items().map(|(_, item)| item.run).collect();
        for hold in frontier.holds() {
            let is_of_them = runs.contains(&hold.run) && !is_own(&self.shared.parts, &hold);
            if is_of_them && !hold.is_decided {
                watch.hold(hold.group, hold.departure);
            }
        }
        for page in pages {
            for (kind, sample, host, numbers) in samples(&page) {
                watch.add(numbers, &kind, &host, sample, 0);
            }
        }
        while let Some(verdict) = watch.next(0, true) {
            self.carry_out(verdict).await?;
        }
        self.told.clone_from(&self.drift.held);
        Ok(())
    }

    /// Adds the pages of this run that have come since the last look.
    fn look(&mut self) {
        let pages = self.shared.parts.frontier.waiting(self.next);
        let now = self.now();
        for page in pages.iter().filter(|page| !page.is_earlier) {
            self.next = page
                .items
                .last()
                .map_or(self.next, |(number, _)| number + 1);
            let mut watch = self.drift.watch();
            for (kind, sample, host, numbers) in samples(page) {
                watch.add(numbers, &kind, &host, sample, now);
            }
        }
    }

    /// Returns true if windows are judged although they are not full.
    fn is_waited_for(&self) -> bool {
        let waiting_bytes = self.shared.parts.frontier.kept_back().waiting_bytes;
        let is_off = self.shared.config().settings.drift() == Sensitivity::Off;
        self.shared.is_waiting_for_delivery() || waiting_bytes > MAX_WAITING_BYTES || is_off
    }

    async fn judge_all(&mut self, is_end: bool) -> Result<(), FrontierError> {
        let sensitivity = self.shared.config().settings.drift();
        loop {
            let verdict = {
                let mut watch = self.drift.watch();
                watch.set_sensitivity(sensitivity);
                watch.next(self.now(), is_end)
            };
            let Some(verdict) = verdict else {
                return Ok(());
            };
            self.drift.has_learned.store(true, Ordering::Relaxed);
            self.carry_out(verdict).await?;
        }
    }

    async fn carry_out(&mut self, verdict: Verdict<Vec<u64>>) -> Result<(), FrontierError> {
        let hold = verdict
            .departure
            .map(|departure| (verdict.group, departure));
        if let Some((group, departure)) = &hold
            && self.told.insert(group.clone())
        {
            let what = format!("{} from {}: {departure}", group.kind, shown(&group.host));
            let parts = &self.shared.parts;
            parts.log.note("warn", format!("items are held: {what}"));
            parts.incidents.add(EventKind::ItemsHeld, &what);
        }
        let numbers = verdict.pages.concat();
        let frontier = &self.shared.parts.frontier;
        frontier.judge(Judgement { numbers, hold }).await?;
        // The crawl may wait for nothing but them.
        self.shared.progress.notify_one();
        Ok(())
    }

    /// Stores what the run has learned.
    async fn store(&self) -> Result<(), FrontierError> {
        if !self.drift.has_learned.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let run = self.drift.watch().run().clone();
        self.shared.parts.frontier.store_profile(&run).await
    }

    /// Returns the time since the beginning in milliseconds.
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Returns the kinds of the items of a page, each with the item that is looked at, its host, and the numbers of the items.
fn samples(page: &WaitingPage) -> Vec<(String, Sample, String, Vec<u64>)> {
    let items = page.items.iter().map(|(_, item)| &**item);
    let samples = sampled(items).into_iter().map(|chosen| {
        let of_kind = page.items.iter();
        let of_kind = of_kind.filter(|(_, item)| item.schema == chosen.schema);
        let numbers = of_kind.map(|(number, _)| *number).collect();
        let sample = Sample::of(chosen.item.get());
        (chosen.schema.clone(), sample, host(chosen), numbers)
    });
    samples.collect()
}

/// Returns the host of an item's page.
fn host(item: &ItemRecord) -> String {
    let url = Url::parse(&item.url);
    url.map_or_else(|_| String::new(), |url| host_of(&url))
}

/// Returns a host for messages.
fn shown(host: &str) -> &str {
    match host {
        "" => "its other hosts",
        host => host,
    }
}
