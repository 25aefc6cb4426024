//! Looking at nodes: who is registered, what each of them has, and which records nobody can read.

use std::collections::BTreeMap;

use futures::stream::{self, BoxStream, StreamExt as _};

use super::super::roster::Roster;
use super::super::{BrokenRecord, NodeView, NodesView};
use super::*;
use crate::model::id::NodeId;
use crate::model::node::{Contender, Node, NodeEvent, Role};
use crate::model::status::WorkerStatus;
use crate::store::catalog::Scan;
use crate::store::election;

impl Control {
    /// Those who are there, as joined, and then who joins, leaves or changes, for ever.
    pub fn node_events(&self) -> BoxStream<'static, Result<NodeEvent, ControlError>> {
        let roster = Roster::new(self.parts.catalog.clone());
        let events = stream::unfold(roster, |mut roster| async move {
            let event = roster.next().await.map_err(ControlError::from);
            Some((event, roster))
        });
        events.boxed()
    }

    /// All nodes, masters first.
    pub async fn nodes(&self) -> Result<NodesView, ControlError> {
        let catalog = &self.parts.catalog;
        let keys = catalog.keys();
        let mut broken = Vec::new();
        let nodes: Scan<Node> = catalog.scan(&keys.all_nodes()).await?;
        broken.extend(nodes.broken.into_iter().map(BrokenRecord::of));
        let contenders: Scan<Contender> = catalog.scan(&keys.election()).await?;
        broken.extend(contenders.broken.into_iter().map(BrokenRecord::of));
        let statuses: Scan<WorkerStatus> = catalog.scan(&keys.statuses()).await?;
        broken.extend(statuses.broken.into_iter().map(BrokenRecord::of));
        let assignments = observed::assignments(catalog).await?;
        let unread = assignments.iter().filter(|(_, record)| record.is_none());
        broken.extend(unread.map(|((worker, shard), _)| BrokenRecord {
            key: keys.assignment(worker, *shard),
            why: "the record does not decode".to_owned(),
        }));
        let leader = election::current_leader(catalog)
            .await?
            .map(|leader| leader.id);

        let nodes = nodes.records.into_iter().map(|(_, node)| node.value);
        let (masters, workers): (Vec<Node>, Vec<Node>) =
            nodes.partition(|node| node.role == Role::Master);
        let mut totals: BTreeMap<String, WorkerStatus> = statuses
            .records
            .into_iter()
            .map(|(key, status)| (key, status.value))
            .collect();
        let masters = masters.into_iter().map(|node| NodeView {
            leader: is(&node, leader.as_ref()),
            node,
            load: 0,
            weight: 0,
            totals: None,
        });
        let candidates = observed::weigh(self.parts.strategy, workers.into_iter(), &assignments);
        let workers = candidates.iter().map(|candidate| NodeView {
            leader: false,
            load: candidate.n_shards,
            weight: candidate.load,
            // What an earlier process under that id wrote says nothing of this one.
            totals: totals
                .remove(&keys.status(&candidate.node.id))
                .filter(|status| status.incarnation == candidate.node.incarnation),
            node: candidate.node.clone(),
        });
        Ok(NodesView {
            nodes: masters.chain(workers).collect(),
            broken,
        })
    }
}

fn is(node: &Node, leader: Option<&NodeId>) -> bool {
    leader == Some(&node.id)
}

impl BrokenRecord {
    fn of(error: StoreError) -> Self {
        tracing::error!(%error, "passing over a record that does not decode");
        match error {
            StoreError::Record { key, why } => Self {
                key,
                why: format!("the record does not decode: {why}"),
            },
            // A scan finds no other fault in a record.
            other => Self {
                key: String::new(),
                why: other.to_string(),
            },
        }
    }
}
