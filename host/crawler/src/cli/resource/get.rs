//! `crawler resource get`: one resource and the statistics of its run, for people or as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use crawler_proto as proto;
use serde::Serialize;

use super::stats::{self, Found};
use super::{list, log_line};
use crate::cli::args::OutputArgs;
use crate::cli::table;
use crate::config;
use crawler_api::client::Client;
use crawler_api::{placement_spec, totals};
use crawler_model::frontier::HostState;
use crawler_model::id::ResourceName;
use crawler_model::number;
use crawler_model::plugin::{LimitKind, LimitName, format_bytes};

/// A resource as `-o json` shows it.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    resource: &'a proto::Resource,
    /// Statistics of its run. `None` if they cannot be read.
    statistics: Option<proto::RunStatistics>,
}

/// Prints a resource, and what is known of its run.
pub(super) async fn run(
    client: &Client,
    name: &ResourceName,
    output: &OutputArgs,
) -> anyhow::Result<()> {
    let resource = client.resource(name).await?;
    // A program that looks again and again is not held up while the data root is away.
    let patience = match output.is_json() {
        true => Duration::ZERO,
        false => stats::PATIENCE,
    };
    let found = stats::find(client, name, &resource, patience).await;
    if output.is_json() {
        stats::print_unread(&found);
        return table::print_json(&shown(&resource, found));
    }
    print_resource(&resource)?;
    // Before its first page, a run that goes on has nothing to tell.
    if found.run.counts.began_at > 0 || !found.run.end.is_empty() {
        stats::print_run(&found.run, &resource)?;
    }
    stats::print_unread(&found);
    Ok(())
}

fn shown(resource: &proto::Resource, found: Found) -> Shown<'_> {
    let is_read = found.unread.is_none();
    Shown {
        resource,
        statistics: is_read.then(|| crawler_api::statistics_message(found.run)),
    }
}

/// Prints the spec and the status of a resource.
fn print_resource(resource: &proto::Resource) -> anyhow::Result<()> {
    let (spec, counts) = (resource.spec(), resource.counts());
    let phase = match resource.reason.as_str() {
        "" => resource.phase.clone(),
        reason => format!("{}: {reason}", resource.phase),
    };
    let pages = format!(
        "{} parsed, {} done otherwise, {} dead, {} waiting, of which {} in flight",
        counts.parsed, counts.other_done, counts.dead, counts.due, counts.in_flight,
    );
    let plugin = match resource.plugin_version.as_str() {
        "" => spec.plugin.clone(),
        version => format!("{} (runs {version})", spec.plugin),
    };
    let pairs = |pairs: &BTreeMap<String, String>| {
        let pairs = pairs.iter().map(|(k, v)| format!("{k}={v}"));
        pairs.collect::<Vec<_>>().join(" ")
    };
    let place = |limit: &str| {
        LimitName::ALL
            .iter()
            .position(|known| known.as_str() == limit)
    };
    let mut limits: Vec<_> = spec.limits.iter().collect();
    limits.sort_by_key(|(limit, _)| place(limit));
    let limits: Vec<_> = limits.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let placement = placement_spec(spec.placement.unwrap_or_default())?;
    let placement = if placement.is_default() {
        String::new()
    } else {
        placement.to_string()
    };
    let rows = [
        ("resource", format!("{} (id {})", spec.name, spec.id)),
        ("phase", phase),
        ("node", spec.assigned_node.replace('|', " at ")),
        ("plugin", plugin),
        ("labels", pairs(&spec.labels)),
        ("params", pairs(&spec.params)),
        ("limits", limits.join(" ")),
        ("settings", table::plain(&settings(resource.spec()))),
        ("placement", placement),
        (
            "run",
            format!("{}, generation {}", resource.run, resource.generation),
        ),
        ("added", table::time(millis(spec.creation_time))),
        ("pages", pages),
        ("rate", list::pace(resource, None).to_string()),
        ("hosts", hosts(counts.hosts, &resource.shards)),
        ("limit use", limits_used(&resource.shards)),
        ("items", counts.items.to_string()),
        ("bytes", table::size(counts.bytes)),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        table::print_line(&format!("{name:<10} {value}"))?;
    }
    for shard in &resource.shards {
        table::print_line(&format!("shard {:<4} {}", shard.shard, shard_line(shard)))?;
        for line in &shard.last_errors {
            let line = log_line(proto::LogLine {
                rule: String::new(),
                ..line.clone()
            });
            table::print_line(&format!("{:<10} {line}", "log"))?;
        }
    }
    Ok(())
}

/// Returns the settings that are not left to their defaults. A newer master may have values that this program does not know.
fn settings(spec: proto::ResourceSpec) -> String {
    match crawler_api::resource_spec(spec) {
        Ok(spec) => config::settings(&spec).join(" "),
        Err(error) => format!("shown by -o json only: {error}"),
    }
}

/// Returns nanoseconds as milliseconds.
fn millis(nanos: i64) -> u64 {
    u64::try_from(nanos).unwrap_or_default() / 1_000_000
}

/// Formats the number of hosts, and those in each state of the shards whose owners answer.
fn hosts(n_hosts: u64, shards: &[proto::ShardStatus]) -> String {
    let n_in = |state: HostState| {
        let told = shards.iter();
        let told = told.filter_map(|shard| shard.hosts_by_state.get(state.as_str()));
        told.sum::<u64>()
    };
    let states = HostState::ALL.map(|state| (state, n_in(state)));
    let states = states.into_iter().filter(|(_, n)| *n > 0);
    let mut n_told = 0;
    let mut states: Vec<_> = states
        .map(|(state, n)| {
            n_told += n;
            format!("{} {n}", state.as_str())
        })
        .collect();
    if !states.is_empty() && n_told < n_hosts {
        states.push(format!("not told {}", n_hosts - n_told));
    }
    match (n_hosts, states.is_empty()) {
        (0, _) => String::new(),
        (n, true) => n.to_string(),
        (n, false) => format!("{n}: {}", states.join(", ")),
    }
}

