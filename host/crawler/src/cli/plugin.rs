//! `crawler plugin …`: builds rules from source, and manages the plugins of a cluster.

use std::future::Future;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Subcommand;
use crawler_proto as proto;

pub use self::build::{build_plugin, has_rust_target};
use super::args::{Format, OutputArgs};
use super::devtools::DevtoolsCommand;
use super::table;
use crawler_api::client::Client;
use crawler_devtools::place;
use crawler_model::id::{Digest, PluginRef};
use crawler_model::plugin::{Param, Schema};
use crawler_process::telemetry::chain;

mod build;

#[derive(Debug, Subcommand)]
pub(super) enum PluginCommand {
    #[command(flatten)]
    Devtools(DevtoolsCommand),
    /// Build a plugin from its folder, and print where it lies
    #[command(after_help = "Example:\n  crawler plugin build plugins/books")]
    Build {
        /// A folder with a Cargo.toml, a package.json or a pyproject.toml
        #[arg(default_value = ".")]
        path: PathBuf,
    },
    /// Build a plugin if it is a folder, and push it
    #[command(
        after_help = "Examples:\n  crawler plugin push plugins/books\n  crawler plugin push books.wasm --as books@1.2.0"
    )]
    Push {
        /// A folder of source, or a .wasm file
        #[arg(value_name = "PATH_OR_WASM")]
        path: PathBuf,
        /// The name to push as [default: what the plugin says of itself]
        #[arg(long = "as", value_name = "NAME@VERSION", value_parser = exact)]
        push_as: Option<PluginRef>,
        /// Push it though readers of the items of the version before could stumble over its items
        #[arg(long)]
        allow_breaking: bool,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List all plugins and their versions
    #[command(
        after_help = "Examples:\n  crawler plugin list -o json\n  crawler plugin list --prefix team/"
    )]
    List {
        /// Only plugins whose names begin so
        #[arg(
            long,
            value_name = "TEXT",
            default_value = "",
            hide_default_value = true
        )]
        prefix: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show one plugin: its rules and the shapes of its items
    #[command(after_help = "Example:\n  crawler plugin get books@1.2.0")]
    Get {
        /// The plugin; without a version, its highest one
        #[arg(value_name = "NAME[@VERSION]")]
        plugin: PluginRef,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Delete one version of a plugin that no resource runs
    #[command(after_help = "Example:\n  crawler plugin delete books@1.2.0")]
    Delete {
        /// The plugin, with its version
        #[arg(value_name = "NAME@VERSION", value_parser = exact)]
        plugin: PluginRef,
    },
}

/// Runs the command. It connects only if it needs a master, and only after a build that may fail.
pub(super) async fn run(
    command: PluginCommand,
    connect: impl Future<Output = anyhow::Result<Client>>,
) -> anyhow::Result<()> {
    match command {
        PluginCommand::Devtools(_) => unreachable!("Cli::parse gives these to app"),
        PluginCommand::Build { path } => {
            let wasm = build_plugin(&path).await?;
            table::print_line(&wasm.display().to_string())?;
        }
        PluginCommand::Push {
            path,
            push_as,
            allow_breaking,
            output,
        } => {
            let wasm = build_plugin(&path).await?;
            let bytes = tokio::fs::read(&wasm).await;
            let bytes = bytes.with_context(|| format!("cannot read {}", wasm.display()))?;
            let client = connect.await?;
            let cannot_push = || format!("cannot push {}", wasm.display());
            let before = match output.format {
                Format::Json => Vec::new(),
                Format::Table => client.plugins("").await.with_context(cannot_push)?,
            };
            let digest = Digest::of(&bytes).to_string();
            let pushed = client.push_plugin(push_as.as_ref(), allow_breaking, bytes.into());
            let pushed = pushed.await;
            let plugin = pushed.map_err(|error| refused(error, &[path], cannot_push()))?;
            match output.format {
                Format::Json => table::print_json(&plugin)?,
                Format::Table => {
                    let was_there = before.iter().any(|known| is_same(known, &plugin));
                    let verb = if was_there { "unchanged" } else { "pushed" };
                    table::print_line(&format!(
                        "{verb} {}@{} ({}, digest {})",
                        plugin.name,
                        plugin.version,
                        table::size(plugin.size),
                        short(&plugin.digest),
                    ))?;
                    if plugin.digest != digest {
                        table::print_line(&format!(
                            "it is another build of the same sources, pushed {}; yours has digest {}",
                            table::time(plugin.pushed_at),
                            short(&digest),
                        ))?;
                    }
                    show_items(&schemas(&plugin))?;
                }
            }
        }
        PluginCommand::List { prefix, output } => {
            let plugins = connect.await?.plugins(&prefix).await?;
            list(plugins, &output)?;
        }
        PluginCommand::Get { plugin, output } => {
            show(&connect.await?.plugin(&plugin).await?, &output)?;
        }
        PluginCommand::Delete { plugin } => {
            connect.await?.delete_plugin(&plugin).await?;
            table::print_line(&format!("deleted {plugin}"))?;
        }
    }
    Ok(())
}

