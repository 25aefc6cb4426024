//! `crawler resource events`: what happened to a resource, in order.

use clap::Args;

use crate::cli::past_events::{self, ReadingArgs, Subject};
use crawler_api::client::Client;
use crawler_model::id::ResourceName;

#[derive(Debug, Args)]
pub(in crate::cli) struct EventsArgs {
    /// The resource
    name: ResourceName,
    #[command(flatten)]
    reading: ReadingArgs,
}

pub(super) async fn run(client: &Client, args: EventsArgs) -> anyhow::Result<()> {
    let EventsArgs { name, reading } = args;
    past_events::print(client, Subject::Resource(name), reading).await
}
