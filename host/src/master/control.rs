//! What each call does, whichever door it came in by.
//!
//! A call reads what it decides on, and writes its decision as one transaction guarded by what it
//! read; when somebody else was quicker it looks again. Nothing is half-written, and nothing that was
//! answered is lost.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;

use super::observed::{self, newest, records};
use super::{ControlError, WorkerCalls};
use crate::clock::Clock;
use crate::data::DataRoot;
use crate::model::id::{Digest, NodeId, ResourceName};
use crate::model::plugin::{LimitOverrides, Limits, PluginRecord};
use crate::model::resource::{CrawlSettings, Resource};
use crate::plugin::Admit;
use crate::store::catalog::{Catalog, Versioned};
use crate::store::ids::IdIssuer;
use crate::store::{Outcome, Txn};

pub mod frontier;
pub mod items;
mod plugins;
mod reads;
mod resources;
mod runs;

/// How often a call looks again after losing to another.
const MAX_TRIES: usize = 20;

/// What the calls work with.
pub struct ControlParts {
    /// This master.
    pub node: NodeId,
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
    /// Wakes the reconciler.
    pub wake: Arc<Notify>,
    /// How far resources may raise limits; what is absent has the default ceiling.
    pub limit_ceilings: LimitOverrides,
    /// Bytes of a plugin: setting `plugin-size`.
    pub max_plugin_size: u64,
}

/// The calls of a master.
pub struct Control {
    parts: ControlParts,
    /// Held by calls that decide on more than a guard can name, one at a time: adding, which places
    /// by load and pins a plugin, and pushing and deleting plugins, whose bytes are not in the store.
    turn: tokio::sync::Mutex<()>,
}

impl Control {
    /// Ready for calls.
    pub fn new(parts: ControlParts) -> Self {
        Self {
            parts,
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Bytes that a pushed plugin may have.
    pub fn max_plugin_size(&self) -> u64 {
        self.parts.max_plugin_size
    }

    /// The decision of one look at the state; none when another was quicker.
    async fn commit(&self, txn: Txn) -> Result<bool, ControlError> {
        match self.parts.catalog.store().commit(txn).await? {
            Outcome::Done(_) => {
                self.parts.wake.notify_one();
                Ok(true)
            }
            Outcome::Lost(_) | Outcome::Unknown => Ok(false),
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
        present.ok_or_else(|| ControlError::NoResource {
            name: name.to_string(),
        })
    }

    fn contended(name: &ResourceName) -> ControlError {
        ControlError::Contended {
            what: format!("resource {name}"),
        }
    }

    fn check_limits(&self, limits: &LimitOverrides) -> Result<(), ControlError> {
        match Limits::default().with(limits, &self.parts.limit_ceilings) {
            Ok(_) => Ok(()),
            Err(e) => Err(ControlError::Invalid {
                field: "limits",
                why: e.to_string(),
            }),
        }
    }

    fn check_settings(settings: &CrawlSettings) -> Result<(), ControlError> {
        settings.check().map_err(|e| ControlError::Invalid {
            field: "crawl",
            why: e.to_string(),
        })
    }
}

#[cfg(test)]
mod tests;
