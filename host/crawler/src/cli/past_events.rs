//! Events of a resource or of nodes, as `crawler resource events` and `crawler node events` show them.

use std::time::Duration;

use clap::Args;
use crawler_proto as proto;
use futures::stream::{BoxStream, StreamExt as _};
use tokio::time::Instant;

use super::args::{Format, OutputArgs, duration};
use super::items::since::since;
use super::table::{self, Growing};
use super::waiting::Waiting;
use crawler_api::client::{Client, ClientError};
use crawler_model::crawl::UnixMillis;
use crawler_model::event::EventKind;
use crawler_model::id::{NodeId, ResourceName};

const HEAD: [&str; 6] = ["TIME", "EVENT", "RUN", "WORKER", "BY", "DETAILS"];
const NODE_HEAD: [&str; 5] = ["TIME", "NODE", "EVENT", "BY", "DETAILS"];

/// Choice of events, and how they are shown.
#[derive(Debug, Args)]
pub(super) struct ReadingArgs {
    /// Go on as events come, those of a resource until it is deleted; a master that restarts is waited for
    #[arg(long)]
    follow: bool,
    /// Only events from then on: 2026-11-24, 2026-11-24T10:00:00Z, or how long ago it was, like 2h
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<UnixMillis>,
    /// Time for which a master that went away is waited for
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration, requires = "follow")]
    patience: Duration,
    #[command(flatten)]
    output: OutputArgs,
}

/// Subject of the events.
pub(super) enum Subject {
    Resource(ResourceName),
    /// One node, or all nodes.
    Nodes(Option<NodeId>),
}

impl Subject {
    async fn events(
        &self,
        client: &Client,
        args: &ReadingArgs,
        after: String,
    ) -> Result<BoxStream<'static, Result<proto::PastEvent, ClientError>>, ClientError> {
        let (follow, since) = (args.follow, args.since.unwrap_or_default());
        match self {
            Subject::Resource(name) => {
                let message = proto::ReadEventsRequest {
                    name: name.to_string(),
                    follow,
                    since,
                    after,
                };
                client.events(message).await
            }
            Subject::Nodes(id) => {
                let message = proto::ReadNodeEventsRequest {
                    node: id.as_ref().map(NodeId::to_string).unwrap_or_default(),
                    follow,
                    since,
                    after,
                };
                client.node_history(message).await
            }
        }
    }
}

/// Prints the events of a subject.
pub(super) async fn print(
    client: &Client,
    subject: Subject,
    args: ReadingArgs,
) -> anyhow::Result<()> {
    // Which events are to come is not known.
    let kinds = EventKind::ALL.iter().filter(|_| args.follow);
    let longest = kinds.map(|kind| kind.as_str().len()).max();
    let longest = longest.unwrap_or_default();
    let rows = match subject {
        Subject::Resource(_) => Rows::Resource(Growing::new(HEAD).with_room(1, longest)),
        Subject::Nodes(_) => Rows::Nodes(Growing::new(NODE_HEAD).with_room(2, longest)),
    };
    let mut printed = Printed {
        is_json: args.output.format == Format::Json,
        rows,
    };
    let mut waiting = Waiting::new(args.patience);
    let mut after = String::new();
    // Events of one write; the last of them has the version from which a reader resumes.
    let mut write = Vec::new();
    loop {
        let opened = Instant::now();
        let error = match subject.events(client, &args, after.clone()).await {
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
    rows: Rows,
}

enum Rows {
    Resource(Growing<6>),
    Nodes(Growing<5>),
}

impl Printed {
    fn print(&mut self, events: &[proto::PastEvent]) -> anyhow::Result<()> {
        if self.is_json {
            for event in events {
                table::print_line(&serde_json::to_string(event)?)?;
            }
            return Ok(());
        }
        match &mut self.rows {
            Rows::Resource(rows) => rows.print(&events.iter().map(row).collect::<Vec<_>>())?,
            Rows::Nodes(rows) => rows.print(&events.iter().map(node_row).collect::<Vec<_>>())?,
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

fn node_row(event: &proto::PastEvent) -> [String; 5] {
    [
        table::time(event.at),
        table::plain(&event.node),
        table::plain(&event.kind),
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
        (event.times > 1).then(|| format!("{} times", event.times)),
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
        let killed = proto::PastEvent {
            kind: "rule-killed".into(),
            at,
            run: 2,
            worker: "worker-1".into(),
            why: "out-of-fuel in rule page (3 times)".into(),
            times: 3,
            ..proto::PastEvent::default()
        };
        let details = "3 times; out-of-fuel in rule page (3 times)";
        check(killed, [time, "rule-killed", "2", "worker-1", "", details]);
    }

    #[test]
    fn an_event_of_a_node_is_a_row_with_its_node() {
        let event = proto::PastEvent {
            kind: "draining".into(),
            at: 1_700_000_000_000,
            node: "worker-1".into(),
            by: "alice".into(),
            ..proto::PastEvent::default()
        };
        let time = "2023-11-14T22:13:20Z";
        assert_eq!(
            node_row(&event),
            [time, "worker-1", "draining", "alice", ""]
        );
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