/// Formats the largest share of each limit that one call has used, of all shards whose owners answer, the largest first.
fn limits_used(shards: &[proto::ShardStatus]) -> String {
    let percent = |limit: &proto::LimitUse| limit.used.saturating_mul(100) / limit.limit.max(1);
    let of_all_shards = |name: LimitName| {
        let told = shards.iter();
        let told = told.filter_map(|shard| shard.limits_used.get(name.as_str()));
        Some((name, *told.max_by_key(|limit| percent(limit))?))
    };
    let mut uses: Vec<_> = LimitName::ALL
        .into_iter()
        .filter_map(of_all_shards)
        .collect();
    uses.sort_by_key(|(_, limit)| std::cmp::Reverse(percent(limit)));
    let texts = uses.into_iter().map(|(name, limit)| {
        let whole = match name.kind() {
            LimitKind::Bytes => format_bytes(limit.limit),
            LimitKind::Time => format!("{}ms", limit.limit),
            LimitKind::Count => limit.limit.to_string(),
        };
        format!("{name} {} % of {whole}", percent(&limit))
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Formats the owner and the progress of a shard.
fn shard_line(shard: &proto::ShardStatus) -> String {
    let owner = match shard.owner.as_str() {
        "" => "nobody",
        owner => owner,
    };
    let counts = totals(shard.counts());
    let pages = number(counts.pages(), "page");
    let due = counts.due;
    let reason = match shard.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    format!(
        "{owner}, epoch {}, {}, {pages}, {due} waiting{reason}",
        shard.epoch, shard.state
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crawler_model::statistics::RunStatistics;

    fn as_json(unread: Option<&str>) -> Value {
        let resource = proto::Resource {
            phase: "Finished".to_owned(),
            ..proto::Resource::default()
        };
        let mut run = RunStatistics {
            end: "nothing is left to fetch".to_owned(),
            ..RunStatistics::default()
        };
        run.counts.parsed = 30;
        run.counts.note_attempt(1_000, 5_000);
        let unread = unread.map(str::to_owned);
        serde_json::to_value(shown(&resource, Found { run, unread })).unwrap()
    }

    #[test]
    fn hosts_are_told_with_their_states_of_all_shards() {
        let shard = |by_state: &[(&str, u64)]| proto::ShardStatus {
            hosts_by_state: by_state.iter().map(|(s, n)| (s.to_string(), *n)).collect(),
            ..proto::ShardStatus::default()
        };
        let shards = [shard(&[("idle", 2), ("ready", 1)]), shard(&[("ready", 3)])];
        assert_eq!(hosts(6, &shards), "6: ready 4, idle 2");
        assert_eq!(hosts(9, &shards), "9: ready 4, idle 2, not told 3");
        assert_eq!(hosts(6, &[shard(&[])]), "6");
        assert_eq!(hosts(0, &[]), "");
    }

    #[test]
    fn limits_are_told_with_their_largest_share_of_all_shards() {
        let shard = |uses: &[(&str, u64, u64)]| {
            let uses = uses.iter().map(|(name, used, limit)| {
                let (used, limit) = (*used, *limit);
                (name.to_string(), proto::LimitUse { used, limit })
            });
            proto::ShardStatus {
                limits_used: uses.collect(),
                ..proto::ShardStatus::default()
            }
        };
        let one = shard(&[("memory", 32 << 20, 64 << 20), ("timeout", 20, 2_000)]);
        let other = shard(&[("memory", 1, 64 << 20), ("timeout", 1_900, 2_000)]);
        assert_eq!(
            limits_used(&[one, other]),
            "timeout 95 % of 2000ms, memory 50 % of 64MiB"
        );
        assert_eq!(limits_used(&[shard(&[])]), "");
    }

    #[test]
    fn settings_of_a_newer_master_leave_the_others_to_be_shown() {
        let of = |drift: &str| {
            settings(proto::ResourceSpec {
                name: "books".to_owned(),
                crawl: Some(proto::CrawlSettings {
                    drift: Some(drift.to_owned()),
                    ..proto::CrawlSettings::default()
                }),
                ..proto::ResourceSpec::default()
            })
        };
        assert_eq!(of("tight"), "drift=tight");
        let unknown = of("ask");
        assert!(unknown.starts_with("shown by -o json only: "), "{unknown}");
    }

    #[test]
    fn json_has_the_resource_and_the_statistics_of_its_run() {
        let shown = as_json(None);
        assert_eq!(shown["phase"], "Finished");
        assert_eq!(shown["spec"]["placement"], json!({"weight": 1}));
        let statistics = &shown["statistics"];
        assert_eq!(statistics["end"], "nothing is left to fetch");
        assert_eq!(statistics["rate"], 7.5);
        assert_eq!(statistics["took_ms"], 4_000);
        assert_eq!(statistics["counts"]["parsed"], 30);
    }

    #[test]
    fn statistics_that_cannot_be_read_are_null() {
        let shown = as_json(Some("the disk is gone"));
        assert_eq!(shown["statistics"], Value::Null);
        assert_eq!(shown["phase"], "Finished");
    }
}
