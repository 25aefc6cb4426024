//! `crawler node …`: the masters and workers of a cluster.

use clap::{Args, Subcommand};
use crawler_proto as proto;
use futures::TryStreamExt as _;

use super::args::{Format, OutputArgs, label};
use super::join_token::{self, JoinTokenCommand};
use super::past_events::{self, ReadingArgs, Subject};
use super::{CalledMasters, Failure, table};
use crawler_api::client::{Client, ClientError, Health};
use crawler_model::id::NodeId;

#[derive(Debug, Subcommand)]
pub(super) enum NodeCommand {
    /// List masters and workers, and who leads
    #[command(
        after_help = "LOAD is the number of crawls and how many the worker takes; WEIGHT, what they weigh together, is shown\nwhere that is another number. Labels and what each worker has done are in -o json.\n\nExamples:\n  crawler node list\n  crawler node list --role worker -l gpu=true"
    )]
    List(ListArgs),
    /// Let a worker give its crawls to others and take nothing new, until that is undone
    #[command(
        after_help = "It holds for the id: a process that comes back under it drains too.\n\nExamples:\n  crawler node drain worker-1\n  crawler node drain worker-1 --undo"
    )]
    Drain {
        /// The worker
        id: NodeId,
        /// Take crawls again
        #[arg(long)]
        undo: bool,
    },
    /// Ask one process whether it goes on: exit code 0, or 1 with the reason; for health checks of containers
    #[command(
        after_help = "The process is the one that --master names first; a worker answers at the address of its gRPC too. No access\ntoken is needed.\n\nExamples:\n  crawler node health\n  crawler node health --joined --master http://127.0.0.1:9090"
    )]
    Health {
        /// Ask whether it belongs to the cluster, too
        #[arg(long)]
        joined: bool,
    },
    /// Tell who is there, and then who joins, leaves or changes, until Ctrl-C
    #[command(after_help = "Example:\n  crawler node watch")]
    Watch(OutputArgs),
    /// List what happened to nodes, in order: who joined, left or was lost, drains, who led, and shards that came and left
    #[command(
        after_help = "The latest events of each node are kept, for a day after it is gone. With -o json, each event is a line.\n\nExamples:\n  crawler node events\n  crawler node events worker-1 --since 2h\n  crawler node events --follow -o json"
    )]
    Events {
        /// The master or worker; all nodes without it
        id: Option<NodeId>,
        #[command(flatten)]
        reading: ReadingArgs,
    },
    /// Make the certificates of a node void that it got from its cluster until now
    #[command(
        after_help = "Stop the node first. It joins again with a join token that is made afterwards.\n\nExample:\n  crawler node revoke worker-1"
    )]
    Revoke {
        /// The master or worker
        id: NodeId,
    },
    /// Make, list and revoke join tokens, each of which buys nodes certificates for TLS
    #[command(subcommand)]
    JoinToken(JoinTokenCommand),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only nodes of this role
    #[arg(long, value_name = "ROLE", value_parser = ["master", "worker"])]
    role: Option<String>,
    /// Only nodes that have these labels
    #[arg(short = 'l', long = "label", value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = label)]
    labels: Vec<(String, String)>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(command: NodeCommand, masters: CalledMasters) -> anyhow::Result<()> {
    let ListArgs {
        role,
        labels,
        output,
    } = match command {
        NodeCommand::List(args) => args,
        NodeCommand::Health { joined } => return health(&masters, joined).await,
        NodeCommand::Events { id, reading } => {
            let client = masters.connect().await?;
            return past_events::print(&client, Subject::Nodes(id), reading).await;
        }
        NodeCommand::Watch(output) => return watch(&output, masters.connect().await?).await,
        NodeCommand::JoinToken(command) => {
            return join_token::run(command, masters.connect().await?).await;
        }
        NodeCommand::Revoke { id } => {
            masters.connect().await?.revoke_node(&id).await?;
            let said = format!("the certificates that {id} has had until now are void");
            return Ok(table::print_line(&said)?);
        }
        NodeCommand::Drain { id, undo } => {
            let client = masters.connect().await?;
            return Ok(table::print_line(&drain(&client, &id, undo).await?)?);
        }
    };
    let request = proto::ListNodesRequest {
        role: role.unwrap_or_default(),
        labels: labels.into_iter().collect(),
        ..proto::ListNodesRequest::default()
    };
    let nodes = masters.connect().await?.nodes(request).await?;
    if output.format == Format::Json {
        let next_page_token = String::new();
        return table::print_json(&proto::ListNodesResponse {
            nodes,
            next_page_token,
        });
    }
    let head = ["NODE", "ROLE", "ADDRESS", "LEADS", "LOAD"];
    let [node, role, address, leads, load] = head;
    if nodes.iter().any(|node| node.weight != u64::from(node.load)) {
        let head = [
            node, role, address, leads, load, "WEIGHT", "SINCE", "VERSION",
        ];
        let rows: Vec<_> = nodes.iter().map(weighed_row).collect();
        table::print(head, &rows)?;
    } else {
        let head = [node, role, address, leads, load, "SINCE", "VERSION"];
        let rows: Vec<_> = nodes.iter().map(row).collect();
        table::print(head, &rows)?;
    }
    Ok(())
}

