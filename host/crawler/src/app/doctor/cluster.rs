//! The cluster of a node, as its store tells: which data root it has, and which nodes run.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::join_all;

use crate::app::parts;
use crate::config::EtcdConfig;
use crawler_model::node::Node;
use crawler_store::catalog::Catalog;
use crawler_store::etcd::EtcdStore;
use crawler_store::keys::Keys;

/// Time for the store to answer. It is shorter than that of a check, which has something to tell without the store.
const PATIENCE: Duration = Duration::from_secs(8);

/// State of a cluster.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    /// Id of the cluster; `None` if the store has none yet.
    pub(super) id: Option<String>,
    /// True if it has nodes or resources: its data root is bound to it.
    pub(super) is_used: bool,
    /// Nodes that are registered.
    pub(super) nodes: Vec<Node>,
}

/// Asks etcd for the cluster.
pub(super) async fn look(etcd: &EtcdConfig) -> anyhow::Result<Cluster> {
    let looked = async {
        let store = EtcdStore::connect(parts::etcd_settings(etcd)?).await?;
        read(&Catalog::new(Arc::new(store), Keys::default())).await
    };
    let looked = tokio::time::timeout(PATIENCE, looked).await;
    looked.context("etcd does not answer")?
}

/// Reads what each user of a node may read.
async fn read(catalog: &Catalog) -> anyhow::Result<Cluster> {
    let keys = catalog.keys();
    let id = catalog.read::<String>(&keys.cluster()).await?;
    let nodes = catalog.scan::<Node>(&keys.all_nodes()).await?;
    let resources = catalog.store().list_after(&keys.resources(), "", 1).await?;
    let has_nodes = !nodes.records.is_empty() || !nodes.broken.is_empty();
    let nodes = nodes.records.into_iter();
    Ok(Cluster {
        id: id.map(|id| id.value),
        is_used: has_nodes || !resources.entries.is_empty(),
        nodes: nodes.map(|(_, node)| node.value).collect(),
    })
}

impl Cluster {
    /// Returns the node that listens at an address of this machine.
    pub(super) async fn node_at(&self, address: SocketAddr) -> Option<&Node> {
        let found = self.nodes.iter().map(|node| async move {
            let found = published(node, address.port()).await;
            let mut found = found.into_iter().flatten();
            let is_there = found.any(|found| match address.ip().is_unspecified() {
                true => is_local(found),
                false => found == address,
            });
            is_there.then_some(node)
        });
        join_all(found).await.into_iter().flatten().next()
    }

    /// Returns a node that publishes this port, with whatever address.
    pub(super) async fn node_with_port(&self, port: u16) -> Option<&Node> {
        let found = self.nodes.iter().map(|node| async move {
            let found = published(node, port).await;
            (!found.is_empty()).then_some(node)
        });
        join_all(found).await.into_iter().flatten().next()
    }
}

/// Returns what a node publishes with this port: for gRPC and for HTTP, the addresses that are found. Left out is what leads
/// to the loopback of another machine.
async fn published(node: &Node, port: u16) -> Vec<Vec<SocketAddr>> {
    let end = format!(":{port}");
    let mut all = Vec::new();
    for published in [&node.address, &node.http] {
        if !published.ends_with(&end) {
            continue;
        }
        let found = addresses(published).await;
        let is_loopback = found.iter().any(|found| found.ip().is_loopback());
        if is_loopback && !addresses(&node.address).await.into_iter().any(is_local) {
            continue;
        }
        all.push(found);
    }
    all
}

/// Returns the addresses of a published one, which may have a name. A name that is not known has none.
async fn addresses(published: &str) -> Vec<SocketAddr> {
    let found = tokio::net::lookup_host(published).await;
    found.into_iter().flatten().collect()
}

/// Returns true if this machine has the address.
fn is_local(address: SocketAddr) -> bool {
    UdpSocket::bind((address.ip(), 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::node::Role;
    use crawler_process::clock::SystemClock;
    use crawler_store::Txn;
    use crawler_store::catalog::encode;
    use crawler_store::embedded::{EmbeddedStore, Settings};

    /// Returns a node that publishes these addresses.
    fn node(grpc: &str, http: &str) -> Node {
        let id = "worker-1".parse().expect("an id");
        let http = http.parse().expect("an address");
        parts::node(Role::Worker, id, grpc.to_owned(), http, &SystemClock)
    }

    #[tokio::test]
    async fn a_cluster_is_used_once_it_has_a_node() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
        let catalog = Catalog::new(Arc::new(store), Keys::default());
        let put = async |key: String, value: bytes::Bytes| {
            let txn = Txn::new().put(key, value);
            catalog.store().commit(txn).await.unwrap();
            read(&catalog).await.unwrap()
        };
        let fresh = read(&catalog).await.unwrap();
        assert_eq!((fresh.id, fresh.is_used), (None, false));
        let cluster = put(catalog.keys().cluster(), encode(&"a")).await;
        assert_eq!((cluster.id.as_deref(), cluster.is_used), (Some("a"), false));
        let worker = node("127.0.0.1:9091", "127.0.0.1:8081");
        let key = catalog.keys().node(Role::Worker, &worker.id);
        let cluster = put(key, encode(&worker)).await;
        assert!(cluster.is_used);
        assert_eq!(cluster.nodes, [worker]);
    }

    #[tokio::test]
    async fn a_node_is_found_at_the_addresses_that_it_publishes() {
        // This address is no machine's.
        let elsewhere = node("192.0.2.1:9092", "192.0.2.1:8082");
        let with_loopback = node("192.0.2.1:9093", "127.0.0.1:8083");
        let here = node("localhost:9091", "127.0.0.1:8081");
        let cluster = Cluster {
            nodes: vec![elsewhere, with_loopback, here],
            ..Cluster::default()
        };
        for (address, is_found) in [
            ("127.0.0.1:9091", true),
            ("0.0.0.0:9091", true),
            ("127.0.0.1:8081", true),
            ("0.0.0.0:9092", false),
            ("127.0.0.2:8081", false),
            ("127.0.0.1:8083", false),
            ("0.0.0.0:8083", false),
            ("127.0.0.1:9090", false),
        ] {
            let found = cluster.node_at(address.parse().unwrap()).await;
            assert_eq!(found.is_some(), is_found, "{address}");
        }
        for (port, is_found) in [(9092, true), (9093, true), (8083, false), (9094, false)] {
            let found = cluster.node_with_port(port).await;
            assert_eq!(found.is_some(), is_found, "{port}");
        }
    }
}
