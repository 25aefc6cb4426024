//! Answers: the messages that are made of what the master shows. gRPC sends them, and HTTP shows them as JSON.

use crawler_proto as proto;

use super::convert;
use super::convert::crawl::{by_state_message, counts_message, limits_used_message, line_message};
use super::event_versions::EventVersions;
use super::schedules::schedule_message;
use crawler_master::control::events::ToldEvent;
use crawler_master::control::items::PositionedItem;
use crawler_master::control::resource_watch::{ResourceChange, ResourceEvent};
use crawler_master::{
    BrokenRecord, DrainProgress, ListPage, NodeView, NodesView, ResourceView, ScheduledResource,
    ShardView,
};
use crawler_model::crawl::{Counts, ItemRecord};
use crawler_model::event::EventCounts;
use crawler_model::id::NodeId;
use crawler_model::node::NodeEvent;
use crawler_model::plugin::{Param, PluginRecord, Schema};
use crawler_model::resource::{Resource, ShardState, Waits};
use crawler_model::schedule::{ScheduleDecision, ScheduleOutcome, ScheduleView};
use crawler_model::status::{ProcessTotals, WorkerStatus};

mod runs;

pub(super) use runs::{runs, runs_diff};

/// Nanoseconds in a millisecond. The time of an addition is kept in nanoseconds, for clients of the original interface.
const NANOS_PER_MILLI: u64 = 1_000_000;

/// Returns the node that crawls; both fields are empty while none does.
pub(super) fn placed(view: &ResourceView) -> proto::NodeSpec {
    match view.resource.assigned_node.split_once('|') {
        Some((id, address)) => proto::NodeSpec {
            id: id.to_owned(),
            address: address.to_owned(),
        },
        None => proto::NodeSpec::default(),
    }
}

/// Returns one page of the list of resources.
pub(super) fn resources(page: ListPage<ResourceView>) -> proto::ListResourcesResponse {
    proto::ListResourcesResponse {
        resources: page.entries.into_iter().map(resource).collect(),
        next_page_token: page.next.map(|name| name.to_string()).unwrap_or_default(),
    }
}

/// Returns a resource and its state.
pub(super) fn resource(view: ResourceView) -> proto::Resource {
    let ResourceView {
        resource,
        phase,
        shards,
    } = view;
    let (mut totals, mut in_flight) = (Counts::default(), 0);
    for shard in &shards {
        totals.add(&shard.record.counts);
        in_flight += shard.in_flight;
    }
    let pinned = resource.pinned.as_ref();
    proto::Resource {
        phase: phase.as_str().to_owned(),
        reason: phase.reason().to_owned(),
        generation: resource.generation.0,
        run: resource.run.0,
        plugin_version: pinned.map(|p| p.version.to_string()).unwrap_or_default(),
        plugin_digest: pinned.map(|p| p.digest.to_string()).unwrap_or_default(),
        shards: shards.into_iter().map(shard).collect(),
        counts: Some(counts_message(totals, in_flight)),
        added_at: resource.creation_time / NANOS_PER_MILLI,
        paused: resource.paused,
        spec: Some(spec(resource)),
    }
}

/// Returns a spec as requested, with the fields that the master filled in.
fn spec(resource: Resource) -> proto::ResourceSpec {
    let spec = resource.spec;
    proto::ResourceSpec {
        id: resource.id.to_string(),
        name: spec.name.to_string(),
        assigned_node: resource.assigned_node,
        creation_time: i64::try_from(resource.creation_time).unwrap_or(i64::MAX),
        plugin: spec.plugin.to_string(),
        params: spec.params,
        limits: convert::limits_message(&spec.limits),
        crawl: Some(convert::settings::crawl_message(spec.crawl)),
        placement: Some(convert::settings::placement_message(spec.placement.into())),
        labels: spec.labels,
        // These are of requests only.
        no_params: Vec::new(),
        purge: false,
        replace: false,
        if_generation: 0,
        if_id: 0,
    }
}

