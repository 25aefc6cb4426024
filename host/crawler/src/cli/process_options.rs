//! The commands that start a process of a cluster: `crawler master` and `crawler worker`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;

use super::Failure;
use super::args::{limit, listen_address, on_or_off, overrides};
use super::checks::{
    advertised, check_ca, check_frontier_min_age, check_join, check_lease_ttl, check_pprof,
};
use super::engine::{EngineArgs, EngineOptions};
use super::exposure::{Exposure, ExposureArgs, TokenArgs};
use super::metrics::{MetricsArgs, MetricsOptions};
use super::options::{NO_PORT, NetworkArgs};
use super::requests::{CallArgs, CallOptions, RequestArgs};
use super::wanted_id::{WantedId, wanted_id};
use crate::config::{self, Environment, EtcdConfig, FileConfig};
use crawler_api::grpc::LINKS_MAX;
use crawler_api::requests::RequestSettings;
use crawler_master::balance::BalanceSettings;
use crawler_master::housekeeping::Compaction;
use crawler_master::placement::Strategy;
use crawler_master::reconcile::PlacementSettings;
use crawler_model::label::{Label, labels};
use crawler_model::node::Role;
use crawler_model::plugin::{LimitName, LimitOverrides};

/// Default number of shards that a worker takes; `--capacity` shows it.
const DEFAULT_CAPACITY: u32 = 10_000;
/// Default number of revisions that are kept; `--keep-revisions` shows it.
const DEFAULT_KEEP_REVISIONS: u64 = 100_000;
/// Bytes of the largest request of one worker to another, with its name.
const LARGEST_LINKS: (u64, &str) = (LINKS_MAX as u64, "the links of one page");
/// Smallest number of revisions: a reader that comes back after a moment must still find what it missed.
const MIN_KEEP_REVISIONS: u64 = 1_000;

/// Options of every process of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOptions {
    /// Id to register under.
    pub id: WantedId,
    /// Address of the HTTP listener.
    pub http: SocketAddr,
    /// Address of the gRPC listener.
    pub grpc: SocketAddr,
    /// Rule that decides who may call the listeners.
    pub exposure: Exposure,
    /// Address at which profiles are served.
    pub pprof: Option<SocketAddr>,
    /// `HOST:PORT` under which others reach gRPC. If `None`, it is the listener's address.
    pub advertise: Option<String>,
    /// File with a join token, for a node that has no certificate yet.
    pub join: Option<PathBuf>,
    /// Settings of the connection to the store.
    pub etcd: EtcdConfig,
    /// Data root, shared by all nodes.
    pub data: String,
    /// Config file: plugins to push and resources to add.
    pub config: FileConfig,
    /// Options of the sandbox; its state folder keeps the id too.
    pub engine: EngineOptions,
    /// Bounds on the requests of clients.
    pub requests: RequestSettings,
    /// Options for the metrics of the process.
    pub metrics: MetricsOptions,
    /// Time for which a silent node counts as there.
    pub lease_ttl: Duration,
    /// Largest limits that a resource may ask for.
    pub limit_ceilings: LimitOverrides,
    /// Time for which frontiers of deleted resources stay, and at most replaced files of other frontiers.
    pub frontier_min_age: Duration,
}

impl NodeOptions {
    /// Returns the folder that keeps the certificate which the node got from the CA of its cluster.
    pub fn certificate_folder(&self) -> PathBuf {
        node_folder(&self.engine.state)
    }
}

/// Returns the folder of that certificate below the state of a node.
pub(super) fn node_folder(state: &Path) -> PathBuf {
    state.join("node")
}

/// Options of `crawler master`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterOptions {
    /// Options of every process of a cluster.
    pub node: NodeOptions,
    /// Bounds on the calls that clients make at once.
    pub calls: CallOptions,
    /// Compaction of etcd's history. If `None`, etcd does it itself.
    pub compaction: Option<Compaction>,
    /// Settings for placing and moving shards.
    pub placement: PlacementSettings,
}

/// Options of `crawler worker`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerOptions {
    /// A worker of a cluster.
    Cluster(Box<ClusterWorkerOptions>),
    /// A worker alone, with the resources of its config file.
    Alone(Box<AloneOptions>),
}

/// Options of a worker of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterWorkerOptions {
    /// Options of every process of a cluster.
    pub node: NodeOptions,
    /// Number of shards that the worker takes.
    pub capacity: u32,
    /// Labels for selectors.
    pub labels: BTreeMap<String, String>,
    /// Networks that may be fetched from although they are not public.
    pub allow_networks: Vec<IpNet>,
    /// Ports that may be fetched from in addition to the usual ones.
    pub allow_ports: Vec<u16>,
    /// Time for which the worker gives its shards away before it ends.
    pub drain_timeout: Duration,
    /// True if the turns of hosts are shared with the other workers.
    pub shared_turns: bool,
}

