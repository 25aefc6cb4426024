//! Shape of the tree, as far as the compiler does not check it: the layers, the size of files, their opening
//! words, the entries of the root, links of the documentation, and that each row of `behaviours.md` has a test.
//!
//! Each failure names the file and the way to mend it. Code is read as tokens, so that comments and texts may
//! contain any name; unit tests are exempt.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crawler_tests::repository;
use proc_macro2::TokenStream;

mod code;
mod comments;
mod links;
mod options;
mod parts;
mod settings;

use code::{collect_literals, collect_words, count_selects, without_tests};

/// Crates below `host` by layer, lowest first. Each may depend on those of lower layers only; the compiler keeps
/// the rest. `testing` holds what tests share, so it is a dependency of tests alone.
const LAYERS: [&[&str]; 7] = [
    &["model"],
    &["process"],
    &[
        "store", "plugin", "fetch", "frontier", "sink", "data", "archive",
    ],
    &[
        "crawl",
        "access",
        "backup",
        "file-sink",
        "message-sink",
        "sql-sink",
    ],
    &["master", "worker", "devtools"],
    &["api"],
    &["crawler"],
];

/// Names that belong to one place: where they are allowed, and what to use elsewhere.
struct Home {
    names: &'static [&'static str],
    allowed: fn(&str) -> bool,
    instead: &'static str,
}

const HOMES: [Home; 4] = [
    Home {
        names: &["crawler_proto"],
        allowed: |file| {
            in_crate(file, "api")
                || file.starts_with("host/crawler/src/cli")
                || file == "host/crawler/src/app/demo.rs"
        },
        instead: "convert to model types in host/api and pass those; its answers go to the program",
    },
    Home {
        names: &["wasmtime", "wasmtime_wasi"],
        allowed: |file| in_crate(file, "plugin"),
        instead: "speak to plugins through the types of host/plugin",
    },
    Home {
        names: &[
            "DocumentSink",
            "FileSink",
            "FileSinks",
            "LineFiles",
            "LineFolders",
            "NatsSink",
            "NatsSinks",
            "SqlSink",
            "SqlSinks",
            "StreamSink",
            "WebhookSinks",
        ],
        allowed: |file| {
            ["sink", "file-sink", "message-sink", "sql-sink", "crawler"]
                .iter()
                .any(|name| in_crate(file, name))
        },
        instead: "use the traits of host/sink; host/crawler/src/app/sinks.rs hands the backends in",
    },
    Home {
        names: &[
            "tokio",
            "tokio_util",
            "wasmtime",
            "tonic",
            "prost",
            "axum",
            "hyper",
            "reqwest",
            "object_store",
            "fs",
        ],
        allowed: |file| !in_crate(file, "model"),
        instead: "model holds nouns only; move what does IO to the layer that needs it",
    },
];

/// Beginnings of keys of the store, after the default prefix. `/crawler/resource` is a path of the HTTP API, so
/// the ending counts.
const KEYS: [&str; 10] = [
    "cluster",
    "election/",
    "nodes/",
    "plugins/",
    "resources/",
    "shards/",
    "assignments/",
    "deleting/",
    "ids",
    "status/",
];

const ROOT: [&str; 9] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "host",
    "plugin-sdk",
    "plugins",
    "proto",
    "tests",
];

/// Beginnings of the paths of files that run in the simulation.
const SIMULATED: [&str; 17] = [
    "host/crawl/src",
    "host/crawler/src/app/graceful_drain.rs",
    "host/crawler/src/app/master_node.rs",
    "host/crawler/src/app/registration.rs",
    "host/crawler/src/app/sim",
    "host/process/src/clock.rs",
    "host/fetch/src/throttle",
    "host/frontier/src/lib.rs",
    "host/frontier/src/twin",
    "host/frontier/src/workbench",
    "host/process/src/limiter.rs",
    "host/master/src",
    "host/model/src",
    "host/process/src/retry.rs",
    "host/store/src",
    "host/process/src/task",
    "host/worker/src",
];

const LINES_MAX: usize = 400;

