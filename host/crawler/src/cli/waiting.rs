//! Wait of commands that follow: a master that restarts does not end them.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Failure;
use crawler_api::client::ClientError;
use crawler_process::retry::Backoff;
use crawler_process::telemetry::chain;

/// Longest pause between two calls. A stream that stays open for longer counts as restored.
const STEADY: Duration = Duration::from_secs(5);

/// A wait for a master that went away.
pub(super) struct Waiting {
    patience: Duration,
    since: Option<Instant>,
    backoff: Backoff,
}

impl Waiting {
    /// Creates the wait of a command that gives up once a master was away for this long.
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            patience,
            since: None,
            backoff: Backoff::new(Duration::from_millis(100), STEADY),
        }
    }

    fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// Takes note that the master is back.
    pub(super) fn end(&mut self) {
        self.since = None;
        self.backoff.reset();
    }

    /// Waits before the next call, after an error of one that was opened at this time. Fails if another call would not help,
    /// or once patience has run out.
    pub(super) async fn pass(&mut self, error: ClientError, opened: Instant) -> anyhow::Result<()> {
        if !error.is_transient() {
            return Err(error.into());
        }
        if opened.elapsed() >= STEADY {
            self.end();
        }
        if !self.is_on() {
            eprintln!("waiting for the master: {}", chain(&error));
        }
        sleep(self.next_delay(&error)?).await;
        Ok(())
    }

    /// Returns the pause before the next call; fails once patience has run out.
    fn next_delay(&mut self, error: &ClientError) -> Result<Duration, Failure> {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        let left = self.patience.saturating_sub(waited);
        if left.is_zero() {
            let patience = humantime::format_duration(self.patience);
            return Err(Failure::new(
                format!("the master is not back after {patience}: {}", chain(error)),
                "wait longer with --patience, or start it with `crawler up` and follow again",
            ));
        }
        Ok(self.backoff.next_delay().min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_master_that_went_away_is_waited_for_as_long_as_was_asked() {
        let error = ClientError::Unreachable {
            url: "http://a:1".into(),
            why: "connection refused".into(),
        };
        let mut waiting = Waiting::new(Duration::from_secs(60));
        for _loss in 0..2 {
            let start = Instant::now();
            assert!(!waiting.is_on());
            let end = loop {
                match waiting.next_delay(&error) {
                    Ok(delay) => sleep(delay).await,
                    Err(end) => break end,
                }
                assert!(waiting.is_on());
            };
            // Timers count in milliseconds.
            let waited = start.elapsed().as_secs_f64();
            assert!((59.9..60.1).contains(&waited), "{waited}");
            assert_eq!(
                end.what,
                "the master is not back after 1m: cannot reach the master at http://a:1: connection refused"
            );
            assert!(end.hint.contains("--patience"));
            waiting.end();
        }
    }
}
