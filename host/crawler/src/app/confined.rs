//! Confines the commands that run plugins; the table shows what each of them reaches ([`crawler_process::confine`]).
//!
//! | command | reads | writes |
//! |---|---|---|
//! | `worker` | files that its config file names, the folders of certificates, and credentials of a bucket | its data root, folders of declared sinks, state folder and temporary folder, and the folder of its log |
//! | `worker --cluster=false`, `up` | the same, and its plugins with their sources | the same |
//! | `run` | the same | its state folder, temporary folder, HTTP cache, output, kept files, archives, statistics, and the folder of its log |
//!
//! Compilers of languages need much more than that, so plugins that are folders are built before the process
//! is confined. `run --watch`, which builds again and again, is not confined. `demo`, `bench` and the commands
//! for authors run code that their user has just written, and are not confined either. All of them have plugins
//! compiled in confined processes.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use super::node_tls::NodeTls;
use super::stop::{Interrupted, Signals};
use super::{access as app_access, archives, data_root, listeners, parts, run, sinks};
use crate::cli::engine::EngineOptions;
use crate::cli::plugin::build_plugin;
use crate::cli::{Command, WorkerOptions};
use crate::config::{self, FetchConfig, FileConfig, FixedHosts, WebhookConfig};
use crawler_data::KeptFiles;
use crawler_devtools::place;
use crawler_plugin::admission;
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::confine::{self, Confinement, PathAccess};

/// Builds the plugins of the command and then confines this process to what it still needs. It is called
/// before the process has other threads, and before it has read a byte of a plugin.
///
/// A rule of the confinement needs a folder that exists, so everything that would make the command fail is
/// checked before any folder is made. `log` is the folder of the log, if it has one: files follow each other there.
pub fn confined(mut command: Command, log: Option<&Path>) -> anyhow::Result<Command> {
    match &mut command {
        Command::Run(options) if options.is_watching => {
            tracing::info!("not confined: --watch builds plugins");
        }
        Command::Run(options) if is_wanted(&options.engine) => {
            run::checked(options)?;
            check_fetch(&options.fetch, &options.hosts)?;
            build_all([(&mut options.plugin, &mut options.sources)])?;
            let mut access = access(&options.engine, log)?;
            access.read.push(options.plugin.clone());
            access.read.extend(options.sources.iter().cloned());
            access
                .read
                .extend(options.fetch.files().map(Path::to_owned));
            if let Some(cache) = &options.cache {
                cache.check()?;
                access.write.push(cache.folder.clone());
            }
            if let Some(folder) = &options.files {
                KeptFiles::in_folder(folder)?;
                access.write.push(folder.clone());
            }
            if let Some(folder) = &options.archives {
                archives::make_folder(folder)?;
                access.write.push(folder.clone());
            }
            for path in &options.from_archive {
                let found = path.metadata();
                found.with_context(|| format!("cannot read {}", path.display()))?;
                access.read.push(path.clone());
            }
            let output = options.output.as_ref().map(|items| &items.path);
            for path in output.into_iter().chain(&options.stats) {
                if !path.exists() {
                    // A rule of the confinement needs a file that exists.
                    let created = File::create_new(path);
                    created.with_context(|| format!("cannot create {}", path.display()))?;
                }
                access.write.push(path.clone());
            }
            confine(&access);
        }
        Command::Up(options) if is_wanted(&options.engine) => {
            NodeTls::load(&options.config.tls, None)?;
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            parts::webhooks(&options.config, &clock)?;
            listeners::check_port(options.grpc, "--grpc")?;
            listeners::check_port(options.http, "--http")?;
            let first_token = options.exposure.first_token.as_deref();
            first_token.map(app_access::make_file).transpose()?;
            let files = first_token.map(Path::to_owned);
            let paths = (options.data.as_str(), log);
            confine_server(&options.engine, paths, &mut options.config, files)?;
        }
        Command::Worker(options) => match &mut **options {
            WorkerOptions::Cluster(options) if is_wanted(&options.node.engine) => {
                let node = &options.node;
                NodeTls::load(&node.config.tls, None)?;
                listeners::check_port(node.grpc, "--grpc")?;
                listeners::check_port(node.http, "--http")?;
                check_fetch(&node.config.fetch, &node.config.hosts)?;
                sinks::check_secrets(&node.config)?;
                let mut access = access(&node.engine, log)?;
                let files = node.etcd.files().chain(node.config.fetch.files());
                let files = files.chain(node.config.traces.files());
                let files = files.chain(node.join.as_deref());
                let files = files.chain(node.metrics.token_file.as_deref());
                access.read.extend(files.map(Path::to_owned));
                access.read.extend(node.config.tls.folders());
                allow_data(&mut access, &node.data, &node.config)?;
                confine(&access);
            }
            WorkerOptions::Alone(options) if is_wanted(&options.engine) => {
                let paths = (options.data.as_str(), log);
                confine_server(&options.engine, paths, &mut options.config, None)?;
            }
            WorkerOptions::Cluster(_) | WorkerOptions::Alone(_) => {}
        },
        Command::Run(_)
        | Command::Up(_)
        | Command::Master(_)
        | Command::Demo(_)
        | Command::Bench(_)
        | Command::Doctor(_)
        | Command::Sink(_)
        | Command::Backup(_)
        | Command::Devtools(_)
        | Command::Client(_) => {}
    }
    Ok(command)
}

