//! The log of nodes that come and go, on every master.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::observed::nodes;
use crate::model::id::NodeId;
use crate::model::node::{Node, Role};
use crate::retry::Backoff;
use crate::store::StoreError;
use crate::store::catalog::Catalog;
use crate::store::changes::Changes;
use crate::telemetry;

/// The registrations are read at least this often, in case a watch has missed something.
const RESYNC: Duration = Duration::from_secs(60);

type Nodes = BTreeMap<(Role, NodeId), Node>;

/// What happened to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event<'a> {
    Joined(&'a Node),
    Left(&'a Node),
    /// It is another process under the same id, or says something else of itself.
    Changed(&'a Node),
}

/// Logs who is there, and then who joins, leaves or changes, until `stop`.
pub async fn run(catalog: Catalog, stop: CancellationToken) {
    let mut known = Nodes::new();
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
    while let Some(result) = stop
        .run_until_cancelled(follow(&catalog, &mut known, &mut backoff))
        .await
    {
        let Err(error) = result;
        let error = telemetry::chain(&error);
        tracing::warn!(error, "registrations cannot be read");
        stop.run_until_cancelled(tokio::time::sleep(backoff.next_delay()))
            .await;
    }
}

async fn follow(
    catalog: &Catalog,
    known: &mut Nodes,
    backoff: &mut Backoff,
) -> Result<Infallible, StoreError> {
    let mut changes = Changes::below(catalog, &catalog.keys().all_nodes(), RESYNC).await?;
    loop {
        let mut present = Nodes::new();
        for role in [Role::Master, Role::Worker] {
            let of_role = nodes(catalog, role).await?.into_iter();
            present.extend(of_role.map(|(id, node)| ((role, id), node)));
        }
        backoff.reset();
        events(known, &present).iter().for_each(log);
        *known = present;
        changes.next().await?;
    }
}

fn events<'a>(known: &'a Nodes, present: &'a Nodes) -> Vec<Event<'a>> {
    let left = known.iter().filter(|(id, _)| !present.contains_key(id));
    let left = left.map(|(_, node)| Event::Left(node));
    let now = present.iter().filter_map(|(id, node)| match known.get(id) {
        None => Some(Event::Joined(node)),
        Some(before) if before != node => Some(Event::Changed(node)),
        Some(_) => None,
    });
    left.chain(now).collect()
}

fn log(event: &Event<'_>) {
    let (Event::Joined(node) | Event::Left(node) | Event::Changed(node)) = event;
    let Node {
        id,
        role,
        address,
        incarnation,
        ..
    } = node;
    match event {
        Event::Joined(_) => tracing::info!(%id, %role, address, %incarnation, "node joined"),
        Event::Left(_) => tracing::info!(%id, %role, address, %incarnation, "node left"),
        Event::Changed(_) => tracing::info!(%id, %role, address, %incarnation, "node changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::Incarnation;

    fn node(id: &str, incarnation: u64) -> Node {
        Node {
            id: id.parse().unwrap(),
            role: Role::Worker,
            address: format!("{id}:9090"),
            incarnation: Incarnation(incarnation),
            labels: BTreeMap::new(),
            capacity: 1,
            version: "0".into(),
            interface: String::new(),
            draining: false,
            started_at: 0,
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
            Event::Left(&leaves),
            Event::Changed(&after),
            Event::Joined(&joins),
        ];
        assert_eq!(events(&known, &present), expected);
        assert_eq!(events(&present, &present), []);
    }
}
