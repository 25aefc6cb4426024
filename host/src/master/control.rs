//! What each call does, whichever door it came in by.
//!
//! A call reads what it decides on, and writes its decision as one transaction guarded by what it
//! read; when somebody else was quicker it looks again. Nothing is half-written, and nothing that was
//! answered is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::watch;

use super::lists::{self, records};
use super::observed::newest;
use super::phase;
use super::placement::{Candidates, Strategy};
use super::replica::Replica;
use super::{ControlError, WorkerCalls};
use crate::clock::Clock;
use crate::data::DataRoot;
use crate::frontier::reader::pool::Readers;
use crate::model::id::{Digest, RequestId, ResourceName};
use crate::model::plugin::{LimitOverrides, Limits, PluginRecord};
use crate::model::resource::{Resource, ResourceSpec, SettingError};
use crate::plugin::Admit;
use crate::store::catalog::{Catalog, Versioned};
use crate::store::election::{Leadership, Standing};
use crate::store::ids::IdIssuer;
use crate::store::{Outcome, Revision, StoreError, Txn};

pub mod frontier;
pub mod items;
mod lives;
mod new_resource;
mod nodes;
mod plugins;
mod reads;
mod resources;
mod runs;

pub use plugins::Push;

/// How often a call looks again after losing to another.
const MAX_TRIES: usize = 20;

/// What the calls work with.
pub struct ControlParts {
    /// How the election stands, as this master sees it.
    pub standing: watch::Receiver<Standing>,
    /// The state.
    pub catalog: Catalog,
    /// Plugin bytes and items.
    pub data: Arc<DataRoot>,
    /// Looks at pushed bytes.
    pub admission: Arc<dyn Admit>,
    /// Makes ids of resources.
    pub ids: IdIssuer,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// To ask workers for live numbers and logs.
    pub workers: Arc<dyn WorkerCalls>,
    /// What placing decides by.
    pub replica: Replica,
    /// How far resources may raise limits; what is absent has the default ceiling.
    pub limit_ceilings: LimitOverrides,
    /// Bytes of a plugin: setting `plugin-size`.
    pub max_plugin_size: u64,
    /// How a worker is chosen for a shard.
    pub strategy: Strategy,
    /// Frontiers that are read at once: setting `frontier-readers`.
    pub frontier_readers: usize,
}

/// The calls of a master.
pub struct Control {
    parts: ControlParts,
    /// Held by calls that decide on more than a guard can name, one at a time: adding, which places
    /// by load and pins a plugin, pinning another plugin, and pushing and deleting plugins, whose bytes
    /// are not in the store.
    turn: tokio::sync::Mutex<()>,
    /// The last write that a caller knows of: the next decision is made with it in view.
    decided: AtomicU64,
    /// Of all calls that look into frontiers.
    readers: Arc<Readers>,
}

impl Control {
    /// Ready for calls.
    pub fn new(parts: ControlParts) -> Self {
        let objects = parts.data.object_store();
        Self {
            readers: Arc::new(Readers::new(objects, parts.frontier_readers)),
            parts,
            turn: tokio::sync::Mutex::new(()),
            decided: AtomicU64::new(0),
        }
    }

    /// Bytes that a pushed plugin may have.
    pub fn max_plugin_size(&self) -> u64 {
        self.parts.max_plugin_size
    }

    /// How the election stands, as this master sees it.
    pub fn standing(&self) -> &watch::Receiver<Standing> {
        &self.parts.standing
    }

    /// The right to change anything; only the leader has it.
    fn leadership(&self) -> Result<Leadership, ControlError> {
        let standing = self.parts.standing.borrow();
        let leadership = standing.leadership().cloned();
        leadership.ok_or_else(|| ControlError::not_leading(&standing))
    }

    /// Writes the decision of one look at the state; false when another was quicker, or that is not
    /// known: whoever looks again finds out.
    async fn commit(&self, leadership: &Leadership, txn: Txn) -> Result<bool, ControlError> {
        let store = &**self.parts.catalog.store();
        match leadership.commit(store, txn).await {
            Ok(Outcome::Done(revision)) => {
                self.saw(revision);
                Ok(true)
            }
            Ok(Outcome::Lost(_) | Outcome::Unknown) => Ok(false),
            Err(StoreError::Deposed) => {
                Err(ControlError::not_leading(&self.parts.standing.borrow()))
            }
            Err(error) => Err(error.into()),
        }
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

    /// A caller is about to know of this write.
    fn saw(&self, revision: Revision) {
        self.decided.fetch_max(revision.0, Ordering::Relaxed);
    }

    /// What a caller knows of has to be in view of the next decision.
    fn decided(&self) -> Revision {
        Revision(self.decided.load(Ordering::Relaxed))
    }

    /// The live workers with what they have, as of a moment ago, and with what was decided here.
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

    /// Refuses what no door should have let in, and what only this master knows to be too much.
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
        let (max_pages, shards) = (spec.crawl.max_pages(), spec.placement.shards);
        if max_pages < u64::from(shards) {
            let why =
                format!("max-pages is {max_pages}, and {shards} shards take a page each at least");
            let field = "crawl.max_pages";
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
