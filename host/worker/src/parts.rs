//! Parts that the agent gets when it begins.

use std::sync::Arc;

use super::crawls::Crawls;
use super::lease_permit::Registered;
use super::links::SendLinks;
use crawler_data::DataRoot;
use crawler_fetch::Fetch;
use crawler_frontier::OpenFrontiers;
use crawler_model::node::Node;
use crawler_model::plugin::LimitOverrides;
use crawler_plugin::LoadRules;
use crawler_process::clock::Clock;
use crawler_process::memory::Memory;
use crawler_process::traces::Tracer;
use crawler_sink::OpenSinks;
use crawler_store::catalog::Catalog;

/// Dependencies of an agent.
pub struct AgentParts {
    /// The node as it is registered.
    pub node: Node,
    /// Lease of the node. While it is held the worker may fetch, once it has looked at its assignments under it.
    pub registered: Registered,
    /// Access to its assignments in the store.
    pub catalog: Catalog,
    /// Data root, in which bodies are kept.
    pub data: DataRoot,
    /// Sinks of items.
    pub sinks: Arc<dyn OpenSinks>,
    /// Plugins by digest.
    pub plugins: Arc<dyn LoadRules>,
    /// Fetcher, shared by all crawls.
    pub fetch: Arc<dyn Fetch>,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Id of the cluster that the data root belongs to.
    pub cluster: String,
    /// Frontiers of all crawls.
    pub frontiers: Arc<dyn OpenFrontiers>,
    /// Transport of links to shards of other workers.
    pub links: Arc<dyn SendLinks>,
    /// Ceilings to which resources may raise limits.
    pub limit_ceilings: LimitOverrides,
    /// List of crawls, read by the API.
    pub crawls: Crawls,
    /// Memory of the process, shared by all crawls.
    pub memory: Memory,
    /// Beginning of the traces of pages.
    pub tracer: Tracer,
}
