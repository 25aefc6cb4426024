//! Answers of calls as plain values. HTTP and `-o json` give them as JSON with these names, gRPC as the
//! messages of the same names.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::master::control::items::PlacedItem;
use crate::master::{BrokenRecord, NodeView, ResourceView, ShardView};
use crate::model::crawl::{Counts, ItemRecord};
use crate::model::node::NodeEvent;
use crate::model::plugin::{LimitOverrides, Param, PluginRecord, Schema};
use crate::model::resource::{CrawlSettings, PlacementSpec, ShardState, Waits};
use crate::model::status::{LogLine, WorkerStatus};

/// Node that crawls; both fields are empty while none does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Placed {
    /// Id of the node, such as `worker-1`.
    pub id: String,
    /// Address of the node's gRPC listener. Its JSON name has a capital letter because older clients read it
    /// that way.
    #[serde(rename = "Address")]
    pub address: String,
}

/// A resource and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResourceAnswer {
    /// Spec as requested, with the fields that the master filled in.
    pub spec: SpecAnswer,
    /// Pending, Running, Paused, Finished, Failed.
    pub phase: String,
    /// Reason of the phase; empty if it has none.
    pub reason: String,
    /// Grows with each change of the spec.
    pub generation: u64,
    /// Number of the present run.
    pub run: u64,
    /// Version of the plugin; empty while the resource waits for one.
    pub plugin_version: String,
    /// Digest of the plugin; empty while the resource waits for one.
    pub plugin_digest: String,
    /// Shards of the resource.
    pub shards: Vec<ShardAnswer>,
    /// Counts, summed over the shards.
    pub counts: CountsAnswer,
}

/// Spec as requested, with the fields that the master filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields of the message ResourceSpec")]
pub struct SpecAnswer {
    pub id: String,
    pub name: String,
    pub assigned_node: String,
    #[serde(serialize_with = "as_text")]
    pub creation_time: u64,
    pub plugin: String,
    pub params: BTreeMap<String, String>,
    pub limits: LimitOverrides,
    pub crawl: CrawlSettings,
    pub placement: PlacementSpec,
}

/// One shard of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields of the message ShardStatus")]
pub struct ShardAnswer {
    pub shard: u32,
    pub owner: String,
    pub epoch: u64,
    pub state: String,
    pub counts: CountsAnswer,
    pub reason: String,
    pub last_errors: Vec<LogLine>,
}

/// Totals of a run, and the number of requests in flight.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CountsAnswer {
    /// Totals of the run.
    #[serde(flatten)]
    pub totals: Counts,
    /// Number of requests in flight at this moment.
    pub in_flight: u64,
}

/// An item with its position.
#[derive(Debug, Clone, Serialize)]
pub struct ItemAnswer {
    /// Record of the item, as in the line file.
    #[serde(flatten)]
    pub record: ItemRecord,
    /// Position from which a reader that was cut off resumes.
    pub position: String,
}

/// One page of the list of resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResourcesAnswer {
    /// Resources, ordered by name.
    pub resources: Vec<ResourceAnswer>,
    /// Token of the next page; empty on the last one.
    pub next_page_token: String,
}

/// Event of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields of the message NodeEvent")]
pub struct NodeEventAnswer {
    pub event: String,
    pub node: NodeAnswer,
}

/// A master or a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields of the message Node")]
pub struct NodeAnswer {
    pub id: String,
    pub role: String,
    pub address: String,
    pub leader: bool,
    pub load: u32,
    pub capacity: u32,
    pub version: String,
    pub labels: BTreeMap<String, String>,
    pub started_at: u64,
    pub weight: u64,
    pub totals: Option<TotalsAnswer>,
    pub reason: String,
    pub draining: bool,
}

/// Totals of the present runs of a worker's crawls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields of the message NodeTotals")]
pub struct TotalsAnswer {
    pub at: u64,
    pub running: u64,
    pub waiting: u64,
    pub pages: u64,
    pub items: u64,
    pub bytes: u64,
    pub in_flight: u64,
}

/// A pushed plugin version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields of the message Plugin")]
pub struct PluginAnswer {
    pub name: String,
    pub version: String,
    pub digest: String,
    pub size: u64,
    pub interface: String,
    pub rules: Vec<String>,
    pub schemas: Vec<Schema>,
    pub pushed_at: u64,
    pub params_schema: String,
}

impl CountsAnswer {
    /// Returns the number of pages that came to an end.
    pub fn pages(&self) -> u64 {
        self.totals.pages()
    }

    fn add(&mut self, shard: &CountsAnswer) {
        self.totals.add(&shard.totals);
        self.in_flight += shard.in_flight;
    }
}

