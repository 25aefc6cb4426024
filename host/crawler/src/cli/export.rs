//! `crawler export`: writes resources as `crawler apply` reads them.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};

use super::args::SelectArgs;
use super::resource::selected;
use super::table;
use crate::config::{document, json_document};
use crawler_api::client::Client;
use crawler_api::resource_spec;
use crawler_model::id::ResourceName;
use crawler_model::resource::ResourceSpec;

#[derive(Debug, Args)]
#[command(
    after_help = "What has its default is left out. `crawler apply` of the output changes nothing.\n\nExamples:\n  crawler export > crawls.toml\n  crawler export books -o json\n  crawler export -l team=shop | crawler apply -f - --dry-run"
)]
pub(super) struct ExportArgs {
    /// The resources [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<ResourceName>,
    #[command(flatten)]
    select: SelectArgs,
    /// The form of the output
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        default_value = "toml"
    )]
    format: FileFormat,
}

/// Form of a file of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FileFormat {
    /// The form of the config file
    Toml,
    /// The same keys in JSON
    Json,
}

pub(super) async fn run(args: ExportArgs, client: Client) -> anyhow::Result<()> {
    let specs = specs(&client, &args.names, &args.select).await?;
    let text = match args.format {
        FileFormat::Toml => document(specs.values()),
        FileFormat::Json => json_document(specs.values())? + "\n",
    };
    table::print_text(text.as_bytes())?;
    Ok(())
}

/// Returns the specs of these resources, or of all if none is named, as far as they are selected.
pub(crate) async fn specs(
    client: &Client,
    names: &[ResourceName],
    select: &SelectArgs,
) -> anyhow::Result<BTreeMap<ResourceName, ResourceSpec>> {
    let mut resources = Vec::new();
    for name in names {
        resources.push(client.resource(name).await?);
    }
    if names.is_empty() {
        resources = selected(client, select).await?;
    }
    let mut specs = BTreeMap::new();
    for resource in resources {
        let spec = resource_spec(resource.spec())?;
        if select.selects(&spec.labels) {
            specs.insert(spec.name.clone(), spec);
        }
    }
    Ok(specs)
}
