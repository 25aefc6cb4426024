//! Clients that add, change and delete: one for each name, which makes one call after another and repeats
//! each until it has a definite answer. So the final state is known for sure.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;
use tokio::sync::oneshot;

use super::cluster::Cluster;
use super::site::{DELAY, Site};
use super::world::SimWorld;
use crawler_master::control::{Control, Precondition};
use crawler_master::{Code, ControlError};
use crawler_model::id::{RequestId, ResourceName, Run};
use crawler_model::resource::{Resource, ResourceSpec};
use crawler_process::task::TaskScope;

/// Time that one answer is waited for, before the call is made again.
const PATIENCE: Duration = Duration::from_secs(15);

/// Resource that must exist according to the answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) site: Site,
    pub(super) run: Run,
    pub(super) paused: bool,
    pub(super) concurrency: Option<u32>,
}

/// The clients, and the state that their answers imply.
pub(super) struct Clients {
    pub(super) expected: Arc<Mutex<BTreeMap<ResourceName, Expected>>>,
    scope: TaskScope,
}

impl Clients {
    /// Waits until each client has the answer to its last call.
    pub(super) async fn finish(&self, world: &SimWorld) {
        if self.scope.failed().is_cancelled() {
            world.violation("a client has panicked");
        }
        let cut = self.scope.stop(Duration::from_secs(60)).await;
        if !cut.is_empty() {
            let n = cut.len();
            world.violation(format_args!("{n} calls have no answer after a minute"));
        }
    }
}

pub(super) fn start(cluster: &Arc<Cluster>) -> Clients {
    let clients = Clients {
        expected: Arc::default(),
        scope: TaskScope::new(),
    };
    let n_names = 2 + cluster.services.world.below(3);
    let lives = Arc::new(AtomicU64::new(0));
    for n in 0..n_names {
        let name: ResourceName = format!("name-{n}").parse().expect("a name");
        let client = Client {
            cluster: cluster.clone(),
            expected: clients.expected.clone(),
            lives: lives.clone(),
            name,
            n_calls: 0,
        };
        let stop = clients.scope.stop_signal();
        clients.scope.spawn("client", async move {
            let mut client = client;
            while !stop.is_cancelled() {
                client.step().await;
                let pause = client.cluster.services.world.millis(100, 20_000);
                stop.run_until_cancelled(tokio::time::sleep(pause)).await;
            }
        });
    }
    clients
}

struct Client {
    cluster: Arc<Cluster>,
    expected: Arc<Mutex<BTreeMap<ResourceName, Expected>>>,
    lives: Arc<AtomicU64>,
    name: ResourceName,
    n_calls: u32,
}

impl Client {
    async fn step(&mut self) {
        let present = self.expected.lock().unwrap().get(&self.name).cloned();
        let draw = self.cluster.services.world.below(10);
        match present {
            None => self.add().await,
            Some(present) if draw < 2 => self.restart(present).await,
            Some(present) if draw < 4 => self.update(present).await,
            Some(_) if draw < 6 => self.delete().await,
            Some(present) if draw < 8 => {
                let paused = !present.paused;
                self.pause(Expected { paused, ..present }).await;
            }
            Some(_) => {}
        }
    }

    async fn add(&mut self) {
        let world = self.cluster.services.world.clone();
        let site = Site {
            life: self.lives.fetch_add(1, Ordering::Relaxed) + 1,
            n_hosts: u64::from(1 + world.below(5)),
            n_pages: u64::from(5 + world.below(50)),
            n_shards: if world.chance(50) {
                1
            } else {
                2 + world.below(2)
            },
        };
        world.checker().on_site(site);
        let spec: ResourceSpec = serde_json::from_value(json!({
            "name": self.name,
            "plugin": "site",
            "params": site.params(),
            "placement": {"shards": site.n_shards},
            "crawl": {"delay_ms": DELAY.as_millis(), "max_retry_wait_ms": 5_000},
        }))
        .expect("a spec");
        let added = self.call("add", move |control, request| {
            let spec = spec.clone();
            Box::pin(async move { control.add_resource(spec, &request).await.map(drop) })
        });
        added.await;
        let expected = Expected {
            site,
            run: Run(1),
            paused: false,
            concurrency: None,
        };
        let mut all = self.expected.lock().unwrap();
        all.insert(self.name.clone(), expected);
    }

