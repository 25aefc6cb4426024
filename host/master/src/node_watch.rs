//! Watch of the nodes: events when they come and go, and the log of them on every master.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::lists::nodes;
use crawler_model::id::NodeId;
use crawler_model::node::{Node, NodeChange, NodeEvent, Role};
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::StoreError;
use crawler_store::catalog::Catalog;
use crawler_store::changes::Changes;

/// Largest interval between two reads of the registrations, in case a watch has missed something.
const RESYNC: Duration = Duration::from_secs(60);

type Nodes = BTreeMap<(Role, NodeId), Node>;

/// Nodes, as one reader was told of them.
pub(super) struct NodeWatch {
    catalog: Catalog,
    known: Nodes,
    /// Events that are not delivered yet.
    events: VecDeque<NodeEvent>,
    /// Watch of the registrations; `None` before the first look and after an error.
    changes: Option<Changes>,
}

impl NodeWatch {
    /// Creates a watch that knows no node: present nodes are reported as joined.
    pub(super) fn new(catalog: Catalog) -> Self {
        Self {
            catalog,
            known: Nodes::new(),
            events: VecDeque::new(),
            changes: None,
        }
    }

    /// Waits for the next event. It may be called again after an error, and then reports all changes since.
    pub(super) async fn next(&mut self) -> Result<NodeEvent, StoreError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let read = self.read_changes().await;
            if read.is_err() {
                self.changes = None;
            }
            read?;
        }
    }

    async fn read_changes(&mut self) -> Result<(), StoreError> {
        match &mut self.changes {
            Some(changes) => changes.next().await?,
            none => {
                let prefix = self.catalog.keys().all_nodes();
                let changes = Changes::below(&self.catalog, &prefix, RESYNC).await?;
                *none = Some(changes);
            }
        }
        let mut present = Nodes::new();
        for role in [Role::Master, Role::Worker] {
            let of_role = nodes(&self.catalog, role).await?.into_iter();
            present.extend(of_role.map(|(id, node)| ((role, id), node)));
        }
        self.events = events(&self.known, &present);
        self.known = present;
        Ok(())
    }
}

/// Logs the present nodes, and then those that join, leave or change, until `stop`.
pub async fn run(catalog: Catalog, stop: CancellationToken) {
    let mut node_watch = NodeWatch::new(catalog);
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
    while let Some(next) = stop.run_until_cancelled(node_watch.next()).await {
        match next {
            Ok(event) => {
                backoff.reset();
                log(&event);
            }
            Err(error) => {
                let error = telemetry::chain(&error);
                tracing::warn!(error, "registrations cannot be read");
                stop.run_until_cancelled(tokio::time::sleep(backoff.next_delay()))
                    .await;
            }
        }
    }
}

fn events(known: &Nodes, present: &Nodes) -> VecDeque<NodeEvent> {
    let event = |change, node: &Node| NodeEvent {
        change,
        node: node.clone(),
    };
    let left = known.iter().filter(|(id, _)| !present.contains_key(id));
    let left = left.map(|(_, node)| event(NodeChange::Left, node));
    let now = present.iter().filter_map(|(id, node)| match known.get(id) {
        None => Some(event(NodeChange::Joined, node)),
        Some(before) if before != node => Some(event(NodeChange::Changed, node)),
        Some(_) => None,
    });
    left.chain(now).collect()
}

fn log(event: &NodeEvent) {
    let Node {
        id,
        role,
        address,
        incarnation,
        ..
    } = &event.node;
    match event.change {
        NodeChange::Joined => tracing::info!(%id, %role, address, %incarnation, "node joined"),
        NodeChange::Left => tracing::info!(%id, %role, address, %incarnation, "node left"),
        NodeChange::Changed => tracing::info!(%id, %role, address, %incarnation, "node changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::Incarnation;
    use crawler_model::node::CallToken;

    fn node(id: &str, incarnation: u64) -> Node {
        Node {
            id: id.parse().unwrap(),
            role: Role::Worker,
            address: format!("{id}:9090"),
            http: String::new(),
            pprof: String::new(),
            incarnation: Incarnation(incarnation),
            labels: BTreeMap::new(),
            capacity: 1,
            version: "0".into(),
            interface: String::new(),
            draining: false,
            started_at: 0,
            call_token: CallToken::default(),
            shares_turns: false,
            tls: false,
        }
    }

    fn there(nodes: &[Node]) -> Nodes {
        let key = |node: &Node| (node.role, node.id.clone());
        nodes.iter().map(|n| (key(n), n.clone())).collect()
    }

    #[test]
    fn s03_who_joins_leaves_and_changes_is_told_once() {
        let [stays, leaves, joins] = ["worker-1", "worker-2", "worker-4"].map(|id| node(id, 1));
        let (before, after) = (node("worker-3", 1), node("worker-3", 2));
        let known = there(&[stays.clone(), leaves.clone(), before]);
        let present = there(&[stays, after.clone(), joins.clone()]);
        let expected = [
            (NodeChange::Left, leaves),
            (NodeChange::Changed, after),
            (NodeChange::Joined, joins),
        ];
        let expected = expected.map(|(change, node)| NodeEvent { change, node });
        assert_eq!(events(&known, &present), expected);
        assert!(events(&present, &present).is_empty());
    }
}
