//! Shares of the leader's processor time, by its own profiles.

use std::collections::{BTreeMap, BTreeSet};

use crawler_tests::http::block_on;
use crawler_tests::process::Process;
use crawler_tests::{PATIENCE, http};
use prost::Message;

/// Number of functions that are shown.
const N_SHOWN: usize = 40;

/// Fields of pprof's `profile.proto` that are read.
#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    locations: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    functions: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    texts: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    locations: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}

/// Takes a profile of a process that was started with `--pprof=:0`. Returns the shares of the functions, the
/// greatest first; each includes the functions that it calls.
pub(crate) fn shares(process: &Process, seconds: u64) -> Vec<(String, f64)> {
    let address = process.word_after("pprof=", PATIENCE);
    let url = format!("http://{address}/debug/pprof/profile?seconds={seconds}");
    http::install_crypto();
    let bytes = block_on(async {
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]);
        let client = client.build().expect("a client can be built");
        let answer = client.get(url).send().await.expect("profiles are served");
        answer.bytes().await.expect("a profile comes whole")
    });
    let profile = Profile::decode(bytes).expect("it is a profile");
    let names = profile.functions.iter().map(|function| {
        let text = usize::try_from(function.name).ok();
        let text = text.and_then(|n| profile.texts.get(n)).cloned();
        (function.id, text.unwrap_or_default())
    });
    let names: BTreeMap<u64, String> = names.collect();
    let locations = profile.locations.iter().map(|location| {
        let lines = location.lines.iter();
        let names: Vec<&String> = lines.filter_map(|l| names.get(&l.function)).collect();
        (location.id, names)
    });
    let locations: BTreeMap<u64, Vec<&String>> = locations.collect();
    let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
    let mut all = 0;
    for sample in &profile.samples {
        let n = sample.values.first().copied().unwrap_or(1);
        all += n;
        let places = sample.locations.iter().filter_map(|id| locations.get(id));
        // A function that calls itself counts once.
        let names: BTreeSet<&str> = places.flatten().map(|name| name.as_str()).collect();
        for name in names {
            *by_name.entry(name).or_default() += n;
        }
    }
    let mut shares: Vec<(String, f64)> = by_name
        .into_iter()
        .filter(|(name, _)| is_telling(name))
        .map(|(name, n)| (name.to_owned(), 100.0 * n as f64 / all.max(1) as f64))
        .collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares.truncate(N_SHOWN);
    shares
}

/// Returns false for functions that call everything.
fn is_telling(name: &str) -> bool {
    const RUNTIME: [&str; 14] = [
        "tokio::",
        "std::",
        "core::",
        "main",
        "__",
        "start_thread",
        "clone",
        "poll",
        "call_once",
        "catch_unwind",
        "do_call",
        "with_mut",
        "{async_block",
        "{closure",
    ];
    let name = name.trim_start_matches('<');
    !RUNTIME.iter().any(|start| name.starts_with(start)) && !name.contains("FnOnce")
}
