//! Views of the page as they have to be, made of what a master tells over gRPC: numbers written as the page writes them.
//!
//! The form is that of `page.mjs`. A view may show more: rates, times, and what others test.

use std::collections::BTreeMap;

use crawler_proto::{Counts, Hold, LogLine, Node, Resource, RunSummary, ShardStatus};
use serde_json::{Map, Value, json};
use tonic::Status;

use super::api;

/// Text for what is not known, or not there.
const NONE: &str = "–";
/// Words for the phases of a resource.
const PHASES: [&str; 5] = ["Running", "Pending", "Paused", "Finished", "Failed"];
/// Number of errors that the overview shows.
const N_ERRORS: usize = 20;
/// Number of events that a history shows.
const N_EVENTS: usize = 50;

/// Returns the overview.
pub(super) fn overview(master: &str) -> Result<Value, Status> {
    let (resources, nodes) = (api::resources(master)?, api::nodes(master)?);
    let mut figures = Map::new();
    for phase in PHASES {
        let is_in = |one: &&Resource| one.phase == phase;
        figures.insert(phase.to_owned(), n_of(resources.iter().filter(is_in)));
    }
    figures.insert("Resources".to_owned(), n_of(resources.iter()));
    let workers = || nodes.iter().filter(|node| node.role == "worker");
    let masters = || nodes.iter().filter(|node| node.role == "master");
    let leader = masters().find(|node| node.leader);
    let leader = leader.map_or(NONE, |leader| leader.id.as_str());
    figures.insert("Leader".to_owned(), leader.into());
    figures.insert("Masters".to_owned(), n_of(masters()));
    figures.insert("Workers".to_owned(), n_of(workers()));
    let draining = workers().filter(|node| node.draining);
    figures.insert("Draining".to_owned(), n_of(draining));
    let totals: Option<Vec<_>> = workers().map(|node| node.totals.as_ref()).collect();
    let totals = totals.filter(|totals| !totals.is_empty());
    let sum = |of: fn(&crawler_proto::NodeTotals) -> u64| match &totals {
        Some(totals) => count(totals.iter().map(|one| of(one)).sum()),
        None => NONE.to_owned(),
    };
    figures.insert(
        "Pages in flight".to_owned(),
        sum(|one| one.in_flight).into(),
    );
    figures.insert("Crawls that wait".to_owned(), sum(|one| one.waiting).into());

    let running = || resources.iter().filter(|one| one.phase == "Running");
    Ok(json!({
        "head": "Overview",
        "faults": [],
        "figures": figures,
        "tables": {
            "Resources that run": table(running().map(running_row)),
            "Resources that have failed": null,
            "Last errors of what runs": last_errors(running()),
        },
    }))
}

fn running_row(resource: &Resource) -> Value {
    let counts = resource.counts();
    json!({
        "Resource": resource.spec().name,
        "Pages": count(pages(&counts)),
        "Items": count(counts.items),
        "Dead": count(counts.dead),
        "Owner": owners(resource).join(", "),
    })
}

/// Returns the last errors of these resources, the latest first.
fn last_errors<'a>(resources: impl Iterator<Item = &'a Resource>) -> Value {
    let of_one = |one: &'a Resource| {
        let name = one.spec().name;
        let lines = one.shards.iter().flat_map(|shard| &shard.last_errors);
        lines.map(move |line| (name.clone(), line))
    };
    let mut lines: Vec<(String, &LogLine)> = resources.flat_map(of_one).collect();
    lines.sort_by_key(|(_, line)| std::cmp::Reverse(line.at));
    let row = |(name, line): (String, &LogLine)| json!({"Resource": name, "Message": line.message, "URL": line.url});
    table(lines.into_iter().take(N_ERRORS).map(row))
}

/// Returns the list of resources.
pub(super) fn list(master: &str) -> Result<Value, Status> {
    let resources = api::listed(master)?;
    let row = |one: &Resource| {
        let counts = one.counts();
        let owners = owners(one);
        json!({
            "Resource": one.spec().name,
            "Phase": one.phase,
            "Items": count(counts.items),
            "Items a page": item_yield(&counts),
            "Dead": count(counts.dead),
            "Progress": progress(&counts),
            "Plugin": plugin(one),
            "Owner": match owners.len() {
                0..=2 => owners.join(", "),
                n => format!("{n} workers"),
            },
        })
    };
    let rows = table(resources.iter().map(row));
    Ok(json!({
        "head": format!("Resources {}", resources.len()),
        "faults": [],
        "tables": {"Resources": rows},
    }))
}

