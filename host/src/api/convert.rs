//! Conversion between the messages of gRPC and plain values.
//!
//! No other file than this one and its siblings `grpc` and `client` names generated types. Messages that
//! arrive are parsed here, once; a field that does not parse is an error that names it.

use crawler_proto as proto;

mod crawl;
pub(crate) mod frontier;
pub(super) mod links;
mod node;
mod settings;
pub(super) mod turns;

use self::settings::{crawl_message, crawl_settings, placement_change, placement_message};
use super::answer::{
    CountsAnswer, Placed, PluginAnswer, ResourceAnswer, ResourcesAnswer, ShardAnswer, SpecAnswer,
};
use super::spec::{SpecRequest, invalid, plugin_ref, resource_name};
use crate::master::ControlError;
use crate::model::crawl::Counts;
use crate::model::plugin::{LimitOverrides, Schema};

/// Parses a spec out of a request. The master assigns id, node and creation time.
pub(crate) fn spec_request(message: proto::ResourceSpec) -> Result<SpecRequest, ControlError> {
    Ok(SpecRequest {
        name: resource_name(&message.name)?,
        plugin: match message.plugin.as_str() {
            "" => None,
            text => Some(plugin_ref("plugin", text)?),
        },
        params: message.params.into_iter().collect(),
        no_params: message.no_params.into_iter().collect(),
        limits: limits(message.limits)?,
        crawl: crawl_settings(message.crawl.unwrap_or_default())?,
        placement: placement_change(message.placement.unwrap_or_default())?,
    })
}

/// Parses the changes that apply to the next run.
pub(crate) fn restart_request(message: proto::RestartRequest) -> Result<SpecRequest, ControlError> {
    let changes = message.changes.unwrap_or_default();
    spec_request(proto::ResourceSpec {
        name: message.name,
        ..changes
    })
}

/// Converts a spec into a message to a master.
pub(crate) fn spec_message(request: SpecRequest) -> proto::ResourceSpec {
    proto::ResourceSpec {
        name: request.name.to_string(),
        plugin: request.plugin.map(|p| p.to_string()).unwrap_or_default(),
        params: request.params.into_iter().collect(),
        no_params: request.no_params.into_iter().collect(),
        limits: limits_message(&request.limits),
        crawl: Some(crawl_message(request.crawl)),
        placement: Some(placement_message(request.placement)),
        ..proto::ResourceSpec::default()
    }
}

fn limits(
    message: impl IntoIterator<Item = (String, u64)>,
) -> Result<LimitOverrides, ControlError> {
    let mut limits = LimitOverrides::default();
    for (name, value) in message {
        let set = limits.set_number(&name, value);
        set.map_err(|e| invalid("limits", e))?;
    }
    Ok(limits)
}

fn limits_message(limits: &LimitOverrides) -> std::collections::HashMap<String, u64> {
    let limits = limits.iter();
    limits
        .map(|(name, value)| (name.as_str().to_owned(), value))
        .collect()
}

impl From<Placed> for proto::NodeSpec {
    fn from(placed: Placed) -> Self {
        Self {
            id: placed.id,
            address: placed.address,
        }
    }
}

impl From<proto::NodeSpec> for Placed {
    fn from(message: proto::NodeSpec) -> Self {
        Self {
            id: message.id,
            address: message.address,
        }
    }
}

impl From<ResourceAnswer> for proto::Resource {
    fn from(answer: ResourceAnswer) -> Self {
        let spec = answer.spec;
        Self {
            spec: Some(proto::ResourceSpec {
                id: spec.id,
                name: spec.name,
                assigned_node: spec.assigned_node,
                creation_time: i64::try_from(spec.creation_time).unwrap_or(i64::MAX),
                plugin: spec.plugin,
                params: spec.params.into_iter().collect(),
                no_params: Vec::new(),
                limits: limits_message(&spec.limits),
                crawl: Some(crawl_message(spec.crawl)),
                purge: false,
                placement: Some(placement_message(spec.placement.into())),
            }),
            phase: answer.phase,
            reason: answer.reason,
            generation: answer.generation,
            run: answer.run,
            plugin_version: answer.plugin_version,
            plugin_digest: answer.plugin_digest,
            shards: answer.shards.into_iter().map(Into::into).collect(),
            counts: Some(answer.counts.into()),
        }
    }
}

