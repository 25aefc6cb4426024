//! The commands that start parts of the crawler: their arguments, and the resulting options.
//!
//! Options are complete: defaults are filled in, and contradictions are refused.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser as _};
use ipnet::IpNet;

use super::args::{RuleArgs, limit, listen_address, overrides};
use super::cache::CacheArgs;
use super::checks::{
    advertised, check_archive, check_frontier_min_age, check_lease_ttl, check_pprof,
};
use super::crawl::CrawlArgs;
use super::engine::{EngineArgs, EngineOptions};
use super::exposure::{Exposure, ExposureArgs, TokenArgs};
use super::fail_on::{self, FailOn};
use super::failure::Failure;
use super::items_file::ItemsFile;
use super::metrics::{MetricsArgs, MetricsOptions};
use super::requests::{CallArgs, CallOptions, RequestArgs};
use crate::config::{self, Environment, FetchConfig, FileConfig, FixedHosts};
use crawler_api::requests::RequestSettings;
use crawler_fetch::cache::CacheSettings;
use crawler_frontier::memory::DEFAULT_MAX_URLS;
use crawler_model::plugin::{LimitName, LimitOverrides};
use crawler_model::resource::CrawlSettings;

/// Number in the place of a port, in the name of the state folder of a process that has none.
pub(super) const NO_PORT: u16 = 0;
/// Default time for which a silent node counts as there; `--lease-ttl` shows it.
const DEFAULT_LEASE_TTL: Duration = Duration::from_secs(10);
/// Default time for which frontiers stay that nobody needs; `--frontier-min-age` shows it.
const DEFAULT_FRONTIER_MIN_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Options of `crawler up`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpOptions {
    /// Data root, which keeps everything.
    pub data: String,
    /// Address of the HTTP listener.
    pub http: SocketAddr,
    /// Address of the gRPC listener.
    pub grpc: SocketAddr,
    /// Rule that decides who may call the listeners.
    pub exposure: Exposure,
    /// Address at which profiles are served.
    pub pprof: Option<SocketAddr>,
    /// Config file: plugins to push and resources to add.
    pub config: FileConfig,
    /// Networks that may be fetched from although they are not public.
    pub allow_networks: Vec<IpNet>,
    /// Ports that may be fetched from in addition to the usual ones.
    pub allow_ports: Vec<u16>,
    /// `HOST:PORT` under which others reach gRPC. If `None`, it is the listener's address.
    pub advertise: Option<String>,
    /// Largest limits that a resource may ask for.
    pub limit_ceilings: LimitOverrides,
    /// Options of the sandbox.
    pub engine: EngineOptions,
    /// Bounds on the requests of clients.
    pub requests: RequestSettings,
    /// Bounds on the calls that clients make at once.
    pub calls: CallOptions,
    /// Options for the metrics of the process.
    pub metrics: MetricsOptions,
    /// Time for which a silent node counts as there.
    pub lease_ttl: Duration,
    /// Time for which frontiers of deleted resources stay, and at most replaced files of other frontiers.
    pub frontier_min_age: Duration,
}

/// Options of `crawler run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    /// Folder of source, or a .wasm file.
    pub plugin: PathBuf,
    /// Paths at or below which its rules are written.
    pub sources: Vec<PathBuf>,
    /// Params, which the rules get as their config.
    pub params: BTreeMap<String, String>,
    /// Limits of one call of a rule.
    pub limits: LimitOverrides,
    /// Settings of the crawl.
    pub crawl: CrawlSettings,
    /// File for the items. If `None`, they go to stdout.
    pub output: Option<ItemsFile>,
    /// Folder for bodies that rules want kept. If `None`, they are hashed and not stored.
    pub files: Option<PathBuf>,
    /// Folder of the archive that setting `archive` asks for.
    pub archives: Option<PathBuf>,
    /// Archives that answer in the place of sites; none if sites are asked.
    pub from_archive: Vec<PathBuf>,
    /// File for the statistics of the run, as JSON.
    pub stats: Option<PathBuf>,
    /// Conditions under which the crawl is no success.
    pub fail_on: Vec<FailOn>,
    /// True if the crawl starts again after each change of the plugin.
    pub is_watching: bool,
    /// Number of URLs that are kept, in memory.
    pub frontier_urls: u64,
    /// Networks that may be fetched from although they are not public.
    pub allow_networks: Vec<IpNet>,
    /// Ports that may be fetched from in addition to the usual ones.
    pub allow_ports: Vec<u16>,
    /// Settings of the config file for fetching.
    pub fetch: FetchConfig,
    /// Fixed addresses of hosts from the config file.
    pub hosts: FixedHosts,
    /// Cache of the answers of sites. If `None`, sites are always asked.
    pub cache: Option<CacheSettings>,
    /// Options of the sandbox.
    pub engine: EngineOptions,
}

