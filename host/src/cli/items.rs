//! `crawler items …`: what a crawl has brought.

use clap::Args;
use futures::stream::StreamExt as _;

use super::table;
use crate::api::client::Client;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler items books | head -3\n  crawler items books --follow --envelope"
)]
pub(super) struct ItemsArgs {
    /// The resource, or the id of one that is deleted already
    name: String,
    /// Go on as items come, until the run is over
    #[arg(long)]
    follow: bool,
    /// With key, page, rule, schema, run and time around each item
    #[arg(long)]
    envelope: bool,
}

pub(super) async fn run(args: ItemsArgs, client: Client) -> anyhow::Result<()> {
    let mut items = client.items(args.name, args.follow).await?;
    while let Some(item) = items.next().await {
        let item = item?;
        if args.envelope {
            table::print_line(&serde_json::to_string(&item)?)?;
        } else {
            table::print_line(item.item.get())?;
        }
    }
    Ok(())
}
