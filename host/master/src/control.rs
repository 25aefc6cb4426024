//! Calls of the master, independent of the interface through which they come.
//!
//! A call reads the state, and writes its decision as one transaction guarded by what it read. If another write
//! came first, it looks again. Nothing is half-written, and nothing that was acknowledged is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OnceCell, watch};

use super::lists;
use super::placement::{Candidates, Strategy};
use super::replica::Replica;
use super::{ControlError, WorkerCalls};
use crawler_data::DataRoot;
use crawler_frontier::reader::pool::Readers;
use crawler_model::event::Event;
use crawler_model::id::{ResourceId, ResourceName};
use crawler_model::plugin::{LimitOverrides, Limits};
use crawler_model::resource::{Resource, ResourceSpec, SettingError};
use crawler_model::settings::{ArchiveForm, SinkName};
use crawler_plugin::Admit;
use crawler_process::clock::Clock;
use crawler_sink::items::ItemStore;
use crawler_store::catalog::{Catalog, Versioned};
use crawler_store::election::{ElectionStatus, Leadership};
use crawler_store::ids::IdIssuer;
use crawler_store::store_id::store_id;
use crawler_store::{Outcome, Revision, StoreError, Txn};

mod asked;
pub mod changes;
mod deletion;
pub mod events;
mod files;
pub mod frontier;
pub mod items;
mod logs;
mod new_resource;
mod nodes;
mod plugins;
mod precondition;
pub mod quarantine;
mod reads;
pub mod resource_watch;
mod resources;
mod run_diff;
mod run_history;
mod runs;
mod schedules;
mod sinks;
pub mod statistics;

pub use asked::Asked;
pub use plugins::Push;
pub use precondition::Precondition;
pub use reads::ResourceQuery;
pub use run_diff::{ChangesBetween, RunView, RunsDiff};
pub use run_history::RunsView;
pub(super) use schedules::{Looked, Seen};

/// Largest number of times that a call looks again after losing to another write.
const MAX_TRIES: usize = 20;

/// Parts that the calls work with.
pub struct ControlParts {
    /// State of the election, as this master sees it.
    pub election_status: watch::Receiver<ElectionStatus>,
    /// The records in the store.
    pub catalog: Catalog,
    /// Plugin bytes and frontiers.
    pub data: Arc<DataRoot>,
    /// Items at their sinks.
    pub items: Arc<dyn ItemStore>,
    /// Sinks that the config file declares, beside the one in the data root.
    pub sinks: Vec<SinkName>,
    /// Declared sinks that need the changes of a resource.
    pub change_sinks: Vec<SinkName>,
    /// Check of pushed plugins.
    pub admission: Arc<dyn Admit>,
    /// Issuer of resource ids.
    pub ids: IdIssuer,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// Calls to workers for live numbers and logs.
    pub workers: Arc<dyn WorkerCalls>,
    /// Replica of the state, for placement decisions.
    pub replica: Replica,
    /// Ceilings of the limits that resources set; a limit that is absent has the default ceiling.
    pub limit_ceilings: LimitOverrides,
    /// Largest size of a plugin in bytes: setting `plugin-size`.
    pub max_plugin_size: u64,
    /// Strategy that chooses a worker for a shard.
    pub strategy: Strategy,
    /// Number of frontiers that are read at once: setting `frontier-readers`.
    pub frontier_readers: usize,
}

/// The calls of a master.
pub struct Control {
    parts: ControlParts,
    /// Lock for calls that decide on more than a guard can name: adding, which places by load and pins a
    /// plugin, pinning another plugin, and pushing and deleting plugins, whose bytes are not in the store. They
    /// run one at a time.
    decision_lock: tokio::sync::Mutex<()>,
    /// Revision of the last write that a caller knows of; the next decision takes it into account.
    decided: AtomicU64,
    /// Readers of frontiers, shared by all calls.
    readers: Arc<Readers>,
    /// Id of the store, once it was read.
    store_id: OnceCell<String>,
}

impl Control {
    /// Creates the calls from their parts.
    pub fn new(parts: ControlParts) -> Self {
        let objects = parts.data.object_store();
        Self {
            readers: Arc::new(Readers::new(objects, parts.frontier_readers)),
            parts,
            decision_lock: tokio::sync::Mutex::new(()),
            decided: AtomicU64::new(0),
            store_id: OnceCell::new(),
        }
    }

    /// Largest number of bytes of a pushed plugin.
    pub fn max_plugin_size(&self) -> u64 {
        self.parts.max_plugin_size
    }

    /// Returns the id of the store. Revisions of another store mean nothing.
    pub async fn store_id(&self) -> Result<&str, ControlError> {
        let read = self
            .store_id
            .get_or_try_init(|| store_id(&self.parts.catalog));
        Ok(read.await?)
    }

