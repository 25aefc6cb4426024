//! `crawler node …`: the masters and workers there are.

use clap::Subcommand;
use serde_json::json;

use super::args::{Format, OutputArgs};
use super::table;
use crate::api::client::Client;

#[derive(Debug, Subcommand)]
pub(super) enum NodeCommand {
    /// List masters and workers, and who leads
    #[command(after_help = "Example:\n  crawler node list")]
    List(OutputArgs),
}

pub(super) async fn run(command: NodeCommand, client: Client) -> anyhow::Result<()> {
    let NodeCommand::List(output) = command;
    let nodes = client.nodes().await?;
    if output.format == Format::Json {
        return table::print_json(&json!({ "nodes": nodes }));
    }
    let rows: Vec<[String; 6]> = nodes
        .into_iter()
        .map(|node| {
            let load = match node.capacity {
                0 => String::new(),
                capacity => format!("{}/{capacity}", node.load),
            };
            let leads = if node.leader { "leader" } else { "" };
            [
                node.id,
                node.role,
                node.address,
                leads.to_owned(),
                load,
                node.version,
            ]
        })
        .collect();
    table::print(
        ["NODE", "ROLE", "ADDRESS", "LEADS", "LOAD", "VERSION"],
        &rows,
    )?;
    Ok(())
}