async fn health(masters: &CalledMasters, must_have_joined: bool) -> anyhow::Result<()> {
    match masters.health().await? {
        Health::Waits if must_have_joined => Err(Failure::new(
            "the process does not belong to the cluster yet",
            "its log tells what it waits for",
        )
        .into()),
        Health::Waits => Ok(table::print_line("answers, and waits for the cluster")?),
        Health::Joined => Ok(table::print_line("belongs to the cluster")?),
    }
}

/// Drains a worker, or lets it take crawls again. Returns what was done, in words.
pub(super) async fn drain(client: &Client, id: &NodeId, undo: bool) -> Result<String, ClientError> {
    let proto::DrainNodeResponse { load, others } = client.drain_node(id, undo).await?;
    Ok(drained(id, undo, load, others))
}

fn drained(id: &NodeId, undo: bool, load: u32, others: u32) -> String {
    match (undo, load, others) {
        (true, ..) => format!("{id} takes crawls again"),
        (false, 0, _) => format!("{id} drains; it has nothing"),
        (false, n, 0) => {
            format!("{id} drains; nobody else takes its {n} crawls, which wait until somebody does")
        }
        (false, n, _) => format!(
            "{id} drains; its {n} crawls go to others, and one that none of them may take waits"
        ),
    }
}

async fn watch(output: &OutputArgs, client: Client) -> anyhow::Result<()> {
    let mut events = client.node_events().await?;
    while let Some(event) = events.try_next().await? {
        match output.format {
            Format::Json => table::print_line(&serde_json::to_string(&event)?)?,
            Format::Table => {
                let proto::Node { id, address, .. } = event.node.unwrap_or_default();
                table::print_line(&format!("{:<8} {id}  {address}", event.event))?;
            }
        }
    }
    Ok(())
}

fn row(node: &proto::Node) -> [String; 7] {
    let [id, role, address, leads, load, _weight, since, version] = weighed_row(node);
    [id, role, address, leads, load, since, version]
}

fn weighed_row(node: &proto::Node) -> [String; 8] {
    if !node.reason.is_empty() {
        // This is no node, but a record that nobody can read; the last column may be long.
        let nothing = String::new;
        let (key, role, reason) = (node.id.clone(), "?".to_owned(), node.reason.clone());
        return [
            key,
            role,
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            reason,
        ];
    }
    let weight = match node.capacity {
        0 => String::new(),
        _ => node.weight.to_string(),
    };
    let load = load(node);
    let load = match node.draining {
        true => format!("{load}, draining"),
        false => load,
    };
    [
        node.id.clone(),
        node.role.clone(),
        node.address.clone(),
        if node.leader { "leader" } else { "" }.to_owned(),
        load,
        weight,
        table::time(node.started_at),
        node.version.clone(),
    ]
}

/// Formats the number of crawls of a worker and how many it takes; empty for a master.
pub(super) fn load(node: &proto::Node) -> String {
    match node.capacity {
        0 => String::new(),
        capacity => format!("{}/{capacity}", node.load),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker() -> proto::Node {
        proto::Node {
            id: "worker-1".into(),
            role: "worker".into(),
            address: "127.0.0.1:9090".into(),
            leader: false,
            load: 2,
            capacity: 10,
            version: "0.1.0".into(),
            labels: [].into(),
            started_at: 1_700_000_000_000,
            weight: 9,
            totals: None,
            reason: String::new(),
            draining: false,
            pprof: String::new(),
        }
    }

    #[test]
    fn a_node_is_a_row_with_its_load_and_since_when_it_is_there() {
        let since = "2023-11-14T22:13:20Z";
        assert_eq!(
            weighed_row(&worker()).join("|"),
            format!("worker-1|worker|127.0.0.1:9090||2/10|9|{since}|0.1.0")
        );
        assert_eq!(
            row(&worker()).join("|"),
            format!("worker-1|worker|127.0.0.1:9090||2/10|{since}|0.1.0")
        );
        let master = proto::Node {
            id: "master-1".into(),
            role: "master".into(),
            leader: true,
            load: 0,
            weight: 0,
            capacity: 0,
            ..worker()
        };
        assert_eq!(
            row(&master).join("|"),
            format!("master-1|master|127.0.0.1:9090|leader||{since}|0.1.0")
        );
    }

    #[test]
    fn a_worker_that_drains_says_so_and_what_becomes_of_its_crawls() {
        let draining = proto::Node {
            draining: true,
            ..worker()
        };
        assert_eq!(weighed_row(&draining)[4], "2/10, draining");
        let id = "worker-1".parse().unwrap();
        for (undo, load, others, expected) in [
            (
                false,
                2,
                1,
                "worker-1 drains; its 2 crawls go to others, and one that none of them may take waits",
            ),
            (
                false,
                2,
                0,
                "worker-1 drains; nobody else takes its 2 crawls, which wait until somebody does",
            ),
            (false, 0, 0, "worker-1 drains; it has nothing"),
            (true, 2, 1, "worker-1 takes crawls again"),
        ] {
            assert_eq!(drained(&id, undo, load, others), expected);
        }
    }

    #[test]
    fn a_record_that_does_not_decode_is_a_row_with_the_reason() {
        let broken = proto::Node {
            id: "/crawler/nodes/worker/x".into(),
            reason: "the record does not decode: eof".into(),
            ..proto::Node::default()
        };
        assert_eq!(
            row(&broken).join("|"),
            "/crawler/nodes/worker/x|?|||||the record does not decode: eof"
        );
    }
}