    /// State of the election, as this master sees it.
    pub fn election_status(&self) -> &watch::Receiver<ElectionStatus> {
        &self.parts.election_status
    }

    /// Returns the leadership, which every change requires. It is an error if this master does not lead.
    fn leadership(&self) -> Result<Leadership, ControlError> {
        let election_status = self.parts.election_status.borrow();
        let leadership = election_status.leadership().cloned();
        leadership.ok_or_else(|| ControlError::not_leading(&election_status))
    }

    /// Writes a decision. Returns false if another write came first, or if the outcome is unknown; looking
    /// again shows which.
    async fn commit(&self, leadership: &Leadership, txn: Txn) -> Result<bool, ControlError> {
        let store = &**self.parts.catalog.store();
        match leadership.commit(store, txn).await {
            Ok(Outcome::Done(revision)) => {
                self.saw(revision);
                Ok(true)
            }
            Ok(Outcome::Lost(_) | Outcome::Unknown) => Ok(false),
            Err(StoreError::Deposed) => Err(ControlError::not_leading(
                &self.parts.election_status.borrow(),
            )),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds events of a resource to the transaction that makes them true.
    fn tell(&self, txn: Txn, id: ResourceId, events: Vec<Event>) -> Txn {
        let ControlParts { catalog, clock, .. } = &self.parts;
        crate::events::told(txn, catalog.keys(), &**clock, id, events)
    }

    async fn present(
        &self,
        name: &ResourceName,
    ) -> Result<Option<Versioned<Resource>>, ControlError> {
        Ok(self
            .parts
            .catalog
            .read(&self.parts.catalog.keys().resource(name))
            .await?)
    }

    async fn existing(&self, name: &ResourceName) -> Result<Versioned<Resource>, ControlError> {
        let present = self.present(name).await?;
        present.ok_or_else(|| Self::absent(name))
    }

    fn absent(name: &ResourceName) -> ControlError {
        ControlError::NoResource {
            name: name.to_string(),
        }
    }

    fn contended(name: &ResourceName) -> ControlError {
        ControlError::Contended {
            what: format!("resource {name}"),
        }
    }

    /// Takes note of a write that a caller is about to know of.
    fn saw(&self, revision: Revision) {
        self.decided.fetch_max(revision.0, Ordering::Relaxed);
    }

    /// Returns the revision that the next decision has to take into account.
    fn decided(&self) -> Revision {
        Revision(self.decided.load(Ordering::Relaxed))
    }

    /// Returns the live workers with their shards, as of a moment ago, including the decisions made here.
    async fn candidates(&self) -> Result<Candidates, StoreError> {
        let replica = &self.parts.replica;
        if let Some(observed) = replica.with(self.decided()).await {
            return Ok(observed.candidates.clone());
        }
        if let Some(candidates) = replica.candidates() {
            return Ok(candidates);
        }
        lists::candidates(&self.parts.catalog, self.parts.strategy).await
    }

    /// Refuses values that no interface should have let through, and those above this master's ceilings.
    fn check(&self, spec: &ResourceSpec) -> Result<(), ControlError> {
        let limits = Limits::default().with(&spec.limits, &self.parts.limit_ceilings);
        limits.map_err(|e| ControlError::Invalid {
            field: "limits",
            why: e.to_string(),
        })?;
        let invalid = |field| {
            move |e: SettingError| ControlError::Invalid {
                field,
                why: e.to_string(),
            }
        };
        spec.crawl.check().map_err(invalid("crawl"))?;
        spec.check_labels().map_err(invalid("labels"))?;
        spec.check_changes().map_err(invalid("crawl.changes"))?;
        spec.check_revisit().map_err(invalid("crawl.revisit_ms"))?;
        let (max_pages, shards) = (spec.crawl.max_pages(), spec.placement.shards);
        if max_pages < u64::from(shards) {
            let why =
                format!("max-pages is {max_pages}, and {shards} shards take a page each at least");
            let field = "crawl.max_pages";
            return Err(ControlError::Invalid { field, why });
        }
        if spec.crawl.archive() != ArchiveForm::Off && self.parts.data.archives_root().is_none() {
            let why = format!(
                "setting archive is {}, and the data root of this cluster is in a bucket, which has no archives; set archive to off",
                spec.crawl.archive()
            );
            let field = "crawl.archive";
            return Err(ControlError::Invalid { field, why });
        }
        let placement = spec.placement.check(&spec.name);
        placement.map_err(invalid("placement"))
    }
}

#[cfg(test)]
pub(super) use tests::bench::Bench;
#[cfg(test)]
mod tests;
