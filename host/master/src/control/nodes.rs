//! Calls about nodes: registrations, assignments, and records that cannot be read.

use std::collections::BTreeMap;

use futures::stream::{self, BoxStream, StreamExt as _};

use super::{Control, MAX_TRIES};
use crate::events::told_of_node;
use crate::node_watch::NodeWatch;
use crate::{BrokenRecord, ControlError, DrainProgress, NodeView, NodesView, lists};
use crawler_model::event::{Event, EventKind};
use crawler_model::id::NodeId;
use crawler_model::node::{Contender, Draining, Node, NodeEvent, Role};
use crawler_model::status::WorkerStatus;
use crawler_store::catalog::{Scan, encode};
use crawler_store::{Guard, StoreError, Txn, election};

impl Control {
    /// Returns the present nodes as joined, and then endless events about nodes that join, leave or change.
    pub fn node_events(&self) -> BoxStream<'static, Result<NodeEvent, ControlError>> {
        let node_watch = NodeWatch::new(self.parts.catalog.clone());
        let events = stream::unfold(node_watch, |mut node_watch| async move {
            let event = node_watch.next().await.map_err(ControlError::from);
            Some((event, node_watch))
        });
        events.boxed()
    }

    /// Makes a worker give its shards away and take no new ones, or take shards again. The order is bound to
    /// its id: a process that comes back under the same id drains too. `by` names the caller.
    pub async fn drain_node(
        &self,
        id: &NodeId,
        undo: bool,
        by: &str,
    ) -> Result<DrainProgress, ControlError> {
        let leadership = self.leadership()?;
        let catalog = &self.parts.catalog;
        let key = catalog.keys().draining(id);
        for _try in 0..MAX_TRIES {
            let present = catalog.read::<Draining>(&key).await?;
            let candidates = self.candidates().await?;
            let worker = candidates.get(id);
            // A worker that has just registered may not be among the candidates yet.
            let node = catalog.keys().node(Role::Worker, id);
            let is_there = worker.is_some() || catalog.store().get(&node).await?.is_some();
            let can_undo = undo && present.is_some();
            if !(is_there || can_undo) {
                return Err(ControlError::NoWorker { id: id.to_string() });
            }
            let others = candidates.iter();
            let others = others.filter(|other| other.node.id != *id && !other.node.draining);
            let drained = DrainProgress {
                load: worker.map_or(0, |worker| worker.n_shards),
                others: others.count(),
            };
            let since = self.parts.clock.unix_millis();
            let (txn, kind) = match (undo, present) {
                (true, Some(present)) => {
                    let guard = Guard::RevisionIs(key.clone(), present.revision);
                    let txn = Txn::new().guard(guard).delete(key.clone());
                    (txn, EventKind::Undrained)
                }
                (false, None) => {
                    let guard = Guard::Absent(key.clone());
                    let order = encode(&Draining { since });
                    let txn = Txn::new().guard(guard).put(key.clone(), order);
                    (txn, EventKind::Draining)
                }
                // The worker is already in this state.
                (true, None) | (false, Some(_)) => return Ok(drained),
            };
            let events = vec![Event::of_node(kind).by(by)];
            let txn = told_of_node(txn, catalog.keys(), &*self.parts.clock, id, events);
            if self.commit(&leadership, txn).await? {
                tracing::info!(worker = %id, undo, "worker drains, or does so no more");
                return Ok(drained);
            }
        }
        Err(ControlError::Contended {
            what: format!("worker {id}"),
        })
    }

    /// Returns all nodes, masters first.
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
        let assignments = lists::assignments(catalog).await?;
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
        let draining = lists::draining(catalog).await?;
        let workers = workers.into_iter().map(|node| Node {
            draining: node.draining || draining.contains(&node.id),
            ..node
        });
        let candidates = lists::weigh(self.parts.strategy, workers, &assignments);
        let workers = candidates.iter().map(|candidate| NodeView {
            leader: false,
            load: candidate.n_shards,
            weight: candidate.load,
            // A status that an earlier process under that id wrote does not describe this one.
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