impl TryFrom<proto::Resource> for ResourceAnswer {
    type Error = ControlError;

    fn try_from(message: proto::Resource) -> Result<Self, ControlError> {
        let spec = message.spec.unwrap_or_default();
        Ok(Self {
            spec: SpecAnswer {
                id: spec.id,
                name: spec.name,
                assigned_node: spec.assigned_node,
                creation_time: u64::try_from(spec.creation_time).unwrap_or_default(),
                plugin: spec.plugin,
                params: spec.params.into_iter().collect(),
                limits: limits(spec.limits)?,
                crawl: crawl_settings(spec.crawl.unwrap_or_default())?,
                placement: placement_change(spec.placement.unwrap_or_default())?.into_spec(),
            },
            phase: message.phase,
            reason: message.reason,
            generation: message.generation,
            run: message.run,
            plugin_version: message.plugin_version,
            plugin_digest: message.plugin_digest,
            shards: message.shards.into_iter().map(Into::into).collect(),
            counts: message.counts.unwrap_or_default().into(),
        })
    }
}

impl From<ResourcesAnswer> for proto::ListResourcesResponse {
    fn from(answer: ResourcesAnswer) -> Self {
        Self {
            resources: answer.resources.into_iter().map(Into::into).collect(),
            next_page_token: answer.next_page_token,
        }
    }
}

impl From<ShardAnswer> for proto::ShardStatus {
    fn from(answer: ShardAnswer) -> Self {
        Self {
            shard: answer.shard,
            owner: answer.owner,
            epoch: answer.epoch,
            state: answer.state,
            counts: Some(answer.counts.into()),
            reason: answer.reason,
            last_errors: answer.last_errors.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<proto::ShardStatus> for ShardAnswer {
    fn from(message: proto::ShardStatus) -> Self {
        Self {
            shard: message.shard,
            owner: message.owner,
            epoch: message.epoch,
            state: message.state,
            counts: message.counts.unwrap_or_default().into(),
            reason: message.reason,
            last_errors: message.last_errors.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<CountsAnswer> for proto::Counts {
    fn from(answer: CountsAnswer) -> Self {
        let totals = answer.totals;
        Self {
            parsed: totals.parsed,
            other_done: totals.other_done,
            dead: totals.dead,
            retries: totals.retries,
            items: totals.items,
            bytes: totals.bytes,
            due: totals.due,
            in_flight: answer.in_flight,
            hosts: totals.hosts,
            refused_links: totals.refused_links.into_iter().collect(),
            dead_by_reason: totals.dead_by_reason.into_iter().collect(),
        }
    }
}

impl From<proto::Counts> for CountsAnswer {
    fn from(message: proto::Counts) -> Self {
        Self {
            totals: Counts {
                parsed: message.parsed,
                other_done: message.other_done,
                dead: message.dead,
                retries: message.retries,
                items: message.items,
                bytes: message.bytes,
                due: message.due,
                hosts: message.hosts,
                refused_links: message.refused_links.into_iter().collect(),
                dead_by_reason: message.dead_by_reason.into_iter().collect(),
            },
            in_flight: message.in_flight,
        }
    }
}

impl From<PluginAnswer> for proto::Plugin {
    fn from(answer: PluginAnswer) -> Self {
        let schema = |schema: Schema| proto::Schema {
            name: schema.name,
            json_schema: schema.json_schema,
        };
        Self {
            name: answer.name,
            version: answer.version,
            digest: answer.digest,
            size: answer.size,
            interface: answer.interface,
            rules: answer.rules,
            schemas: answer.schemas.into_iter().map(schema).collect(),
            pushed_at: answer.pushed_at,
            params_schema: answer.params_schema,
        }
    }
}

impl From<proto::Plugin> for PluginAnswer {
    fn from(message: proto::Plugin) -> Self {
        let schema = |message: proto::Schema| Schema {
            name: message.name,
            json_schema: message.json_schema,
        };
        Self {
            name: message.name,
            version: message.version,
            digest: message.digest,
            size: message.size,
            interface: message.interface,
            rules: message.rules,
            schemas: message.schemas.into_iter().map(schema).collect(),
            pushed_at: message.pushed_at,
            params_schema: message.params_schema,
        }
    }
}
