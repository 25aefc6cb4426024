//! Health of a host, judged from exchanges with it.

use std::time::Duration;

use tokio::time::Instant;

use super::settings::{STRICT_FOR, ThrottleSettings};
use crawler_process::retry::delay_after;

/// First pause of a host that is overloaded and does not say for how long.
const FIRST_BUSY_PAUSE: Duration = Duration::from_secs(30);

/// First pause of a host that fails, once it has failed often enough.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Stands for times that cannot be computed; longer than any process lives.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Conclusion from one exchange about its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostSignal {
    /// The host answers.
    Healthy {
        /// Time from the request to the end of the answer.
        took: Duration,
        /// True if the answer is a page. Other answers are quick, however long pages take.
        is_page: bool,
    },
    /// The host is overloaded.
    Busy {
        /// Value of `Retry-After`, if there is one.
        pause: Option<Duration>,
    },
    /// The host gave no answer, or an answer that says that it is broken.
    Failing,
}

/// Health of a host.
#[derive(Debug, Default)]
pub(super) struct Health {
    trouble: Option<Trouble>,
    /// Average time that pages take, weighted towards the latest ones.
    of_pages: Duration,
    /// Time that other answers have taken since the last page.
    of_refusals: Duration,
}

/// Trouble of a host that has not answered well since.
#[derive(Debug, Clone, Copy)]
struct Trouble {
    /// Number of consecutive failures.
    n: u32,
    last_heard_at: Instant,
    /// End of the pause. If `None`, the host has not failed often enough for a pause.
    paused_until: Option<Instant>,
}

impl Health {
    /// Returns the time that answers of the host take.
    pub(super) fn latency(&self) -> Duration {
        self.of_pages.max(self.of_refusals)
    }

    /// Returns the end of the last pause, if the host has not answered since.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.trouble?.paused_until
    }

    /// Returns true if the next request would have to know of the trouble.
    pub(super) fn is_remembered(&self, now: Instant) -> bool {
        self.trouble.is_some_and(|trouble| {
            let last = trouble.paused_until.unwrap_or(trouble.last_heard_at);
            now < last + STRICT_FOR
        })
    }

    /// Begins a pause of this length, unless a longer one is running.
    pub(super) fn rest(&mut self, pause: Duration, settings: &ThrottleSettings) {
        let until = Some(end_of(pause, settings));
        match &mut self.trouble {
            Some(trouble) => trouble.paused_until = trouble.paused_until.max(until),
            None => {
                self.trouble = Some(Trouble {
                    n: 1,
                    last_heard_at: Instant::now(),
                    paused_until: until,
                });
            }
        }
    }

    /// Records the result of an exchange that began at `entered`.
    pub(super) fn note(
        &mut self,
        signal: HostSignal,
        entered: Instant,
        settings: &ThrottleSettings,
    ) {
        let now = Instant::now();
        let before = self.trouble;
        let asked_after_last = before.is_none_or(|trouble| entered >= trouble.last_heard_at);
        let n = before.map_or(0, |trouble| trouble.n);
        let longest = settings.max_host_pause;
        let pause = match signal {
            HostSignal::Healthy { took, is_page } => {
                if asked_after_last {
                    self.trouble = None;
                }
                let average = |before: Duration| match before.is_zero() {
                    true => took,
                    false => (before + took) / 2,
                };
                if is_page {
                    self.of_pages = average(self.of_pages);
                    self.of_refusals = Duration::ZERO;
                } else {
                    self.of_refusals = average(self.of_refusals);
                }
                return;
            }
            // A host that asks for no pause again and again is in trouble all the same.
            HostSignal::Busy { pause: Some(asked) } if asked_after_last => {
                Some(asked.max(delay_after(FIRST_PAUSE, longest, n)))
            }
            HostSignal::Busy { pause: Some(asked) } => Some(asked),
            HostSignal::Busy { pause: None } | HostSignal::Failing if !asked_after_last => return,
            HostSignal::Busy { pause: None } => Some(delay_after(FIRST_BUSY_PAUSE, longest, n)),
            HostSignal::Failing => {
                let beyond = (n + 1).checked_sub(settings.host_failures.max(1));
                beyond.map(|beyond| delay_after(FIRST_PAUSE, longest, beyond))
            }
        };
        let until = |pause| end_of(pause, settings);
        let paused_before = before.and_then(|trouble| trouble.paused_until);
        let n = match before {
            Some(trouble) if !asked_after_last => trouble.n,
            Some(_) | None => n.saturating_add(1),
        };
        self.trouble = Some(Trouble {
            n,
            last_heard_at: now,
            paused_until: paused_before.max(pause.map(until)),
        });
    }
}

/// Returns the end of a pause that begins now, which is bounded by setting `max-host-pause`.
fn end_of(pause: Duration, settings: &ThrottleSettings) -> Instant {
    let now = Instant::now();
    let end = now.checked_add(pause.min(settings.max_host_pause));
    end.unwrap_or(now + FOR_EVER)
}