/// Returns the error of a command whose plugin is refused. It tells what could not be done. If a selector is at fault,
/// it begins with the place of the selector in the sources, which are at or below these paths.
pub fn refused<E>(error: E, sources: &[PathBuf], what: String) -> anyhow::Error
where
    E: std::error::Error + Send + Sync + 'static,
{
    let what = match place::of_selector(&chain(&error), sources) {
        Some(place) => format!("{place}: {what}"),
        None => what,
    };
    anyhow::Error::new(error).context(what)
}

/// Returns true if both are one version of one plugin, with the same bytes.
pub(super) fn is_same(one: &proto::Plugin, other: &proto::Plugin) -> bool {
    let identity = |of: &proto::Plugin| (of.name.clone(), of.version.clone(), of.digest.clone());
    identity(one) == identity(other)
}

fn list(plugins: Vec<proto::Plugin>, output: &OutputArgs) -> anyhow::Result<()> {
    if output.format == Format::Json {
        let next_page_token = String::new();
        return table::print_json(&proto::ListPluginsResponse {
            plugins,
            next_page_token,
        });
    }
    let rows: Vec<[String; 5]> = plugins
        .into_iter()
        .map(|plugin| {
            [
                plugin.name,
                plugin.version,
                table::size(plugin.size),
                short(&plugin.digest).to_owned(),
                table::time(plugin.pushed_at),
            ]
        })
        .collect();
    table::print(["PLUGIN", "VERSION", "SIZE", "DIGEST", "PUSHED"], &rows)?;
    Ok(())
}

fn show(plugin: &proto::Plugin, output: &OutputArgs) -> anyhow::Result<()> {
    if output.format == Format::Json {
        return table::print_json(plugin);
    }
    let items: Vec<&str> = plugin.schemas.iter().map(|s| s.name.as_str()).collect();
    let rows = [
        ["plugin", &format!("{}@{}", plugin.name, plugin.version)],
        ["digest", &plugin.digest],
        ["size", &table::size(plugin.size)],
        ["interface", &format!("crawler:rules@{}", plugin.interface)],
        ["rules", &plugin.rules.join(", ")],
        ["items", &items.join(", ")],
        ["pushed", &table::time(plugin.pushed_at)],
    ];
    for [name, value] in rows {
        table::print_line(&format!("{name:<10} {value}"))?;
    }
    if !plugin.sources.is_empty() {
        table::print_line(&format!("{:<10} {}", "sources", plugin.sources))?;
    }
    show_params(&plugin.params_schema)?;
    show_items(&schemas(plugin))
}

fn schemas(plugin: &proto::Plugin) -> Vec<Schema> {
    let schema = |schema: &proto::Schema| Schema {
        name: schema.name.clone(),
        json_schema: schema.json_schema.clone(),
    };
    plugin.schemas.iter().map(schema).collect()
}

/// Shows the params of a plugin, by their schema. One that cannot be read comes from a later version.
pub(super) fn show_params(schema: &str) -> anyhow::Result<()> {
    let params = match schema {
        "" => Err("any"),
        schema => {
            Param::read(schema).map_err(|_| "declared in a way that this version does not know")
        }
    };
    let params = match params {
        Ok(params) if !params.is_empty() => params,
        none => {
            let word = none.err().unwrap_or("none");
            table::print_line(&format!("{:<10} {word}", "params"))?;
            return Ok(());
        }
    };
    let row = |param: Param| {
        let value = match (param.default, param.required) {
            (Some(default), _) => default.escape_debug().to_string(),
            (None, true) => "has to be given".to_owned(),
            (None, false) => "may be missing".to_owned(),
        };
        [param.name, value, param.about.as_str().to_owned()]
    };
    let rows: Vec<_> = params.into_iter().map(row).collect();
    table::print(["PARAM", "DEFAULT", ""], &rows)?;
    Ok(())
}

/// Shows the fields of each kind of item.
pub(super) fn show_items(schemas: &[Schema]) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for schema in schemas {
        // A schema that cannot be read was pushed before items were checked.
        let Ok(Some(read)) = schema.read() else {
            continue;
        };
        for (field, kinds, is_required) in read.properties() {
            let missing = if is_required { "" } else { "may be missing" };
            let field = field.escape_debug().to_string();
            rows.push([schema.name.clone(), field, kinds, missing.to_owned()]);
        }
    }
    if !rows.is_empty() {
        table::print(["ITEM", "FIELD", "KIND", ""], &rows)?;
    }
    Ok(())
}

/// Returns the beginning of a digest: enough to tell plugins apart by eye.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn exact(text: &str) -> Result<PluginRef, String> {
    let plugin: PluginRef = text.parse().map_err(|e| format!("{e}"))?;
    match plugin.version {
        Some(_) => Ok(plugin),
        None => Err(format!("name its version too: {text}@VERSION")),
    }
}
