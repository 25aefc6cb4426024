//! The ports of the listeners: whether they are free, and who has them if not.

use std::fs;
use std::net::SocketAddr;

use super::cluster::{self, Cluster};
use crate::app::listeners;
use crate::cli::doctor::Finding;
use crate::cli::place::ClusterPlace;
use crawler_data::{DataPlace, STORE};
use crawler_store::embedded::EmbeddedStore;

/// Process that has a port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    process: u32,
    /// Name of its program.
    name: String,
}

/// Owner of a port that is taken, as the store of this cluster tells.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    /// A node of this cluster, or its `crawler up`.
    Own(String),
    /// A node of this cluster may have it, which publishes the port with another address.
    Perhaps(String),
    /// Nobody of this cluster.
    Stranger,
    /// The store does not tell.
    Unknown,
}

/// Checks that a port is free, or that a node of this cluster has it.
pub(super) async fn check(
    name: &'static str,
    flag: &'static str,
    address: SocketAddr,
    place: &ClusterPlace,
) -> Finding {
    let Err(error) = listeners::check_port(address, flag) else {
        return Finding::ok(name, format!("{address} is free"));
    };
    let holder = holder(address.port());
    let owner = owner(address, holder.as_ref(), place).await;
    let held_by = match &holder {
        Some(Holder { process, name }) => format!("process {process} ({name})"),
        None => "another process".to_owned(),
    };
    match (&holder, &owner) {
        // It may not even be held: this machine may not have the address.
        (None, Owner::Perhaps(_) | Owner::Stranger | Owner::Unknown) => {
            Finding::of_error(name, &error)
        }
        _ => {
            let holder = holder.as_ref();
            let may_be_crawler = holder.is_none_or(|holder| holder.name == "crawler");
            of_owner((name, flag), address, (&held_by, may_be_crawler), &owner)
        }
    }
}

/// Returns who of this cluster has the port.
async fn owner(address: SocketAddr, holder: Option<&Holder>, place: &ClusterPlace) -> Owner {
    if let Some(etcd) = &place.etcd {
        // The check of the store tells why it cannot be asked.
        let Ok(cluster) = cluster::look(etcd).await else {
            return Owner::Unknown;
        };
        return of_cluster(&cluster, address).await;
    }
    let Ok(DataPlace::Folder(folder)) = place.data.parse() else {
        return Owner::Stranger;
    };
    match EmbeddedStore::last_holder(&folder.join(STORE)) {
        Ok(Some(process)) if holder.is_some_and(|holder| holder.process == process) => {
            Owner::Own("crawler up".to_owned())
        }
        Ok(_) => Owner::Stranger,
        Err(_) => Owner::Unknown,
    }
}

/// Returns which node of a cluster has the port.
async fn of_cluster(cluster: &Cluster, address: SocketAddr) -> Owner {
    if let Some(node) = cluster.node_at(address).await {
        return Owner::Own(node.id.to_string());
    }
    // A node that listens at all addresses publishes only one of them.
    match cluster.node_with_port(address.port()).await {
        Some(node) => Owner::Perhaps(node.id.to_string()),
        None => Owner::Stranger,
    }
}

/// Returns the finding about a port that is taken.
fn of_owner(
    (name, flag): (&'static str, &'static str),
    address: SocketAddr,
    (held_by, may_be_crawler): (&str, bool),
    owner: &Owner,
) -> Finding {
    let advice = format!("stop it, or choose another address with {flag}");
    match owner {
        _ if !may_be_crawler => {
            Finding::failed(name, format!("{address} is held by {held_by}"), advice)
        }
        Owner::Own(own) => Finding::ok(name, format!("{address} is held by {own}, {held_by}")),
        Owner::Perhaps(node) => {
            let found = format!(
                "{address} is held by {held_by}; {node} of this cluster publishes the port with another address"
            );
            let advice = format!("if it is not this node, {advice}");
            Finding::warning(name, found, advice)
        }
        Owner::Stranger => {
            let found = format!("{address} is held by {held_by}, which is no node of this cluster");
            Finding::failed(name, found, advice)
        }
        Owner::Unknown => {
            let found = format!(
                "{address} is held by {held_by}; the store does not tell if it is a node of this cluster"
            );
            Finding::warning(name, found, "look at the check of the store")
        }
    }
}

/// Returns the process that listens on a port, if the system tells: processes of other users are hidden.
fn holder(port: u16) -> Option<Holder> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let sockets: Vec<String> = tables
        .iter()
        .flatten()
        .flat_map(|table| listening(table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.into_iter().find_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let mut files = fs::read_dir(entry.path().join("fd")).ok()?.flatten();
        let is_holder = files.any(|file| {
            let target = fs::read_link(file.path()).unwrap_or_default();
            sockets
                .iter()
                .any(|socket| target.as_os_str() == socket.as_str())
        });
        let name = || fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        is_holder.then(|| Holder {
            process,
            name: name().trim().to_owned(),
        })
    })
}