/// Options of `crawler demo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoOptions {
    /// True if the folder stays.
    pub keep: bool,
    /// File for the statistics of the crawl, as JSON.
    pub stats: Option<PathBuf>,
    /// True if only the shop is served.
    pub site_only: bool,
    /// Port of the shop, on this machine; 0 takes a free port.
    pub port: u16,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler up\n  crawler up --allow-networks 127.0.0.0/8 --http :8081 --grpc :9091\n\nEverything is kept in --data: the same folder, the same state. Stop it with Ctrl-C."
)]
pub(super) struct UpArgs {
    /// Keeps plugins, resources and items
    #[arg(long, value_name = "DIR", default_value = "crawler-data")]
    data: String,
    /// Where HTTP listens; :PORT is this machine only, port 0 a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081", value_parser = listen_address)]
    http: SocketAddr,
    /// Where gRPC listens; :PORT is this machine only, port 0 a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9091", value_parser = listen_address)]
    grpc: SocketAddr,
    /// Plugins to push and resources to add if they are not there [default: crawler.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    networks: NetworkArgs,
    /// Where others reach gRPC; needed when it listens on 0.0.0.0 or [::]
    #[arg(long, value_name = "HOST[:PORT]")]
    advertise: Option<String>,
    #[command(flatten)]
    exposure: ExposureArgs,
    #[command(flatten)]
    tokens: TokenArgs,
    /// Serve profiles of processor time and memory to `crawler profile`, on this machine only
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    pprof: Option<SocketAddr>,
    /// What resources may ask for with --limit; may be given several times [default: 10 times each default]
    #[arg(long = "limit-ceiling", value_name = "NAME=VALUE", value_parser = limit)]
    limit_ceilings: Vec<(LimitName, u64)>,
    /// How long a node that went silent counts as there
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    lease_ttl: Duration,
    /// How long frontiers of deleted resources stay, and replaced files of the others at the most
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = humantime::parse_duration)]
    frontier_min_age: Duration,
    #[command(flatten)]
    requests: RequestArgs,
    #[command(flatten)]
    calls: CallArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler run plugins/books --param start=https://books.example/ -o items.jsonl\n  crawler run books.wasm --max-pages 100 | head\n  crawler run plugins/books --cache --watch --param start=https://books.example/\n  crawler run plugins/books --archive warc --archives pages --param start=https://books.example/\n  crawler run plugins/books --from-archive pages --param start=https://books.example/"
)]
pub(super) struct RunArgs {
    /// A plugin: a folder of source, or a .wasm file
    #[arg(value_name = "PATH_OR_WASM")]
    plugin: PathBuf,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    crawl: CrawlArgs,
    /// File of the items, not a format: FILE.jsonl, an object a line, FILE.json, an array, or FILE.csv, a table; replaces
    /// what the file has when the first one comes [default: an object a line to stdout]
    #[arg(short = 'o', long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(ItemsFile::new))]
    output: Option<ItemsFile>,
    /// Folder of the files that rules want kept, named by their digests [default: they are not stored]
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Folder of the WARC files that --archive asks for
    #[arg(long, value_name = "DIR")]
    archives: Option<PathBuf>,
    /// Pages come from these WARC and WACZ files, or from those in a folder, and no site is asked; may be given several
    /// times
    #[arg(long, value_name = "FILE_OR_DIR", conflicts_with_all = ["cache", "archive"])]
    from_archive: Vec<PathBuf>,
    /// File for the statistics of the run, as JSON
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    #[arg(long, value_name = "CONDITION,…", value_delimiter = ',', help = fail_on::HELP)]
    fail_on: Vec<FailOn>,
    /// Build and crawl again from the start on each save, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// URLs that are kept, all of them in memory; links beyond that are refused
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_URLS)]
    frontier_urls: u64,
    /// How to fetch: [fetch], [hosts], [proxies], [credentials] and allow-ports of it [default:
    /// crawler.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    networks: NetworkArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler demo\n  crawler demo --stats stats.json\n  crawler demo --site-only --port 8000"
)]
pub(super) struct DemoArgs {
    /// Keep the folder with plugins and items afterwards
    #[arg(long, conflicts_with = "site_only")]
    keep: bool,
    /// File for the statistics of the crawl, as JSON
    #[arg(long, value_name = "FILE", conflicts_with = "site_only")]
    stats: Option<PathBuf>,
    /// Only serve the shop, for a crawl by hand
    #[arg(long)]
    site_only: bool,
    /// Where the shop listens; 0 takes a free port
    #[arg(long, default_value_t = 0, requires = "site_only")]
    port: u16,
}

