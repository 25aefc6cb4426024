//! `crawler worker --cluster=false`: the resources of a config file, crawled once each, without a master and
//! without a store. Items go to line files in the data root, or to the sinks that their resources name.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use futures::future::join_all;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::field::display;
use tracing::{Instrument as _, Span};

use super::stop::{Interrupted, unless_stopped};
use super::traces::Traces;
use super::{data_root, listeners, parts, sinks};
use crate::cli::plugin::{build_plugin, refused};
use crate::cli::{AloneOptions, Failure, check_roots};
use crawler_api::requests::{RequestSettings, Requests};
use crawler_archive::RunInfo;
use crawler_crawl::incidents::CrawlIncidents;
use crawler_crawl::limit_uses::LimitUses;
use crawler_crawl::log::{CrawlLog, LogBounds};
use crawler_crawl::pacing::Pacing;
use crawler_crawl::permit::Always;
use crawler_crawl::put_back;
use crawler_crawl::spans;
use crawler_crawl::{CrawlConfig, CrawlEnd, CrawlParts, NamedSink, archive_in};
use crawler_data::DataRoot;
use crawler_fetch::Fetch;
use crawler_frontier::durable::{DurableFrontier, Frontiers, OpenOptions};
use crawler_frontier::{Frontier, ItemOutbox as _};
use crawler_model::id::{Digest, Epoch, PluginRef, ResourceId, Run};
use crawler_model::number;
use crawler_model::plugin::{Description, Limits};
use crawler_model::resource::{CrawlSettings, DEFAULT_DELAY, ResourceSpec, ShardId, Unchanged};
use crawler_plugin::Rules;
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::memory::{CrawlMemory, Memory};
use crawler_process::task::TaskScope;
use crawler_process::traces::Tracer;
use crawler_sink::lazy::LazySink;
use crawler_sink::{Delivery, OpenSinks};

/// Name that stands in for the id of a cluster, because there is none.
const CLUSTER: &str = "stand-alone";

/// Parts that every crawl of this process uses.
struct Shared {
    data: DataRoot,
    frontiers: Arc<Frontiers>,
    sinks: Arc<dyn OpenSinks>,
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
    plugins: Vec<Loaded>,
    memory: Memory,
    tracer: Tracer,
}

/// A plugin of the config file.
struct Loaded {
    digest: Digest,
    rules: Arc<dyn Rules>,
}

