//! `crawler resource list`: the resources that are meant, as a table or as JSON.

use clap::Args;
use crawler_proto as proto;

use super::node_id;
use crate::cli::args::{Format, OutputArgs, SelectArgs};
use crate::cli::pace::Pace;
use crate::cli::table;
use crawler_api::client::{Client, ClientError};
use crawler_api::totals;
use crawler_model::id::PluginRef;
use crawler_model::resource::{CrawlSettings, Phase};

/// Head of the table of resources.
pub(super) const HEAD: [&str; 10] = [
    "RESOURCE", "PHASE", "PLUGIN", "NODE", "PAGES", "DEAD", "ITEMS", "RATE", "LEFT", "REASON",
];

/// Resources that a listing is to have.
#[derive(Debug, Args)]
pub(in crate::cli) struct FilterArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// Only resources in this phase
    #[arg(long, value_name = "PHASE", ignore_case = true, value_parser = Phase::WORDS)]
    phase: Option<String>,
    /// Only resources whose names begin so
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Only resources that run this plugin
    #[arg(long, value_name = "NAME[@VERSION]")]
    plugin: Option<PluginRef>,
}

/// Returns the resources that are meant, by name.
pub(in crate::cli) async fn selected(
    client: &Client,
    select: &SelectArgs,
) -> Result<Vec<proto::Resource>, ClientError> {
    listed(client, request(select), select).await
}

/// Returns the resources that a listing is to have, by name.
pub(super) async fn filtered(
    client: &Client,
    args: &FilterArgs,
) -> Result<Vec<proto::Resource>, ClientError> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let plugin = args.plugin.as_ref().map(ToString::to_string);
    let request = proto::ListResourcesRequest {
        phase: text(&args.phase),
        name_prefix: text(&args.prefix),
        plugin: text(&plugin),
        ..request(&args.select)
    };
    let mut resources = listed(client, request, &args.select).await?;
    // Masters of earlier versions do not know these filters.
    resources.retain(|resource| {
        let is_in = |phase: &String| resource.phase.eq_ignore_ascii_case(phase);
        let begins = |prefix: &String| resource.spec().name.starts_with(prefix.as_str());
        args.phase.as_ref().is_none_or(is_in) && args.prefix.as_ref().is_none_or(begins)
    });
    Ok(resources)
}

fn request(select: &SelectArgs) -> proto::ListResourcesRequest {
    proto::ListResourcesRequest {
        labels: select.labels.iter().cloned().collect(),
        ..proto::ListResourcesRequest::default()
    }
}

async fn listed(
    client: &Client,
    request: proto::ListResourcesRequest,
    select: &SelectArgs,
) -> Result<Vec<proto::Resource>, ClientError> {
    let mut resources = client.resources(request).await?;
    // Masters of earlier versions select nothing, and `apply --prune` deletes what is selected.
    resources.retain(|resource| select.selects(&resource.spec().labels));
    Ok(resources)
}

/// Prints resources.
pub(super) fn print(resources: Vec<proto::Resource>, output: &OutputArgs) -> anyhow::Result<()> {
    if output.format == Format::Json {
        let next_page_token = String::new();
        return table::print_json(&proto::ListResourcesResponse {
            resources,
            next_page_token,
        });
    }
    let rows: Vec<_> = resources
        .into_iter()
        .map(|resource| {
            let pace = pace(&resource, None);
            row(resource, &pace)
        })
        .collect();
    table::print(HEAD, &rows)?;
    Ok(())
}

/// Returns the row of a resource.
pub(super) fn row(resource: proto::Resource, pace: &Pace) -> [String; HEAD.len()] {
    let (spec, counts) = (resource.spec(), totals(resource.counts()));
    [
        spec.name,
        resource.phase,
        spec.plugin,
        node_id(&spec.assigned_node).to_owned(),
        counts.pages().to_string(),
        counts.dead.to_string(),
        counts.items.to_string(),
        pace.rate_cell(),
        pace.left_cell(),
        resource.reason,
    ]
}

/// Returns the pace of a resource: that of the last seconds if it is known and the crawl goes on, and else the average
/// of the run. Only a crawl that goes on has time left.
pub(super) fn pace(resource: &proto::Resource, recent: Option<f64>) -> Pace {
    let counts = totals(resource.counts());
    if resource.phase != "Running" {
        return Pace {
            rate: counts.rate(),
            left: None,
        };
    }
    let max_pages = resource.spec().crawl.unwrap_or_default().max_pages;
    let max_pages = max_pages.unwrap_or(CrawlSettings::default().max_pages());
    Pace::of(&counts, max_pages, recent.or(counts.rate()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(phase: &str) -> proto::Resource {
        proto::Resource {
            phase: phase.to_owned(),
            counts: Some(proto::Counts {
                parsed: 40,
                due: 100,
                began_at: 1_000,
                ended_at: 5_000,
                ..proto::Counts::default()
            }),
            ..proto::Resource::default()
        }
    }

    #[test]
    fn a_row_has_dead_pages_rate_and_time_left() {
        let mut running = resource("Running");
        if let Some(counts) = &mut running.counts {
            counts.dead = 4;
        }
        let pace = pace(&running, None);
        let row = row(running, &pace);
        let cell = |name: &str| {
            let place = HEAD.iter().position(|head| *head == name);
            row[place.unwrap()].as_str()
        };
        let cells = ["PAGES", "DEAD", "RATE", "LEFT"].map(cell);
        assert_eq!(cells, ["44", "4", "11.0/s", "10s"]);
    }

    #[test]
    fn only_a_crawl_that_goes_on_has_time_left_and_a_recent_rate() {
        for (phase, recent, expected) in [
            ("Running", None, "10.0 pages/s, about 10s left"),
            ("Running", Some(50.0), "50.0 pages/s, about 2s left"),
            ("Paused", None, "10.0 pages/s"),
            ("Finished", Some(50.0), "10.0 pages/s"),
        ] {
            let told = pace(&resource(phase), recent).to_string();
            assert_eq!(told, expected, "{phase} {recent:?}");
        }
    }
}
