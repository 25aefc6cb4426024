//! `crawler node join-token …`: the tokens with which nodes get certificates.

use std::time::Duration;

use clap::{Args, Subcommand};
use crawler_proto as proto;

use super::args::{Format, OutputArgs};
use super::table;
use crawler_access::joins::USES_MAX;
use crawler_access::node::{NodePattern, parse_role};
use crawler_api::client::Client;
use crawler_model::access::TokenId;
use crawler_model::label::{Label, labels};
use crawler_model::node::Role;

#[derive(Debug, Subcommand)]
pub(super) enum JoinTokenCommand {
    /// Make a join token, and print it: nothing prints it again
    #[command(
        after_help = "Write it to a file on the machine of the node, and start the node with --join FILE.\n\nExamples:\n  crawler node join-token add --role worker --nodes worker-1 > join-token\n  crawler node join-token add --role worker --uses 20 --label zone=eu --valid-for 1h"
    )]
    Add(AddArgs),
    /// List the join tokens, without what makes them secret
    #[command(after_help = "Example:\n  crawler node join-token list")]
    List(OutputArgs),
    /// Take a join token back; nodes that have joined with it stay
    #[command(after_help = "Example:\n  crawler node join-token revoke 0f3c2ab1d94e5678")]
    Revoke {
        /// Id of the token, which the list shows
        id: TokenId,
    },
}

#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// Role of the nodes: master or worker
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Role,
    /// Id of the node, like worker-1, or a beginning with one * at its end, like worker-* [default: all of the role]
    #[arg(long, value_name = "ID")]
    nodes: Option<NodePattern>,
    /// Label that each node must have, like zone=eu; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<Label>,
    /// Nodes that may join with it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(USES_MAX)))]
    uses: u32,
    /// Time for which it is valid, 30 days at most
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = validity)]
    valid_for: Duration,
    #[command(flatten)]
    output: OutputArgs,
}

fn role(word: &str) -> Result<Role, String> {
    parse_role(word).ok_or_else(|| "write master or worker".to_owned())
}

/// Parses a validity. Zero stands for the default in the call, and is refused here.
fn validity(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time < Duration::from_secs(1) => Err("write a second or more".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) async fn run(command: JoinTokenCommand, client: Client) -> anyhow::Result<()> {
    match command {
        JoinTokenCommand::Add(args) => add(args, client).await,
        JoinTokenCommand::List(output) => list(&output, client).await,
        JoinTokenCommand::Revoke { id } => {
            client.revoke_join_token(id.to_string()).await?;
            Ok(table::print_line(&format!("revoked join token {id}"))?)
        }
    }
}

async fn add(args: AddArgs, client: Client) -> anyhow::Result<()> {
    let issued = client
        .issue_join_token(proto::IssueJoinTokenRequest {
            role: args.role.to_string(),
            nodes: args.nodes.map(String::from).unwrap_or_default(),
            labels: labels(args.labels)?,
            uses: args.uses,
            valid_for_ms: u64::try_from(args.valid_for.as_millis()).unwrap_or(u64::MAX),
        })
        .await?;
    match args.output.format {
        Format::Json => table::print_json(&issued),
        // The token alone, so that a script keeps it.
        Format::Table => Ok(table::print_line(&issued.token)?),
    }
}

async fn list(output: &OutputArgs, client: Client) -> anyhow::Result<()> {
    let listed = client.join_tokens().await?;
    if output.format == Format::Json {
        return table::print_json(&listed);
    }
    let head = [
        "TOKEN", "ROLE", "NODES", "LABELS", "LEFT", "JOINED", "EXPIRES", "BY",
    ];
    let rows: Vec<_> = listed.tokens.into_iter().map(row).collect();
    Ok(table::print(head, &rows)?)
}

fn row(token: proto::JoinToken) -> [String; 8] {
    let labels = token.labels.iter();
    let labels = labels.map(|(key, value)| format!("{key}={value}"));
    [
        token.id,
        token.role,
        token.nodes,
        labels.collect::<Vec<_>>().join(", "),
        token.uses_left.to_string(),
        token.joined.join(", "),
        table::time(token.expires_at),
        token.issued_by,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_token_is_a_row_with_what_is_left_of_it() {
        let token = proto::JoinToken {
            id: "0f3c2ab1d94e5678".into(),
            role: "worker".into(),
            nodes: "worker-*".into(),
            labels: [("zone".to_owned(), "eu".to_owned())].into(),
            uses_left: 1,
            joined: vec!["worker-1".into(), "worker-2".into()],
            issued_at: 1_700_000_000_000,
            expires_at: 1_700_000_000_000,
            issued_by: "alice".into(),
        };
        assert_eq!(
            row(token).join("|"),
            "0f3c2ab1d94e5678|worker|worker-*|zone=eu|1|worker-1, worker-2|2023-11-14T22:13:20Z|alice"
        );
    }

    #[test]
    fn a_time_that_is_none_is_refused() {
        validity("0s").unwrap_err();
        validity("soon").unwrap_err();
        assert_eq!(validity("15m"), Ok(Duration::from_secs(900)));
    }
}
