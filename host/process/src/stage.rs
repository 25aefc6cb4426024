//! Clock of the stages of a page, which tells where the time of the processors goes. `crawler bench` reads it.
//!
//! Processor time is that of the thread while it polls the work of a stage. It is exclusive: while a stage runs within
//! another, only the inner one is charged. So the stages of a process never add up to more than its processor time, and
//! what is missing was spent outside of all stages. The duration of a stage is the time on the clock from its first
//! poll to its end, with its waits and with the stages in it. Work that is dropped before its end has no duration.
//!
//! A stage whose duration belongs to one page is a span of the trace of that page too, if it is recorded.
//!
//! The clock is off until [`start`], and an idle stage costs one relaxed load for each poll. There is one clock in a
//! process; crawls are not told apart.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::traces::{self, Around, Span};
use crawler_extract::processor_time;

mod histogram;

use histogram::Histogram;

/// Part of the work on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Checks of the address and of robots.txt, and taking the turn of the host. The duration is that of the checks.
    Guard,
    /// Exchange with the host, from the connection to the last byte of the body.
    Fetch,
    /// Decoding of a body into text.
    Decode,
    /// Reading of a page by the plans of its rule.
    Extract,
    /// Making and dropping the instance of a call.
    Instance,
    /// Code of the rule, and the host's functions that it calls.
    Guest,
    /// Canonical forms of links, their scope, and telling new ones from known ones.
    Seen,
    /// End of a page in the frontier.
    Commit,
    /// Delivery of items to the sink.
    Sink,
}

/// Times of one stage since [`start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTimes {
    /// The stage.
    pub stage: Stage,
    /// Processor time that was charged to it.
    pub processor: Duration,
    /// Number of times that it came to its end.
    pub n: u64,
    /// Median of its durations; zero if there is none.
    pub p50: Duration,
    /// Duration that 99 % of all do not exceed; zero if there is none.
    pub p99: Duration,
}

/// Counters of one stage.
struct Counters {
    processor_nanos: AtomicU64,
    durations: Histogram,
}

/// Work of a stage, charged to it at each poll.
struct Timed<F> {
    stage: Stage,
    work: F,
    /// True if the time from the first poll to the end counts as a duration of the stage.
    has_duration: bool,
    /// Time of the first poll while the clock is on.
    begun: Option<Instant>,
}

/// Part of a thread's time that is charged to one stage. Dropping it goes on with the stage around it.
struct Charged {
    outer: Option<Stage>,
}

/// Stage that the thread works on.
#[derive(Clone, Copy)]
struct Present {
    stage: Stage,
    /// Processor time of the thread up to which the stage has been charged.
    since: Duration,
}

static IS_ON: AtomicBool = AtomicBool::new(false);
static COUNTERS: [Counters; Stage::ALL.len()] = [const { Counters::new() }; Stage::ALL.len()];

thread_local! {
    static PRESENT: Cell<Option<Present>> = const { Cell::new(None) };
}

/// Sets all times to zero and turns the clock on.
pub fn start() {
    for counters in &COUNTERS {
        counters.processor_nanos.store(0, Ordering::Relaxed);
        counters.durations.clear();
    }
    IS_ON.store(true, Ordering::Relaxed);
}

/// Turns the clock off and returns the times of all stages, in their order.
pub fn stop() -> [StageTimes; Stage::ALL.len()] {
    IS_ON.store(false, Ordering::Relaxed);
    Stage::ALL.map(|stage| {
        let counters = stage.counters();
        StageTimes {
            stage,
            processor: Duration::from_nanos(counters.processor_nanos.load(Ordering::Relaxed)),
            n: counters.durations.count(),
            p50: counters.durations.percentile(50),
            p99: counters.durations.percentile(99),
        }
    })
}

impl Stage {
    /// All stages, in the order in which a page goes through them.
    pub const ALL: [Self; 9] = [
        Self::Guard,
        Self::Fetch,
        Self::Decode,
        Self::Extract,
        Self::Instance,
        Self::Guest,
        Self::Seen,
        Self::Commit,
        Self::Sink,
    ];

    /// Returns the name, in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Fetch => "fetch",
            Self::Decode => "decode",
            Self::Extract => "extract",
            Self::Instance => "instance",
            Self::Guest => "guest",
            Self::Seen => "seen",
            Self::Commit => "commit",
            Self::Sink => "sink",
        }
    }

    /// Counts work as this stage: its processor time and its duration. A future that is not `Unpin` is handed over by
    /// [`std::pin::pin`], so that it is not copied.
    pub fn timed<F: Future + Unpin>(self, work: F) -> impl Future<Output = F::Output> {
        self.counted(work, true)
    }

    /// Counts only the processor time of work that is another part of a stage whose duration is counted elsewhere.
    pub fn charged<F: Future + Unpin>(self, work: F) -> impl Future<Output = F::Output> {
        self.counted(work, false)
    }

    /// Counts work that does not wait, like [`timed`](Self::timed).
    pub fn measured<T>(self, work: impl FnOnce() -> T) -> T {
        if !is_on() {
            return work();
        }
        let begun = Instant::now();
        let done = self.charge(work);
        self.counters().durations.add(begun.elapsed());
        done
    }

    /// Counts work that does not wait, like [`charged`](Self::charged).
    pub fn charge<T>(self, work: impl FnOnce() -> T) -> T {
        let _charged = is_on().then(|| Charged::to(self));
        work()
    }

    fn counted<F: Future + Unpin>(self, work: F, has_duration: bool) -> Around<Timed<F>> {
        let span = match has_duration && self.is_traced() {
            true => traces::child(self.as_str()),
            false => Span::default(),
        };
        span.around(Timed {
            stage: self,
            work,
            has_duration,
            begun: None,
        })
    }

    /// Returns true if the stage is a span of the trace of its page. Work that may be done for other pages in the same
    /// future is none: its spans would land in the trace of the page that happens to do it.
    fn is_traced(self) -> bool {
        match self {
            Self::Guard | Self::Fetch | Self::Instance | Self::Guest | Self::Commit => true,
            Self::Decode | Self::Extract | Self::Seen | Self::Sink => false,
        }
    }

    fn counters(self) -> &'static Counters {
        &COUNTERS[self as usize]
    }
}

