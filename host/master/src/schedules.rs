//! Loop of a leader that starts the runs of schedules.
//!
//! Due times follow from the records and the wall clock alone. Timers of this loop only tell when to look again, so that
//! neither a change of the leader nor a clock that is set loses a due time or lets it start two runs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream};
use tokio::time::Instant;

use super::ControlError;
use super::control::{Control, Looked, Seen};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::ResourceName;
use crawler_model::schedule::{Schedule, ScheduleStep};
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::catalog::{Scan, Versioned, decode};
use crawler_store::election::Leadership;
use crawler_store::{StoreError, WatchEvent};

/// Longest time between two readings of all schedules, in case a watch has missed something.
const RESYNC: Duration = Duration::from_secs(10 * 60);
/// Longest time between two looks at the wall clock, which may be set at any moment.
const LOOK: Duration = Duration::from_secs(5);
/// Pause before a schedule that has changed is looked at again: the outcome of a write may be unknown.
const CHANGED_PAUSE: Duration = Duration::from_millis(100);

/// Pause before a run that could not be started is tried again, in milliseconds.
const RETRY_PAUSE_MS: u64 = 30 * 1_000;
/// Largest number of looks at the same time: many schedules are due at full hours.
const LOOKS_AT_ONCE: usize = 16;

/// A schedule as it was last read.
#[derive(Clone)]
struct Followed {
    schedule: Versioned<Schedule>,
    /// Times of the wall clock at which nothing is to be done about it.
    quiet: Range<UnixMillis>,
    /// Observations about its due time.
    seen: Seen,
}

impl Followed {
    fn of(schedule: Versioned<Schedule>) -> Self {
        let quiet = schedule.value.quiet();
        Self {
            schedule,
            quiet,
            seen: Seen::default(),
        }
    }

    /// Returns the schedule that was read now. Everything that is known about it stays, unless its record has changed.
    fn read(known: Option<Self>, schedule: Versioned<Schedule>) -> Self {
        known
            .filter(|known| known.schedule.revision == schedule.revision)
            .unwrap_or_else(|| Self::of(schedule))
    }

    /// Records that nothing is to be done before the start, even if the clock was set back to before the last decision. A due
    /// time that waits for the end of a run is never quiet.
    fn wait(&mut self, now: UnixMillis) {
        self.seen = Seen::default();
        self.quiet = now..self.schedule.value.quiet().end;
    }

    /// Takes note of a due time that is noticed now.
    fn notice(&mut self, now: UnixMillis) {
        if let ScheduleStep::Decide { is_missed, .. } = self.schedule.value.step(now) {
            self.seen.is_in_time |= !is_missed;
        }
    }
}

/// Schedules by the names of their resources.
type All = BTreeMap<ResourceName, Followed>;

