//! The nodes of a simulation: each machine with its clock and the process on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use super::check::{self, CheckedEvent};
use super::node::{MachineClock, Node, Part};
use super::rules;
use super::services::Services;
use super::sinks::Sinks;
use super::world::SimWorld;
use crawler_data::DataRoot;
use crawler_frontier::twin::FrontiersTwin;
use crawler_master::ControlError;
use crawler_master::control::Control;
use crawler_model::id::{Digest, NodeId};
use crawler_model::node::Role;
use crawler_model::plugin::PluginRecord;
use crawler_process::task::TaskScope;
use crawler_process::task::process::Process;
use crawler_store::Txn;
use crawler_store::catalog::encode;
use crawler_store::keys::Keys;
use crawler_store::twin::StoreTwin;

/// A machine, and the process under its id if there is one.
pub(super) struct Machine {
    role: Role,
    pub(super) id: NodeId,
    pub(super) clock: Arc<MachineClock>,
    incarnation: u64,
    pub(super) node: Option<Node>,
}

/// The machines of a simulation, with the services that they share.
pub(super) struct Cluster {
    pub(super) services: Arc<Services>,
    pub(super) machines: Mutex<Vec<Machine>>,
    /// Processes whose id was started again while they were stopped.
    pub(super) replaced: Mutex<Vec<Node>>,
    /// Workers that were told to drain.
    pub(super) drains: Mutex<BTreeSet<NodeId>>,
    /// Scope of the tasks that end faults.
    pub(super) scope: TaskScope,
    _folder: tempfile::TempDir,
}

impl Cluster {
    pub(super) async fn start(world: Arc<SimWorld>) -> Arc<Self> {
        let store = StoreTwin::new();
        let seen = world.clone();
        store.observe(Box::new(move |revision, committed| {
            check::note(&seen, revision, &committed);
            let found = seen.checker().on_store(&committed);
            seen.judge(found);
        }));
        put_plugin(&store);
        let frontiers = Arc::new(FrontiersTwin::new(world.clone()));
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataRoot::open(&folder.path().display().to_string()).expect("a data root");
        let services = Arc::new(Services {
            sinks: Sinks::new(world.clone(), frontiers.clone()),
            frontiers,
            store,
            data: Arc::new(data),
            requests: Arc::default(),
            workers: Mutex::default(),
            world,
        });
        let cluster = Arc::new(Self {
            machines: Mutex::default(),
            replaced: Mutex::default(),
            drains: Mutex::default(),
            scope: TaskScope::new(),
            _folder: folder,
            services,
        });
        let (n_masters, n_workers) = (
            2 + cluster.services.world.below(2),
            3 + cluster.services.world.below(2),
        );
        for (role, n) in [(Role::Master, n_masters), (Role::Worker, n_workers)] {
            for n in 1..=n {
                let name = if role == Role::Master {
                    "master"
                } else {
                    "worker"
                };
                let machine = Machine {
                    role,
                    id: format!("{name}-{n}").parse().expect("an id"),
                    clock: Arc::new(MachineClock::new()),
                    incarnation: 0,
                    node: None,
                };
                cluster.machines.lock().unwrap().push(machine);
            }
        }
        cluster.start_missing();
        cluster
    }

    /// Starts a process on each machine that has none.
    pub(super) fn start_missing(&self) {
        let n = self.machines.lock().unwrap().len();
        for machine in 0..n {
            self.start_on(machine);
        }
    }

    pub(super) fn start_on(&self, machine: usize) {
        let mut machines = self.machines.lock().unwrap();
        let machine = &mut machines[machine];
        if machine.node.is_none() {
            machine.incarnation += 1;
            let (role, n) = (machine.role, machine.incarnation);
            let node = Node::start(&self.services, role, &machine.id, n, machine.clock.clone());
            self.services
                .world
                .note(format_args!("start {}", node.label));
            machine.node = Some(node);
        }
    }

    pub(super) fn take(&self, machine: usize) -> Option<Node> {
        let node = self.machines.lock().unwrap()[machine].node.take();
        // The process is gone, so nobody else looks whether it panicked.
        if let Some(node) = &node {
            node.judge_panic(&self.services.world);
        }
        node
    }

    /// Does something with each process that is there.
    pub(super) fn each(&self, mut work: impl FnMut(&Node)) {
        let machines = self.machines.lock().unwrap();
        machines
            .iter()
            .filter_map(|m| m.node.as_ref())
            .for_each(&mut work);
        drop(machines);
        self.replaced.lock().unwrap().iter().for_each(work);
    }

