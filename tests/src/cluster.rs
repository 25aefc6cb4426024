//! A cluster of real processes on a real etcd, as a user starts it: masters and workers with one data
//! root, each with an id, ports and a state folder of its own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::etcd::Etcd;
use crate::guests::guest;
use crate::http::{Answer, ask, text};
use crate::process::{Ended, Home, Process};
use crate::{PATIENCE, setting, until};
use crawler_testing::s3::{ACCESS_KEY, BUCKET, FaultPlan, S3Server, SECRET_KEY};
use reqwest::Method;

/// Time for which a silent node counts as there, in these tests.
pub const LEASE_TTL: Duration = Duration::from_secs(2);

/// Returns the faults of an unreliable object store.
pub fn faults() -> FaultPlan {
    FaultPlan {
        latency: Duration::from_millis(2),
        unavailable: 0.02,
        reset: 0.01,
        lost_answer: 0.01,
        slow: 0.002,
        slow_for: Duration::from_secs(2),
        ..FaultPlan::default()
    }
}

/// Store and files that the processes of a cluster share.
#[derive(Debug)]
pub struct Cluster {
    /// The store.
    pub etcd: Etcd,
    /// Their working folder: the data root is `data` in it.
    pub home: Home,
    /// Filter of their logs, which are JSON then. If `None`, logs are as usual.
    log: Option<&'static str>,
    /// Server with the bucket that is the data root. If `None`, it is a folder.
    bucket: Option<S3Server>,
}

/// Variable that puts the data root of all clusters into a bucket of a server with faults, if it is `bucket`.
const DATA: &str = "CRAWLER_TEST_DATA";

/// A master or worker.
#[derive(Debug)]
pub struct Node {
    /// Id, such as `master-2`.
    pub id: String,
    /// Address of gRPC, as `HOST:PORT`.
    pub grpc: String,
    /// Address of HTTP, as `HOST:PORT`.
    pub http: String,
    /// The process.
    pub process: Process,
}

impl Cluster {
    /// Makes a cluster without nodes. If etcd is not installed, it says so and returns `None`.
    pub fn new() -> Option<Self> {
        Some(Self::on(Etcd::one()?))
    }

    /// Makes a cluster without nodes on this etcd.
    pub fn on(etcd: Etcd) -> Self {
        let cluster = Self {
            etcd,
            home: Home::new(),
            log: None,
            bucket: None,
        };
        match setting(DATA) {
            Some(wanted) if wanted == "bucket" => cluster.in_bucket(faults()),
            Some(other) => panic!("{DATA} is bucket or not set, not {other:?}"),
            None => cluster,
        }
    }

    /// Puts the data root into a bucket of a server with these faults.
    pub fn in_bucket(self, plan: FaultPlan) -> Self {
        let server = S3Server::start();
        server.set_faults(plan);
        Self {
            bucket: Some(server),
            ..self
        }
    }

    /// Returns the server with the bucket.
    pub fn bucket(&self) -> &S3Server {
        self.bucket.as_ref().expect("the data root is in a bucket")
    }

    /// Makes nodes log in JSON, through this filter.
    pub fn telling(self, filter: &'static str) -> Self {
        Self {
            log: Some(filter),
            ..self
        }
    }

    /// Starts a master and waits until it listens; it may not belong to the cluster yet.
    #[track_caller]
    pub fn master(&self, id: &str, arguments: &[&str]) -> Node {
        self.start("master", id, arguments)
    }

    /// Starts a worker that may crawl loopback.
    #[track_caller]
    pub fn worker(&self, id: &str, arguments: &[&str]) -> Node {
        let allow = ["--allow-networks=127.0.0.0/8"];
        self.start("worker", id, &[&allow, arguments].concat())
    }

    /// Starts a worker that may crawl loopback and has no id given; its state is in this folder.
    #[track_caller]
    pub fn worker_without_id(&self, state: &str, arguments: &[&str]) -> Node {
        let state = format!("--state={state}");
        let own = ["--allow-networks=127.0.0.0/8", &state];
        let own = [&own, arguments].concat();
        let usual = self.arguments("worker", "");
        self.started(
            &self.home,
            "worker",
            usual.into_iter().filter(|usual| usual != "--id="),
            &own,
        )
    }