/// Returns an event of a resource.
pub(super) fn resource_event(
    event: ResourceEvent,
    versions: EventVersions,
) -> proto::ResourceEvent {
    let (word, name, view) = match event.change {
        ResourceChange::Begin => ("begin", String::new(), None),
        ResourceChange::Added(view) => ("added", view.resource.spec.name.to_string(), Some(view)),
        ResourceChange::Changed(view) => {
            ("changed", view.resource.spec.name.to_string(), Some(view))
        }
        ResourceChange::Deleted(name) => ("deleted", name.to_string(), None),
        ResourceChange::Complete => ("complete", String::new(), None),
        ResourceChange::Heartbeat => ("heartbeat", String::new(), None),
    };
    proto::ResourceEvent {
        event: word.to_owned(),
        name,
        resource: view.map(|view| resource(*view)),
        version: event
            .version
            .map(|version| versions.text(version))
            .unwrap_or_default(),
    }
}

/// Returns an event of the history of a resource or of nodes.
pub(super) fn past_event(told: ToldEvent, versions: EventVersions) -> proto::PastEvent {
    let version = told.version.map(|version| versions.text(version));
    past_event_at(told, version.unwrap_or_default())
}

/// Returns an event of a history with the text of its version.
pub(super) fn past_event_at(told: ToldEvent, version: String) -> proto::PastEvent {
    let ToldEvent {
        at,
        event,
        version: _,
        node: about,
    } = told;
    let node = |node: Option<NodeId>| node.map(|node| node.to_string()).unwrap_or_default();
    let EventCounts { pages, items, dead } = event.counts.unwrap_or_default();
    proto::PastEvent {
        kind: event.kind.to_string(),
        at,
        run: event.run.0,
        shard: event.shard.unwrap_or_default().0,
        worker: node(event.worker),
        from: node(event.from),
        by: event.by.to_string(),
        why: event.why.to_string(),
        generation: event.generation.unwrap_or_default().0,
        pages,
        items,
        dead,
        version,
        node: node(about),
        times: event.times,
    }
}

fn shard(view: ShardView) -> proto::ShardStatus {
    let record = view.record;
    proto::ShardStatus {
        shard: view.shard.0,
        owner: record.owner.map(|o| o.node.to_string()).unwrap_or_default(),
        epoch: record.epoch.0,
        reason: match (&record.state, &record.waits) {
            (ShardState::Failed { reason }, _) => reason.clone(),
            (_, Some(Waits { condition, why })) => format!("{condition}: {why}"),
            (_, None) => String::new(),
        },
        last_errors: view.last_errors.into_iter().map(line_message).collect(),
        state: match record.state {
            ShardState::Free => "free",
            ShardState::Assigned => "assigned",
            ShardState::Idle => "idle",
            ShardState::Revoking => "revoking",
            ShardState::Finished => "finished",
            ShardState::Failed { .. } => "failed",
        }
        .to_owned(),
        counts: Some(counts_message(record.counts, view.in_flight)),
        live: view.is_live,
        hosts_by_state: by_state_message(view.hosts_by_state),
        limits_used: limits_used_message(view.limits_used),
    }
}

/// Returns an item with the position from which a reader that was cut off resumes.
pub(super) fn item(placed: PositionedItem) -> proto::Item {
    item_at(placed.next.to_string(), placed.item)
}

/// Returns an item with this position.
pub(super) fn item_at(position: String, record: ItemRecord) -> proto::Item {
    proto::Item {
        position,
        key: record.key.0,
        url: record.url,
        rule: record.rule,
        schema: record.schema,
        run: record.run.0,
        fetched_at: record.fetched_at,
        json: Box::<str>::from(record.item).into_string(),
    }
}

/// Returns all nodes, and then the records that could not be read.
pub(super) fn nodes(view: NodesView) -> Vec<proto::Node> {
    let nodes = view.nodes.into_iter().map(node);
    let broken = view.broken.into_iter().map(broken_node);
    nodes.chain(broken).collect()
}

fn node(view: NodeView) -> proto::Node {
    let node = view.node;
    proto::Node {
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
        totals: view.totals.map(node_totals),
        reason: String::new(),
        draining: node.draining,
        pprof: node.pprof,
    }
}