impl<F: Future + Unpin> Future for Timed<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self {
            stage,
            work,
            has_duration,
            begun,
        } = &mut *self;
        let work = Pin::new(work);
        if !is_on() {
            return work.poll(cx);
        }
        let begun = *begun.get_or_insert_with(Instant::now);
        let polled = stage.charge(|| work.poll(cx));
        if polled.is_ready() && *has_duration {
            stage.counters().durations.add(begun.elapsed());
        }
        polled
    }
}

impl Charged {
    fn to(stage: Stage) -> Self {
        let outer = switch_to(Some(stage));
        Self { outer }
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        switch_to(self.outer);
    }
}

/// Charges the thread's time so far to its stage, and the time from here on to another one. Returns the stage before.
fn switch_to(stage: Option<Stage>) -> Option<Stage> {
    let now = processor_time();
    let next = stage.map(|stage| Present { stage, since: now });
    let Present { stage, since } = PRESENT.replace(next)?;
    let nanos = u64::try_from(now.saturating_sub(since).as_nanos()).unwrap_or(u64::MAX);
    let counter = &stage.counters().processor_nanos;
    counter.fetch_add(nanos, Ordering::Relaxed);
    Some(stage)
}

impl Counters {
    const fn new() -> Self {
        Self {
            processor_nanos: AtomicU64::new(0),
            durations: Histogram::new(),
        }
    }
}

fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::blocking;
    use std::pin::pin;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn work(time: Duration) {
        let begun = processor_time();
        while processor_time() < begun + time {}
    }

    fn fails() {
        panic!("on purpose");
    }

    /// Returns the nanoseconds and the number of durations that a stage has so far.
    fn so_far(stage: Stage) -> (u64, u64) {
        let counters = stage.counters();
        let nanos = counters.processor_nanos.load(Ordering::Relaxed);
        (nanos, counters.durations.count())
    }

    /// There is one clock in the process, so one test plays all cases.
    #[tokio::test]
    async fn stages_are_charged_for_their_own_time_alone() {
        // Counters are looked at while the clock is off: `start` would hide what a clock that is always on adds.
        Stage::Guard.measured(|| work(MS(1)));
        Stage::Guard.timed(pin!(async { work(MS(1)) })).await;
        assert_eq!(so_far(Stage::Guard), (0, 0));
        start();
        let inner = async {
            work(MS(4));
            tokio::task::yield_now().await;
            Stage::Extract.measured(|| work(MS(20)));
            work(MS(4));
            tokio::time::sleep(MS(30)).await;
        };
        let mut guest = pin!(async {
            Stage::Instance.timed(pin!(inner)).await;
            work(MS(2));
        });
        Stage::Guest.timed(guest.as_mut()).await;
        // Between two polls the thread works for others.
        work(MS(5));
        Stage::Sink.charged(pin!(async { work(MS(3)) })).await;
        let on_thread = blocking(|| Stage::Sink.charge(|| work(MS(3))));
        on_thread.await.expect("the process goes on");
        let mut dropped = Stage::Commit.timed(Box::pin(async {
            work(MS(3));
            std::future::pending::<()>().await;
        }));
        assert!(futures::poll!(&mut dropped).is_pending());
        drop(dropped);
        // A panic is caught where a page ends, and leaves no stage behind.
        let caught = std::panic::catch_unwind(|| Stage::Seen.charge(fails));
        assert!(caught.is_err());
        assert!(PRESENT.get().is_none());
        let times = stop();
        let at_stop = so_far(Stage::Seen);
        Stage::Seen.measured(|| work(MS(1)));
        Stage::Seen.timed(pin!(async { work(MS(1)) })).await;
        assert_eq!(so_far(Stage::Seen), at_stop);

        let of = |stage: Stage| times[stage as usize];
        let is_about = |stage: Stage, expected: Duration| {
            let spent = of(stage).processor;
            assert!(spent >= expected, "{stage:?} {spent:?}");
            assert!(spent < expected + MS(5), "{stage:?} {spent:?}");
        };
        is_about(Stage::Guard, Duration::ZERO);
        is_about(Stage::Extract, MS(20));
        is_about(Stage::Instance, MS(8));
        is_about(Stage::Guest, MS(2));
        is_about(Stage::Sink, MS(6));
        is_about(Stage::Commit, MS(3));
        let n = Stage::ALL.map(|stage| of(stage).n);
        assert_eq!(n, [0, 0, 0, 1, 1, 1, 0, 0, 0]);
        assert!(of(Stage::Instance).p50 >= MS(50), "{times:?}");
        assert!(of(Stage::Guest).p99 >= of(Stage::Instance).p50);
        start();
        assert!(stop().iter().all(|times| times.processor.is_zero()));
    }
}
