//! Processes of a cluster, each with a proxy of its own to each member of etcd, and the faults that can be
//! inflicted on them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crawler_tests::PATIENCE;
use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::etcd::{Etcd, Isolation};
use crawler_tests::proxy::{NetworkFaults, Proxy};

use crate::history::{Life, LogEvent};
use crate::logs;

/// Time for which a silent node counts as there, in these runs.
pub(crate) const LEASE_TTL: Duration = Duration::from_secs(3);
const N_MASTERS: usize = 3;
const N_WORKERS: usize = 4;
pub(crate) const N_MEMBERS: usize = 3;
pub(crate) const N_PROCESSES: usize = N_MASTERS + N_WORKERS;

/// Addresses of the masters now.
pub(crate) type MasterAddresses = Arc<Mutex<Vec<MasterAddress>>>;

/// Addresses of one master.
#[derive(Debug, Clone, Default)]
pub(crate) struct MasterAddress {
    pub(crate) http: String,
    pub(crate) grpc: String,
}

pub(crate) struct Fleet {
    /// Masters, then workers. They end before the store and its members.
    pub(crate) places: Vec<Place>,
    pub(crate) cluster: Cluster,
    pub(crate) addresses: MasterAddresses,
    marks: Vec<String>,
}

/// A process, and those before it under its id.
pub(crate) struct Place {
    role: &'static str,
    id: usize,
    links: Vec<Proxy>,
    pub(crate) node: Option<Node>,
    n_lives: usize,
    n_read: usize,
    /// Logs of the processes that have ended.
    logs: Vec<Vec<String>>,
    pub(crate) told: Vec<(Life, LogEvent)>,
    /// Crawls of the present process: the epoch, and true if the frontier was opened under it.
    pub(crate) crawls: BTreeMap<String, (u64, bool)>,
}

/// Target of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    Process(usize),
    Member(usize),
    Store,
}

/// A fault, which lasts until it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A process is killed, and started again when the fault ends.
    Kill(usize),
    /// A process is told to end, and started again when the fault ends.
    Terminate(usize),
    /// A process is paused.
    Freeze(usize),
    /// The network between a process and some members is disturbed.
    Network(usize, Vec<usize>, NetworkFaults),
    /// A member is cut off from the others.
    Isolate(usize, Isolation),
    KillMember(usize),
    FreezeMember(usize),
    /// The history up to the present revision is compacted.
    Compact,
}

fn role_and_id(n: usize) -> (&'static str, usize) {
    match n < N_MASTERS {
        true => ("master", n + 1),
        false => ("worker", n + 1 - N_MASTERS),
    }
}

/// Name of a process.
pub(crate) fn name(n: usize) -> String {
    let (role, id) = role_and_id(n);
    format!("{role}-{id}")
}

impl Fault {
    pub(crate) fn target(&self) -> Target {
        match self {
            Fault::Kill(n) | Fault::Terminate(n) | Fault::Freeze(n) | Fault::Network(n, ..) => {
                Target::Process(*n)
            }
            Fault::Isolate(n, _) | Fault::KillMember(n) | Fault::FreezeMember(n) => {
                Target::Member(*n)
            }
            Fault::Compact => Target::Store,
        }
    }
}

impl Fleet {
    /// Starts all processes and waits until they are registered. If etcd is not installed, it says so and returns
    /// `None`.
    pub(crate) fn new() -> Option<Self> {
        let cluster = Cluster::on(Etcd::three_apart()?).telling(logs::FILTER);
        let place = |n: usize| {
            let port = |url: &String| url.rsplit(':').next().and_then(|port| port.parse().ok());
            let endpoints = cluster.etcd.endpoints();
            let ports = endpoints.iter().filter_map(port);
            let (role, id) = role_and_id(n);
            Place {
                role,
                id,
                links: ports.map(Proxy::to).collect(),
                node: None,
                n_lives: 0,
                n_read: 0,
                logs: Vec::new(),
                told: Vec::new(),
                crawls: BTreeMap::new(),
            }
        };
        let mut fleet = Self {
            places: (0..N_PROCESSES).map(place).collect(),
            addresses: Arc::new(Mutex::new(vec![MasterAddress::default(); N_MASTERS])),
            marks: cluster.etcd.marks(),
            cluster,
        };
        for n in 0..N_PROCESSES {
            fleet.start(n);
        }
        fleet.cluster.registered("master", N_MASTERS);
        fleet.cluster.registered("worker", N_WORKERS);
        fleet.cluster.leader_beside(&[]);
        Some(fleet)
    }

