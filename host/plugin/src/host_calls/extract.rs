//! `page.extract`: reads the page of this call by a plan. The page is read once for each plan, however often
//! and by whatever host call it is asked for.
//!
//! The work is the host's: its fuel is charged by formula, its time is bounded by limit `cpu`, and its memory
//! by a part of limit `memory`. Long pages are read away from the executor.

use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};

use crawler_extract::{
    Budget, Captures, CompiledPlan, ExtractError, extract, fuel, processor_time,
};
use tokio::sync::Semaphore;

use super::reads::{MEMORY_SHARE, Reading, Reads};
use super::state::{CallEnded, CallKind, CallState};
use crate::LogLevel;
use crate::bindings::crawler::rules::types;
use crawler_model::crawl::{Kill, Page};
use crawler_model::page::base_of;
use crawler_model::plugin::{LimitName, Limits};
use crawler_model::statistics::Matched;
use crawler_process::stage::Stage;
use crawler_process::task::spawn_blocking;

/// Size in bytes of a page that is read on the executor's thread, in a few milliseconds. A longer page is
/// read away from the executor, whose other tasks would wait.
const MAX_AT_ONCE: usize = 1 << 20;
/// Largest product of a page's bytes and the plan's work with each that is read on the executor's thread.
const MAX_WORK_AT_ONCE: usize = 16 << 20;
/// Factor by which a body may grow when it becomes text: a byte of no charset becomes U+FFFD, which has
/// three.
const GROWTH: u64 = 3;

/// Permits for reading long pages: no more threads than there are processors, because the store and the sinks
/// need threads for blocking work too. A reader holds its permit until it is done, even if its call has ended
/// meanwhile.
static LONG: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let n = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    Arc::new(Semaphore::new(n))
});

/// Returns the number of bytes that cross to the guest with captures.
pub(super) fn n_bytes(captures: &types::Captures) -> usize {
    let columns = captures.columns.iter();
    let n_numbers: usize = captures.groups.iter().map(Vec::len).sum::<usize>()
        + columns.map(|c| c.rows.len() + c.spans.len()).sum::<usize>();
    let base = captures.base.as_ref().map_or(0, String::len);
    captures.text.len() + base + n_numbers * size_of::<u32>()
}

impl CallState {
    /// Takes note that the rule is given the captures of this plan, with the mark if they are cut.
    pub(super) fn is_shown(&mut self, plan: u32) {
        self.reads.told.insert(plan);
    }

    /// Returns the plans that the page was read by, with the selectors that matched.
    pub(crate) fn matched(&self) -> Vec<(u32, Matched)> {
        let read = self.reads.done.iter();
        let read = read.filter_map(|(plan, read)| Some((*plan, read.as_ref().ok()?)));
        read.map(|(plan, reading)| (plan, Matched::of(&reading.captures)))
            .collect()
    }

    /// Logs that captures are cut. A rule that follows a field it never looked at cannot know that there is
    /// more.
    pub(super) fn warn_if_cut(&mut self, plan: u32, name: &str, captures: &Captures) {
        if captures.truncated && self.reads.told.insert(plan) {
            let line = format!(
                "what `{name}` reads of this page is cut: limit captures or capture-bytes is used up"
            );
            self.logs.push(LogLevel::Warn, &line);
        }
    }

    /// Reads the page of this call by this plan.
    pub(super) async fn read(
        &mut self,
        plan: u32,
    ) -> wasmtime::Result<Result<Arc<Reading>, types::ExtractError>> {
        if let Some(read) = self.reads.done.get(&plan) {
            return Ok(read.clone());
        }
        let n_bytes = self.page(|_, _| 0)?.0.text_bytes();
        if plan as usize >= self.plans.len() {
            let n = self.plans.len();
            let why = format!("plan {plan} does not exist; the plugin describes {n}");
            return Ok(Err(types::ExtractError::UnknownPlan(why)));
        }
        self.meter.charge(fuel(n_bytes, &Captures::default()));
        self.check_fuel()?;
        let CallKind::Parse(page, _) = &self.kind else {
            return Err(no_page().into());
        };
        let (page, plans) = (Arc::clone(page), Arc::clone(&self.plans));
        let work = plans[plan as usize].work();
        let budget = budget(&self.limits, &self.reads);
        let read = move || read(&plans[plan as usize], &page, &budget);
        let read = match self.timed(is_long(n_bytes, work), read).await? {
            Ok(reading) => Ok(Arc::new(reading)),
            Err(ExtractError::TooSlow { .. }) => {
                return Err(too_slow("reading the page").into());
            }
            Err(error) => Err(refused(&error)),
        };
        if let Ok(reading) = &read {
            self.reads.n_captures += reading.captures.n_captures() as u64;
            self.reads.n_bytes += reading.captures.text.len() as u64;
            self.meter.charge(fuel(0, &reading.captures));
            self.check_fuel()?;
        }
        self.reads.done.insert(plan, read.clone());
        Ok(read)
    }

