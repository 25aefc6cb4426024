//! Lists that calls read from the store, one prefix at a time.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;

use super::ListPage;
use super::placement::{Candidates, Strategy};
use crawler_model::access::Grants;
use crawler_model::id::{NodeId, ResourceName};
use crawler_model::node::{Node, Role};
use crawler_model::resource::{Assignment, Resource, ShardId};
use crawler_model::schedule::Schedule;
use crawler_process::telemetry;
use crawler_store::catalog::{Catalog, Scan, Versioned, decode};
use crawler_store::{Entry, StoreError};

/// Assignments by worker and shard; a worker's assignments are its load. `None` if the record does not decode.
pub(super) type Assignments = BTreeMap<(NodeId, ShardId), Option<Assignment>>;

/// Reads the live workers and their loads.
pub(super) async fn candidates(
    catalog: &Catalog,
    strategy: Strategy,
) -> Result<Candidates, StoreError> {
    let nodes = nodes(catalog, Role::Worker).await?;
    let assignments = assignments(catalog).await?;
    Ok(weigh(strategy, nodes.into_values(), &assignments))
}

/// Computes the loads of these workers.
pub(super) fn weigh(
    strategy: Strategy,
    nodes: impl Iterator<Item = Node>,
    assignments: &Assignments,
) -> Candidates {
    let assignments = assignments
        .iter()
        .map(|((worker, _), assignment)| (worker, assignment.as_ref()));
    Candidates::new(strategy, nodes, assignments)
}

/// Reads the live nodes of a role.
pub(super) async fn nodes(
    catalog: &Catalog,
    role: Role,
) -> Result<BTreeMap<NodeId, Node>, StoreError> {
    let nodes: Vec<(String, Versioned<Node>)> =
        records(catalog, &catalog.keys().nodes(role)).await?;
    let is_its_own = |(key, node): &(String, Versioned<Node>)| {
        let own = catalog.keys().node(role, &node.value.id);
        if *key != own {
            tracing::error!(key, id = %node.value.id, "passing over a node under the key of another");
        }
        *key == own
    };
    let nodes = nodes.into_iter().filter(is_its_own);
    let draining = match role {
        Role::Worker => draining(catalog).await?,
        Role::Master => BTreeSet::new(),
    };
    let nodes = nodes.map(|(_, node)| Node {
        draining: node.value.draining || draining.contains(&node.value.id),
        ..node.value
    });
    Ok(nodes.map(|node| (node.id.clone(), node)).collect())
}

/// Reads the ids of the workers that are told to drain. The keys alone hold them.
pub(super) async fn draining(catalog: &Catalog) -> Result<BTreeSet<NodeId>, StoreError> {
    let prefix = catalog.keys().draining_all();
    let listing = catalog.store().list(&prefix).await?;
    let ids = listing.entries.iter();
    let ids = ids.filter_map(|entry| entry.key.strip_prefix(&prefix)?.parse().ok());
    Ok(ids.collect())
}

/// Reads all records below a prefix. A record that does not decode is logged and skipped.
pub(super) async fn records<T: DeserializeOwned>(
    catalog: &Catalog,
    prefix: &str,
) -> Result<Vec<(String, Versioned<T>)>, StoreError> {
    Ok(log_broken(catalog.scan::<T>(prefix).await?).records)
}

/// Reads the resources with the first `max` names after this one that begin with `name_prefix`. Returns the last of these
/// names if there are more.
pub(super) async fn resources_after(
    catalog: &Catalog,
    after: Option<&ResourceName>,
    max: usize,
    name_prefix: &str,
    grants: &Grants,
) -> Result<(Vec<Resource>, Option<ResourceName>), StoreError> {
    let all = catalog.keys().resources();
    let page = entries_after(catalog, &all, after, max, name_prefix, grants).await?;
    let resources = page.entries.iter();
    let resources = resources.filter_map(|(_, entry)| decoded::<Resource>(entry));
    Ok((
        resources.map(|resource| resource.value).collect(),
        page.next,
    ))
}