    /// Returns the arguments of a node on free ports.
    pub fn arguments(&self, role: &str, id: &str) -> Vec<String> {
        let ttl = LEASE_TTL.as_secs();
        vec![
            role.to_owned(),
            format!("--id={id}"),
            "--http=:0".to_owned(),
            "--grpc=:0".to_owned(),
            format!("--etcd={}", self.etcd.endpoints().join(",")),
            self.data(),
            format!("--state=state-{role}-{id}"),
            format!("--lease-ttl={ttl}s"),
        ]
    }

    /// Returns the argument that names the data root.
    fn data(&self) -> String {
        match self.bucket {
            Some(_) => format!("--data=s3://{BUCKET}/root"),
            None => "--data=data".to_owned(),
        }
    }

    /// Runs a command on the store and the data root themselves.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Ended {
        let etcd = format!("--etcd={}", self.etcd.endpoints().join(","));
        let place = [etcd, self.data()];
        let place = place.iter().map(String::as_str);
        let mut command = self.home.command(arguments.iter().copied().chain(place));
        self.show_bucket(&mut command);
        Process::start(&mut command).wait(PATIENCE)
    }

    /// Tells a command how the bucket is reached, if there is one.
    fn show_bucket(&self, command: &mut Command) {
        if let Some(server) = &self.bucket {
            command
                .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
                .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
                .env("AWS_ENDPOINT_URL", server.endpoint())
                .env("AWS_ALLOW_HTTP", "true");
        }
    }

    #[track_caller]
    fn start(&self, role: &str, id: &str, arguments: &[&str]) -> Node {
        self.start_at(&self.home, role, id, arguments)
    }

    /// Starts a node with this program, which may be of another version.
    #[track_caller]
    pub fn start_program(&self, program: &Path, role: &str, id: &str, arguments: &[&str]) -> Node {
        let usual = self.arguments(role, id).into_iter();
        let usual = usual.chain(arguments.iter().map(|argument| (*argument).to_owned()));
        Self::started_by(self.prepared(self.home.command_of(program, usual)), role)
    }

    /// Starts a node in a working folder of its own.
    #[track_caller]
    pub fn start_at(&self, home: &Home, role: &str, id: &str, arguments: &[&str]) -> Node {
        let usual = self.arguments(role, id).into_iter();
        let node = self.started(home, role, usual, arguments);
        assert_eq!(node.id, format!("{role}-{id}"));
        node
    }

    /// Returns the command of a node in a working folder of its own, for [`Process::start`].
    pub fn node_command(&self, home: &Home, role: &str, id: &str, arguments: &[&str]) -> Command {
        self.command(home, self.arguments(role, id).into_iter(), arguments)
    }

    fn command(
        &self,
        home: &Home,
        usual: impl Iterator<Item = String>,
        arguments: &[&str],
    ) -> Command {
        let flag = |argument: &str| argument.split('=').next().map(str::to_owned);
        let is_replaced = |usual: &str| arguments.iter().any(|own| flag(own) == flag(usual));
        let further = arguments.iter().map(|argument| (*argument).to_owned());
        let arguments = usual.filter(|usual| !is_replaced(usual)).chain(further);
        self.prepared(home.command(arguments))
    }

    /// Returns a command with the environment of a node.
    fn prepared(&self, mut command: Command) -> Command {
        self.show_bucket(&mut command);
        if let Some(filter) = self.log {
            command.env("CRAWLER_LOG", filter);
            command.env("CRAWLER_LOG_FORMAT", "json");
        }
        command
    }

    #[track_caller]
    fn started(
        &self,
        home: &Home,
        role: &str,
        usual: impl Iterator<Item = String>,
        arguments: &[&str],
    ) -> Node {
        Self::started_by(self.command(home, usual, arguments), role)
    }

    #[track_caller]
    fn started_by(mut command: Command, role: &str) -> Node {
        let process = Process::start(&mut command);
        let listens = format!("listening id={role}-");
        let line = process.line(&listens, PATIENCE, |line| line.contains(&listens));
        let word = |mark: &str| {
            let rest = line.split_once(mark).map_or("", |(_, rest)| rest);
            rest.split(' ').next().unwrap_or_default().to_owned()
        };
        Node {
            id: word("id="),
            grpc: word("grpc="),
            http: word("http="),
            process,
        }
    }

    /// Returns a value of the store by its key below `/crawler/`, as etcdctl shows it.
    #[track_caller]
    pub fn record(&self, key: &str) -> Option<Value> {
        let value = self
            .etcd
            .ctl(&["get", "--print-value-only", &format!("/crawler/{key}")]);
        let value = value.trim();
        let parse = |value: &str| {
            serde_json::from_str(value).unwrap_or_else(|e| panic!("{key} is {value}: {e}"))
        };
        (!value.is_empty()).then(|| parse(value))
    }

    /// Returns keys below a prefix below `/crawler/`, without both, as etcdctl shows them.
    #[track_caller]
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        let prefix = format!("/crawler/{prefix}");
        let keys = self.etcd.ctl(&["get", "--prefix", "--keys-only", &prefix]);
        let keys = keys.lines().filter_map(|key| key.strip_prefix(&prefix));
        keys.map(str::to_owned).collect()
    }

    /// Returns keys and values below a prefix, byte for byte.
    #[track_caller]
    pub fn dump(&self, prefix: &str) -> String {
        self.etcd
            .ctl(&["get", "--prefix", &format!("/crawler/{prefix}")])
    }

    /// Id of the leader, by the store alone: the first key of the election.
    pub fn leader(&self) -> Option<String> {
        let first = self.etcd.ctl(&[
            "get",
            "--prefix",
            "/crawler/election/",
            "--sort-by=CREATE",
            "--order=ASCEND",
            "--limit=1",
            "--print-value-only",
        ]);
        let first: Value = serde_json::from_str(first.trim()).ok()?;
        Some(text(&first["id"]).to_owned())
    }

    /// Waits for a leader that is not among these.
    #[track_caller]
    pub fn leader_beside(&self, others: &[&str]) -> String {
        until("a leader", PATIENCE, || {
            self.leader().filter(|id| !others.contains(&id.as_str()))
        })
    }

    /// Waits until this number of nodes of a role is registered.
    #[track_caller]
    pub fn registered(&self, role: &str, n: usize) {
        let prefix = format!("nodes/{role}/");
        until(&format!("{n} registered {role}s"), PATIENCE, || {
            (self.keys(&prefix).len() == n).then_some(())
        });
    }

    /// Returns each resource with the worker that has it, by the records of the shards.
    #[track_caller]
    pub fn owners(&self) -> Vec<(String, String)> {
        let mut owners: Vec<(String, String)> = self
            .keys("shards/")
            .iter()
            .filter_map(|key| self.record(&format!("shards/{key}")))
            .map(|shard| {
                let owner = shard["owner"]["node"].as_str().unwrap_or_default();
                (text(&shard["resource"]).to_owned(), owner.to_owned())
            })
            .collect();
        owners.sort();
        owners
    }
}

