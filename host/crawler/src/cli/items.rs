//! `crawler items …`: the items of a crawl.
//!
//! A reader that follows is not cut off by a master that restarts: each item comes with its position, and the
//! call is made again from the last one.

use std::time::Duration;

use clap::Args;
use crawler_proto as proto;
use futures::stream::StreamExt as _;
use tokio::time::{Instant, sleep};

use super::args::millis;
use super::{Failure, table};
use crawler_api::client::{Client, ClientError};
use crawler_process::retry::Backoff;
use crawler_process::telemetry::chain;

/// Longest pause between two calls. A stream that stays open for longer counts as restored.
const STEADY: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler items books | head -3\n  crawler items books --follow --envelope"
)]
pub(super) struct ItemsArgs {
    /// The resource, or the id of one that is deleted already
    name: String,
    /// Go on as items come, until the run is over; a master that restarts is waited for
    #[arg(long)]
    follow: bool,
    /// How long a master that went away is waited for
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration, requires = "follow")]
    patience: Duration,
    /// Print key, page, rule, schema, run and time with each item
    #[arg(long)]
    envelope: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    millis(text).map(Duration::from_millis)
}

pub(super) async fn run(args: ItemsArgs, client: Client) -> anyhow::Result<()> {
    let mut waiting = Waiting::new(args.patience);
    let mut after = String::new();
    loop {
        let opened = Instant::now();
        let error = match client
            .items(args.name.clone(), args.follow, after.clone())
            .await
        {
            Err(error) => error,
            Ok(mut items) => loop {
                match items.next().await {
                    None => return Ok(()),
                    Some(Err(error)) => break error,
                    Some(Ok(item)) => {
                        waiting.end();
                        after.clone_from(&item.position);
                        print(&item, args.envelope)?;
                    }
                }
            },
        };
        if !args.follow || !error.is_transient() {
            return Err(error.into());
        }
        if opened.elapsed() >= STEADY {
            waiting.end();
        }
        if !waiting.is_on() {
            eprintln!("waiting for the master: {}", chain(&error));
        }
        sleep(waiting.next_delay(&error)?).await;
    }
}

/// A wait for a master that went away.
struct Waiting {
    patience: Duration,
    since: Option<Instant>,
    backoff: Backoff,
}

impl Waiting {
    fn new(patience: Duration) -> Self {
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
    fn end(&mut self) {
        self.since = None;
        self.backoff.reset();
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

fn print(item: &proto::Item, envelope: bool) -> anyhow::Result<()> {
    match envelope {
        true => table::print_line(&serde_json::to_string(item)?)?,
        false => table::print_line(&item.json)?,
    }
    Ok(())
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
