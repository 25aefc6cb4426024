//! The processor time of one call.
//!
//! A call is polled by whichever thread of the executor is free, and gives the thread back between two ticks
//! of the epoch. The time is therefore that of the thread, summed over the polls. A busy machine cuts no call
//! short, and a host call counts for all of its time however few ticks the guest sees.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use crawler_extract::processor_time;

/// Processor time of one call. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuTime(Arc<Mutex<PolledTime>>);

#[derive(Debug, Default)]
struct PolledTime {
    /// Time in polls that are over.
    before: Duration,
    /// Processor time of the thread when the present poll began; `None` between two polls.
    begun: Option<Duration>,
    /// Time in these polls that is charged elsewhere.
    aside: Duration,
}

impl PolledTime {
    fn at(&self, now: Duration) -> Duration {
        let present = self
            .begun
            .map_or(Duration::ZERO, |begun| now.saturating_sub(begun));
        (self.before + present).saturating_sub(self.aside)
    }

    fn end_poll(&mut self, now: Duration) {
        if let Some(begun) = self.begun.take() {
            self.before += now.saturating_sub(begun);
        }
    }
}

impl CpuTime {
    /// Counts the time that polling the future takes.
    pub(super) async fn count<T>(&self, call: impl Future<Output = T>) -> T {
        Counted {
            time: self.clone(),
            call: std::pin::pin!(call),
        }
        .await
    }

    /// Returns the time so far; called from within the call.
    pub(super) fn spent(&self) -> Duration {
        self.spent_cell(|spent| spent.at(processor_time()))
    }

    /// Leaves out time that has a budget of its own.
    pub(crate) fn set_aside(&self, time: Duration) {
        self.spent_cell(|spent| spent.aside += time);
    }

    fn spent_cell<T>(&self, change: impl FnOnce(&mut PolledTime) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Counted<'a, F> {
    time: CpuTime,
    call: Pin<&'a mut F>,
}

impl<F: Future> Future for Counted<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let begun = processor_time();
        self.time.spent_cell(|spent| spent.begun = Some(begun));
        let polled = self.call.as_mut().poll(cx);
        let ended = processor_time();
        self.time.spent_cell(|spent| spent.end_poll(ended));
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn r06_time_is_summed_over_polls_on_any_thread() {
        let mut spent = PolledTime {
            begun: Some(MS(100)),
            ..PolledTime::default()
        };
        assert_eq!(spent.at(MS(103)), MS(3));
        spent.end_poll(MS(105));
        // Between polls the thread works for others.
        assert_eq!(spent.at(MS(900)), MS(5));
        // Another thread has had less time so far.
        spent.begun = Some(MS(20));
        assert_eq!(spent.at(MS(27)), MS(12));
        spent.aside = MS(4);
        assert_eq!(spent.at(MS(27)), MS(8));
    }

    #[tokio::test]
    async fn r06_only_the_polls_of_a_call_are_counted() {
        let time = CpuTime::default();
        let seen = time
            .count(async {
                tokio::task::yield_now().await;
                let begun = processor_time();
                while processor_time() < begun + MS(5) {}
                time.spent()
            })
            .await;
        assert!(seen >= MS(5), "{seen:?}");
        let after = time.spent();
        assert!(after >= seen);
        let begun = processor_time();
        while processor_time() < begun + MS(5) {}
        assert_eq!(time.spent(), after);
    }
}
