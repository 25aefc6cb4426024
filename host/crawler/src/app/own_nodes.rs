//! Keeps a worker of a cluster from fetching from the cluster's own nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;

use crawler_fetch::address_policy::AddressPolicy;
use crawler_model::node::Node;
use crawler_process::telemetry;
use crawler_store::StoreError;
use crawler_store::catalog::Catalog;

/// Interval between two looks at the registered nodes.
const INTERVAL: Duration = Duration::from_secs(30);
/// Pause before the next look after a failed one.
const RETRY: Duration = Duration::from_secs(1);

/// Time after which the address of a node that is not registered any more is given up. A node that comes
/// back, after a restart or an outage, does so within minutes and mostly at the same address; later, the
/// address may be somebody else's.
const KEPT_FOR: Duration = Duration::from_secs(60 * 60);

/// Tells the address policy the addresses of all registered nodes and of those in `always`, for ever. If a node
/// goes by a name, its resolved addresses count too. Nodes that left, and addresses that a name does not have any
/// more, are kept for an hour: they may be back.
pub(super) async fn keep_updated(
    address_policy: Arc<AddressPolicy>,
    catalog: Catalog,
    always: Vec<String>,
) {
    let mut known = Known::default();
    let tell = |known: &Known| {
        address_policy.set_own_nodes(always.iter().chain(known.addresses()).cloned())
    };
    tell(&known);
    loop {
        let (nodes, pause) = match registered(&catalog).await {
            Ok(nodes) => (nodes, INTERVAL),
            Err(error) => {
                let error = telemetry::chain(&error);
                tracing::debug!(error, "the nodes that are never fetched from are not known");
                (known.addresses().cloned().collect(), RETRY)
            }
        };
        if known.observe(nodes.clone(), Instant::now()) {
            tell(&known);
        }
        // A resolver may take a while.
        let found = addresses(always.iter().chain(&nodes)).await;
        if known.observe(nodes.into_iter().chain(found).collect(), Instant::now()) {
            tell(&known);
        }
        tokio::time::sleep(pause).await;
    }
}

/// Returns the addresses of those nodes that go by a name, as far as the system's resolver knows at this
/// moment.
async fn addresses(nodes: impl Iterator<Item = &String>) -> Vec<String> {
    let names = nodes.filter(|node| node.parse::<SocketAddr>().is_err());
    let found = join_all(names.map(tokio::net::lookup_host)).await;
    let found = found.into_iter().flatten().flatten();
    found.map(|address| address.to_string()).collect()
}

/// Addresses of nodes, each with the time at which it was found missing from the registrations, if it was.
#[derive(Default)]
struct Known(BTreeMap<String, Option<Instant>>);

impl Known {
    fn addresses(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Takes in the addresses that are registered at this moment. Returns true if the known addresses have
    /// changed.
    fn observe(&mut self, registered: BTreeSet<String>, now: Instant) -> bool {
        let n_before = self.0.len();
        self.0.retain(|address, left_at| {
            let left_at = *left_at.get_or_insert(now);
            registered.contains(address) || now - left_at < KEPT_FOR
        });
        let n_left = self.0.len();
        self.0
            .extend(registered.into_iter().map(|node| (node, None)));
        n_left < n_before || self.0.len() > n_left
    }
}

async fn registered(catalog: &Catalog) -> Result<BTreeSet<String>, StoreError> {
    let nodes = catalog.scan::<Node>(&catalog.keys().all_nodes()).await?;
    let nodes = nodes.records.into_iter();
    let addresses = nodes.flat_map(|(_, node)| [node.value.address, node.value.http]);
    Ok(addresses.filter(|address| !address.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::parts;
    use super::*;
    use crawler_model::id::NodeId;
    use crawler_model::node::Role;
    use crawler_process::clock::SystemClock;
    use crawler_process::task::TaskScope;
    use crawler_store::Txn;
    use crawler_store::catalog::encode;
    use crawler_store::embedded::{EmbeddedStore, Settings};
    use crawler_store::keys::Keys;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn nodes_and_etcd_are_refused_at_the_addresses_of_their_names_too() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
        let catalog = Catalog::new(Arc::new(store), Keys::default());
        let id: NodeId = "master-1".parse().unwrap();
        let http = ([0, 0, 0, 0], 7_002).into();
        let address = "localhost:7001".to_owned();
        let node = parts::node(Role::Master, id.clone(), address, http, &SystemClock);
        let key = catalog.keys().node(Role::Master, &id);
        let txn = Txn::new().put(key, encode(&node));
        catalog.store().commit(txn).await.unwrap();

        let loopback = "127.0.0.0/8".parse().unwrap();
        let address_policy = Arc::new(AddressPolicy::new(vec![loopback]));
        let tasks = TaskScope::new();
        let always = vec!["LOCALHOST:2379".to_owned(), "127.0.0.1:7003".to_owned()];
        tasks.spawn(
            "own nodes",
            keep_updated(address_policy.clone(), catalog, always),
        );
        let is_refused = |url: &str| {
            let judged = address_policy.check(&url.parse().unwrap());
            judged.is_err_and(|error| error.reason() == "own-node")
        };
        for port in [7_001, 7_002, 7_003, 2_379] {
            for host in ["127.0.0.1", "localhost"] {
                if (host, port) == ("localhost", 7_003) {
                    // Nobody tells the address policy this address: it is found by resolving the name.
                    continue;
                }
                let url = format!("http://{host}:{port}/");
                let refused = async {
                    while !is_refused(&url) {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                };
                let refused = tokio::time::timeout(PATIENCE, refused).await;
                refused.unwrap_or_else(|_| panic!("{url} is not refused"));
            }
        }
        assert!(!is_refused("http://127.0.0.1:7004/"));
    }

    /// Checks which addresses are known after `minutes`, when the nodes of `there` are registered.
    #[track_caller]
    fn check(known: &mut Known, start: Instant, minutes: u64, there: &[&str], expected: &[&str]) {
        let registered = there.iter().map(|&node| node.to_owned()).collect();
        let before: Vec<String> = known.addresses().cloned().collect();
        let now = start + Duration::from_secs(60 * minutes);
        let is_other = known.observe(registered, now);
        let after: Vec<String> = known.addresses().cloned().collect();
        assert_eq!(after, expected, "after {minutes} minutes");
        assert_eq!(is_other, before != after, "after {minutes} minutes");
    }

    #[test]
    fn an_address_is_given_up_an_hour_after_its_node_left() {
        let (mut known, start) = (Known::default(), Instant::now());
        let mut check = |minutes, there: &[&str], expected: &[&str]| {
            check(&mut known, start, minutes, there, expected);
        };
        check(0, &["a:1", "b:1"], &["a:1", "b:1"]);
        check(100, &["b:1"], &["a:1", "b:1"]);
        // The first node is back for a moment.
        check(159, &["a:1", "b:1"], &["a:1", "b:1"]);
        check(160, &["b:1", "c:1"], &["a:1", "b:1", "c:1"]);
        check(219, &["b:1", "c:1"], &["a:1", "b:1", "c:1"]);
        check(220, &["b:1", "c:1"], &["b:1", "c:1"]);
        // A node that was registered at the last look is not given up at the first look after an outage.
        check(500, &["b:1"], &["b:1", "c:1"]);
        check(560, &["b:1"], &["b:1"]);
    }
}
