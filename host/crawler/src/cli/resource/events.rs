//! `crawler resource events`: what happened to a resource, in order.

use clap::Args;
use crawler_proto as proto;
use futures::stream::StreamExt as _;

use crate::cli::args::{Format, OutputArgs};
use crate::cli::items::since::since;
use crate::cli::table::{self, Growing};
use crawler_api::client::Client;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::ResourceName;

const HEAD: [&str; 6] = ["TIME", "EVENT", "RUN", "WORKER", "BY", "DETAILS"];

#[derive(Debug, Args)]
pub(in crate::cli) struct EventsArgs {
    /// The resource
    name: ResourceName,
    /// Go on as events come, until the resource is deleted
    #[arg(long)]
    follow: bool,
    /// Only events from then on: 2026-11-24, 2026-11-24T10:00:00Z, or how long ago it was, like 2h
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<UnixMillis>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(client: &Client, args: EventsArgs) -> anyhow::Result<()> {
    let message = proto::ReadEventsRequest {
        name: args.name.to_string(),
        follow: args.follow,
        since: args.since.unwrap_or_default(),
        after: String::new(),
    };
    let mut events = client.events(message).await?;
    let mut rows = Growing::new(HEAD);
    let mut listed = Vec::new();
    while let Some(event) = events.next().await {
        let event = event?;
        match args.output.format {
            Format::Json => table::print_line(&serde_json::to_string(&event)?)?,
            // What comes is shown at once.
            _ if args.follow => rows.print(&[row(&event)])?,
            _ => listed.push(row(&event)),
        }
    }
    if args.output.format != Format::Json && !args.follow {
        rows.print(&listed)?;
    }
    Ok(())
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