    /// Makes a call at any master; returns false if there is none.
    pub(super) fn at_a_master<F: Future<Output = ()> + Send + 'static>(
        &self,
        call: impl FnOnce(Arc<Control>) -> F,
    ) -> bool {
        let machines = self.machines.lock().unwrap();
        let replaced = self.replaced.lock().unwrap();
        let nodes = machines.iter().filter_map(|machine| machine.node.as_ref());
        let nodes = nodes.chain(replaced.iter());
        let masters = nodes.filter_map(|node| match &node.part {
            Part::Master(control) => Some((node, control)),
            Part::Worker(_) => None,
        });
        let masters: Vec<(&Node, &Arc<Control>)> = masters.collect();
        let Ok(n @ 1..) = u32::try_from(masters.len()) else {
            return false;
        };
        let (node, control) = masters[self.services.world.below(n) as usize];
        let call = call(control.clone());
        node.process.enter(|| node.calls.spawn("call", call));
        true
    }

    /// Ends all faults, and starts processes that were killed.
    pub(super) async fn heal(self: &Arc<Self>) {
        self.scope.stop(Duration::ZERO).await;
        self.services.world.set_faults(false);
        self.services.store.set_lateness(Duration::ZERO);
        self.each(|node| node.process.go_on());
        self.remove_ended();
        self.start_missing();
    }

    /// Returns true if some worker was never told to drain.
    pub(super) fn has_undrained_worker(&self) -> bool {
        let drains = self.drains.lock().unwrap();
        let machines = self.machines.lock().unwrap();
        let mut workers = machines.iter().filter(|m| m.role == Role::Worker);
        workers.any(|worker| !drains.contains(&worker.id))
    }

    /// Removes processes that have ended because another process has their id.
    pub(super) fn remove_ended(&self) {
        let world = &self.services.world;
        self.each(|node| node.judge_panic(&self.services.world));
        let of_all = [
            ("a fault", &self.scope),
            ("a request", &*self.services.requests),
        ];
        for (what, scope) in of_all {
            if scope.failed().is_cancelled() {
                world.violation(format_args!("the task of {what} has panicked"));
            }
        }
        self.replaced
            .lock()
            .unwrap()
            .retain(|node| !node.ended.is_cancelled());
        for machine in self.machines.lock().unwrap().iter_mut() {
            let ended = machine.node.take_if(|node| node.ended.is_cancelled());
            if let Some(node) = ended {
                world.note(format_args!("{} has ended", node.label));
            }
        }
    }

    /// Does something later, unless faults have stopped before.
    pub(super) fn later(
        self: &Arc<Self>,
        after: Duration,
        work: impl FnOnce(&Self) + Send + 'static,
    ) {
        let (cluster, stop) = (Arc::downgrade(self), self.scope.stop_signal());
        self.scope.spawn("end of a fault", async move {
            let slept = stop.run_until_cancelled(tokio::time::sleep(after)).await;
            if let (Some(()), Some(cluster)) = (slept, cluster.upgrade()) {
                work(&cluster);
            }
        });
    }

    /// Takes note that something has happened.
    pub(super) fn count(&self, what: CheckedEvent) {
        self.services.world.checker().tally.count(what);
    }

    /// Makes one call to drain a worker or to undo that; its outcome goes to the receiver.
    pub(super) fn drain(&self, id: &NodeId, undo: bool) -> oneshot::Receiver<bool> {
        let (tell, told) = oneshot::channel();
        let id = id.clone();
        self.at_a_master(|control| async move {
            let is_done = match control.drain_node(&id, undo, "").await {
                Ok(_) | Err(ControlError::NoWorker { .. }) => true,
                Err(_) => false,
            };
            let _nobody_waits = tell.send(is_done);
        });
        told
    }

    /// Lets all workers take shards again, for good.
    pub(super) async fn end_drains(&self) {
        let drains = self.drains.lock().unwrap().clone();
        if !drains.is_empty() {
            // Requests that were sent to the store before may still be on their way.
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
        for id in drains {
            let world = &self.services.world;
            while !self.drain(&id, true).await.unwrap_or(false) {
                tokio::time::sleep(world.millis(100, 1_000)).await;
            }
        }
    }

    pub(super) fn process(&self, machine: usize) -> Process {
        let machines = self.machines.lock().unwrap();
        let node = machines[machine].node.as_ref();
        node.map(|node| node.process.clone()).unwrap_or_default()
    }
}

fn put_plugin(store: &StoreTwin) {
    let description = rules::description();
    let record = PluginRecord {
        name: description.name.clone(),
        version: description.version.clone(),
        digest: Digest::of(b"site"),
        size: 4,
        interface: "0.1.0".to_owned(),
        sources: None,
        description,
        pushed_at: 0,
    };
    let key = Keys::default().plugin(&record.name, &record.version);
    let put = store.apply("setup", Txn::new().put(key, encode(&record)));
    put.expect("nothing is in the way");
}

/// Returns the processes that are there, by their labels, with the crawls of workers.
pub(super) fn crawls(
    cluster: &Cluster,
) -> BTreeMap<String, Vec<crawler_model::status::CrawlStatus>> {
    let mut crawls = BTreeMap::new();
    cluster.each(|node| {
        if let Part::Worker(known) = &node.part {
            crawls.insert(node.label.clone(), known.status(None));
        }
    });
    crawls
}