impl From<&ResourceView> for Placed {
    fn from(view: &ResourceView) -> Self {
        match view.resource.assigned_node.split_once('|') {
            Some((id, address)) => Self {
                id: id.to_owned(),
                address: address.to_owned(),
            },
            None => Self::default(),
        }
    }
}

impl From<ResourceView> for ResourceAnswer {
    fn from(view: ResourceView) -> Self {
        let ResourceView {
            resource,
            phase,
            shards,
        } = view;
        let shards: Vec<ShardAnswer> = shards.into_iter().map(ShardAnswer::from).collect();
        let mut counts = CountsAnswer::default();
        for shard in &shards {
            counts.add(&shard.counts);
        }
        let pinned = resource.pinned.as_ref();
        Self {
            phase: phase.as_str().to_owned(),
            reason: phase.reason().to_owned(),
            generation: resource.generation.0,
            run: resource.run.0,
            plugin_version: pinned.map(|p| p.version.to_string()).unwrap_or_default(),
            plugin_digest: pinned.map(|p| p.digest.to_string()).unwrap_or_default(),
            shards,
            counts,
            spec: SpecAnswer {
                id: resource.id.to_string(),
                name: resource.spec.name.to_string(),
                assigned_node: resource.assigned_node,
                creation_time: resource.creation_time,
                plugin: resource.spec.plugin.to_string(),
                params: resource.spec.params,
                limits: resource.spec.limits,
                crawl: resource.spec.crawl,
                placement: resource.spec.placement,
            },
        }
    }
}

impl From<PlacedItem> for ItemAnswer {
    fn from(placed: PlacedItem) -> Self {
        Self {
            record: placed.item,
            position: placed.next.to_string(),
        }
    }
}

impl From<ShardView> for ShardAnswer {
    fn from(view: ShardView) -> Self {
        let record = view.record;
        Self {
            shard: view.shard.0,
            owner: record.owner.map(|o| o.node.to_string()).unwrap_or_default(),
            epoch: record.epoch.0,
            reason: match (&record.state, &record.waits) {
                (ShardState::Failed { reason }, _) => reason.clone(),
                (_, Some(Waits { condition, why })) => format!("{condition}: {why}"),
                (_, None) => String::new(),
            },
            last_errors: view.last_errors,
            state: match record.state {
                ShardState::Free => "free",
                ShardState::Assigned => "assigned",
                ShardState::Idle => "idle",
                ShardState::Revoking => "revoking",
                ShardState::Finished => "finished",
                ShardState::Failed { .. } => "failed",
            }
            .to_owned(),
            counts: CountsAnswer {
                totals: record.counts,
                in_flight: view.in_flight,
            },
        }
    }
}

impl From<NodeView> for NodeAnswer {
    fn from(view: NodeView) -> Self {
        let node = view.node;
        Self {
            id: node.id.to_string(),
            role: node.role.to_string(),
            address: node.address,
            leader: view.leader,
            load: view.load,
            capacity: node.capacity,
            version: node.version,
            labels: node.labels,
            started_at: node.started_at,
            weight: view.weight,
            totals: view.totals.map(Into::into),
            reason: String::new(),
            draining: node.draining,
        }
    }
}

impl From<NodeEvent> for NodeEventAnswer {
    fn from(event: NodeEvent) -> Self {
        let view = NodeView {
            node: event.node,
            leader: false,
            load: 0,
            weight: 0,
            totals: None,
        };
        Self {
            event: event.change.as_str().to_owned(),
            node: view.into(),
        }
    }
}

impl From<WorkerStatus> for TotalsAnswer {
    fn from(status: WorkerStatus) -> Self {
        Self {
            at: status.at,
            running: status.running,
            waiting: status.waiting,
            pages: status.pages,
            items: status.items,
            bytes: status.bytes,
            in_flight: status.in_flight,
        }
    }
}

impl From<BrokenRecord> for NodeAnswer {
    fn from(record: BrokenRecord) -> Self {
        Self {
            id: record.key,
            role: String::new(),
            address: String::new(),
            leader: false,
            load: 0,
            capacity: 0,
            version: String::new(),
            labels: BTreeMap::new(),
            started_at: 0,
            weight: 0,
            totals: None,
            reason: record.why,
            draining: false,
        }
    }
}

impl From<PluginRecord> for PluginAnswer {
    fn from(record: PluginRecord) -> Self {
        Self {
            name: record.name.to_string(),
            version: record.version.to_string(),
            digest: record.digest.to_string(),
            size: record.size,
            interface: record.interface,
            rules: record
                .description
                .rules
                .iter()
                .map(ToString::to_string)
                .collect(),
            params_schema: record
                .description
                .params
                .map(|params| Param::schema(&params))
                .unwrap_or_default(),
            schemas: record.description.schemas,
            pushed_at: record.pushed_at,
        }
    }
}

fn as_text<S: serde::Serializer>(value: &u64, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(value)
}

#[cfg(test)]
mod tests;
