//! `crawler items …`: the items of a crawl.
//!
//! A reader that follows is not cut off by a master that restarts: each item comes with its position, and the
//! call is made again from the last one.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use crawler_proto as proto;
use futures::stream::StreamExt as _;
use tokio::time::Instant;

use super::Failure;
use super::args::duration;
use super::waiting::Waiting;
use crawler_api::client::{Client, ClientError};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::{PluginRef, ResourceName};
use crawler_model::plugin::Schema;
use crawler_sink::document::Columns;
use output::{Form, Output};

mod changes;
mod output;
pub(in crate::cli) mod since;

/// Largest number of items that are printed at once.
const AT_ONCE: usize = 500;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler items books | head -3\n  crawler items books --follow --envelope\n  crawler items books --run 1 --kind book --limit 10 -o table\n  crawler items books --since 2h\n  crawler items books -o csv > books.csv\n  crawler items books --changes --run 2"
)]
pub(super) struct ItemsArgs {
    /// The resource, or the id of one that is deleted already
    name: String,
    /// Go on as items come, until the run is over; a master that restarts is waited for
    #[arg(long)]
    follow: bool,
    /// Time for which a master that went away is waited for
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration, requires = "follow")]
    patience: Duration,
    /// Read this run [default: the present one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    run: Option<u64>,
    /// Only items of this kind, the name of a schema
    #[arg(long, value_name = "KIND", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    kind: Option<String>,
    /// Only items of pages that were fetched at this time or later: 2026-11-24, 2026-11-24T10:00:00Z, or 2h for that long
    /// ago
    #[arg(long, value_name = "TIME", value_parser = since::since)]
    since: Option<UnixMillis>,
    /// At most so many, in the order of the run; with --follow, the command ends with the last of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Print key, page, rule, schema, run and time with each item
    #[arg(long)]
    envelope: bool,
    /// Print how the items differ from those delivered last under the same keys: added, changed and removed items; for
    /// resources with setting changes
    #[arg(long, conflicts_with_all = ["follow", "kind", "since", "limit", "envelope", "form"])]
    changes: bool,
    /// Print lines of JSON, lines of CSV with a column for each field, or a table with the beginning of each item
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        default_value = "json"
    )]
    form: Form,
}

impl ItemsArgs {
    /// Returns the request for the items after a position, of which `limit` are still wanted.
    fn request(&self, after: &str, limit: Option<u64>) -> proto::ReadItemsRequest {
        proto::ReadItemsRequest {
            name: self.name.clone(),
            follow: self.follow,
            after: after.to_owned(),
            run: self.run.unwrap_or_default(),
            kind: self.kind.clone().unwrap_or_default(),
            since: self.since.unwrap_or_default(),
            limit: limit.unwrap_or_default(),
        }
    }

    /// Refuses an item that was not asked for: a master of an earlier version does not know these options.
    fn check(&self, item: &proto::Item) -> Result<(), Failure> {
        let is_wanted = self.run.is_none_or(|run| item.run == run)
            && self.kind.as_ref().is_none_or(|kind| item.schema == *kind)
            && self.since.is_none_or(|since| item.fetched_at >= since);
        if is_wanted {
            return Ok(());
        }
        Err(Failure::new(
            "the master is of a version that does not know --run, --kind and --since",
            "upgrade it, or leave them out and choose among the lines of --envelope",
        ))
    }
}

pub(super) async fn run(args: ItemsArgs, client: Client) -> anyhow::Result<()> {
    if args.changes {
        return changes::print(&client, &args.name.parse()?, args.run).await;
    }
    let mut output = output(&args, &client).await?;
    let mut waiting = Waiting::new(args.patience);
    let mut after = String::new();
    let mut left = args.limit;
    loop {
        let opened = Instant::now();
        let error = match client.items(args.request(&after, left)).await {
            Err(error) => error,
            Ok(items) => {
                let mut items = items.ready_chunks(AT_ONCE);
                loop {
                    let Some(ready) = items.next().await else {
                        return output.end();
                    };
                    let (mut good, error) = up_to_error(ready);
                    if let Some(left) = &mut left {
                        good.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                        *left -= good.len() as u64;
                    }
                    if let Some(last) = good.last() {
                        waiting.end();
                        after.clone_from(&last.position);
                    }
                    good.iter().try_for_each(|item| args.check(item))?;
                    output.print(&good)?;
                    if left == Some(0) {
                        return output.end();
                    }
                    if let Some(error) = error {
                        break error;
                    }
                }
            }
        };
        if !args.follow {
            return Err(error.into());
        }
        waiting.pass(error, opened).await?;
    }
}

async fn output(args: &ItemsArgs, client: &Client) -> anyhow::Result<Output> {
    match args.form {
        Form::Json => Ok(Output::json(args.envelope)),
        _ if args.envelope => Err(Failure::new(
            "a table has no room for --envelope",
            "leave it out, or print lines with -o json",
        )
        .into()),
        Form::Csv => {
            let columns = columns(args, client).await;
            Output::csv(columns.context("the plugin of the resource tells no columns")?)
        }
        Form::Table => Ok(Output::table()),
    }
}

/// Returns the columns of the items that are asked for, as the present plugin of the resource declares them.
async fn columns(args: &ItemsArgs, client: &Client) -> anyhow::Result<Columns> {
    let name: ResourceName = args.name.parse()?;
    let plugin: PluginRef = client.resource(&name).await?.spec().plugin.parse()?;
    let schemas = client.plugin(&plugin).await?.schemas.into_iter();
    let is_wanted = |schema: &proto::Schema| args.kind.as_ref().is_none_or(|k| *k == schema.name);
    let schemas: Vec<Schema> = schemas
        .filter(is_wanted)
        .map(|schema| Schema {
            name: schema.name,
            json_schema: schema.json_schema,
        })
        .collect();
    if let (Some(kind), []) = (&args.kind, &schemas[..]) {
        let what = format!("plugin {plugin} has no items of kind {kind:?}");
        return Err(Failure::new(what, "print lines with -o json").into());
    }
    Ok(Columns::of(&schemas)?)
}

/// Returns the items before the first error, and the error.
fn up_to_error(
    ready: Vec<Result<proto::Item, ClientError>>,
) -> (Vec<proto::Item>, Option<ClientError>) {
    let mut good = Vec::with_capacity(ready.len());
    for item in ready {
        match item {
            Ok(item) => good.push(item),
            Err(error) => return (good, Some(error)),
        }
    }
    (good, None)
}
