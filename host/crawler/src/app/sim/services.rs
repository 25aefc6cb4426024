//! Services that all processes of a simulation use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::sinks::Sinks;
use super::store_link::StoreLink;
use super::world::SimWorld;
use crawler_data::DataRoot;
use crawler_frontier::twin::FrontiersTwin;
use crawler_process::task::TaskScope;
use crawler_process::task::process::Process;
use crawler_store::twin::StoreTwin;
use crawler_worker::Crawls;

/// State that all processes share.
pub(super) struct Services {
    pub(super) world: Arc<SimWorld>,
    pub(super) store: StoreTwin,
    pub(super) frontiers: Arc<FrontiersTwin>,
    pub(super) sinks: Sinks,
    /// Data root that masters need; it is never read or written.
    pub(super) data: Arc<DataRoot>,
    pub(super) requests: Arc<TaskScope>,
    /// Workers by their addresses, as other processes reach them.
    pub(super) workers: Mutex<BTreeMap<String, (Process, Crawls)>>,
}

impl Services {
    /// Returns the way of a node to the store.
    pub(super) fn store_link(self: &Arc<Self>, label: &str) -> StoreLink {
        StoreLink {
            world: self.world.clone(),
            store: self.store.clone(),
            requests: self.requests.clone(),
            label: label.to_owned(),
        }
    }
}