#[derive(Debug, Args)]
pub(super) struct NetworkArgs {
    /// Networks that may be fetched from though they are not public, like 127.0.0.0/8
    #[arg(long, value_name = "CIDR,…", value_delimiter = ',')]
    pub(super) allow_networks: Vec<IpNet>,
    /// Ports that may be fetched from beside 80, 443, 8080, 8443, those that a resource names and
    /// all within --allow-networks
    #[arg(long, value_name = "PORT,…", value_delimiter = ',')]
    pub(super) allow_ports: Vec<u16>,
}

impl NetworkArgs {
    /// Returns the ports, with those of the config file.
    pub(super) fn ports(&self, config: &FileConfig) -> Vec<u16> {
        [&self.allow_ports[..], &config.allow_ports].concat()
    }
}

impl UpOptions {
    /// Returns options with everything in one folder and on free ports of this machine.
    pub fn in_folder(folder: &Path) -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            data: folder.join("data").display().to_string(),
            http: free,
            grpc: free,
            pprof: None,
            exposure: Exposure::default(),
            config: FileConfig::default(),
            allow_networks: Vec::new(),
            allow_ports: Vec::new(),
            advertise: None,
            limit_ceilings: LimitOverrides::default(),
            engine: EngineOptions::in_folder(folder.join("state")),
            requests: RequestSettings::default(),
            calls: CallOptions::default(),
            metrics: MetricsOptions::default(),
            lease_ttl: DEFAULT_LEASE_TTL,
            frontier_min_age: DEFAULT_FRONTIER_MIN_AGE,
        }
    }
}

impl UpArgs {
    pub(super) fn into_options(self, environment: &Environment) -> anyhow::Result<UpOptions> {
        check_pprof(self.pprof)?;
        check_lease_ttl(self.lease_ttl)?;
        check_frontier_min_age(self.frontier_min_age)?;
        let largest = self.engine.largest_upload();
        let config = config::load(self.config.as_deref())?;
        let listen = (self.http, self.grpc);
        let exposure = self
            .exposure
            .into_exposure(listen, config.tls.certificate.is_some())?;
        Ok(UpOptions {
            exposure: self.tokens.into_exposure(exposure),
            requests: self.requests.into_settings(largest)?,
            calls: self.calls.into_options(),
            metrics: self.metrics.into_options(),
            allow_ports: self.networks.ports(&config),
            advertise: advertised(self.advertise.as_deref(), self.grpc)?,
            engine: self.engine.into_options(
                environment,
                "up",
                self.grpc.port(),
                config.confinement,
            ),
            data: self.data,
            http: self.http,
            grpc: self.grpc,
            pprof: self.pprof,
            config,
            allow_networks: self.networks.allow_networks,
            limit_ceilings: overrides(&self.limit_ceilings),
            lease_ttl: self.lease_ttl,
            frontier_min_age: self.frontier_min_age,
        })
    }
}

impl RunArgs {
    pub(super) fn into_options(self, environment: &Environment) -> anyhow::Result<RunOptions> {
        let absolute = |path: &PathBuf| std::path::absolute(path).ok();
        let output = self.output.as_ref().map(|output| &output.path);
        let both = output.zip(self.stats.as_ref());
        if both.is_some_and(|(output, stats)| absolute(output) == absolute(stats)) {
            let what = "--output and --stats are the same file";
            return Err(Failure::new(what, "name another file for one of them").into());
        }
        let crawl = self.crawl.settings();
        check_archive(&crawl, self.archives.is_some(), self.cache.is_given())?;
        let config = config::load(self.config.as_deref())?;
        Ok(RunOptions {
            engine: self
                .engine
                .into_options(environment, "run", NO_PORT, config.confinement),
            params: self.rules.params(),
            limits: self.rules.limits(),
            crawl,
            sources: vec![self.plugin.clone()],
            plugin: self.plugin,
            output: self.output,
            files: self.files,
            archives: self.archives,
            from_archive: self.from_archive,
            stats: self.stats,
            fail_on: self.fail_on,
            is_watching: self.watch,
            frontier_urls: self.frontier_urls,
            allow_ports: self.networks.ports(&config),
            allow_networks: self.networks.allow_networks,
            fetch: config.fetch,
            hosts: config.hosts,
            cache: self.cache.into_settings(environment),
        })
    }
}

impl DemoArgs {
    pub(super) fn into_options(self) -> DemoOptions {
        DemoOptions {
            keep: self.keep,
            stats: self.stats,
            site_only: self.site_only,
            port: self.port,
        }
    }
}
