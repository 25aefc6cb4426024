//! Check that every shard runs on exactly one live worker, by the records and by the logs of the workers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crawler_tests::http::block_on;
use crawler_tests::pass;
use etcd_client::{Client, GetOptions};
use serde_json::Value;

use crate::fleet::{Fleet, LEASE_TTL};
use crate::history::Convergence;
use crate::load::CLOSURE;

/// Time in which everything has to be at rest: etcd, the leader or both have changed in all runs here.
const BOUND: Duration = LEASE_TTL
    .saturating_mul(2)
    .saturating_add(Duration::from_secs(1));
/// Longest wait, which tells late rest from none.
const LONGEST: Duration = Duration::from_secs(90);

/// Waits until everything is where it should be. The faults have just stopped.
pub(crate) fn wait(fleet: &mut Fleet, begun: Instant) -> Convergence {
    let took = loop {
        fleet.read();
        fleet.start_again();
        let unsettled = match records(&fleet.cluster.etcd.endpoints()) {
            Ok(records) => unsettled(fleet, &records),
            Err(error) => vec![error.to_string()],
        };
        let elapsed = begun.elapsed();
        if unsettled.is_empty() {
            break Ok(elapsed);
        }
        if elapsed > LONGEST {
            break Err(unsettled);
        }
        pass(Duration::from_millis(100));
    };
    Convergence { bound: BOUND, took }
}

fn records(endpoints: &[String]) -> Result<BTreeMap<String, Value>, etcd_client::Error> {
    block_on(async {
        let mut client = Client::connect(endpoints, None).await?;
        let options = GetOptions::new().with_prefix();
        let answer = client.get("/crawler/", Some(options)).await?;
        let mut records = BTreeMap::new();
        for kv in answer.kvs() {
            let key = kv.key_str()?.trim_start_matches("/crawler/").to_owned();
            records.insert(key, serde_json::from_slice(kv.value()).unwrap_or_default());
        }
        Ok(records)
    })
}

/// Returns the deviations from the state of rest, in words.
fn unsettled(fleet: &mut Fleet, records: &BTreeMap<String, Value>) -> Vec<String> {
    let mut unsettled: Vec<String> = fleet.ended().into_iter().collect();
    for (key, shard) in records {
        let Some(id) = key.strip_prefix("shards/") else {
            continue;
        };
        let epoch = shard["epoch"].as_u64().unwrap_or_default();
        let owner = shard["owner"]["node"].as_str().unwrap_or_default();
        let resource = shard["resource"].as_str().unwrap_or_default();
        let is_paused = records
            .get(&format!("resources/{resource}"))
            .is_some_and(|resource| resource["paused"] == true);
        match shard["state"]["state"].as_str() {
            Some("assigned" | "idle") if !is_paused => {}
            Some("free") if is_paused => continue,
            // All other crawls are endless.
            Some("finished") if resource.starts_with(CLOSURE) => continue,
            state => {
                unsettled.push(format!("shard {id} is {state:?}"));
                continue;
            }
        }
        let node = records.get(&format!("nodes/worker/{owner}"));
        if node.map(|node| &node["incarnation"]) != Some(&shard["owner"]["incarnation"]) {
            unsettled.push(format!("shard {id}: {owner} is not there as it was"));
        }
        let mirror = records.get(&format!("assignments/{owner}/{id}"));
        if mirror.map(|mirror| &mirror["epoch"]) != Some(&shard["epoch"]) {
            unsettled.push(format!("shard {id}: {owner} is not told of epoch {epoch}"));
        }
        let mut workers = fleet.places.iter().filter(|place| place.is_worker());
        let place = workers.find(|place| place.life().0 == owner);
        match place.and_then(|place| place.crawls.get(id)) {
            Some((running, true)) if *running == epoch => {}
            // The shard has nothing left, and waits for links of the others with its frontier closed.
            None if shard["state"]["state"] == "idle" => {}
            runs => unsettled.push(format!(
                "shard {id}: {owner} has it in epoch {epoch} and crawls it as {runs:?}"
            )),
        }
    }
    unsettled.extend(surplus(fleet, records));
    unsettled
}

/// Returns assignments and crawls of workers that the records of the shards do not give them.
fn surplus(fleet: &Fleet, records: &BTreeMap<String, Value>) -> Vec<String> {
    let has = |worker: &str, id: &str| {
        let shard = records.get(&format!("shards/{id}"));
        shard.is_some_and(|shard| {
            let state = shard["state"]["state"].as_str();
            shard["owner"]["node"] == worker && matches!(state, Some("assigned" | "idle"))
        })
    };
    let mut surplus = Vec::new();
    for key in records.keys() {
        let Some(place) = key.strip_prefix("assignments/") else {
            continue;
        };
        let (worker, id) = place.split_once('/').unwrap_or((place, ""));
        if !has(worker, id) {
            surplus.push(format!(
                "{worker} is told of shard {id} and does not have it"
            ));
        }
    }
    for place in fleet.places.iter().filter(|place| place.is_worker()) {
        let worker = place.life().0;
        for (id, runs) in place.crawls.iter().filter(|(id, _)| !has(&worker, id)) {
            surplus.push(format!(
                "shard {id}: {worker} crawls it as {runs:?} and does not have it"
            ));
        }
    }
    surplus
}