/// Returns the view of the present numbers of a resource.
pub(super) fn resource(master: &str, name: &str) -> Result<Value, Status> {
    let resource = api::resource(master, name)?;
    let counts = resource.counts();
    let held = match counts.held {
        0 => Value::Null,
        n => count(n).into(),
    };
    Ok(json!({
        "head": format!("{name} {}", resource.phase),
        "faults": [],
        "figures": {
            "Items held": held,
            "Run": count(resource.run),
            "Pages": count(pages(&counts)),
            "Items": count(counts.items),
            "Items a page": item_yield(&counts),
            "Dead": count(counts.dead),
            "Tried again": count(counts.retries),
            "Due": count(counts.due),
            "In flight": count(counts.in_flight),
            "Hosts": count(counts.hosts),
            "Bodies": bytes(counts.bytes),
            "Plugin": plugin(&resource),
            "Progress": progress(&counts),
        },
        "tables": {"Shards": table(resource.shards.iter().map(shard_row))},
    }))
}

fn shard_row(shard: &ShardStatus) -> Value {
    let counts = shard.counts();
    json!({
        "Shard": shard.shard.to_string(),
        "State": shard.state,
        "Owner": if shard.owner.is_empty() { NONE } else { shard.owner.as_str() },
        "Pages": count(pages(&counts)),
        "Items": count(counts.items),
        "Dead": count(counts.dead),
        "Due": count(counts.due),
        "Reason": shard.reason,
    })
}

/// Returns the view of the frontier of a resource.
pub(super) fn frontier(master: &str, name: &str) -> Result<Value, Status> {
    let stats = api::frontier(master, name)?;
    let mut figures = Map::new();
    for (figure, n) in [
        ("Due", stats.counts().due),
        ("Dead letters", stats.dead_letters),
        ("Hosts", stats.hosts),
        ("Items not delivered", stats.undelivered),
        ("Suspects", stats.suspects),
        ("Unclean stops", stats.unclean_stops.into()),
    ] {
        figures.insert(figure.to_owned(), count(n).into());
    }
    for (state, n) in &stats.hosts_by_state {
        figures.insert(format!("Hosts {state}"), count(*n).into());
    }
    Ok(json!({"faults": [], "figures": figures}))
}

/// Returns the view of what went wrong with a resource.
pub(super) fn errors(master: &str, name: &str) -> Result<Value, Status> {
    let counts = api::resource(master, name)?.counts();
    let statuses = api::statistics(master, name)?.statuses;
    let reason = |(reason, n): (String, String)| json!({"Reason": reason, "URLs": n});
    let hold = |hold: Hold| json!({"Hold": hold.id, "Kind": hold.kind, "Host": hold.host, "Items": count(hold.items)});
    let holds = api::holds(master, name)?;
    let status = |(status, n): (u32, String)| {
        let status = match status {
            0 => "others".to_owned(),
            status => status.to_string(),
        };
        json!({"Status": status, "Answers": n})
    };
    Ok(json!({
        "faults": [],
        "tables": {
            "Held items by kind and host": table(holds.into_iter().map(hold)),
            "Dead letters by reason": table(by_count(counts.dead_by_reason).map(reason)),
            "Answers by status": table(by_count(statuses).map(status)),
        },
    }))
}

