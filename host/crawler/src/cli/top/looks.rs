//! Questions to a master, and the rows that are made of its answers.
//!
//! Whatever an answer says is made harmless here, before the state gets it: names, reasons and log lines come from sites,
//! guests and other users.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crawler_proto as proto;

use super::list::{Page, PageAsk, Row, RowState};
use super::rates::Rates;
use super::state::{Ask, Change, Look, Target};
use crate::cli::{node, progress, resource, table};
use crawler_api::client::{Client, ClientError};
use crawler_api::spec::SpecRequest;
use crawler_api::totals;
use crawler_master::Code;
use crawler_master::control::Precondition;
use crawler_model::id::{ResourceId, ResourceName};

/// Number of pages of hosts that one look goes through to find one that is not empty.
const EMPTY_PAGES_MAX: usize = 8;
/// Cell of a rate that is not known.
const UNKNOWN: &str = "-";

/// Page of a list, or the reason why the caller does not get it.
type Listed<T> = Result<T, String>;

/// Answer of a master.
#[derive(Debug)]
pub(super) enum Answer {
    Cluster {
        nodes: Listed<proto::ListNodesResponse>,
        resources: Listed<proto::ListResourcesResponse>,
    },
    Resource {
        resource: Box<proto::Resource>,
        hosts: Listed<proto::ListHostsResponse>,
    },
    /// The resource is not there.
    Gone,
}

/// Asks a master what the present screen shows. It is an error if no master can answer at present.
pub(super) async fn ask(client: &Client, ask: Ask) -> Result<Answer, ClientError> {
    match ask {
        Ask::Cluster {
            nodes,
            resources,
            n_rows,
        } => {
            let nodes = client.nodes_page(proto::ListNodesRequest {
                page_size: n_rows,
                page_token: nodes.token,
                role: nodes.filter,
                ..proto::ListNodesRequest::default()
            });
            let resources = client.resources_page(proto::ListResourcesRequest {
                page_size: n_rows,
                page_token: resources.token,
                name_prefix: resources.filter,
                ..proto::ListResourcesRequest::default()
            });
            let (nodes, resources) = futures::join!(nodes, resources);
            Ok(Answer::Cluster {
                nodes: or_refusal(nodes)?,
                resources: or_refusal(resources)?,
            })
        }
        Ask::Resource {
            name,
            hosts,
            n_rows,
        } => {
            let (resource, hosts) = futures::join!(
                client.resource(&name),
                host_page(client, &name, hosts, n_rows)
            );
            match resource {
                Ok(resource) => Ok(Answer::Resource {
                    resource: Box::new(resource),
                    hosts: or_refusal(hosts)?,
                }),
                Err(ClientError::Refused(problem)) if problem.code == Code::NotFound => {
                    Ok(Answer::Gone)
                }
                Err(error) => Err(error),
            }
        }
    }
}

/// Returns a page of hosts. A page that is filtered may be empty though others follow: it is passed over, within a bound.
async fn host_page(
    client: &Client,
    name: &ResourceName,
    ask: PageAsk,
    n_rows: u32,
) -> Result<proto::ListHostsResponse, ClientError> {
    let mut page = client.hosts(name, &ask.filter, n_rows, ask.token).await?;
    for _ in 1..EMPTY_PAGES_MAX {
        if !page.hosts.is_empty() || page.next_page_token.is_empty() {
            break;
        }
        let token = page.next_page_token;
        page = client.hosts(name, &ask.filter, n_rows, token).await?;
    }
    Ok(page)
}

/// Returns the reason of a refusal as a part of the answer: a caller who may not see one list still sees the others. An
/// error that passes by itself stays an error, and the list keeps the rows of the last look.
fn or_refusal<T>(result: Result<T, ClientError>) -> Result<Listed<T>, ClientError> {
    match result {
        Ok(answer) => Ok(Ok(answer)),
        Err(ClientError::Refused(problem)) if is_lasting(problem.code) => {
            Ok(Err(problem.to_string()))
        }
        Err(error) => Err(error),
    }
}

/// Returns true for a refusal that stays until the caller asks something else, or somebody changes what the caller may do.
fn is_lasting(code: Code) -> bool {
    match code {
        Code::InvalidArgument
        | Code::NotFound
        | Code::FailedPrecondition
        | Code::Unauthenticated
        | Code::PermissionDenied => true,
        Code::AlreadyExists
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::Unavailable
        | Code::Internal => false,
    }
}