/// Returns the inodes of the sockets that listen on a port, by a table of the kernel.
fn listening(table: &str, port: u16) -> Vec<String> {
    /// State of a socket that listens.
    const LISTEN: &str = "0A";
    let wanted = format!(":{port:04X}");
    let rows = table.lines().skip(1).filter_map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let (&local, &state, &inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        (local.ends_with(&wanted) && state == LISTEN).then(|| inode.to_owned())
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::app::parts;
    use crate::cli::doctor::Verdict;
    use crate::config::FileConfig;
    use crawler_model::node::Role;
    use crawler_process::clock::SystemClock;
    use crawler_store::embedded::Settings;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2383 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 0
   1: 0100007F:2383 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 12346 1 0
";

    #[test]
    fn sockets_that_listen_are_found_by_their_port() {
        assert_eq!(listening(TABLE, 9091), ["12345"]);
        assert_eq!(listening(TABLE, 9090), Vec::<String>::new());
    }

    /// Returns a place without etcd whose data root is this folder.
    fn place(data: &Path) -> ClusterPlace {
        ClusterPlace {
            data: data.display().to_string(),
            etcd: None,
            config: FileConfig::default(),
        }
    }

    #[tokio::test]
    async fn a_port_of_another_program_is_told_with_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let taken = check("http port", "--http", address, &place(folder.path())).await;
        assert_eq!(taken.result, Verdict::Failed);
        if cfg!(target_os = "linux") {
            let own = format!("process {} (", std::process::id());
            assert!(taken.found.contains(&own), "{taken:?}");
        }
        assert!(taken.found.contains(&address.to_string()), "{taken:?}");
    }

    #[tokio::test]
    async fn a_crawler_up_is_known_by_the_store_of_its_data_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let holder = |process| Holder {
            process,
            name: "crawler".to_owned(),
        };
        let own = holder(std::process::id());
        let address = "127.0.0.1:9091".parse().unwrap();
        let fresh = owner(address, Some(&own), &place(root)).await;
        assert_eq!(fresh, Owner::Stranger);
        let _store = EmbeddedStore::open(&root.join(STORE), Settings::default()).unwrap();
        let running = owner(address, Some(&own), &place(root)).await;
        assert_eq!(running, Owner::Own("crawler up".to_owned()));
        let other = owner(address, Some(&holder(1)), &place(root)).await;
        assert_eq!(other, Owner::Stranger);
    }

    #[tokio::test]
    async fn a_node_that_publishes_another_address_may_have_the_port() {
        let id = "worker-1".parse().unwrap();
        let http = "127.0.0.1:8081".parse().unwrap();
        // A node that listens at 0.0.0.0:9091.
        let published = "192.0.2.1:9091".to_owned();
        let node = parts::node(Role::Worker, id, published, http, &SystemClock);
        let cluster = Cluster {
            nodes: vec![node],
            ..Cluster::default()
        };
        for (address, expected) in [
            ("192.0.2.1:9091", Owner::Own("worker-1".to_owned())),
            ("127.0.0.1:9091", Owner::Perhaps("worker-1".to_owned())),
            // This is the loopback of the machine of the node.
            ("127.0.0.1:8081", Owner::Stranger),
            ("127.0.0.1:9092", Owner::Stranger),
        ] {
            let owner = of_cluster(&cluster, address.parse().unwrap()).await;
            assert_eq!(owner, expected, "{address}");
        }
    }

    #[test]
    fn only_a_node_of_the_cluster_may_have_the_port() {
        let address = "127.0.0.1:9091".parse().unwrap();
        let crawler = ("process 7 (crawler)", true);
        let other = ("process 8 (nginx)", false);
        let own = Owner::Own("worker-1".to_owned());
        let perhaps = Owner::Perhaps("worker-1".to_owned());
        for (holder, owner, result, found) in [
            (crawler, &own, Verdict::Ok, "worker-1, process 7 (crawler)"),
            (
                crawler,
                &Owner::Stranger,
                Verdict::Failed,
                "process 7 (crawler), which is no node of this cluster",
            ),
            (
                crawler,
                &Owner::Unknown,
                Verdict::Warning,
                "process 7 (crawler); the store does not tell if it is a node of this cluster",
            ),
            (
                crawler,
                &perhaps,
                Verdict::Warning,
                "process 7 (crawler); worker-1 of this cluster publishes the port with another address",
            ),
            (other, &perhaps, Verdict::Failed, "process 8 (nginx)"),
            (other, &own, Verdict::Failed, "process 8 (nginx)"),
        ] {
            let finding = of_owner(("grpc port", "--grpc"), address, holder, owner);
            let expected = format!("127.0.0.1:9091 is held by {found}");
            assert_eq!((finding.result, finding.found), (result, expected));
        }
    }
}
