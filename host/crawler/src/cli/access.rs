//! `crawler access …`: who may call the masters.

use std::time::Duration;

use clap::{Args, Subcommand};
use crawler_proto as proto;

use super::args::{Format, OutputArgs};
use super::{Failure, login, table};
use crawler_api::client::Client;
use crawler_model::access::{Role, Subject, TokenId};
use crawler_model::id::Namespace;
use crawler_process::clock::{Clock as _, SystemClock};

#[derive(Debug, Subcommand)]
pub(super) enum AccessCommand {
    /// Make, list and revoke access tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Tell who did what to what, from where, and with which result: changes, and calls that were refused
    #[command(
        after_help = "It has the newest entries. Calls without a valid token are counted together.\n\nExamples:\n  crawler access audit\n  crawler access audit --subject alice --since 1day -o json"
    )]
    Audit(AuditArgs),
    /// Tell who calls, and what that allows
    #[command(after_help = "Example:\n  crawler access whoami")]
    Whoami(OutputArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token, and print it: nothing prints it again
    #[command(
        after_help = "Roles: a viewer sees everything. An operator may also decide what is crawled, and a publisher may also push plugins. An\nadmin may do everything. In a namespace, a role holds for the resources and plugins whose names begin with it.\n\nExamples:\n  crawler access token add alice --role viewer\n  crawler access token add ci --role operator,publisher --namespace team --valid-for 90days"
    )]
    Add(AddArgs),
    /// List the tokens, without what makes them secret
    #[command(
        after_help = "Examples:\n  crawler access token list\n  crawler access token list --subject alice"
    )]
    List {
        /// Only tokens of this subject
        #[arg(long, value_name = "NAME")]
        subject: Option<Subject>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Take a token back, or all that a subject has; what runs with them ends
    #[command(
        after_help = "Examples:\n  crawler access token revoke 0f3c2ab1d94e5678\n  crawler access token revoke --subject alice"
    )]
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// Person or program that will show it
    subject: Subject,
    /// Roles: viewer, operator, publisher, admin
    #[arg(
        long = "role",
        value_name = "ROLE,…",
        value_delimiter = ',',
        required = true
    )]
    roles: Vec<Role>,
    /// Names that it is limited to: team is all below team/ [default: the whole cluster]
    #[arg(long = "namespace", value_name = "NAME,…", value_delimiter = ',')]
    namespaces: Vec<Namespace>,
    /// Time for which it is valid, like 90days [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    valid_for: Option<Duration>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
pub(super) struct RevokeArgs {
    /// Id of the token, which the list shows
    #[arg(required_unless_present = "subject", conflicts_with = "subject")]
    id: Option<TokenId>,
    /// All tokens that this subject was given until now
    #[arg(long, value_name = "NAME")]
    subject: Option<Subject>,
}

#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// Only what this subject did
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// Only what concerns this resource, plugin, node or subject
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only what happened within this time, like 1day
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    since: Option<Duration>,
    /// At most so many entries, the newest
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(command: AccessCommand, client: Client) -> anyhow::Result<()> {
    match command {
        AccessCommand::Whoami(output) => {
            let caller = client.caller().await?;
            match output.format {
                Format::Json => table::print_json(&caller),
                Format::Table => Ok(table::print_line(&login::said(&caller))?),
            }
        }
        AccessCommand::Audit(args) => audit(args, client).await,
        AccessCommand::Token(TokenCommand::Add(args)) => add(args, client).await,
        AccessCommand::Token(TokenCommand::List { subject, output }) => {
            let subject = subject.map(|subject| subject.to_string());
            let tokens = client.tokens(&subject.unwrap_or_default()).await?;
            list(tokens, &output)
        }
        AccessCommand::Token(TokenCommand::Revoke(RevokeArgs { id, subject })) => {
            let text = |id: Option<String>| id.unwrap_or_default();
            let message = proto::RevokeTokensRequest {
                id: text(id.as_ref().map(ToString::to_string)),
                subject: text(subject.as_ref().map(ToString::to_string)),
                issued_before: 0,
            };
            client.revoke_tokens(message).await?;
            let revoked = match (id, subject) {
                (Some(id), _) => format!("revoked token {id}"),
                (None, Some(subject)) => format!("revoked all tokens that {subject} was given"),
                (None, None) => String::new(),
            };
            Ok(table::print_line(&revoked)?)
        }
    }
}

async fn add(args: AddArgs, client: Client) -> anyhow::Result<()> {
    let valid_for_ms = match args.valid_for {
        None => 0,
        Some(Duration::ZERO) => {
            let hint = "write a time like 90days, or leave --valid-for out";
            return Err(Failure::new("a token that is valid for 0s is of no use", hint).into());
        }
        Some(time) => u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
    };
    let issued = client
        .issue_token(proto::IssueTokenRequest {
            subject: args.subject.to_string(),
            roles: args.roles.iter().map(ToString::to_string).collect(),
            namespaces: args.namespaces.iter().map(ToString::to_string).collect(),
            valid_for_ms,
        })
        .await?;
    match args.output.format {
        Format::Json => table::print_json(&issued),
        // The token alone, so that a script keeps it.
        Format::Table => Ok(table::print_line(&issued.token)?),
    }
}

async fn audit(args: AuditArgs, client: Client) -> anyhow::Result<()> {
    let since = args
        .since
        .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let message = proto::ReadAuditRequest {
        subject: args.subject.unwrap_or_default(),
        name: args.name.unwrap_or_default(),
        since: since.map_or(0, |millis| SystemClock.unix_millis().saturating_sub(millis)),
        limit: args.limit,
    };
    let answer = client.audit(message).await?;
    if args.output.format == Format::Json {
        return table::print_json(&answer);
    }
    let head = [
        "AT", "SUBJECT", "FROM", "CALL", "NAME", "RESULT", "TIMES", "DETAIL",
    ];
    let rows = answer.entries.into_iter().map(|entry| {
        [
            table::time(entry.at),
            entry.subject,
            match entry.through.as_str() {
                "" => entry.address,
                through => format!("{} through {through}", entry.address),
            },
            entry.method,
            entry.name,
            entry.result,
            entry.times.to_string(),
            entry.detail,
        ]
    });
    let rows: Vec<_> = rows.collect();
    Ok(table::print(head, &rows)?)
}

fn list(tokens: Vec<proto::AccessToken>, output: &OutputArgs) -> anyhow::Result<()> {
    if output.format == Format::Json {
        let next_page_token = String::new();
        return table::print_json(&proto::ListTokensResponse {
            tokens,
            next_page_token,
        });
    }
    let head = [
        "TOKEN",
        "SUBJECT",
        "ROLES",
        "NAMESPACES",
        "ISSUED",
        "EXPIRES",
        "BY",
    ];
    let rows = tokens.into_iter().map(|token| {
        let expires = match token.expires_at {
            0 => "never".to_owned(),
            at => table::time(at),
        };
        let namespaces = match token.namespaces.is_empty() {
            true => "all".to_owned(),
            false => token.namespaces.join(", "),
        };
        [
            token.id,
            token.subject,
            token.roles.join(", "),
            namespaces,
            table::time(token.issued_at),
            expires,
            token.issued_by,
        ]
    });
    let rows: Vec<_> = rows.collect();
    Ok(table::print(head, &rows)?)
}
