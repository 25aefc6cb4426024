//! `crawler apply`: makes plugins and resources as files declare them.
//!
//! A fault of a file, a plugin or a resource is told, and the others are applied. Applying the same files again
//! changes nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use crawler_proto as proto;

use self::resource::{apply_resource, unchanged};
use super::args::SelectArgs;
use super::plugin::{build_plugin, is_same, refused};
use super::resource::selected;
use super::{Failure, print_error, table};
use crate::config::{Declared, Placed, PluginSource};
use crawler_api::client::Client;
use crawler_model::id::{Digest, ResourceName};
use crawler_model::number;

mod resource;

#[derive(Debug, Args)]
#[command(
    after_help = "A file has the form of the config file, in TOML or JSON; [[plugin]] and [[resource]] of it are applied.\nWhat a resource does not say there has its default, whatever it was before.\n\nExamples:\n  crawler apply -f crawls.toml --dry-run\n  crawler apply -f crawls/ --prune -l team=shop\n  crawler export books | crawler apply -f - --dry-run"
)]
pub(super) struct ApplyArgs {
    /// A file, a folder for its .toml and .json files, or - for stdin; may be given several times
    #[arg(short = 'f', long = "file", value_name = "PATH", required = true)]
    files: Vec<PathBuf>,
    /// Change nothing in the cluster, and print what would change; plugins in folders are built, which runs their code
    #[arg(long)]
    dry_run: bool,
    /// Begin a new run of each resource whose changes need one: another plugin, params or shards
    #[arg(long)]
    restart: bool,
    /// Delete the resources with the labels of -l that no file declares, unless the files have faults or declare
    /// none; their items stay
    #[arg(long, requires = "labels")]
    prune: bool,
    #[command(flatten)]
    select: SelectArgs,
}

/// Treatment of what the files declare.
#[derive(Debug, Default)]
pub(crate) struct ApplyOptions {
    /// True if nothing is changed.
    pub(crate) is_dry_run: bool,
    /// True if a change that needs a new run begins one.
    pub(crate) restarts: bool,
    /// Resources that are deleted if no file declares them. If `None`, none is deleted.
    pub(crate) prune: Option<SelectArgs>,
}

/// Something that is told while files are applied.
#[derive(Debug)]
pub(crate) enum Told {
    /// Lines about something that is as its file declares it.
    Done(Vec<String>),
    /// Reason why something is not.
    Failed(anyhow::Error),
}

pub(super) async fn run(args: ApplyArgs, client: Client) -> anyhow::Result<()> {
    if !args.prune && !args.select.is_empty() {
        let what = "-l selects what --prune may delete, and --prune is not given";
        return Err(Failure::new(what, "add --prune, or leave -l out").into());
    }
    let options = ApplyOptions {
        is_dry_run: args.dry_run,
        restarts: args.restart,
        prune: args.prune.then_some(args.select),
    };
    let declared = Declared::read(&args.files);
    let tell = |told: Told| -> anyhow::Result<()> {
        match told {
            Told::Done(lines) => lines.iter().try_for_each(|line| table::print_line(line))?,
            Told::Failed(error) => print_error(&error),
        }
        Ok(())
    };
    apply(&client, declared, &options, tell).await
}

/// Applies what files declare: plugins first, because resources need them. It is an error if something was not
/// applied.
pub(crate) async fn apply(
    client: &Client,
    declared: Declared,
    options: &ApplyOptions,
    tell: impl FnMut(Told) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut report = Report {
        tell,
        n_failed: 0,
        n_all: 0,
    };
    for fault in declared.faults {
        report.add(Err(fault.into()))?;
    }
    for plugin in &declared.plugins {
        let applied = apply_plugin(client, &plugin.value, options.is_dry_run).await;
        report.add(applied.with_context(|| plugin.place.clone()))?;
    }
    for Placed { place, value: spec } in &declared.resources {
        let applied = apply_resource(client, spec, options).await;
        report.add(applied.with_context(|| format!("{place}: resource {}", spec.name)))?;
    }
    if let Some(select) = &options.prune {
        let names = declared
            .resources
            .iter()
            .map(|resource| &resource.value.name);
        let names: BTreeSet<&ResourceName> = names.collect();
        if report.n_failed > 0 {
            let what = "nothing is pruned, because not all that the files declare is applied";
            report.add(Err(Failure::new(what, "mend the faults above").into()))?;
        } else if names.is_empty() {
            let what = "nothing is pruned, because the files declare no resource";
            let hint = "name files that declare those that stay, or delete the others with `crawler resource delete`";
            report.add(Err(Failure::new(what, hint).into()))?;
        } else {
            prune(client, select, &names, options, &mut report).await?;
        }
    }
    report.end()
}