    pub(crate) fn node(&self, n: usize) -> &Node {
        let node = self.places[n].node.as_ref();
        node.expect("all processes are there when nothing happens")
    }

    fn start(&mut self, n: usize) {
        let place = &mut self.places[n];
        let urls = place.links.iter();
        let urls: Vec<String> = urls
            .map(|link| format!("http://127.0.0.1:{}", link.port()))
            .collect();
        let etcd = format!("--etcd={}", urls.join(","));
        let lease = format!("--lease-ttl={}s", LEASE_TTL.as_secs());
        let arguments = [etcd.as_str(), lease.as_str()];
        let id = place.id.to_string();
        let node = match place.role {
            "master" => self.cluster.master(&id, &arguments),
            _ => self.cluster.worker(&id, &arguments),
        };
        if place.role == "master" {
            let mut addresses = self
                .addresses
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            addresses[n] = MasterAddress {
                http: node.http.clone(),
                grpc: node.grpc.clone(),
            };
        }
        (place.node, place.n_read) = (Some(node), 0);
        place.crawls.clear();
        place.n_lives += 1;
    }

    /// Begins a fault.
    pub(crate) fn begin(&mut self, fault: &Fault) {
        match fault {
            Fault::Kill(n) => {
                if let Some(node) = &mut self.places[*n].node {
                    // The assertion keeps a crashed process from being hidden by this.
                    assert!(
                        node.process.is_running() || was_refused(node),
                        "{}",
                        end_of(node)
                    );
                }
                self.take_out(*n);
            }
            Fault::Terminate(n) => self.node(*n).process.terminate(),
            Fault::Freeze(n) => self.node(*n).process.freeze(),
            Fault::Network(n, members, network_faults) => {
                for member in members {
                    let network_faults = network_faults.clone();
                    self.places[*n].links[*member].change(|present| *present = network_faults);
                }
            }
            Fault::Isolate(n, isolation) => {
                self.cluster.etcd.isolate(*n, &self.marks[*n], *isolation);
            }
            Fault::KillMember(n) => self.cluster.etcd.kill(*n),
            Fault::FreezeMember(n) => self.cluster.etcd.freeze(*n),
            Fault::Compact => {
                // Without a majority nobody can compact, which is fine.
                let etcd = &self.cluster.etcd;
                let status = etcd.try_ctl(&["get", "/", "--write-out=fields"]).stdout;
                let mut lines = status.lines();
                if let Some(revision) = lines.find_map(|l| l.strip_prefix("\"Revision\" : ")) {
                    etcd.try_ctl(&["compact", revision]);
                }
            }
        }
    }

    /// Ends a process, if it has not ended, and keeps its log.
    fn take_out(&mut self, n: usize) {
        let place = &mut self.places[n];
        if let Some(mut node) = place.node.take() {
            node.process.kill();
            place.take_in(&node.process.stderr_from(place.n_read));
            place.logs.push(node.process.stderr());
        }
    }

    /// Ends a fault, and repairs its effects.
    pub(crate) fn end(&mut self, fault: &Fault) {
        match fault {
            Fault::Kill(n) => self.start(*n),
            Fault::Terminate(n) => {
                if let Some(node) = &mut self.places[*n].node {
                    let ended = node.process.wait(PATIENCE);
                    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
                }
                self.take_out(*n);
                self.start(*n);
            }
            Fault::Freeze(n) => self.node(*n).process.thaw(),
            Fault::Network(n, members, _) => {
                for member in members {
                    self.places[*n].links[*member].clear();
                }
            }
            Fault::Isolate(n, _) => self.cluster.etcd.rejoin(*n, &self.marks[*n]),
            Fault::KillMember(n) => self.cluster.etcd.launch(*n),
            Fault::FreezeMember(n) => self.cluster.etcd.thaw(*n),
            Fault::Compact => {}
        }
    }