/// Crawls everything in the config file and ends.
pub(super) async fn run(options: AloneOptions, stop: CancellationToken) -> anyhow::Result<()> {
    let config = &options.config;
    if config.resources.is_empty() {
        return Err(Failure {
            what: "there is nothing to crawl: no [[resource]] is configured".to_owned(),
            hint: "write a crawler.toml here, or name a file with --config".to_owned(),
        }
        .into());
    }
    for spec in &config.resources {
        sinks::check_names(spec, &config.sinks)?;
        check_changes(spec)?;
        spec.check_revisit()?;
    }
    let profiles = TaskScope::new();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mut traces = Traces::open(&config.traces, clock.clone())?;
    let address_policy = parts::address_policy(&options.allow_networks, &options.allow_ports);
    let fetch = parts::fetcher(
        address_policy.clone(),
        &config.fetch,
        &config.hosts,
        None,
        clock.clone(),
    )?;
    address_policy.set_own_nodes(config.endpoints());
    if let Some(pprof) = options.pprof {
        let listener = listeners::listen(pprof, "--pprof").await?;
        let own = [listener.local_addr()?.to_string()];
        address_policy.set_own_nodes(own.into_iter().chain(config.endpoints()));
        let requests = Requests::new(RequestSettings::default());
        listeners::serve_profiles(listener, Vec::new(), requests, &profiles);
    }
    let plugins = unless_stopped(&stop, load(&options)).await?;
    let data = data_root::open(&options.data, &config.data)?;
    unless_stopped(&stop, async { Ok(data_root::probe(&data).await?) }).await?;
    let settings = data_root::frontier_settings(&data, &config.data);
    let cache = data_root::disk_cache(&data, &config.data, &options.engine.state);
    let frontiers = parts::frontiers(&data, settings, cache);
    let watches = TaskScope::new();
    let memory = parts::memory(&options.engine, &fetch, Some(&frontiers), &watches);
    let shared = Shared {
        frontiers,
        sinks: sinks::sinks(&data, config, "here".to_owned())?,
        data,
        fetch,
        clock,
        plugins,
        memory,
        tracer: traces.tracer.clone(),
    };
    traces.tracer.tell_home(&shared.data.place().to_string());
    traces.begin(String::new());
    let crawls = config.resources.iter().map(|spec| {
        let span = spans::of_crawl_alone(&spec.name, ShardId::only(id_of(spec)));
        crawl(&shared, spec, &options, stop.clone()).instrument(span)
    });
    let ends: Vec<anyhow::Result<CrawlEnd>> = join_all(crawls).await;
    traces.stop().await;
    let mut n_failed = 0;
    for (spec, end) in config.resources.iter().zip(ends) {
        match end {
            Ok(CrawlEnd::Finished | CrawlEnd::Resting { .. } | CrawlEnd::Unread) => {}
            Ok(CrawlEnd::Stopped) => return Err(Interrupted.into()),
            Ok(CrawlEnd::Failed(reason) | CrawlEnd::PutBack(reason)) => {
                n_failed += 1;
                tracing::error!(resource = %spec.name, reason, "crawl failed");
            }
            Ok(CrawlEnd::Frontier(error)) => {
                n_failed += 1;
                tracing::error!(resource = %spec.name, %error, "crawl failed");
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
            "{n} of {} failed; the log above tells why",
            number(config.resources.len() as u64, "resource")
        ),
    }
}

/// Refuses a comparison of items from run to run: only masters read it.
fn check_changes(spec: &ResourceSpec) -> Result<(), Failure> {
    match spec.crawl.changes() {
        0 => Ok(()),
        n => Err(Failure::new(
            format!(
                "resource {} has changes = {n}, which a worker without masters does not keep",
                spec.name
            ),
            "leave it out, or crawl with `crawler up`",
        )),
    }
}

/// Builds and loads the plugins of the config file.
async fn load(options: &AloneOptions) -> anyhow::Result<Vec<Loaded>> {
    let engine = parts::engine(&options.engine).await?;
    let mut plugins = Vec::new();
    for plugin in &options.config.plugins {
        let bytes = parts::read(&build_plugin(&plugin.path).await?).await?;
        let digest = Digest::of(&bytes);
        let rules = engine.load(digest, bytes).await;
        let what = || format!("cannot load {}", plugin.path.display());
        let rules = rules.map_err(|error| refused(error, &plugin.sources, what()))?;
        plugins.push(Loaded { digest, rules });
    }
    Ok(plugins)
}

/// Crawls a resource to its end, however often the crawl is put back.
async fn crawl(
    shared: &Shared,
    spec: &ResourceSpec,
    options: &AloneOptions,
    stop: CancellationToken,
) -> anyhow::Result<CrawlEnd> {
    let crawl_memory = shared.memory.for_crawl();
    let log = CrawlLog::new(shared.clock.clone());
    log.set_bounds(LogBounds::of(&spec.crawl));
    let mut backoff = put_back::new_backoff();
    loop {
        let end = crawl_once(shared, spec, options, &crawl_memory, &log, &stop).await?;
        let CrawlEnd::PutBack(why) = end else {
            return Ok(end);
        };
        tracing::warn!(why, "the crawl waits");
        let free = put_back::until_free(&crawl_memory, &mut backoff, &log, &why);
        if stop.run_until_cancelled(free).await.is_none() {
            return Ok(CrawlEnd::Stopped);
        }
    }
}

async fn crawl_once(
    shared: &Shared,
    spec: &ResourceSpec,
    options: &AloneOptions,
    crawl_memory: &CrawlMemory,
    log: &CrawlLog,
    stop: &CancellationToken,
) -> anyhow::Result<CrawlEnd> {
    let Loaded { digest, rules } = find(&shared.plugins, &spec.plugin)?;
    let limits = Limits::default().with(&spec.limits, &options.limit_ceilings)?;
    let id = id_of(spec);
    let shard = ShardId::only(id);
    let now = shared.clock.unix_millis();
    let clock = shared.clock.clone();
    let frontier = open(&shared.frontiers, shard, *digest, &spec.crawl, clock).await?;
    let frontier = Arc::new(frontier);
    let run = frontier.run();
    Span::current().record("run", display(run));
    let mut sinks = Vec::new();
    for name in spec.crawl.sink_names().iter() {
        let delivery = Delivery {
            sink: name.clone(),
            shard,
            cluster: CLUSTER.to_owned(),
            run,
            storage_epoch: frontier.storage_epoch(),
            spec: spec.clone(),
            schemas: rules.description().schemas.clone(),
            other_kinds: None,
            marks: match name.is_lines() {
                true => Vec::new(),
                false => frontier.marks(name).await?,
            },
        };
        for warning in shared.sinks.warnings(&delivery) {
            tracing::warn!(warning, "a sink may not get what is meant");
            log.note("warn", warning);
        }
        sinks.push(NamedSink {
            name: name.clone(),
            sink: Box::new(LazySink::new(shared.sinks.clone(), delivery)),
        });
    }
    let info = RunInfo {
        name: spec.name.to_string(),
        resource: id,
        run,
        shard: shard.shard,
        started_at: now,
        settings: spec.crawl.clone(),
    };
    let (epoch, clock) = (frontier.storage_epoch(), shared.clock.clone());
    let archive = match archive_in(&shared.data, info, epoch, clock) {
        Ok(archive) => archive,
        Err(why) => {
            frontier.close().await?;
            return Ok(CrawlEnd::Failed(why));
        }
    };
    let config = CrawlConfig {
        limits,
        settings: spec.crawl.clone(),
    };
    // The sender stays here: the config does not change while the crawl runs.
    let (_config, receiver) = watch::channel(config);
    let parts = CrawlParts {
        resource: id,
        run,
        run_started_at: now,
        plugin: Some(*digest),
        params: Arc::new(spec.params.clone()),
        config: receiver,
        rules: rules.clone(),
        frontier: frontier.clone(),
        fetch: shared.fetch.clone(),
        files: Some(shared.data.files(id)),
        archive,
        clock: shared.clock.clone(),
        log: log.clone(),
        permit: Arc::new(Always),
        pacing: Pacing::default(),
        incidents: CrawlIncidents::default(),
        limit_uses: LimitUses::default(),
        peers: None,
        rest_after: None,
        crawl_memory: crawl_memory.clone(),
        tracer: shared.tracer.clone(),
    };
    tracing::info!(items = shared.data.items_place(id), "crawl starts");
    let end = crawler_crawl::run_to(parts, sinks, stop.clone()).await;
    let counts = frontier.counts();
    frontier.close().await?;
    tracing::info!(pages = counts.pages(), items = counts.items, "crawl ends");
    Ok(match (end, check_roots(&counts)) {
        (CrawlEnd::Finished, Err(unmet)) => CrawlEnd::Failed(unmet.what),
        (end, _) => end,
    })
}

/// Opens the frontier of a resource: continues a run that was cut off, or begins the next run if the last one
/// is over.
async fn open(
    frontiers: &Arc<Frontiers>,
    shard: ShardId,
    plugin: Digest,
    settings: &CrawlSettings,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<DurableFrontier> {
    let mut open_options = OpenOptions {
        shard,
        cluster: CLUSTER.to_owned(),
        epoch: Epoch(0),
        run: frontiers.last_run(shard).await?.unwrap_or(Run(1)),
        plugin,
        created: false,
        storage_epoch: frontiers.storage_epoch(shard).await?,
        clock,
        delay: settings.delay().unwrap_or(DEFAULT_DELAY),
        carry: (settings.unchanged() == Unchanged::Skip).then_some(Run(1)),
        sinks: settings.sink_names(),
        division: None,
        changes: Default::default(),
    };
    let frontier = frontiers.open(open_options.clone()).await?;
    let counts = frontier.counts();
    let is_over = frontier.roots().is_some() && counts.due == 0;
    if !is_over {
        return Ok(frontier);
    }
    open_options.run = frontier.run().next();
    open_options.storage_epoch = frontier.storage_epoch();
    frontier.close().await?;
    Ok(frontiers.open(open_options).await?)
}

/// Returns the plugin that a resource means, among those of the config file.
fn find<'a>(plugins: &'a [Loaded], wanted: &PluginRef) -> anyhow::Result<&'a Loaded> {
    let is_meant = |description: &Description| {
        description.name == wanted.name
            && wanted
                .version
                .as_ref()
                .is_none_or(|version| description.version == *version)
    };
    let meant = plugins
        .iter()
        .filter(|loaded| is_meant(loaded.rules.description()));
    let best = meant.max_by_key(|loaded| &loaded.rules.description().version);
    best.with_context(|| {
        format!("no [[plugin]] of the config file is {wanted}; add one with its path")
    })
}

/// Derives the id of a resource from its name, because there is no store that issues ids. It stays the same.
fn id_of(spec: &ResourceSpec) -> ResourceId {
    let digest = Digest::of(spec.name.as_str().as_bytes());
    let head: [u8; 8] = digest.as_bytes()[..8]
        .try_into()
        .expect("a digest has 32 bytes");
    ResourceId(u64::from_be_bytes(head) >> 1)
}
