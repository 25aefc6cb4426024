//! `crawler resource list`: the resources that are meant, as a table or as JSON.

use crawler_proto as proto;

use super::node_id;
use crate::cli::args::{Format, OutputArgs, SelectArgs};
use crate::cli::table;
use crawler_api::client::{Client, ClientError};
use crawler_api::totals;
use crawler_model::crawl::Counts;

/// Number of resources that one call of a listing asks for.
const PAGE: u32 = 200;
/// Head of the table of resources.
pub(super) const HEAD: [&str; 9] = [
    "RESOURCE", "PHASE", "PLUGIN", "NODE", "PAGES", "DEAD", "ITEMS", "RATE", "REASON",
];

/// Returns the resources that are meant, by name.
pub(in crate::cli) async fn selected(
    client: &Client,
    select: &SelectArgs,
) -> Result<Vec<proto::Resource>, ClientError> {
    let mut resources = all(client).await?;
    resources.retain(|resource| select.selects(&resource.spec().labels));
    Ok(resources)
}

async fn all(client: &Client) -> Result<Vec<proto::Resource>, ClientError> {
    let mut all = Vec::new();
    let mut token = String::new();
    loop {
        let page = client.resources(PAGE, token).await?;
        all.extend(page.resources);
        if page.next_page_token.is_empty() {
            return Ok(all);
        }
        token = page.next_page_token;
    }
}

pub(super) fn print(resources: Vec<proto::Resource>, output: &OutputArgs) -> anyhow::Result<()> {
    if output.format == Format::Json {
        let next_page_token = String::new();
        return table::print_json(&proto::ListResourcesResponse {
            resources,
            next_page_token,
        });
    }
    table::print(HEAD, &rows(resources))?;
    Ok(())
}

/// Returns the rows of the table.
pub(super) fn rows(resources: Vec<proto::Resource>) -> Vec<[String; HEAD.len()]> {
    resources
        .into_iter()
        .map(|resource| {
            let (spec, counts) = (resource.spec(), totals(resource.counts()));
            [
                spec.name,
                resource.phase,
                spec.plugin,
                node_id(&spec.assigned_node).to_owned(),
                counts.pages().to_string(),
                counts.dead.to_string(),
                counts.items.to_string(),
                rate(&counts),
                resource.reason,
            ]
        })
        .collect()
}

/// Formats the pages of a second on average; empty if the run has lasted for less.
fn rate(counts: &Counts) -> String {
    let rate = counts.rate();
    rate.map(|rate| format!("{rate:.1}/s")).unwrap_or_default()
}