/// Starts what is due, for one term of a leader. It is cancelled at the end of the term.
pub(super) async fn run(control: &Control, leadership: &Leadership) {
    let mut backoff = Backoff::new(Duration::from_millis(100), LOOK);
    let mut all = All::new();
    loop {
        let Err(error) = follow(control, leadership, &mut all, &mut backoff).await else {
            continue;
        };
        log_wait(&error);
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// Reads all schedules and follows their changes, until it is time to read them anew.
async fn follow(
    control: &Control,
    leadership: &Leadership,
    all: &mut All,
    backoff: &mut Backoff,
) -> Result<(), ControlError> {
    let catalog = control.catalog();
    let prefix = catalog.keys().schedules();
    let scan: Scan<Schedule> = catalog.scan(&prefix).await?;
    let mut watch = catalog.store().watch(&prefix, scan.revision).await?;
    for error in &scan.broken {
        log_broken(error);
    }
    let records = scan.records.into_iter();
    let mut known = std::mem::take(all);
    *all = records
        .filter_map(|(key, schedule)| {
            let name = catalog.keys().parse_schedule(&key)?;
            let followed = Followed::read(known.remove(&name), schedule);
            Some((name, followed))
        })
        .collect();
    let read_until = Instant::now() + RESYNC;
    loop {
        let wait = match turn(control, leadership, all).await {
            Ok(wait) => {
                backoff.reset();
                wait
            }
            Err(error) => {
                log_wait(&error);
                backoff.next_delay()
            }
        };
        let event = tokio::select! {
            biased;
            () = tokio::time::sleep_until(read_until) => return Ok(()),
            event = watch.next() => event?,
            () = tokio::time::sleep(wait) => continue,
        };
        // All changes that have arrived by now are looked at together.
        let mut event = Some(event);
        while let Some(change) = event {
            if !take(control, all, change) {
                return Ok(());
            }
            event = watch.next().now_or_never().transpose()?;
        }
    }
}

/// Takes note of a change. Returns false if all schedules have to be read anew.
fn take(control: &Control, all: &mut All, change: WatchEvent) -> bool {
    let keys = control.catalog().keys();
    match change {
        WatchEvent::Put(entry) => {
            let Some(name) = keys.parse_schedule(&entry.key) else {
                return true;
            };
            let known = all.get(&name).map(|known| known.schedule.revision);
            // A write of this loop was read back before its change came.
            if known.is_some_and(|known| known >= entry.revision) {
                return true;
            }
            match decode(&entry) {
                Ok(schedule) => drop(all.insert(name, Followed::of(schedule))),
                Err(error) => {
                    log_broken(&error);
                    all.remove(&name);
                }
            }
        }
        WatchEvent::Delete { key, revision } => {
            if let Some(name) = keys.parse_schedule(&key)
                && let Some(known) = all.get(&name)
                && known.schedule.revision < revision
            {
                all.remove(&name);
            }
        }
        WatchEvent::StartOver => return false,
    }
    true
}

/// Decides about all that is due. Returns the time until the next look.
///
/// # Errors
///
/// The first error of a schedule. All others have been looked at nevertheless.
async fn turn(
    control: &Control,
    leadership: &Leadership,
    all: &mut All,
) -> Result<Duration, ControlError> {
    // Lateness is counted up to here, so that nothing is missed because this turn takes long.
    let now = control.now();
    let mut wait = LOOK;
    let mut noisy = Vec::new();
    for (name, followed) in &mut *all {
        let quiet = &followed.quiet;
        match quiet.contains(&now) {
            true => wait = wait.min(Duration::from_millis(quiet.end - now)),
            false => {
                followed.notice(now);
                noisy.push((name.clone(), followed.clone()));
            }
        }
    }
    let looks = noisy.into_iter().map(|(name, followed)| async move {
        let looked = look(control, leadership, &name, &followed, now).await;
        (name, looked)
    });
    let looks: Vec<_> = stream::iter(looks)
        .buffer_unordered(LOOKS_AT_ONCE)
        .collect()
        .await;
    let mut failed = None;
    for (name, looked) in looks {
        match looked {
            Ok(Look::Waits) => {
                if let Some(followed) = all.get_mut(&name) {
                    followed.wait(now);
                }
                continue;
            }
            Ok(Look::Fails) => {
                if let Some(followed) = all.get_mut(&name) {
                    followed.seen.failing_since.get_or_insert(now);
                    followed.quiet = now..now.saturating_add(RETRY_PAUSE_MS);
                }
                continue;
            }
            Ok(Look::Read(Some(schedule))) => {
                // The write was lost if the record is as it was.
                let followed = Followed::read(all.remove(&name), schedule);
                all.insert(name, followed);
            }
            Ok(Look::Read(None)) => drop(all.remove(&name)),
            Err(error) => {
                tracing::debug!(resource = %name, error = telemetry::chain(&error), "a schedule waits");
                failed = failed.or(Some(error));
                continue;
            }
        }
        wait = wait.min(CHANGED_PAUSE);
    }
    failed.map_or(Ok(wait), Err)
}

/// Result of a look at a schedule.
enum Look {
    /// It is as it was.
    Waits,
    /// Its run could not be started.
    Fails,
    /// It may have changed, and was read again. `None` if it is gone, or does not decode.
    Read(Option<Versioned<Schedule>>),
}

/// Looks at a schedule, and reads it again if it may have changed.
async fn look(
    control: &Control,
    leadership: &Leadership,
    name: &ResourceName,
    followed: &Followed,
    now: UnixMillis,
) -> Result<Look, ControlError> {
    let (schedule, seen) = (&followed.schedule, followed.seen);
    let looked = control.look_at_schedule(leadership, name, schedule, now, seen);
    match looked.await? {
        Looked::Waits => return Ok(Look::Waits),
        Looked::Fails => return Ok(Look::Fails),
        Looked::Changed => {}
    }
    let key = control.catalog().keys().schedule(name);
    match control.catalog().read(&key).await {
        Ok(schedule) => Ok(Look::Read(schedule)),
        Err(error @ StoreError::Record { .. }) => {
            log_broken(&error);
            Ok(Look::Read(None))
        }
        Err(error) => Err(error.into()),
    }
}

fn log_wait(error: &ControlError) {
    let error = telemetry::chain(error);
    tracing::warn!(error, "schedules wait for the store");
}

fn log_broken(error: &StoreError) {
    let error = telemetry::chain(error);
    tracing::error!(error, "passing over a schedule that does not decode");
}
