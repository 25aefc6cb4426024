//! Workers for the tests of shared turns.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::Turns;
use super::call::{Answer, AskTurns, TurnCallError, TurnRequest, TurnRequests, WorkerProcess};
use super::rank::Peer;
use crawler_model::id::Incarnation;
use crawler_model::node::{CallToken, Node, Role};
use crawler_process::task::TaskScope;

/// The delay of every host.
pub(crate) const DELAY: Duration = Duration::from_secs(1);

/// Returns the first process of a worker.
pub(crate) fn process(n: u64) -> WorkerProcess {
    peer(n).process()
}

/// Returns the first registration of a worker.
pub(crate) fn peer(n: u64) -> Peer {
    Peer {
        node: Node {
            id: format!("worker-{n}").parse().unwrap(),
            role: Role::Worker,
            address: format!("127.0.0.1:{n}"),
            http: String::new(),
            pprof: String::new(),
            incarnation: Incarnation(n),
            labels: BTreeMap::new(),
            capacity: 1,
            version: "0".into(),
            interface: String::new(),
            draining: false,
            started_at: 0,
            call_token: CallToken::default(),
            shares_turns: true,
            tls: false,
        },
        registration: n,
    }
}

/// Transport of calls to other workers of this process.
#[derive(Default)]
pub(crate) struct Network {
    workers: Mutex<BTreeMap<String, Turns>>,
    pub(super) is_cut: AtomicBool,
    /// True if calls arrive but their answers do not.
    pub(super) is_slow: AtomicBool,
    pub(super) n_calls: AtomicUsize,
    pub(super) n_asks: AtomicUsize,
}

#[async_trait]
impl AskTurns for Arc<Network> {
    async fn ask(&self, owner: &Node, asks: TurnRequests) -> Result<Vec<Answer>, TurnCallError> {
        self.n_calls.fetch_add(1, Ordering::Relaxed);
        self.n_asks.fetch_add(asks.asks.len(), Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(10)).await;
        if self.is_cut.load(Ordering::Relaxed) {
            return Err(TurnCallError {
                why: "the network is cut".to_owned(),
            });
        }
        let owner = self.workers.lock().unwrap()[owner.id.as_str()].clone();
        let answers = owner.receive(asks);
        if self.is_slow.load(Ordering::Relaxed) {
            std::future::pending().await
        }
        answers.map_err(|error| TurnCallError {
            why: error.to_string(),
        })
    }
}

/// Two workers of one process that share turns.
pub(crate) struct TwoWorkers {
    pub(super) network: Arc<Network>,
    pub(crate) first: Turns,
    pub(super) second: Turns,
    pub(super) scope: TaskScope,
}

impl TwoWorkers {
    /// Creates two workers that have known each other for long.
    pub(crate) async fn new() -> Self {
        let network = Arc::<Network>::default();
        let turns = |n: u64| {
            let turns = Turns::new(process(n), Arc::new(Arc::clone(&network)));
            let id = format!("worker-{n}");
            network.workers.lock().unwrap().insert(id, turns.clone());
            turns.set_workers(vec![peer(1), peer(2)]);
            turns
        };
        let (first, second) = (turns(1), turns(2));
        let scope = TaskScope::new();
        for turns in [&first, &second] {
            let turns = turns.clone();
            scope.spawn("turns", async move { turns.run().await });
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        Self {
            network,
            first,
            second,
            scope,
        }
    }

    /// Returns hosts that the second worker owns.
    pub(crate) fn of_second(&self, n: usize) -> Vec<String> {
        let hosts = (0..).map(|n| format!("h{n}.test"));
        let is_its = |host: &String| {
            let ask = TurnRequest {
                host: host.as_str().into(),
                delay: DELAY,
                is_wanted: true,
                is_in_flight: false,
                ended: None,
            };
            let asks = TurnRequests {
                from: process(9),
                asks: vec![ask.clone()],
            };
            let answers = self.second.receive(asks).unwrap();
            let returned = TurnRequest {
                is_wanted: false,
                ..ask
            };
            let asks = TurnRequests {
                from: process(9),
                asks: vec![returned],
            };
            self.second.receive(asks).unwrap();
            matches!(answers[..], [Answer::Granted(_)])
        };
        hosts.filter(is_its).take(n).collect()
    }
}
