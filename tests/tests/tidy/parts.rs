//! Names of what tests are skipped without: each is known, and continuous integration demands it.

use std::collections::BTreeSet;

use crawler_tests::parts::{OF_OTHERS, OF_TESTS};

use super::{read, report, tracked_files};

/// Beginning of a line that is printed, without white space; the name of a part follows.
const LINE: &str = "skipped:";
/// Beginning of a call that prints one. Crates that do not know our tools may call something else so.
const CALL: &str = "skipped(\"";

#[test]
fn ci_demands_every_part_that_a_test_is_skipped_without() {
    let script = read(".ci/run");
    let (_, rest) = script
        .split_once("TESTS_REQUIRE=")
        .expect("it demands parts");
    let demanded = rest.split_whitespace().next().unwrap_or_default();
    let demanded: BTreeSet<&str> = demanded.split(',').collect();
    assert_eq!(demanded, BTreeSet::from(OF_TESTS));
}

#[test]
fn every_skip_names_a_part() {
    let mut faults = Vec::new();
    let mut n_names = 0;
    for file in tracked_files(&["*.rs", "tests/run"]) {
        let marks = match file.starts_with("tests/") {
            true => &[LINE, CALL][..],
            false => &[LINE],
        };
        for name in named(&read(&file), marks) {
            n_names += 1;
            if !OF_TESTS.iter().chain(&OF_OTHERS).any(|part| *part == name) {
                faults.push(format!(
                    "{file}: a skip names {name}; add it to tests/src/parts.rs and, for tests, to .ci/run"
                ));
            }
        }
    }
    assert!(n_names > 10, "skips are looked for at the wrong place");
    report(&faults);
}

/// Returns the names that a file spells out. Those that it has in a variable are checked when they are printed.
fn named(text: &str, marks: &[&str]) -> Vec<String> {
    let text: String = text.split_whitespace().collect();
    let rests = marks.iter().flat_map(|mark| text.split(mark).skip(1));
    let names = rests.filter_map(|rest| {
        let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let end = rest.find(|c: char| !is_of_name(c))?;
        let (name, rest) = rest.split_at(end);
        (!name.is_empty() && rest.starts_with([':', '"'])).then(|| name.to_owned())
    });
    names.collect()
}

#[test]
fn names_of_parts_are_read_where_they_stand() {
    let text = "println!(\"skipped: fuzz: why\");\nskipped(\n    \"python3-doc\",\n    \"why\",\n);\n\
        skipped(name, \"why\"); println!(\"skipped: {name}: why\"); is_skipped: &str";
    assert_eq!(named(text, &[LINE, CALL]), ["fuzz", "python3-doc"]);
    assert_eq!(named(text, &[LINE]), ["fuzz"]);
}