    /// Does work on the page of this call, away from the executor if it is long, and counts its time as that of
    /// reading.
    pub(super) async fn timed<T: Send + 'static>(
        &mut self,
        is_long: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> wasmtime::Result<T> {
        let timed = || {
            let begun = processor_time();
            let done = Stage::Extract.measured(work);
            (done, processor_time().saturating_sub(begun))
        };
        let (done, took) = if is_long {
            let permit = Arc::clone(&LONG).acquire_owned().await?;
            let timed = move || {
                let _permit = permit;
                timed()
            };
            spawn_blocking(timed).await?
        } else {
            let (done, took) = timed();
            self.time.set_aside(took);
            // A call may read by many plans in a row.
            tokio::task::yield_now().await;
            (done, took)
        };
        self.reads.time += took;
        Ok(done)
    }
}

/// Returns true if reading a page of `n_bytes`, by a plan that does `work` with each, would make others wait.
fn is_long(n_bytes: usize, work: usize) -> bool {
    n_bytes > MAX_AT_ONCE || n_bytes.saturating_mul(work) > MAX_WORK_AT_ONCE
}

pub(super) fn no_page() -> CallEnded {
    CallEnded::new(Kill::Denied, "there is no page to be read")
}

/// Returns the end of a call whose work on the page took too long.
pub(super) fn too_slow(work: &str) -> CallEnded {
    CallEnded::new(
        Kill::OutOfCpu,
        format_args!("{work} took the processor for too long"),
    )
}

fn read(plan: &CompiledPlan, page: &Page, budget: &Budget) -> Result<Reading, ExtractError> {
    let captures = extract(plan, &page.text(), budget)?;
    Ok(Reading {
        base: base_of(captures.base.as_deref(), &page.url),
        captures,
    })
}

/// Returns the part of the limits that is left for one more plan.
fn budget(limits: &Limits, reads: &Reads) -> Budget {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    Budget {
        page_bytes: size(limits.body.saturating_mul(GROWTH)),
        n_captures: size(limits.captures.saturating_sub(reads.n_captures)),
        captured_bytes: size(limits.capture_bytes.saturating_sub(reads.n_bytes)),
        memory: size(reads.memory),
        deadline: limits.cpu.saturating_sub(reads.time),
    }
}

/// Returns the error for a rule, with the limit to raise.
fn refused(error: &ExtractError) -> types::ExtractError {
    let raise = |limit: LimitName| format!("raise it with --limit {limit}=VALUE, or skip the page");
    match error {
        ExtractError::TooDeep { memory, .. } => types::ExtractError::TooDeep(format!(
            "too many elements are open in each other: reading the page takes more than {memory} bytes, a {MEMORY_SHARE}nd of limit memory, 4 MiB at the most; {}",
            raise(LimitName::Memory)
        )),
        ExtractError::TooLarge { n_bytes, limit } => types::ExtractError::TooLarge(format!(
            "the text of the page has {n_bytes} bytes, and {limit} is the most, {GROWTH} times limit body; {}",
            raise(LimitName::Body)
        )),
        other => types::ExtractError::Other((0, other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_over_a_mebibyte_and_those_that_are_much_work_are_read_away_from_the_executor() {
        for (n_bytes, work, expected) in [
            (0, usize::MAX, false),
            (1 << 20, 1, false),
            (1 << 20, 16, false),
            ((1 << 20) + 1, 1, true),
            (1 << 20, 17, true),
            (1 << 10, 1 << 15, true),
        ] {
            assert_eq!(is_long(n_bytes, work), expected, "{n_bytes} {work}");
        }
    }
}
