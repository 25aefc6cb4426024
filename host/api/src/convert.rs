//! Conversion of messages that the program takes apart: requests, and what masters and workers tell each other.
//! They are parsed here, once; a field that does not parse is an error that names it. Answers to clients are made
//! in `answer` and in `frontier`.

use std::collections::BTreeMap;

use crawler_proto as proto;

pub(super) mod crawl;
pub(super) mod links;
pub(super) mod settings;
pub(super) mod statistics;
pub(super) mod turns;

use self::settings::{crawl_message, crawl_settings, placement_change, placement_message};
use super::spec::{SpecRequest, invalid, plugin_ref, resource_name};
use crawler_master::ControlError;
use crawler_master::control::Precondition;
use crawler_master::control::frontier::UrlQuery;
use crawler_model::id::{Generation, ResourceId};
use crawler_model::plugin::LimitOverrides;
use crawler_model::resource::ResourceSpec;

/// Parses a spec out of a request. The master assigns id, node and creation time.
pub(crate) fn spec_request(message: proto::ResourceSpec) -> Result<SpecRequest, ControlError> {
    Ok(SpecRequest {
        name: resource_name(&message.name)?,
        plugin: match message.plugin.as_str() {
            "" => None,
            text => Some(plugin_ref("plugin", text)?),
        },
        params: message.params,
        no_params: message.no_params.into_iter().collect(),
        limits: limits(message.limits)?,
        crawl: crawl_settings(message.crawl.unwrap_or_default())?,
        placement: placement_change(message.placement.unwrap_or_default())?,
        labels: message.labels,
        replace: message.replace,
        precondition: precondition(message.if_id, message.if_generation),
    })
}

/// Returns the name of a resource, and the URL that is asked about.
pub(crate) fn url_query(request: proto::ExplainUrlRequest) -> (String, UrlQuery) {
    let query = UrlQuery {
        url: request.url,
        method: request.method,
        body: request.body.into(),
    };
    (request.name, query)
}

/// Returns the condition of a call; 0 means any.
pub(crate) fn precondition(id: u64, generation: u64) -> Precondition {
    Precondition {
        id: (id != 0).then_some(ResourceId(id)),
        generation: (generation != 0).then_some(Generation(generation)),
    }
}

/// Parses the spec of a resource in an answer.
pub fn resource_spec(message: proto::ResourceSpec) -> Result<ResourceSpec, ControlError> {
    spec_request(message)?.into_spec()
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
        params: request.params,
        no_params: request.no_params.into_iter().collect(),
        limits: limits_message(&request.limits),
        crawl: Some(crawl_message(request.crawl)),
        placement: Some(placement_message(request.placement)),
        labels: request.labels,
        replace: request.replace,
        if_id: request.precondition.id.map_or(0, |id| id.0),
        if_generation: request.precondition.generation.map_or(0, |g| g.0),
        ..proto::ResourceSpec::default()
    }
}

fn limits(message: BTreeMap<String, u64>) -> Result<LimitOverrides, ControlError> {
    let mut limits = LimitOverrides::default();
    for (name, value) in message {
        let set = limits.set_number(&name, value);
        set.map_err(|e| invalid("limits", e))?;
    }
    Ok(limits)
}

pub(super) fn limits_message(limits: &LimitOverrides) -> BTreeMap<String, u64> {
    let limits = limits.iter();
    limits
        .map(|(name, value)| (name.as_str().to_owned(), value))
        .collect()
}