#[test]
fn crates_depend_on_lower_layers_only() {
    let layer_of = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    let mut faults = Vec::new();
    let mut n_arrows = 0;
    for file in tracked_files(&["host/*/Cargo.toml"]) {
        let from = crate_of(&file);
        let Some(layer) = layer_of(from) else {
            if from != "testing" {
                faults.push(format!(
                    "{file}: the crate has no layer; add it to LAYERS in tests/tests/tidy/main.rs"
                ));
            }
            continue;
        };
        let manifest = read(&file);
        for line in dependencies(&manifest) {
            let to = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if to == "crawler-testing" || line.contains("\"testing\"") {
                faults.push(format!(
                    "{file}: {line} is for dev-dependencies; a program has no code of tests"
                ));
            }
            let Some(to) = to.strip_prefix("crawler-") else {
                continue;
            };
            let Some(target) = layer_of(to) else {
                continue;
            };
            n_arrows += 1;
            if target >= layer {
                faults.push(format!(
                    "{file}: {from} (L{layer}) depends on {to} (L{target}), which is not below it; pass what is \
                     needed as a value of the model, or define a trait in {from} and let the program connect the two"
                ));
            }
        }
    }
    assert!(n_arrows > 20, "crates are looked for at the wrong place");
    report(&faults);
}

/// The program is one crate: the compiler does not keep what it parses apart from what it runs.
#[test]
fn what_a_user_writes_is_parsed_without_the_parts_that_run() {
    let mut faults = Vec::new();
    let parsed = ["cli", "config", "demo", "bench"].map(|name| format!("host/crawler/src/{name}"));
    for file in host_files() {
        let mut words = BTreeSet::new();
        if parsed.iter().any(|path| file.starts_with(path)) {
            collect_words(tokens(&file), &mut words);
        }
        if words.contains("app") {
            faults.push(format!(
                "{file}: names app, which carries out what cli and config have parsed; hand over a value instead"
            ));
        }
    }
    report(&faults);
}

#[test]
fn what_belongs_to_one_place_is_named_there_only() {
    let mut faults = Vec::new();
    for file in host_files() {
        let mut words = BTreeSet::new();
        collect_words(tokens(&file), &mut words);
        for home in HOMES.iter().filter(|home| !(home.allowed)(&file)) {
            for name in home.names.iter().filter(|name| words.contains(**name)) {
                faults.push(format!("{file}: names {name}; {}", home.instead));
            }
        }
    }
    report(&faults);
}

#[test]
fn only_store_keys_spells_keys() {
    let mut faults = Vec::new();
    for file in host_files()
        .into_iter()
        .filter(|file| file != "host/store/src/keys.rs")
    {
        let mut literals = Vec::new();
        collect_literals(tokens(&file), &mut literals);
        for literal in literals {
            let mut rest = literal.split("/crawler/").skip(1);
            if rest.any(|rest| KEYS.iter().any(|key| rest.starts_with(key))) {
                faults.push(format!(
                    "{file}: spells the key {literal}; add a function to host/store/src/keys.rs"
                ));
            }
        }
    }
    report(&faults);
}

#[test]
fn every_select_of_what_is_simulated_has_an_order() {
    let mut faults = Vec::new();
    let mut n_selects = 0;
    for path in SIMULATED {
        let is_there = host_files().iter().any(|file| file.starts_with(path));
        assert!(is_there, "nothing is at {path}; name what is simulated now");
    }
    let is_simulated = |file: &&String| {
        let is_etcd = file.starts_with("host/store/src/etcd");
        SIMULATED.iter().any(|path| file.starts_with(path)) && !is_etcd
    };
    for file in host_files().iter().filter(is_simulated) {
        let (all, biased) = count_selects(tokens(file));
        n_selects += all;
        if biased < all {
            faults.push(format!(
                "{file}: {} of its select! have no order, so that no seed makes them do the same again; begin each with biased;",
                all - biased
            ));
        }
    }
    assert!(n_selects > 10, "select! is looked for at the wrong place");
    report(&faults);
}