    /// Reads the log lines that the processes have written since the last call.
    pub(crate) fn read(&mut self) {
        self.places.iter_mut().for_each(Place::read);
    }

    /// Keeps the logs of all processes in a folder, for the study of a failure.
    pub(crate) fn keep_logs(&self, folder: &Path) {
        for place in &self.places {
            let (id, present) = (place.life().0, place.node.iter());
            let present = present.map(|node| node.process.stderr());
            for (n, lines) in place.logs.iter().cloned().chain(present).enumerate() {
                let file = folder.join(format!("{id}-life-{}.log", n + 1));
                std::fs::write(&file, lines.join("\n"))
                    .unwrap_or_else(|e| panic!("{} cannot be written: {e}", file.display()));
            }
        }
    }

    /// Restarts processes that have ended because the record of the process before them was still there, as a
    /// service manager would: each change of etcd's leader renews the lease of a dead process.
    pub(crate) fn start_again(&mut self) -> usize {
        let mut n_started = 0;
        for n in 0..N_PROCESSES {
            let place = &mut self.places[n];
            let Some(node) = &mut place.node else {
                continue;
            };
            if !node.process.is_running() && was_refused(node) {
                self.take_out(n);
                self.start(n);
                n_started += 1;
            }
        }
        n_started
    }

    /// Returns the end of a process that has ended by itself.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let mut places = self.places.iter_mut();
        places.find_map(|place| {
            let node = place.node.as_mut()?;
            (!node.process.is_running()).then(|| end_of(node))
        })
    }
}

/// Returns true if an ended process has found the record of the one before it.
fn was_refused(node: &mut Node) -> bool {
    let told = node.process.wait(PATIENCE).stderr;
    let last = told.lines().last().unwrap_or_default();
    last.starts_with("error: another process is registered as")
}

/// Returns the last lines of an ended process.
fn end_of(node: &Node) -> String {
    let lines = node.process.stderr();
    let end = &lines[lines.len().saturating_sub(5)..];
    format!("{} has ended: {}", node.id, end.join("\n"))
}

impl Place {
    pub(crate) fn is_worker(&self) -> bool {
        self.role == "worker"
    }

    /// Life of the process that is there, or was there last.
    pub(crate) fn life(&self) -> Life {
        (format!("{}-{}", self.role, self.id), self.n_lives)
    }

    fn read(&mut self) {
        if let Some(node) = &self.node {
            let lines = node.process.stderr_from(self.n_read);
            self.take_in(&lines);
        }
    }

    fn take_in(&mut self, lines: &[String]) {
        self.n_read += lines.len();
        let life = self.life();
        for line in lines {
            assert!(!logs::tells_of_panic(line), "{life:?} has panicked: {line}");
        }
        for told in lines.iter().filter_map(|line| logs::read(line)) {
            match &told {
                LogEvent::Starts { shard, epoch } => {
                    self.crawls.insert(shard.clone(), (*epoch, false));
                }
                LogEvent::Opened { shard, epoch, .. } => {
                    self.crawls.insert(shard.clone(), (*epoch, true));
                }
                // The line comes late, when the next crawl has begun already.
                LogEvent::Ends { shard, epoch } => {
                    let is_this = |present: &(u64, bool)| present.0 == *epoch;
                    if self.crawls.get(shard).is_some_and(is_this) {
                        self.crawls.remove(shard);
                    }
                }
                LogEvent::Wrote { .. } | LogEvent::Durable { .. } => {}
            }
            self.told.push((life.clone(), told));
        }
    }
}