/// Options of `crawler worker --cluster=false`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AloneOptions {
    /// Address at which profiles are served.
    pub pprof: Option<SocketAddr>,
    /// Config file: plugins to push and resources to add.
    pub config: FileConfig,
    /// Data root, which keeps the items.
    pub data: String,
    /// Networks that may be fetched from although they are not public.
    pub allow_networks: Vec<IpNet>,
    /// Ports that may be fetched from in addition to the usual ones.
    pub allow_ports: Vec<u16>,
    /// Largest limits that a resource may ask for.
    pub limit_ceilings: LimitOverrides,
    /// Options of the sandbox.
    pub engine: EngineOptions,
}

#[derive(Debug, Args)]
struct NodeArgs {
    /// Tells nodes of one role apart: 2 is master-2 or worker-2, auto-host one that is made of the host's name
    /// [default: the next free number, which is kept in --state]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The members of etcd [default: http://127.0.0.1:2379]
    #[arg(long, value_name = "URL,…", value_delimiter = ',')]
    etcd: Vec<String>,
    /// The data root, shared by all nodes: a folder, or s3://, gs:// or az://BUCKET/PREFIX; it keeps plugins, frontiers
    /// and items
    #[arg(long, value_name = "DIR|URL", default_value = "crawler-data")]
    data: String,
    /// Plugins to push, resources to add, and how etcd is reached [default: crawler.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where others reach gRPC; needed when it listens on 0.0.0.0 or [::]
    #[arg(long, value_name = "HOST[:PORT]")]
    advertise: Option<String>,
    /// File with a join token: the node gets a certificate for TLS from a master, and keeps it in --state and renews it
    #[arg(long, value_name = "FILE")]
    join: Option<PathBuf>,
    #[command(flatten)]
    exposure: ExposureArgs,
    /// Serve profiles of processor time and memory to `crawler profile`, on this machine only
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    pprof: Option<SocketAddr>,
    /// How long a node that went silent counts as there; the same on all nodes
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    lease_ttl: Duration,
    /// What resources may ask for with --limit; may be given several times [default: 10 times each default]
    #[arg(long = "limit-ceiling", value_name = "NAME=VALUE", value_parser = limit)]
    limit_ceilings: Vec<(LimitName, u64)>,
    /// How long frontiers of deleted resources stay, and replaced files of the others at the most
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = humantime::parse_duration)]
    frontier_min_age: Duration,
    #[command(flatten)]
    requests: RequestArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler master --id=2 --http=:8082 --grpc=:9092\n  crawler master --etcd http://10.0.0.1:2379,http://10.0.0.2:2379 --data /mnt/crawler\n\nAll masters answer all calls; one of them leads. Stop it with Ctrl-C."
)]
pub(super) struct MasterArgs {
    /// Where HTTP listens; :PORT is this machine only, port 0 a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081", value_parser = listen_address)]
    http: SocketAddr,
    /// Where gRPC listens; :PORT is this machine only, port 0 a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9091", value_parser = listen_address)]
    grpc: SocketAddr,
    /// Revisions of etcd's history that the leader keeps; 0 where etcd compacts itself
    #[arg(long, value_name = "N", default_value_t = DEFAULT_KEEP_REVISIONS)]
    keep_revisions: u64,
    /// How often the leader lets etcd forget older revisions; more often where there are twice as many
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = humantime::parse_duration)]
    compact_interval: Duration,
    /// Strategy that chooses a worker for a shard: least-load, round-robin, weighted-round-robin (by --capacity) or random
    #[arg(long, value_name = "NAME", default_value_t = Strategy::default())]
    strategy: Strategy,
    /// How long a worker may take to give a shard back that is to move
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    handover_timeout: Duration,
    /// Percent above the average load from which a worker gives shards to others
    #[arg(long, value_name = "PERCENT", default_value_t = BalanceSettings::default().threshold)]
    rebalance_threshold: u32,
    /// Shards that move at a time to level loads out; 0 moves none
    #[arg(long, value_name = "N", default_value_t = BalanceSettings::default().moves)]
    rebalance_moves: usize,
    /// How long after such moves, and after a worker came or went, nothing is moved for the load
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    rebalance_cooldown: Duration,
    #[command(flatten)]
    tokens: TokenArgs,
    #[command(flatten)]
    calls: CallArgs,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler worker --id=2 --http=:8079 --grpc=:9089\n  crawler worker --label gpu=true --capacity 100\n  crawler worker --cluster=false --config crawler.toml\n\nA worker crawls what the masters assign to it. Stop it with Ctrl-C: others go on with its crawls."
)]
pub(super) struct WorkerArgs {
    /// Join a cluster; false crawls the resources of the config file once, alone
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    cluster: bool,
    /// Where HTTP listens; :PORT is this machine only, port 0 a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = listen_address)]
    http: SocketAddr,
    /// Where gRPC listens; :PORT is this machine only, port 0 a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090", value_parser = listen_address)]
    grpc: SocketAddr,
    /// Shards that it takes at once
    #[arg(long, value_name = "N", default_value_t = DEFAULT_CAPACITY)]
    capacity: u32,
    /// Label for selectors of resources, like gpu=true; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<Label>,
    /// How long a worker that is stopped may take to give its shards to others; 0s ends it at once
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = humantime::parse_duration)]
    drain_timeout: Duration,
    /// on or off: whether the delay of a host is kept over all workers, or by each alone; the same on all workers
    #[arg(long, value_name = "WORD", default_value = "on", value_parser = on_or_off, action = clap::ArgAction::Set)]
    shared_turns: bool,
    /// File with a token that /metrics asks for; without one it answers nobody if --http is an address that other machines
    /// reach
    #[arg(long, value_name = "FILE", conflicts_with = "no_metrics")]
    metrics_token: Option<PathBuf>,
    #[command(flatten)]
    networks: NetworkArgs,
    #[command(flatten)]
    node: NodeArgs,
}