fn node_totals(status: WorkerStatus) -> proto::NodeTotals {
    proto::NodeTotals {
        at: status.at,
        running: status.running,
        waiting: status.waiting,
        pages: status.pages,
        items: status.items,
        bytes: status.bytes,
        in_flight: status.in_flight,
        since_start: status.since_start.map(process_totals),
    }
}

fn process_totals(totals: ProcessTotals) -> proto::ProcessTotals {
    proto::ProcessTotals {
        pages: totals.pages,
        items: totals.items,
    }
}

fn broken_node(record: BrokenRecord) -> proto::Node {
    proto::Node {
        id: record.key,
        reason: record.why,
        ..proto::Node::default()
    }
}

/// Returns an event of a node.
pub(super) fn node_event(event: NodeEvent) -> proto::NodeEvent {
    let view = NodeView {
        node: event.node,
        leader: false,
        load: 0,
        weight: 0,
        totals: None,
    };
    proto::NodeEvent {
        event: event.change.as_str().to_owned(),
        node: Some(node(view)),
    }
}

/// Returns the progress of draining a worker.
pub(super) fn drained(drained: DrainProgress) -> proto::DrainNodeResponse {
    proto::DrainNodeResponse {
        load: drained.load,
        others: u32::try_from(drained.others).unwrap_or(u32::MAX),
    }
}

/// Returns the schedule of a resource.
pub(super) fn schedule(view: ScheduleView) -> proto::Schedule {
    let ScheduleView { name, schedule } = view;
    proto::Schedule {
        name: name.to_string(),
        due_at: schedule.due.unwrap_or_default(),
        starts_at: schedule.starts_at().unwrap_or_default(),
        waits: schedule.waits,
        last: schedule.last.map(due_time),
        spec: Some(schedule_message(schedule.spec)),
    }
}

/// Returns one page of the list of resources that have a schedule.
pub(super) fn schedules(page: ListPage<ScheduledResource>) -> proto::ListSchedulesResponse {
    let scheduled = |entry: ScheduledResource| {
        let name = entry.view.resource.spec.name.clone();
        let view = |schedule| ScheduleView { name, schedule };
        proto::ScheduledResource {
            schedule: entry.schedule.map(view).map(schedule),
            resource: Some(resource(entry.view)),
        }
    };
    proto::ListSchedulesResponse {
        schedules: page.entries.into_iter().map(scheduled).collect(),
        next_page_token: page.next.map(|name| name.to_string()).unwrap_or_default(),
    }
}

fn due_time(decision: ScheduleDecision) -> proto::DueTime {
    let outcome = decision.outcome.as_str().to_owned();
    let (run, reason) = match decision.outcome {
        ScheduleOutcome::Started { run } => (run.0, String::new()),
        ScheduleOutcome::Failed { why } => (0, why),
        ScheduleOutcome::Skipped | ScheduleOutcome::Paused | ScheduleOutcome::Missed => {
            (0, String::new())
        }
    };
    proto::DueTime {
        due_at: decision.due,
        at: decision.at,
        outcome,
        run,
        reason,
    }
}

/// Returns one page of the list of plugin versions.
pub(super) fn plugins(
    records: Vec<PluginRecord>,
    next_page_token: String,
) -> proto::ListPluginsResponse {
    proto::ListPluginsResponse {
        plugins: records.into_iter().map(plugin).collect(),
        next_page_token,
    }
}

/// Returns a pushed plugin version.
pub(super) fn plugin(record: PluginRecord) -> proto::Plugin {
    let description = record.description;
    let rules = description.rules.iter().map(ToString::to_string);
    let params = description.params.map(|params| Param::schema(&params));
    let schema = |schema: Schema| proto::Schema {
        name: schema.name,
        json_schema: schema.json_schema,
    };
    proto::Plugin {
        name: record.name.to_string(),
        version: record.version.to_string(),
        digest: record.digest.to_string(),
        size: record.size,
        interface: record.interface,
        rules: rules.collect(),
        schemas: description.schemas.into_iter().map(schema).collect(),
        pushed_at: record.pushed_at,
        params_schema: params.unwrap_or_default(),
        sources: record
            .sources
            .map(|sources| sources.to_string())
            .unwrap_or_default(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