    async fn restart(&mut self, present: Expected) {
        let name = self.name.clone();
        let restarted = self.call("restart", move |control, request| {
            let name = name.clone();
            Box::pin(async move {
                let unchanged = |present: &Resource| Ok(present.spec.clone());
                let restarted = control.restart_resource(&name, unchanged, &request);
                restarted.await.map(drop)
            })
        });
        restarted.await;
        let run = present.run.next();
        let expected = Expected { run, ..present };
        let mut all = self.expected.lock().unwrap();
        all.insert(self.name.clone(), expected);
    }

    async fn pause(&mut self, wanted: Expected) {
        let (name, paused) = (self.name.clone(), wanted.paused);
        let what = if paused { "pause" } else { "resume" };
        let paused = self.call(what, move |control, request| {
            let name = name.clone();
            Box::pin(async move {
                let paused = control.pause_resource(&name, paused, &request);
                paused.await.map(drop)
            })
        });
        paused.await;
        let mut all = self.expected.lock().unwrap();
        all.insert(self.name.clone(), wanted);
    }

    async fn update(&mut self, present: Expected) {
        let name = self.name.clone();
        let concurrency = Some(1 + self.cluster.services.world.below(8));
        let updated = self.call("update", move |control, request| {
            let name = name.clone();
            Box::pin(async move {
                let change = |present: &Resource| {
                    let mut spec = present.spec.clone();
                    spec.crawl.concurrency = concurrency;
                    Ok(spec)
                };
                let updated = control.update_resource(&name, change, &request);
                updated.await.map(drop)
            })
        });
        updated.await;
        let expected = Expected {
            concurrency,
            ..present
        };
        let mut all = self.expected.lock().unwrap();
        all.insert(self.name.clone(), expected);
    }

    async fn delete(&mut self) {
        let (name, purge) = (self.name.clone(), self.cluster.services.world.chance(50));
        let deleted = self.call("delete", move |control, request| {
            let name = name.clone();
            Box::pin(async move {
                control
                    .delete_resource(&name, purge, Precondition::default(), &request)
                    .await
            })
        });
        deleted.await;
        self.expected.lock().unwrap().remove(&self.name);
    }

    /// Calls any master until an answer is definite, not only about this moment.
    async fn call(
        &mut self,
        what: &str,
        work: impl Fn(Arc<Control>, RequestId) -> BoxFuture<'static, Result<(), ControlError>>,
    ) {
        let world = self.cluster.services.world.clone();
        self.n_calls += 1;
        let call_id = format!("{}-{}", self.name, self.n_calls);
        let request: RequestId = call_id.parse().expect("an id");
        world.note(format_args!("{call_id} {what}"));
        loop {
            let (tell, told) = oneshot::channel();
            let is_sent = self.cluster.at_a_master(|control| {
                let call = work(control, request.clone());
                async move {
                    let _nobody_waits = tell.send(call.await);
                }
            });
            let answer = match is_sent {
                true => tokio::time::timeout(PATIENCE, told).await.ok(),
                false => None,
            };
            match answer {
                Some(Ok(Ok(()))) => {
                    world.note(format_args!("{call_id} is done"));
                    return;
                }
                Some(Ok(Err(error))) if error.code() != Code::Unavailable => {
                    world.violation(format_args!("{call_id} {what} was refused: {error}"));
                    return;
                }
                Some(Ok(Err(_)) | Err(_)) | None => {}
            }
            tokio::time::sleep(world.millis(50, 1_000)).await;
        }
    }
}
