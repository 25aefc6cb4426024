//! Simulated workers: a lease, a registration, a watch of their own assignments, and totals now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crawler_model::status::{ProcessTotals, WorkerStatus};
use crawler_process::task::TaskScope;
use crawler_store::catalog::encode;
use crawler_store::keys::Keys;
use crawler_tests::proxy::Proxy;
use etcd_client::{Client, PutOptions, WatchOptions};

use crate::Size;
use crate::seed::{node, node_id};

/// Number of workers that share a connection for their watches, and one for their leases. Sockets are expensive,
/// and the benchmark is about streams.
const PER_CONNECTION: u64 = 50;
const STATUS_EVERY: Duration = Duration::from_secs(30);

/// The workers, in a runtime of their own, until this is dropped.
pub(crate) struct Workers {
    _tasks: TaskScope,
    _runtime: tokio::runtime::Runtime,
    /// Proxy that only the watches go through.
    pub(crate) watches: Proxy,
    /// Number of changes that the workers have received.
    pub(crate) n_heard: Arc<AtomicU64>,
}

impl Workers {
    /// Registers all workers.
    pub(crate) fn begin(endpoint: &str, size: Size) -> Self {
        let port = endpoint
            .rsplit(':')
            .next()
            .and_then(|port| port.parse().ok());
        let watches = Proxy::to(port.expect("an endpoint has a port"));
        let watched = format!("http://127.0.0.1:{}", watches.port());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime starts");
        let (tasks, n_heard) = (TaskScope::new(), Arc::<AtomicU64>::default());
        runtime.block_on(async {
            let mut clients = None;
            for n in 0..size.n_workers {
                if n % PER_CONNECTION == 0 {
                    clients = Some((connect(endpoint).await, connect(&watched).await));
                }
                let (own, watching) = clients.clone().expect("connected for the first");
                let worker = Worker {
                    n,
                    lease: size.lease,
                    n_heard: n_heard.clone(),
                };
                let lease = worker.register(&own).await;
                tasks.spawn(format!("lease {n}"), worker.clone().keep(own, lease));
                tasks.spawn(format!("watch {n}"), worker.watch(watching));
            }
        });
        Self {
            watches,
            n_heard,
            _tasks: tasks,
            _runtime: runtime,
        }
    }
}

pub(crate) async fn connect(endpoint: &str) -> Client {
    let client = Client::connect([endpoint], None).await;
    client.unwrap_or_else(|e| panic!("etcd at {endpoint}: {e}"))
}

#[derive(Clone)]
struct Worker {
    n: u64,
    lease: Duration,
    n_heard: Arc<AtomicU64>,
}

impl Worker {
    async fn register(&self, client: &Client) -> i64 {
        let mut client = client.clone();
        let ttl = i64::try_from(self.lease.as_secs()).expect("a short time");
        let lease = client.lease_grant(ttl, None).await;
        let lease = lease.expect("etcd grants a lease").id();
        let record = node(self.n);
        let key = Keys::default().node(record.role, &record.id);
        let options = PutOptions::new().with_lease(lease);
        let put = client.put(key, encode(&record), Some(options)).await;
        put.expect("etcd takes a registration");
        lease
    }

    /// Renews the lease three times in its duration, and reports totals.
    async fn keep(self, mut client: Client, lease: i64) {
        let (mut keeper, mut answers) = client
            .lease_keep_alive(lease)
            .await
            .expect("etcd renews a lease");
        let key = Keys::default().status(&node_id(self.n));
        let mut n_rounds = 0;
        let every = self.lease / 3;
        // The workers start at different moments.
        tokio::time::sleep(every.mul_f64((self.n % 97) as f64 / 97.0)).await;
        loop {
            keeper.keep_alive().await.expect("the stream is open");
            let answer = answers.message().await.expect("etcd renews a lease");
            let ttl = answer.map_or(0, |answer| answer.ttl());
            assert!(ttl > 0, "the lease of worker {} has ended", self.n);
            n_rounds += 1;
            if (every * n_rounds)
                .as_secs()
                .is_multiple_of(STATUS_EVERY.as_secs())
            {
                let status = WorkerStatus {
                    incarnation: node(self.n).incarnation,
                    at: u64::from(n_rounds),
                    running: 100,
                    waiting: 0,
                    pages: 100_000,
                    items: 50_000,
                    bytes: 1 << 30,
                    in_flight: 12,
                    since_start: Some(ProcessTotals {
                        pages: 100_000,
                        items: 50_000,
                    }),
                    events: Vec::new(),
                };
                let options = PutOptions::new().with_lease(lease);
                let put = client.put(key.clone(), encode(&status), Some(options));
                put.await.expect("etcd takes totals");
            }
            tokio::time::sleep(every).await;
        }
    }

    async fn watch(self, mut client: Client) {
        let prefix = Keys::default().assignments_of(&node_id(self.n));
        let options = WatchOptions::new().with_prefix();
        let stream = client.watch(prefix, Some(options)).await;
        let mut stream = stream.expect("etcd opens a watch");
        while let Some(message) = stream.message().await.expect("the watch goes on") {
            let n = message.events().len() as u64;
            self.n_heard.fetch_add(n, Ordering::Relaxed);
        }
    }
}