/// Reads the schedules of the resources with the first `max` names after this one that begin with `name_prefix`; `None` stands
/// for one that does not decode. Returns the last of these names if there are more.
pub(super) async fn schedules_after(
    catalog: &Catalog,
    after: Option<&ResourceName>,
    max: usize,
    name_prefix: &str,
    grants: &Grants,
) -> Result<ListPage<(ResourceName, Option<Schedule>)>, StoreError> {
    let all = catalog.keys().schedules();
    let page = entries_after(catalog, &all, after, max, name_prefix, grants).await?;
    let schedules = page.entries.into_iter().map(|(name, entry)| {
        let schedule = decoded::<Schedule>(&entry);
        (name, schedule.map(|schedule| schedule.value))
    });
    Ok(ListPage {
        entries: schedules.collect(),
        next: page.next,
    })
}

/// Reads what is kept under names of resources: below `all`, the first `max` names after this one that begin with `name_prefix`
/// and that the grants cover. Returns the last of these names if there are more. A key that is no name is passed over, and does
/// not count.
async fn entries_after(
    catalog: &Catalog,
    all: &str,
    after: Option<&ResourceName>,
    max: usize,
    name_prefix: &str,
    grants: &Grants,
) -> Result<ListPage<(ResourceName, Entry)>, StoreError> {
    let mut after = after.map_or_else(String::new, |name| format!("{all}{name}"));
    let mut prefixes: Vec<String> = match grants.covers_all() {
        true => vec![format!("{all}{name_prefix}")],
        false => {
            let namespaces = grants.namespaces.iter();
            let prefixes = namespaces.filter_map(|space| {
                let space = format!("{space}/");
                let longer = match space.starts_with(name_prefix) {
                    true => space,
                    false if name_prefix.starts_with(&space) => name_prefix.to_owned(),
                    false => return None,
                };
                Some(format!("{all}{longer}"))
            });
            prefixes.filter(|_| !grants.roles.is_empty()).collect()
        }
    };
    prefixes.sort();
    // A namespace that lies within another one has nothing else.
    prefixes.dedup_by(|inner, outer| inner.starts_with(outer.as_str()));
    let mut found: Vec<(ResourceName, Entry)> = Vec::new();
    let cut = |entries: Vec<(ResourceName, Entry)>| ListPage {
        next: entries.last().map(|(name, _)| name.clone()),
        entries,
    };
    for prefix in prefixes {
        let is_behind = after > prefix && !after.starts_with(&prefix);
        if is_behind {
            continue;
        }
        loop {
            if found.len() == max {
                return Ok(cut(found));
            }
            let n_missing = max - found.len();
            let more = n_missing.saturating_add(1);
            // The prefix itself may be the key of a resource.
            let listing = catalog.store().list_after(&prefix, &after, more).await?;
            let has_more = listing.entries.len() > n_missing;
            for entry in listing.entries.into_iter().take(n_missing) {
                after.clone_from(&entry.key);
                let name = entry.key.strip_prefix(all);
                if let Some(name) = name.and_then(|name| name.parse::<ResourceName>().ok()) {
                    found.push((name, entry));
                }
            }
            // If names are missing still, some of the keys were none.
            if !has_more {
                break;
            }
        }
    }
    Ok(ListPage {
        entries: found,
        next: None,
    })
}

/// Decodes a record. One that does not decode is logged.
pub(super) fn decoded<T: DeserializeOwned>(entry: &Entry) -> Option<Versioned<T>> {
    decode(entry).inspect_err(log_one).ok()
}

/// Logs the records that do not decode.
fn log_broken<T>(scan: Scan<T>) -> Scan<T> {
    scan.broken.iter().for_each(log_one);
    scan
}

fn log_one(error: &StoreError) {
    let error = telemetry::chain(error);
    tracing::error!(error, "passing over a record that does not decode");
}

/// Reads the assignments. The key holds worker and shard; the record holds the weight.
pub(super) async fn assignments(catalog: &Catalog) -> Result<Assignments, StoreError> {
    let listing = catalog.store().list(&catalog.keys().assignments()).await?;
    let entries = listing.entries.iter();
    Ok(entries
        .filter_map(|entry| {
            let key = catalog.keys().parse_assignment(&entry.key)?;
            let assignment = serde_json::from_slice(&entry.value)
                .inspect_err(|error| {
                    tracing::error!(key = entry.key, %error, "passing over a record that does not decode");
                })
                .ok();
            Some((key, assignment))
        })
        .collect())
}
