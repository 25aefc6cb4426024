//! `crawler resource events`: what happened to a resource, in order.

use std::time::Duration;

use clap::Args;
use crawler_proto as proto;
use futures::stream::StreamExt as _;
use tokio::time::Instant;

use crate::cli::args::{Format, OutputArgs, duration};
use crate::cli::items::since::since;
use crate::cli::table::{self, Growing};
use crate::cli::waiting::Waiting;
use crawler_api::client::Client;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::ResourceName;

const HEAD: [&str; 6] = ["TIME", "EVENT", "RUN", "WORKER", "BY", "DETAILS"];

#[derive(Debug, Args)]
pub(in crate::cli) struct EventsArgs {
    /// The resource
    name: ResourceName,
    /// Go on as events come, until the resource is deleted; a master that restarts is waited for
    #[arg(long)]
    follow: bool,
    /// Only events from then on: 2026-11-24, 2026-11-24T10:00:00Z, or how long ago it was, like 2h
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<UnixMillis>,
    /// How long a master that went away is waited for
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration, requires = "follow")]
    patience: Duration,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(client: &Client, args: EventsArgs) -> anyhow::Result<()> {
    let mut printed = Printed {
        is_json: args.output.format == Format::Json,
        rows: Growing::new(HEAD),
    };
    let mut waiting = Waiting::new(args.patience);
    let mut after = String::new();
    // Events of one write; the last of them has the version from which a reader resumes.
    let mut write = Vec::new();
    loop {
        let opened = Instant::now();
        let message = proto::ReadEventsRequest {
            name: args.name.to_string(),
            follow: args.follow,
            since: args.since.unwrap_or_default(),
            after: after.clone(),
        };
        let error = match client.events(message).await {
            Err(error) => error,
            Ok(mut events) => loop {
                match events.next().await {
                    None => return printed.print(&write),
                    Some(Err(error)) => break error,
                    Some(Ok(event)) => write.push(event),
                }
                let Some(version) = write.last().map(|event| &event.version) else {
                    continue;
                };
                // What comes is shown at once.
                if args.follow && !version.is_empty() {
                    after.clone_from(version);
                    waiting.end();
                    printed.print(&write)?;
                    write.clear();
                }
            },
        };
        if !args.follow {
            return Err(error.into());
        }
        write.clear();
        waiting.pass(error, opened).await?;
    }
}

/// Output of the command.
struct Printed {
    is_json: bool,
    rows: Growing<6>,
}

impl Printed {
    fn print(&mut self, events: &[proto::PastEvent]) -> anyhow::Result<()> {
        if !self.is_json {
            let rows: Vec<_> = events.iter().map(row).collect();
            return Ok(self.rows.print(&rows)?);
        }
        for event in events {
            table::print_line(&serde_json::to_string(event)?)?;
        }
        Ok(())
    }
}

fn row(event: &proto::PastEvent) -> [String; 6] {
    [
        table::time(event.at),
        table::plain(&event.kind),
        match event.run {
            0 => String::new(),
            run => run.to_string(),
        },
        table::plain(&event.worker),
        table::plain(&event.by),
        table::plain(&details(event)),
    ]
}

/// Formats what there is to say about an event beyond its columns.
fn details(event: &proto::PastEvent) -> String {
    let is_end = matches!(event.kind.as_str(), "finished" | "failed" | "run-stopped");
    let parts = [
        (event.shard > 0).then(|| format!("shard {}", event.shard)),
        (!event.from.is_empty()).then(|| format!("from {}", event.from)),
        (event.generation > 0).then(|| format!("generation {}", event.generation)),
        is_end.then(|| {
            let proto::PastEvent {
                pages, items, dead, ..
            } = event;
            format!("pages {pages}, items {items}, dead {dead}")
        }),
        (!event.why.is_empty()).then(|| event.why.clone()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(event: proto::PastEvent, expected: [&str; 6]) {
        assert_eq!(row(&event), expected);
    }

    #[test]
    fn an_event_is_a_row_with_what_is_known_of_it() {
        let at = 1_700_000_000_000;
        let time = "2023-11-14T22:13:20Z";
        let moved = proto::PastEvent {
            kind: "moved".into(),
            at,
            run: 2,
            shard: 1,
            worker: "worker-2".into(),
            from: "worker-1".into(),
            why: "worker-1 is gone".into(),
            ..proto::PastEvent::default()
        };
        let details = "shard 1; from worker-1; worker-1 is gone";
        check(moved, [time, "moved", "2", "worker-2", "", details]);
        let updated = proto::PastEvent {
            kind: "updated".into(),
            at,
            run: 2,
            by: "alice".into(),
            why: "max-pages".into(),
            generation: 3,
            ..proto::PastEvent::default()
        };
        let details = "generation 3; max-pages";
        check(updated, [time, "updated", "2", "", "alice", details]);
        let finished = proto::PastEvent {
            kind: "finished".into(),
            at,
            run: 2,
            pages: 7,
            ..proto::PastEvent::default()
        };
        let details = "pages 7, items 0, dead 0";
        check(finished, [time, "finished", "2", "", "", details]);
    }

    #[test]
    fn text_of_a_master_moves_no_cursor() {
        let event = proto::PastEvent {
            kind: "failed".into(),
            why: "\u{1b}[2J".into(),
            ..proto::PastEvent::default()
        };
        assert!(row(&event).iter().all(|cell| !cell.contains('\u{1b}')));
    }
}