fn is_wanted(engine: &EngineOptions) -> bool {
    engine.confinement == Confinement::On
}

/// Confines a process with a data root and plugins of its own, and perhaps a folder of its log. It may write to `file`,
/// too.
fn confine_server(
    engine: &EngineOptions,
    (data, log): (&str, Option<&Path>),
    config: &mut FileConfig,
    file: Option<PathBuf>,
) -> anyhow::Result<()> {
    check_fetch(&config.fetch, &config.hosts)?;
    sinks::check_secrets(config)?;
    let plugins = config.plugins.iter_mut();
    build_all(plugins.map(|plugin| (&mut plugin.path, &mut plugin.sources)))?;
    let mut access = access(engine, log)?;
    let files = config.fetch.files().chain(config.traces.files());
    access.read.extend(files.map(Path::to_owned));
    access.read.extend(config.tls.folders());
    let secrets = config.webhooks.iter();
    let secrets = secrets.flat_map(WebhookConfig::secret_files);
    access.read.extend(secrets.map(Path::to_owned));
    for plugin in &config.plugins {
        access.read.push(plugin.path.clone());
        access.read.extend(plugin.sources.iter().cloned());
    }
    allow_data(&mut access, data, config)?;
    access.write.extend(file);
    confine(&access);
    Ok(())
}

/// Checks the files that fetching needs, before any folder is made.
fn check_fetch(config: &FetchConfig, hosts: &FixedHosts) -> anyhow::Result<()> {
    parts::fetcher(
        parts::address_policy(&[], &[]),
        config,
        hosts,
        None,
        Arc::new(SystemClock),
    )
    .map(drop)
}

/// Returns the access of every process that runs plugins.
fn access(engine: &EngineOptions, log: Option<&Path>) -> anyhow::Result<PathAccess> {
    // If the folder cannot be made, the engine reports why.
    let _made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&engine.state);
    let program = match config::program() {
        Some(program) => program,
        None => admission::own_program()?,
    };
    let mut write = vec![engine.state.clone(), std::env::temp_dir()];
    write.extend(log.map(Path::to_owned));
    Ok(PathAccess {
        read: config::certificates().collect(),
        write,
        execute: vec![program],
    })
}

/// Allows access to the data root: to its folder, or to the files with the credentials of a bucket. Folders of declared
/// sinks are written to as well, and their secrets and certificates are read. Sockets of servers need no access.
fn allow_data(access: &mut PathAccess, data: &str, config: &FileConfig) -> anyhow::Result<()> {
    let data = data_root::open(data, &config.data)?;
    sinks::check_folders(&data, &config.sinks)?;
    match data.folder() {
        Some(folder) => access.write.push(folder.to_owned()),
        None => access.read.extend(config.data.files()),
    }
    for sink in &config.sinks {
        access.read.extend(sink.place.files());
        match sink.place.folder() {
            Some(folder) if folder.exists() => access.write.push(folder.to_owned()),
            Some(folder) => {
                let (sink, folder) = (&sink.name, folder.display());
                tracing::warn!(%sink, %folder, "the folder of a sink is not there; make it, and start this process again: if it is confined, it may not write to a folder that comes later");
            }
            None => {}
        }
    }
    Ok(())
}

fn confine(access: &PathAccess) {
    let missing = confine::process(access);
    tracing::debug!(writes = ?access.write, "confined");
    for missing in missing {
        let (part, why) = (missing.part, missing.why);
        tracing::warn!(part, why, "this system lacks a part of the confinement");
    }
}

/// Builds plugins that are folders, and replaces their paths by those of the components. Instead of folders with
/// sources, the files in them are named: the process may read these and nothing else that is there.
fn build_all<'a>(
    plugins: impl IntoIterator<Item = (&'a mut PathBuf, &'a mut Vec<PathBuf>)>,
) -> anyhow::Result<()> {
    let folders = plugins.into_iter().filter(|(plugin, _)| plugin.is_dir());
    let folders: Vec<(&mut PathBuf, &mut Vec<PathBuf>)> = folders.collect();
    if folders.is_empty() {
        return Ok(());
    }
    let build = async {
        let mut signals = Signals::listen()?;
        for (plugin, sources) in folders {
            *plugin = tokio::select! {
                wasm = build_plugin(plugin) => wasm?,
                () = signals.next() => return Err(Interrupted.into()),
            };
            // A folder that is no plugin, such as a home, was refused by now, and is not looked through.
            *sources = place::sources(sources);
        }
        Ok(())
    };
    // Its threads end with the runtime.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(build)
}
