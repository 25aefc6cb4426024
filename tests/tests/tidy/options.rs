//! The tables of options in the book name every option, with the default that the code has. The rows of the
//! settings of a crawl and of the table `[fetch]` are written from their tables, see `settings.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use crawler::cli::{CallOptions, MetricsOptions};
use crawler::config::TracesConfig;
use crawler_api::requests::RequestSettings;
use crawler_model::plugin::{Limits, format_bytes as bytes};
use crawler_tests::repository;

use super::settings::number;

/// Chapter with the settings of resources and of fetching.
const SETTINGS: &str = "host/docs/src/reference/settings.md";
/// Chapter with the limits of calls and clients.
const LIMITS: &str = "host/docs/src/reference/limits.md";
/// Chapter with the settings of traces.
const TRACES: &str = "host/docs/src/operate/traces.md";

/// Returns names and defaults, as they are written, of the table of a chapter that begins with this heading.
fn table(chapter: &str, heading: &str) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(repository().join(chapter)).expect("there is one");
    let (_, after) = text
        .split_once(&format!("| {heading} |"))
        .unwrap_or_else(|| panic!("{chapter} has no table of {heading}"));
    let rows = after
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let mut cell = || cells.next().unwrap_or_default().to_owned();
        (cell(), cell())
    })
    .collect()
}

fn time(time: Duration) -> String {
    humantime::format_duration(time).to_string()
}

#[track_caller]
fn check(chapter: &str, heading: &str, defaults: &[(&str, String)]) {
    let table = table(chapter, heading);
    for (name, default) in defaults {
        let name = format!("`{name}`");
        assert_eq!(table.get(&name), Some(default), "{name} in {chapter}");
    }
}

#[test]
fn the_book_tells_the_defaults_of_settings() {
    let (requests, calls) = (RequestSettings::default(), CallOptions::default());
    let metrics = MetricsOptions::default();
    check(
        LIMITS,
        "of a process",
        &[
            ("--request-memory", bytes(requests.memory)),
            ("--connections", number(requests.connections as u64)),
            ("--stall-timeout", time(requests.stall_timeout)),
            ("--uploads", calls.uploads.to_string()),
            ("--frontier-readers", calls.frontier_readers.to_string()),
            ("--keep-events", calls.keep_events.to_string()),
            ("--api-rate", number(calls.limits.rate.into())),
            ("--api-concurrency", number(calls.limits.concurrency.into())),
            ("--api-streams", number(calls.limits.streams.into())),
            ("--store-failures", calls.breaker.failures.to_string()),
            ("--store-pause", time(calls.breaker.pause)),
            ("--store-probe-timeout", time(calls.breaker.probe_timeout)),
            ("--metrics-resources", number(metrics.resources as u64)),
        ],
    );
    let traces = TracesConfig::default();
    check(
        TRACES,
        "key",
        &[
            ("sample", traces.settings.sample.to_string()),
            ("timeout", time(traces.timeout)),
            ("max-queued", bytes(traces.settings.max_queued as u64)),
        ],
    );
    check(
        SETTINGS,
        "setting",
        &[("--limit body", bytes(Limits::default().body))],
    );
}

/// Checks each key that a config file may have.
#[test]
fn the_book_has_a_row_for_every_setting() {
    let example = repository().join("host/crawler/src/config/example.toml");
    let example = std::fs::read_to_string(example).expect("there is one");
    let keys = |table: &str| {
        let (_, after) = example
            .split_once(&format!("\n{table}\n"))
            .expect("it is shown");
        let lines = after.lines().take_while(|line| !line.starts_with('['));
        let lines = lines.filter(|line| !line.trim_start().starts_with('#'));
        let keys = lines.filter_map(|line| Some(line.split_once(" = ")?.0.to_owned()));
        keys.collect::<Vec<_>>()
    };
    let told = table(SETTINGS, "setting");
    // These keys say what a resource is, not how it crawls, or have tables of their own.
    let others = [
        "name", "plugin", "params", "labels", "limits", "weight", "selector", "near", "apart",
    ];
    let of_resource = keys("[[resource]]");
    assert!(of_resource.len() > 20, "{of_resource:?}");
    for key in of_resource
        .iter()
        .filter(|key| !others.contains(&key.as_str()))
    {
        assert!(
            told.contains_key(&format!("`--{key}`")),
            "{key} of a resource"
        );
    }
}