#[test]
fn files_are_short_and_open_with_what_they_are_for() {
    let mut faults = Vec::new();
    for file in rust_files() {
        // These plugins must not compile, and one more line would move every line of the snapshots.
        if file.starts_with("plugin-sdk/tests/ui/") {
            continue;
        }
        let text = read(&file);
        if !text.starts_with("//!") {
            faults.push(format!("{file}: does not start with //!; say why it exists, what it promises, what it leaves"));
        }
        let is_test = file.ends_with("/tests.rs") || file.contains("/tests/");
        let n_lines = without_tests(&text).lines().count();
        if n_lines > LINES_MAX && !is_test {
            faults.push(format!("{file}: {n_lines} lines before its tests, at most {LINES_MAX}; split it by what it does"));
        }
    }
    report(&faults);
}

#[test]
fn the_root_has_its_nine_entries_and_hidden_files_only() {
    let entries: BTreeSet<String> = tracked_files(&[])
        .iter()
        .map(|file| file.split('/').next().unwrap_or(file).to_owned())
        .filter(|entry| !entry.starts_with('.'))
        .collect();
    let wanted: BTreeSet<String> = ROOT.map(str::to_owned).into();
    let surplus = entries
        .difference(&wanted)
        .map(|entry| format!("{entry}: move it below one of {ROOT:?}"));
    let missing = wanted
        .difference(&entries)
        .map(|entry| format!("{entry}: is missing from the root"));
    report(&surplus.chain(missing).collect::<Vec<_>>());
}

#[test]
fn every_behaviour_has_a_test() {
    let files = rust_files()
        .into_iter()
        .filter(|file| !file.starts_with("tests/tests/tidy/"));
    let sources: Vec<String> = files.map(|file| read(&file)).collect();
    let rows = rows(&read("tests/behaviours.md"));
    assert!(!rows.is_empty(), "tests/behaviours.md has no rows");
    let mut faults = Vec::new();
    let mut listed = BTreeSet::new();
    for (id, sentence) in rows {
        let prefix = test_prefix(&id);
        if sentence.is_empty() {
            faults.push(format!("tests/behaviours.md: {id} has no sentence"));
        }
        if !sources
            .iter()
            .any(|text| text.contains(&format!("fn {prefix}")))
        {
            faults.push(format!(
                "{id}: no test is named {prefix}…; write one that shows: {sentence}"
            ));
        }
        if !listed.insert(prefix) {
            faults.push(format!("tests/behaviours.md: {id} is listed twice"));
        }
    }
    report(&faults);
}

#[test]
fn whatever_grows_has_a_test_of_its_bound() {
    let essay = read("host/crawler/src/lib.rs");
    let (_, grows) = essay
        .split_once("# What grows")
        .expect("the section is there");
    let (table, _) = grows.split_once("\n\n").expect("the modules follow");
    let sources: Vec<String> = rust_files().iter().map(|file| read(file)).collect();
    let rows = table.lines().filter_map(|line| line.strip_prefix("//! | "));
    let mut faults = Vec::new();
    let mut n_rows = 0;
    for row in rows.skip(1) {
        let cells: Vec<&str> = row.trim_end_matches(['|', ' ']).split(" | ").collect();
        let &[what, _bound, _remover, _setting, tests] = cells.as_slice() else {
            faults.push(format!(
                "host/crawler/src/lib.rs: a row of what grows lacks a cell: {row}"
            ));
            continue;
        };
        n_rows += 1;
        for test in tests.split(", ").map(|test| test.trim_matches('`')) {
            let is_there = |text: &String| text.contains(&format!("fn {test}("));
            if !sources.iter().any(is_there) {
                faults.push(format!("{what}: no test is named {test}"));
            }
        }
    }
    assert!(n_rows > 5, "the table of what grows is not where it was");
    report(&faults);
}

#[test]
fn every_mutant_applies_and_names_its_test() {
    let mutants = tracked_files(&["tests/mutants/*.patch"]);
    assert!(mutants.len() > 10, "the mutants are not where they were");
    let mut faults = Vec::new();
    for mutant in mutants {
        let text = fs::read_to_string(repository().join(&mutant)).expect("it is readable");
        let mut head = text.lines();
        let starts = ["why: ", "caught by: -p "];
        if !starts
            .iter()
            .all(|start| head.next().is_some_and(|line| line.starts_with(start)))
        {
            faults.push(format!("{mutant} does not open with {starts:?}"));
        }
        let checked = Command::new("git")
            .args(["apply", "--check", &mutant])
            .current_dir(repository())
            .output()
            .expect("git starts");
        if !checked.status.success() {
            let why = String::from_utf8_lossy(&checked.stderr);
            faults.push(format!("{mutant} has to be made again: {}", why.trim_end()));
        }
    }
    report(&faults);
}