/// Returns counts with their names, the largest first.
fn by_count<K>(counts: BTreeMap<K, u64>) -> impl Iterator<Item = (K, String)> {
    let mut counts: Vec<(K, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    counts.into_iter().map(|(key, n)| (key, count(n)))
}

/// Returns what the history of a resource has to tell of each run that has finished, the latest first.
pub(super) fn finished_runs(master: &str, name: &str) -> Result<Value, Status> {
    let runs = api::runs(master, name)?;
    let finished = runs.iter().filter(|run| run.outcome == "finished");
    Ok(finished
        .map(|run| json!([count(run.run), numbers(run)]))
        .collect())
}

/// Returns what a history shows of each run that has finished, in the form of [`finished_runs`].
pub(super) fn shown_runs(shown: &Value, _told: &Value) -> Value {
    let rows = shown["tables"]["Events"].as_array();
    let finished = rows.into_iter().flatten();
    let finished = finished.filter(|row| row["Event"] == "finished");
    let run = |row: &Value| {
        let details = row["Details"].as_str().unwrap_or_default();
        // The reasons of dead letters follow.
        let numbers = details.split(';').next().unwrap_or_default();
        json!([row["Run"], numbers])
    };
    let mut runs: Vec<Value> = finished.map(run).collect();
    // A crawl that goes on in the same run, because items were released, ends once more.
    runs.dedup();
    runs.into()
}

fn numbers(run: &RunSummary) -> String {
    let [pages, items, dead] = [run.pages, run.items, run.dead].map(count);
    format!("pages {pages}, items {items}, dead {dead}")
}

/// Returns the view of nodes, with their history.
pub(super) fn nodes(master: &str) -> Result<Value, Status> {
    let (nodes, events) = (api::nodes(master)?, api::node_events(master)?);
    let event = |event: &crawler_proto::PastEvent| json!({"Node": event.node, "Event": event.kind});
    let latest = events.iter().rev().take(N_EVENTS);
    Ok(json!({
        "head": "Nodes",
        "faults": [],
        "tables": {
            "Masters and workers": table(nodes.iter().map(node_row)),
            "Events of nodes": table(latest.map(event)),
        },
    }))
}

fn node_row(node: &Node) -> Value {
    let of_worker = |text: String| match node.role.as_str() {
        "worker" => text,
        _ => String::new(),
    };
    let shards = format!(
        "{} of {}",
        count(node.load.into()),
        count(node.capacity.into())
    );
    let in_flight = node.totals.as_ref().map(|totals| count(totals.in_flight));
    json!({
        "Node": node.id,
        "Role": format!("{}{}", node.role, if node.leader { " (leader)" } else { "" }),
        "Shards": of_worker(shards),
        "Weight": of_worker(count(node.weight)),
        "In flight": of_worker(in_flight.unwrap_or_else(|| NONE.to_owned())),
        "Address": node.address,
        "Version": node.version,
    })
}

/// Returns the rows of a table, which is not there without any.
fn table(rows: impl Iterator<Item = Value>) -> Value {
    let rows: Vec<Value> = rows.collect();
    match rows.is_empty() {
        true => Value::Null,
        false => rows.into(),
    }
}

fn pages(counts: &Counts) -> u64 {
    counts.parsed + counts.other_done + counts.dead
}

/// Returns the workers that crawl a resource, each once.
fn owners(resource: &Resource) -> Vec<&str> {
    let mut owners = Vec::new();
    for shard in &resource.shards {
        if !shard.owner.is_empty() && !owners.contains(&shard.owner.as_str()) {
            owners.push(shard.owner.as_str());
        }
    }
    owners
}

fn plugin(resource: &Resource) -> String {
    let plugin = resource.spec().plugin;
    let name = plugin.split('@').next().unwrap_or_default();
    format!("{name}@{}", resource.plugin_version)
}

/// Returns the bar of progress in words.
fn progress(counts: &Counts) -> String {
    // Pages in flight are due until their end.
    match pages(counts) + counts.due {
        0 => NONE.to_owned(),
        known => format!("{} of {} known URLs", count(pages(counts)), count(known)),
    }
}

fn item_yield(counts: &Counts) -> String {
    match counts.parsed {
        0 => NONE.to_owned(),
        parsed => format!("{:.2}", counts.items as f64 / parsed as f64),
    }
}

fn n_of<T>(all: impl Iterator<Item = T>) -> Value {
    count(all.count() as u64).into()
}

/// Returns a number with a comma before each group of three digits.
fn count(n: u64) -> String {
    match n / 1_000 {
        0 => n.to_string(),
        thousands => format!("{},{:03}", count(thousands), n % 1_000),
    }
}

/// Returns a number of bytes with one digit behind the point of the largest unit, half of it rounded up.
fn bytes(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (1..units.len()).rfind(|unit| n >> (10 * unit) > 0);
    let Some(unit) = unit else {
        return format!("{n} B");
    };
    let size = 1_u64 << (10 * unit);
    let tenths = (n * 10 + size / 2) / size;
    format!("{}.{} {}", tenths / 10, tenths % 10, units[unit])
}

#[test]
fn numbers_are_written_as_the_page_writes_them() {
    let counts = [0, 999, 1_000, 1_040, 12_345_678].map(count);
    assert_eq!(counts, ["0", "999", "1,000", "1,040", "12,345,678"]);
    let sizes = [0, 1_023, 1_024, 1_280, 3 << 20].map(bytes);
    assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.3 KiB", "3.0 MiB"]);
}