/// Makes a change. Returns what was done, in words.
pub(super) async fn change(client: &Client, change: Change) -> Result<String, ClientError> {
    match change {
        Change::Pause(target) => resource::pause(client, &target.name).await,
        Change::Resume(target) => resource::resume(client, &target.name).await,
        Change::Restart(target) => resource::restart(client, restart_request(target)).await,
        Change::Drain { id, undo } => node::drain(client, &id, undo).await,
    }
}

/// Returns the request for a new run of this resource, and of no other one that has its name by now.
fn restart_request(target: Target) -> SpecRequest {
    SpecRequest {
        precondition: Precondition {
            id: target.id,
            ..Precondition::default()
        },
        ..SpecRequest::named(target.name)
    }
}

/// Returns what the state shows of an answer that came at this moment.
pub(super) fn look(answer: Answer, now: Instant, rates: &mut Rates) -> Look {
    match answer {
        Answer::Cluster { nodes, resources } => Look::Cluster {
            nodes: page(nodes, "no nodes", |found| {
                let rows = found.nodes.iter().map(node_row).collect();
                (rows, found.next_page_token)
            }),
            resources: page(resources, "no resources", |found| {
                let all = rates.note(now, &found.resources).into_iter();
                let all = found.resources.iter().zip(all);
                let rows = all.map(|(found, rate)| resource_row(found, rate));
                (rows.collect(), found.next_page_token)
            }),
        },
        Answer::Resource { resource, hosts } => {
            let rates = rates.note(now, std::slice::from_ref(&*resource));
            Look::Resource {
                id: resource_id(&resource),
                heading: heading(&resource),
                numbers: numbers(&resource, rates.into_iter().next().flatten()),
                state: RowState::of_resource(&resource.phase, resource.paused),
                hosts: page(hosts, "no hosts", |found| {
                    let rows = found.hosts.iter().map(host_row).collect();
                    (rows, found.next_page_token)
                }),
                errors: errors(&resource),
            }
        }
        Answer::Gone => Look::Gone,
    }
}

/// Returns a page of the rows that are made of an answer.
fn page<T>(found: Listed<T>, none: &str, rows: impl FnOnce(T) -> (Vec<Row>, String)) -> Page {
    match found {
        Ok(found) => {
            let (rows, next) = rows(found);
            let note = none.to_owned();
            Page { rows, next, note }
        }
        Err(why) => Page {
            note: line(&why),
            ..Page::default()
        },
    }
}

/// Returns text from elsewhere in one line, without characters that a terminal acts on.
pub(super) fn line(text: &str) -> String {
    table::plain(text).replace('\n', " ")
}

fn row(key: &str, cells: Vec<String>, detail: &str, state: RowState) -> Row {
    Row {
        key: key.to_owned(),
        id: None,
        cells: cells.iter().map(|cell| line(cell)).collect(),
        detail: line(detail),
        state,
    }
}

fn node_row(node: &proto::Node) -> Row {
    if !node.reason.is_empty() {
        // This is no node, but a record that nobody can read.
        let cells = vec![node.id.clone(), "?".to_owned()];
        return row(&node.id, cells, &node.reason, RowState::Usual);
    }
    let (standing, state) = match (node.role.as_str(), node.draining) {
        ("worker", true) => ("draining", RowState::Drains),
        ("worker", false) => ("", RowState::TakesCrawls),
        _ if node.leader => ("leader", RowState::Usual),
        _ => ("", RowState::Usual),
    };
    let crawls = match &node.totals {
        None => String::new(),
        Some(totals) if totals.waiting == 0 => format!("{} running", totals.running),
        Some(totals) => format!("{} running, {} waiting", totals.running, totals.waiting),
    };
    let cells = vec![
        node.id.clone(),
        node.role.clone(),
        standing.to_owned(),
        node::load(node),
        crawls,
    ];
    let since = table::time(node.started_at);
    let detail = format!(
        "{} at {}, version {}, since {since}",
        node.id, node.address, node.version
    );
    row(&node.id, cells, &detail, state)
}

/// Returns the id of a resource; `None` if it is no number, which no master tells.
fn resource_id(resource: &proto::Resource) -> Option<ResourceId> {
    resource.spec().id.parse().ok().map(ResourceId)
}

/// Returns the phase, and that the resource is paused if the phase does not tell it.
fn standing(resource: &proto::Resource) -> String {
    let phase = &resource.phase;
    match resource.paused && phase != "Paused" {
        true => format!("{phase}, paused"),
        false => phase.clone(),
    }
}

