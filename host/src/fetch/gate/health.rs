//! How a host is, as exchanges with it tell.

use std::time::Duration;

use tokio::time::Instant;

use super::{GateSettings, STRICT_FOR};
use crate::retry::delay_after;

/// A host that has too much to do and does not say for how long is left alone for so long at first.
const FIRST_BUSY_PAUSE: Duration = Duration::from_secs(30);

/// One that fails, once it has failed often enough.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longer than any process lives: what cannot be counted.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// What an exchange says of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It answers, this long after it was asked.
    Well {
        /// From the request to the end of the answer.
        took: Duration,
        /// With a page. What a host says instead of one is soon said, whatever its pages take.
        is_page: bool,
    },
    /// It has too much to do, and may say for how long.
    Busy {
        /// `Retry-After`.
        pause: Option<Duration>,
    },
    /// It gave no answer, or one that says that it is broken.
    Failing,
}

/// How a host is.
#[derive(Debug, Default)]
pub(super) struct Health {
    trouble: Option<Trouble>,
    /// What pages take, the later ones counting more.
    of_pages: Duration,
    /// What other answers take since the last page.
    of_refusals: Duration,
}

/// Of a host that has not answered well since.
#[derive(Debug, Clone, Copy)]
struct Trouble {
    /// Failures on end.
    n: u32,
    last_heard_at: Instant,
    /// Nobody asks before. None: it has not failed often enough.
    paused_until: Option<Instant>,
}

impl Health {
    /// How long its answers take.
    pub(super) fn latency(&self) -> Duration {
        self.of_pages.max(self.of_refusals)
    }

    /// The end of its last pause, if it has not answered since.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.trouble?.paused_until
    }

    /// Whether the next request would have to know anything of it.
    pub(super) fn is_remembered(&self, now: Instant) -> bool {
        self.trouble.is_some_and(|trouble| {
            let last = trouble.paused_until.unwrap_or(trouble.last_heard_at);
            now < last + STRICT_FOR
        })
    }

    /// Takes note of an exchange that began at `entered`.
    pub(super) fn note(&mut self, sign: Sign, entered: Instant, settings: &GateSettings) {
        let now = Instant::now();
        let before = self.trouble;
        let asked_after_last = before.is_none_or(|trouble| entered >= trouble.last_heard_at);
        let n = before.map_or(0, |trouble| trouble.n);
        let longest = settings.max_host_pause;
        let pause = match sign {
            Sign::Well { took, is_page } => {
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
            // One that says "now" again and again is in trouble all the same.
            Sign::Busy { pause: Some(asked) } if asked_after_last => {
                Some(asked.max(delay_after(FIRST_PAUSE, longest, n)))
            }
            Sign::Busy { pause: Some(asked) } => Some(asked),
            Sign::Busy { pause: None } | Sign::Failing if !asked_after_last => return,
            Sign::Busy { pause: None } => Some(delay_after(FIRST_BUSY_PAUSE, longest, n)),
            Sign::Failing => {
                let beyond = (n + 1).checked_sub(settings.host_failures.max(1));
                beyond.map(|beyond| delay_after(FIRST_PAUSE, longest, beyond))
            }
        };
        let until = |pause: Duration| {
            now.checked_add(pause.min(longest))
                .unwrap_or(now + FOR_EVER)
        };
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