/// Pushes a plugin, which is built first if it is a folder.
async fn apply_plugin(
    client: &Client,
    plugin: &PluginSource,
    is_dry_run: bool,
) -> anyhow::Result<Vec<String>> {
    let wasm = build_plugin(&plugin.path).await?;
    let bytes = tokio::fs::read(&wasm).await;
    let bytes = bytes.with_context(|| format!("cannot read {}", wasm.display()))?;
    let before = client.plugins("").await?;
    if is_dry_run {
        // What a plugin calls itself is known only once it is pushed.
        let digest = Digest::of(&bytes).to_string();
        let known = before.iter().find(|known| known.digest == digest);
        return Ok(vec![match known {
            Some(known) => format!(
                "plugin {}@{} unchanged (dry run)",
                known.name, known.version
            ),
            None => format!("plugin {} created (dry run)", plugin.path.display()),
        }]);
    }
    let pushed = client.push_plugin(None, false, bytes.into()).await;
    let what = || format!("cannot push {}", wasm.display());
    let pushed = pushed.map_err(|error| refused(error, &plugin.sources, what()))?;
    let word = match before.iter().any(|known| is_same(known, &pushed)) {
        true => "unchanged",
        false => "created",
    };
    Ok(vec![format!(
        "plugin {}@{} {word}",
        pushed.name, pushed.version
    )])
}

/// Deletes the resources that are selected and not among these names.
async fn prune<T: FnMut(Told) -> anyhow::Result<()>>(
    client: &Client,
    select: &SelectArgs,
    names: &BTreeSet<&ResourceName>,
    options: &ApplyOptions,
    report: &mut Report<T>,
) -> anyhow::Result<()> {
    for resource in selected(client, select).await? {
        let name: ResourceName = resource.spec().name.parse()?;
        if names.contains(&name) {
            continue;
        }
        let pruned = match options.is_dry_run {
            true => Ok(vec![format!("resource {name} pruned (dry run)")]),
            false => delete(client, &name, &resource).await,
        };
        report.add(pruned)?;
    }
    Ok(())
}

/// Deletes a resource that is still as it was listed: by now its labels may say that it is to stay.
async fn delete(
    client: &Client,
    name: &ResourceName,
    listed: &proto::Resource,
) -> anyhow::Result<Vec<String>> {
    let deleted = client.delete_resource(name, false, unchanged(listed)?);
    deleted
        .await
        .with_context(|| format!("resource {name} is not pruned"))?;
    Ok(vec![format!("resource {name} pruned")])
}

/// Numbers of what was applied and what was not.
struct Report<T> {
    tell: T,
    n_failed: usize,
    n_all: usize,
}

impl<T: FnMut(Told) -> anyhow::Result<()>> Report<T> {
    fn add(&mut self, applied: anyhow::Result<Vec<String>>) -> anyhow::Result<()> {
        self.n_all += 1;
        let told = match applied {
            Ok(lines) => Told::Done(lines),
            Err(error) => {
                self.n_failed += 1;
                Told::Failed(error)
            }
        };
        (self.tell)(told)
    }

    fn end(self) -> anyhow::Result<()> {
        match (self.n_failed, self.n_all - self.n_failed) {
            (0, _) => Ok(()),
            (n_failed, n_applied) => {
                let faults = number(n_failed as u64, "fault");
                let what = format!("{faults}; {n_applied} applied");
                Err(Failure::new(what, "mend what is told above, and apply again").into())
            }
        }
    }
}