#[track_caller]
fn report(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// Returns files that git knows or would add, and that exist.
fn tracked_files(patterns: &[&str]) -> Vec<String> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "--deduplicate",
            "--",
        ])
        .args(patterns)
        .current_dir(repository())
        .output()
        .expect("git starts");
    assert!(
        listed.status.success(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let files = String::from_utf8(listed.stdout).expect("file names are UTF-8");
    files
        .lines()
        .filter(|file| repository().join(file).exists())
        .map(str::to_owned)
        .collect()
}

fn rust_files() -> Vec<String> {
    tracked_files(&["*.rs"])
}

/// Returns the code of the crates below `host`, without tests.
fn host_files() -> Vec<String> {
    let files = tracked_files(&["host/*/src/*.rs"]);
    let is_test = |file: &String| {
        file.ends_with("/tests.rs") || file.contains("/tests/") || crate_of(file) == "testing"
    };
    let files: Vec<String> = files.into_iter().filter(|file| !is_test(file)).collect();
    assert!(
        files.len() > 100,
        "crates are looked for at the wrong place"
    );
    files
}

fn read(file: &str) -> String {
    fs::read_to_string(repository().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

fn tokens(file: &str) -> TokenStream {
    let text = read(file);
    without_tests(&text)
        .parse()
        .unwrap_or_else(|e| panic!("{file} is not Rust: {e}"))
}

/// Returns `store` for all files below `host/store/`.
fn crate_of(file: &str) -> &str {
    let path = file.strip_prefix("host/").unwrap_or(file);
    path.split('/').next().unwrap_or(path)
}

fn in_crate(file: &str, name: &str) -> bool {
    crate_of(file) == name
}

/// Returns the lines of a manifest that name dependencies of the code, of any target, and not of its tests.
fn dependencies(manifest: &str) -> Vec<&str> {
    let sections = manifest.split("\n[");
    let of_code = sections.filter_map(|section| {
        let (head, lines) = section.split_once(']')?;
        let is_of_code = head.ends_with("dependencies") && !head.ends_with("dev-dependencies");
        is_of_code.then_some(lines)
    });
    of_code.flat_map(str::lines).collect()
}

#[test]
fn dependencies_of_code_are_told_from_those_of_tests() {
    let manifest = "[package]\nname = \"a\"\n\n[dependencies]\nb.workspace = true\n\n[target.'cfg(unix)'.dependencies]\n\
                    c = \"1\"\n\n[dev-dependencies]\nd.workspace = true\n";
    let found = dependencies(manifest);
    let found: Vec<&str> = found.into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(found, ["b.workspace = true", "c = \"1\""]);
}

/// Returns the rows of a table: id and sentence.
fn rows(table: &str) -> Vec<(String, String)> {
    let cells = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix('|')?.split_once('|'));
    let is_id = |id: &str| id.starts_with(['S', 'F', 'R']) && id[1..].parse::<u32>().is_ok();
    cells
        .map(|(id, rest)| (id.trim().to_owned(), rest.trim().to_owned()))
        .filter(|(id, _)| is_id(id))
        .collect()
}

/// Returns `s07_` for S7.
fn test_prefix(id: &str) -> String {
    format!("{}{:0>2}_", id[..1].to_lowercase(), &id[1..])
}

#[test]
fn rows_and_tests_are_matched_by_name() {
    let rows = rows("| id | sentence |\n|---|---|\n| S7 | Runs. |\n| F13 | Never. |\n");
    assert_eq!(
        rows,
        [
            ("S7".to_owned(), "Runs.".to_owned()),
            ("F13".to_owned(), "Never.".to_owned())
        ]
    );
    assert_eq!(
        (test_prefix("S7"), test_prefix("F13")),
        ("s07_".to_owned(), "f13_".to_owned())
    );
}
