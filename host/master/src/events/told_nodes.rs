//! Records of what was told of each node, as a leader that alone writes them knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crawler_model::crawl::UnixMillis;
use crawler_model::event::ToldNode;
use crawler_model::id::NodeId;
use crawler_process::telemetry;
use crawler_store::catalog::{Catalog, Versioned, encode};
use crawler_store::election::Leadership;
use crawler_store::{Guard, Outcome, StoreError, Txn};

/// Time for which events of a node that is gone are kept.
const GONE_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Record of a node as a write leaves it whose outcome is not known.
pub(super) type Unsure = Option<(NodeId, ToldNode)>;

/// The records of one term of a leader.
pub(super) struct ToldNodes<'a> {
    catalog: &'a Catalog,
    leadership: &'a Leadership,
    by_id: BTreeMap<NodeId, Versioned<ToldNode>>,
    /// Nodes whose records this version cannot read, such as what a later version has written.
    unreadable: BTreeSet<NodeId>,
    /// The write that is under way, or that has failed.
    unsure: &'a mut Unsure,
    /// Number of writes since it was set to zero.
    pub(super) n_writes: usize,
}

impl<'a> ToldNodes<'a> {
    /// Reads all records. The write that is not known to be carried out stays `unsure` until it is [settled](Self::settle).
    pub(super) async fn read(
        catalog: &'a Catalog,
        leadership: &'a Leadership,
        unsure: &'a mut Unsure,
    ) -> Result<Self, StoreError> {
        let mut nodes = Self {
            catalog,
            leadership,
            by_id: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            unsure,
            n_writes: 0,
        };
        nodes.read_again().await?;
        Ok(nodes)
    }

    async fn read_again(&mut self) -> Result<(), StoreError> {
        let prefix = self.catalog.keys().told_nodes();
        let scan = self.catalog.scan::<ToldNode>(&prefix).await?;
        for error in &scan.broken {
            if let StoreError::Record { key, .. } = error {
                self.unreadable.extend(id_of(key));
            }
            let error = telemetry::chain(error);
            tracing::error!(error, "what was told of a node does not decode");
        }
        let told = scan.records.into_iter().filter_map(|(key, told)| {
            let id = key.strip_prefix(&prefix)?.parse().ok()?;
            Some((id, told))
        });
        self.by_id = told.collect();
        Ok(())
    }

    /// Returns true if the last write that ended in an error was carried out, as the records now tell.
    pub(super) fn settle(&mut self) -> bool {
        let unsure = self.unsure.take();
        unsure.is_some_and(|(id, state)| self.get(&id) == Some(&state))
    }

    /// Returns the nodes of which something was told.
    pub(super) fn ids(&self) -> impl Iterator<Item = &NodeId> {
        self.by_id.keys()
    }

    /// Returns what was told of a node.
    pub(super) fn get(&self, id: &NodeId) -> Option<&ToldNode> {
        self.by_id.get(id).map(|told| &told.value)
    }

    /// Returns true if the record of a node does not decode. It is not to be written over.
    pub(super) fn is_unreadable(&self, id: &NodeId) -> bool {
        self.unreadable.contains(id)
    }

    /// Writes a state with its events. If the answer is lost, the record tells whether that was carried out. Returns false if
    /// it was not; the present state is read then. After an error the write stays unsure.
    pub(super) async fn write(
        &mut self,
        id: &NodeId,
        txn: Txn,
        state: ToldNode,
    ) -> Result<bool, StoreError> {
        let state = ToldNode {
            n_writes: state.n_writes + 1,
            ..state
        };
        *self.unsure = Some((id.clone(), state.clone()));
        let is_written = self.try_to_write(id, txn, state).await?;
        *self.unsure = None;
        Ok(is_written)
    }

    async fn try_to_write(
        &mut self,
        id: &NodeId,
        txn: Txn,
        state: ToldNode,
    ) -> Result<bool, StoreError> {
        let key = self.catalog.keys().told_node(id);
        let before = self.by_id.get(id);
        let guard = match before {
            Some(told) => Guard::RevisionIs(key.clone(), told.revision),
            None => Guard::Absent(key.clone()),
        };
        let txn = txn.guard(guard).put(key.clone(), encode(&state));
        self.n_writes += 1;
        match self.leadership.commit(&**self.catalog.store(), txn).await? {
            Outcome::Done(revision) => {
                let created = before.map_or(revision, |told| told.created);
                let told = Versioned {
                    value: state,
                    revision,
                    created,
                };
                self.by_id.insert(id.clone(), told);
                Ok(true)
            }
            Outcome::Lost(_) | Outcome::Unknown => {
                match self.catalog.read::<ToldNode>(&key).await {
                    Ok(Some(told)) => {
                        let is_own = told.value == state;
                        self.by_id.insert(id.clone(), told);
                        return Ok(is_own);
                    }
                    Ok(None) => drop(self.by_id.remove(id)),
                    Err(StoreError::Record { .. }) => {
                        self.by_id.remove(id);
                        self.unreadable.insert(id.clone());
                    }
                    Err(error) => return Err(error),
                }
                Ok(false)
            }
        }
    }

    /// Removes the records of nodes that have been gone for long. Their events go after that.
    pub(super) async fn forget_gone(&mut self, now: UnixMillis) -> Result<(), StoreError> {
        let kept = u64::try_from(GONE_KEPT.as_millis()).unwrap_or(u64::MAX);
        let gone = self.by_id.iter().filter(|(_, told)| {
            let gone_at = told.value.gone_at;
            gone_at.is_some_and(|gone_at| gone_at.saturating_add(kept) <= now)
        });
        let gone: Vec<_> = gone.map(|(id, told)| (id.clone(), told.revision)).collect();
        for (id, revision) in gone {
            let key = self.catalog.keys().told_node(&id);
            let guard = Guard::RevisionIs(key.clone(), revision);
            let txn = Txn::new().guard(guard).delete(key);
            match self.leadership.commit(&**self.catalog.store(), txn).await? {
                Outcome::Done(_) => drop(self.by_id.remove(&id)),
                Outcome::Lost(_) | Outcome::Unknown => self.read_again().await?,
            }
        }
        Ok(())
    }
}

/// Returns the node that a key ends with.
pub(super) fn id_of(key: &str) -> Option<NodeId> {
    let (_role, id) = key.rsplit_once('/')?;
    id.parse().ok()
}
