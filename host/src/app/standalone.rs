//! `crawler worker --cluster=false`: the resources of a config file, crawled once each, without a
//! master and without a store. Items go to line files in the data root.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use futures::future::join_all;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::parts;
use crate::cli::plugin::build_plugin;
use crate::cli::{Failure, WorkerOptions};
use crate::clock::{Clock, SystemClock};
use crate::data::DataRoot;
use crate::fetch::Fetch;
use crate::frontier::Frontier;
use crate::frontier::memory::{MemoryFrontier, MemorySettings};
use crate::model::id::{Digest, PluginRef, ResourceId, Run, Shard};
use crate::model::plugin::{Description, Limits};
use crate::model::resource::ResourceSpec;
use crate::plugin::Rules;
use crate::plugin::engine::EngineSettings;
use crate::sink::lines::{Extent, Extents, LineFiles, LineSettings, newest_run};
use crate::worker::crawl::{self, CrawlConfig, CrawlEnd, CrawlParts};
use crate::worker::report::CrawlLog;

/// What every crawl of this process uses.
struct Shared {
    data: DataRoot,
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
    plugins: Vec<Arc<dyn Rules>>,
}

/// Crawls everything in the config file and ends.
pub(super) async fn run(options: WorkerOptions, stop: CancellationToken) -> anyhow::Result<()> {
    let config = &options.config;
    if config.resources.is_empty() {
        return Err(Failure {
            what: "there is nothing to crawl: no [[resource]] is configured".to_owned(),
            hint: "write a crawler.toml here, or name a file with --config".to_owned(),
        }
        .into());
    }
    let plugins = super::unless_stopped(&stop, load(&options)).await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let data = DataRoot::open(&options.data)?;
    data.probe().await?;
    let shared = Shared {
        data,
        fetch: parts::fetcher(&options.allow_networks, &[], clock.clone())?,
        clock,
        plugins,
    };
    let crawls = config
        .resources
        .iter()
        .map(|spec| crawl(&shared, spec, &options, stop.clone()));
    let ends: Vec<anyhow::Result<CrawlEnd>> = join_all(crawls).await;
    let mut n_failed = 0;
    for (spec, end) in config.resources.iter().zip(ends) {
        match end {
            Ok(CrawlEnd::Finished | CrawlEnd::Unread) => {}
            Ok(CrawlEnd::Stopped) => return Err(super::Interrupted.into()),
            Ok(CrawlEnd::Failed(reason)) => {
                n_failed += 1;
                tracing::error!(resource = %spec.name, reason, "crawl failed");
            }
            Err(error) => {
                n_failed += 1;
                tracing::error!(resource = %spec.name, error = format!("{error:#}"), "crawl failed");
            }
        }
    }
    match n_failed {
        0 => Ok(()),
        n => bail!(
            "{n} of {} resources failed; the log above tells why",
            config.resources.len()
        ),
    }
}

/// Builds and loads the plugins of the config file.
async fn load(options: &WorkerOptions) -> anyhow::Result<Vec<Arc<dyn Rules>>> {
    let engine = parts::engine(EngineSettings {
        plugin_size: options.plugin_size,
        compiled_size: options.compiled_size,
        ..parts::engine_settings(&options.state)
    })
    .await?;
    let mut plugins: Vec<Arc<dyn Rules>> = Vec::new();
    for plugin in &options.config.plugins {
        let bytes = parts::read(&build_plugin(&plugin.path).await?).await?;
        let rules = engine.load(Digest::of(&bytes), bytes).await;
        plugins.push(rules.with_context(|| format!("cannot load {}", plugin.path.display()))?);
    }
    Ok(plugins)
}

async fn crawl(
    shared: &Shared,
    spec: &ResourceSpec,
    options: &WorkerOptions,
    stop: CancellationToken,
) -> anyhow::Result<CrawlEnd> {
    let rules = find(&shared.plugins, &spec.plugin)?;
    let limits = Limits::default().with(&spec.limits, &options.limit_ceilings)?;
    let id = id_of(spec);
    let folder = shared.data.items_folder(id);
    let extents = Arc::new(Extents::from([(Shard(0), Extent::Whole)]));
    let run = newest_run(folder.clone(), &extents).await?;
    let run = run.map_or(Run(1), Run::next);
    let sink = LineFiles::open(folder.join("0"), run.0, LineSettings::default());
    let frontier: Arc<dyn Frontier> = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    let config = CrawlConfig {
        limits,
        settings: spec.crawl.clone(),
    };
    // The sender stays here: nothing changes while it runs.
    let (_config, receiver) = watch::channel(config);
    let parts = CrawlParts {
        resource: id,
        run,
        params: Arc::new(spec.params.clone()),
        config: receiver,
        rules,
        frontier: frontier.clone(),
        fetch: shared.fetch.clone(),
        clock: shared.clock.clone(),
        log: CrawlLog::new(spec.name.as_str(), shared.clock.clone()),
    };
    tracing::info!(resource = %spec.name, %run, items = %folder.display(), "crawl starts");
    let end = crawl::run(parts, Box::new(sink), stop).await;
    let counts = frontier.counts();
    tracing::info!(resource = %spec.name, pages = counts.pages(), items = counts.items, "crawl ends");
    Ok(end)
}

/// The plugin that a resource means, among those of the config file.
fn find(plugins: &[Arc<dyn Rules>], wanted: &PluginRef) -> anyhow::Result<Arc<dyn Rules>> {
    let is_meant = |description: &Description| {
        description.name == wanted.name
            && wanted
                .version
                .as_ref()
                .is_none_or(|version| description.version == *version)
    };
    let meant = plugins.iter().filter(|rules| is_meant(rules.description()));
    let best = meant.max_by(|a, b| a.description().version.cmp(&b.description().version));
    best.cloned().with_context(|| {
        format!("no [[plugin]] of the config file is {wanted}; add one with its path")
    })
}

/// Without a store nobody issues ids; the name makes one that stays.
fn id_of(spec: &ResourceSpec) -> ResourceId {
    let digest = Digest::of(spec.name.as_str().as_bytes());
    let head: [u8; 8] = digest.as_bytes()[..8]
        .try_into()
        .expect("a digest has 32 bytes");
    ResourceId(u64::from_be_bytes(head) >> 1)
}