fn resource_row(resource: &proto::Resource, rate: Option<f64>) -> Row {
    let (spec, counts) = (resource.spec(), totals(resource.counts()));
    let state = RowState::of_resource(&resource.phase, resource.paused);
    let phase = match state {
        RowState::Paused => "Paused",
        _ => resource.phase.as_str(),
    };
    let cells = vec![
        spec.name.clone(),
        phase.to_owned(),
        count(counts.pages()),
        rate_cell(rate),
        owners(resource),
        count(counts.dead),
        count(counts.items),
    ];
    let detail = match resource.reason.as_str() {
        "" => {
            let standing = standing(resource);
            let (run, plugin) = (resource.run, &spec.plugin);
            format!("{}: run {run} of {plugin}, {standing}", spec.name)
        }
        reason => format!("{}: {reason}", spec.name),
    };
    Row {
        id: resource_id(resource),
        ..row(&spec.name, cells, &detail, state)
    }
}

/// Formats a count in at most 5 characters: all of its digits, or three of them at most and a unit, such as `1.2M`. It is
/// rounded down.
fn count(n: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (1_000_000_000_000_000_000, "E"),
        (1_000_000_000_000_000, "P"),
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1_000, "k"),
    ];
    let unit = UNITS.into_iter().find(|(step, _)| n >= *step);
    match unit.filter(|_| n >= 100_000) {
        None => n.to_string(),
        Some((step, unit)) if n / step >= 100 => format!("{}{unit}", n / step),
        Some((step, unit)) => format!("{}.{}{unit}", n / step, n / (step / 10) % 10),
    }
}

fn rate_cell(rate: Option<f64>) -> String {
    rate.map_or(UNKNOWN.to_owned(), |rate| format!("{rate:.1}/s"))
}

/// Returns one of the workers that own a shard, and how many more there are.
fn owners(resource: &proto::Resource) -> String {
    let owners = resource.shards.iter().map(|shard| shard.owner.as_str());
    let owners: BTreeSet<&str> = owners.filter(|owner| !owner.is_empty()).collect();
    match (owners.first(), owners.len()) {
        (None, _) => String::new(),
        (Some(owner), 1) => (*owner).to_owned(),
        (Some(owner), n) => format!("{owner} +{}", n - 1),
    }
}

fn heading(resource: &proto::Resource) -> String {
    let name = resource.spec().name;
    let run = resource.run;
    let reason = match resource.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let standing = standing(resource);
    line(&format!("{name}: run {run}, {standing}{reason}"))
}

fn numbers(resource: &proto::Resource, rate: Option<f64>) -> String {
    let numbers = progress::numbers(&totals(resource.counts()));
    let owners = match owners(resource) {
        owners if owners.is_empty() => String::new(),
        owners => format!(", {owners}"),
    };
    line(&format!("{numbers}, {}{owners}", rate_cell(rate)))
}

fn host_row(host: &proto::HostEntry) -> Row {
    let delay = match host.delay_ms {
        0 => String::new(),
        millis => humantime::format_duration(Duration::from_millis(millis)).to_string(),
    };
    let why = match (host.failures, host.delay_ms) {
        (0, 0) => String::new(),
        (0, _) => host.delay_by.clone(),
        (n, _) => format!("{} x{n}", host.reason),
    };
    let not_before = match host.state.as_str() {
        "ready" | "idle" => String::new(),
        _ => table::time(host.not_before),
    };
    let cells = vec![
        host.name.clone(),
        host.state.clone(),
        resource::due_cell(host),
        delay,
        why,
        not_before,
    ];
    let detail = resource::host_line(host);
    let detail = detail.split_whitespace().collect::<Vec<_>>().join(" ");
    row(&host.name, cells, &detail, RowState::Usual)
}

/// Returns what the logs of the shards have told last of what went wrong, the latest first.
fn errors(resource: &proto::Resource) -> Page {
    let lines = resource.shards.iter().flat_map(|shard| &shard.last_errors);
    let mut lines: Vec<&proto::LogLine> = lines.collect();
    lines.sort_by_key(|line| std::cmp::Reverse((line.at, line.shard, line.number)));
    let rows = lines.into_iter().map(|told| {
        let text = resource::log_line(told.clone());
        let key = format!("{}/{}", told.shard, told.number);
        row(&key, vec![text.clone()], &text, RowState::Usual)
    });
    Page {
        rows: rows.collect(),
        next: String::new(),
        note: "no errors of late".to_owned(),
    }
}

#[cfg(test)]
mod tests;