impl NodeArgs {
    fn into_options(
        self,
        role: Role,
        (http, grpc): (SocketAddr, SocketAddr),
        environment: &Environment,
    ) -> anyhow::Result<NodeOptions> {
        check_lease_ttl(self.lease_ttl)?;
        check_frontier_min_age(self.frontier_min_age)?;
        check_pprof(self.pprof)?;
        let largest = self.engine.largest_upload().max(LARGEST_LINKS);
        let config = config::load(self.config.as_deref())?;
        check_ca(&config.tls)?;
        check_join(self.join.as_deref(), &config.tls)?;
        let engine = self.engine.into_options(
            environment,
            &role.to_string(),
            grpc.port(),
            config.confinement,
        );
        let gets_certificate = self.join.is_some()
            || (role == Role::Master && config.cluster.issues())
            || node_folder(&engine.state).exists();
        let is_encrypted = config.tls.certificate.is_some() || gets_certificate;
        Ok(NodeOptions {
            exposure: self.exposure.into_exposure((http, grpc), is_encrypted)?,
            requests: self.requests.into_settings(largest)?,
            metrics: self.metrics.into_options(),
            id: wanted_id(role, self.id.as_deref())?,
            http,
            grpc,
            pprof: self.pprof,
            advertise: advertised(self.advertise.as_deref(), grpc)?,
            join: self.join,
            etcd: config.etcd.clone().with_endpoints(self.etcd)?,
            data: self.data,
            engine,
            config,
            lease_ttl: self.lease_ttl,
            limit_ceilings: overrides(&self.limit_ceilings),
            frontier_min_age: self.frontier_min_age,
        })
    }
}

impl MasterArgs {
    pub(super) fn into_options(self, environment: &Environment) -> anyhow::Result<MasterOptions> {
        let listen = (self.http, self.grpc);
        let mut node = self.node.into_options(Role::Master, listen, environment)?;
        node.exposure = self.tokens.into_exposure(node.exposure);
        if (1..MIN_KEEP_REVISIONS).contains(&self.keep_revisions) {
            return Err(Failure::new(
                format!(
                    "--keep-revisions {} leaves readers too little time",
                    self.keep_revisions
                ),
                format!("keep at least {MIN_KEEP_REVISIONS}, or 0 where etcd compacts itself"),
            )
            .into());
        }
        if self.compact_interval.is_zero() {
            let what = "--compact-interval 0s would do nothing else";
            return Err(Failure::new(what, "use at least 1s").into());
        }
        let compaction = Compaction {
            keep: self.keep_revisions,
            interval: self.compact_interval,
        };
        Ok(MasterOptions {
            node,
            calls: self.calls.into_options(),
            compaction: Some(compaction).filter(|compaction| compaction.keep > 0),
            placement: PlacementSettings {
                strategy: self.strategy,
                handover_timeout: self.handover_timeout,
                balance: BalanceSettings {
                    threshold: self.rebalance_threshold,
                    moves: self.rebalance_moves,
                    cooldown: self.rebalance_cooldown,
                },
            },
        })
    }
}

impl WorkerArgs {
    pub(super) fn into_options(self, environment: &Environment) -> anyhow::Result<WorkerOptions> {
        if !self.cluster {
            check_pprof(self.node.pprof)?;
            let engine = self.node.engine;
            let config = config::load(self.node.config.as_deref())?;
            return Ok(WorkerOptions::Alone(Box::new(AloneOptions {
                engine: engine.into_options(environment, "worker", NO_PORT, config.confinement),
                pprof: self.node.pprof,
                allow_ports: self.networks.ports(&config),
                config,
                limit_ceilings: overrides(&self.node.limit_ceilings),
                data: self.node.data,
                allow_networks: self.networks.allow_networks,
            })));
        }
        let listen = (self.http, self.grpc);
        let mut node = self.node.into_options(Role::Worker, listen, environment)?;
        node.metrics.token_file = self.metrics_token;
        Ok(WorkerOptions::Cluster(Box::new(ClusterWorkerOptions {
            allow_ports: self.networks.ports(&node.config),
            node,
            capacity: self.capacity,
            labels: labels(self.labels)?,
            allow_networks: self.networks.allow_networks,
            drain_timeout: self.drain_timeout,
            shared_turns: self.shared_turns,
        })))
    }
}
