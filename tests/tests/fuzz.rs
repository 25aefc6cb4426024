//! Replay of the corpus of the fuzz targets: properties of every input hold for the stored ones. The targets
//! themselves are run by `tests/run soak fuzz`.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crawler_tests::repository;

#[expect(unreachable_pub, reason = "it is a crate of its own for libFuzzer")]
#[expect(clippy::unwrap_used, reason = "what does not hold is a panic")]
#[path = "../fuzz/src/lib.rs"]
mod properties;

type Property = fn(&[u8]);

/// Properties, by the name of the target.
const PROPERTIES: [(&str, Property); 7] = [
    ("charset", properties::charset),
    ("encoding", properties::encoding),
    ("extract", properties::extract_page),
    ("headers", properties::headers),
    ("robots", properties::robots),
    ("tree", properties::reads_as_its_tree),
    ("url", properties::url),
];

#[test]
fn what_holds_for_every_input_holds_for_those_that_are_kept() {
    let mut faults = Vec::new();
    for (target, property) in PROPERTIES {
        let files = files(&format!("corpus/{target}"));
        assert!(
            files.len() >= 5,
            "{target} has hardly anything to begin with"
        );
        for file in files {
            let input = fs::read(&file).expect("it can be read");
            // The panic itself tells what failed.
            if catch_unwind(AssertUnwindSafe(|| property(&input))).is_err() {
                faults.push(format!("{target} does not hold for {}", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn the_corpus_of_pages_is_compared_with_their_trees() {
    for file in files("corpus/tree") {
        let input = fs::read(&file).expect("it can be read");
        assert!(properties::is_compared(&input), "{}", file.display());
    }
}

#[test]
fn every_fuzz_target_has_a_corpus_that_is_replayed() {
    let stems = |folder: &str| -> BTreeSet<String> {
        let stem = |file: &PathBuf| {
            file.file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
        };
        files(folder).iter().filter_map(stem).collect()
    };
    let replayed = PROPERTIES.map(|(target, _)| target.to_owned()).into();
    assert_eq!(stems("fuzz_targets"), replayed);
    assert_eq!(stems("corpus"), replayed);
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = repository().join("tests/fuzz").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    paths.collect()
}