impl Node {
    /// Starts a command that calls this master.
    #[track_caller]
    pub fn command(&self, cluster: &Cluster, arguments: &[&str]) -> Process {
        let mut command = cluster.home.command(arguments);
        Process::start(command.env("CRAWLER_MASTER", format!("http://{}", self.grpc)))
    }

    /// Runs a command that calls this master.
    #[track_caller]
    pub fn cli(&self, cluster: &Cluster, arguments: &[&str]) -> Ended {
        self.command(cluster, arguments).wait(PATIENCE)
    }

    /// Runs a command that must succeed; returns its stdout.
    #[track_caller]
    pub fn ok(&self, cluster: &Cluster, arguments: &[&str]) -> String {
        let ended = self.cli(cluster, arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        ended.stdout
    }

    /// Pushes a built guest through this master.
    #[track_caller]
    pub fn push(&self, cluster: &Cluster, name: &str) {
        let path = guest(name).display().to_string();
        self.ok(cluster, &["plugin", "push", &path]);
    }

    /// Asks this node over HTTP.
    #[track_caller]
    pub fn http(&self, method: Method, path: &str, body: Option<&str>) -> Answer {
        ask(method, &format!("http://{}{path}", self.http), body)
    }

    /// Ends it by Ctrl-C, which must succeed.
    #[track_caller]
    pub fn stop(mut self) {
        self.process.interrupt();
        let ended = self.process.wait(PATIENCE);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
}
