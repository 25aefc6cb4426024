//! The front page stays short, and every relative link of the documentation leads to a file.
//!
//! This check does not cover whether an address of the web answers, or a file has the heading that a link names.

use std::path::Path;

use crawler_tests::repository;

use super::{read, report, tracked_files};

/// Largest number of bytes of the front page; longer text belongs in a chapter of the book.
const README_MAX: usize = 6_000;

#[test]
fn the_readme_is_short() {
    let n_bytes = read("README.md").len();
    assert!(
        n_bytes <= README_MAX,
        "README.md has {n_bytes} bytes, at most {README_MAX}; move text to a chapter of host/docs/src"
    );
}

#[test]
fn every_relative_link_leads_to_a_file() {
    let mut faults = Vec::new();
    let mut n_links = 0;
    for page in tracked_files(&["README.md", "host/docs/src/*.md"]) {
        let folder = Path::new(&page).parent().unwrap_or(Path::new(""));
        for file in linked_files(&read(&page)) {
            n_links += 1;
            if !repository().join(folder).join(&file).exists() {
                faults.push(format!("{page}: links to {file}, which is not there"));
            }
        }
    }
    assert!(n_links > 10, "links are looked for at the wrong place");
    report(&faults);
}

#[test]
fn links_are_found_outside_of_code_only() {
    let page =
        "[a](b.md#c) and [d](../e.md), [f](https://g.test/)\n```text\n[h](i.md)\n```\n[j](#k)";
    assert_eq!(linked_files(page), ["b.md", "../e.md"]);
}

/// Returns the files that a page links to, relative to its own folder. Blocks of code are passed over.
fn linked_files(page: &str) -> Vec<String> {
    let mut files = Vec::new();
    let mut is_code = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let targets = line.split("](").skip(1);
            let targets = targets.filter_map(|rest| rest.split(')').next());
            let relative = targets.filter(|target| !target.contains("://"));
            let named = relative.filter_map(|target| target.split('#').next());
            files.extend(named.filter(|file| !file.is_empty()).map(str::to_owned));
        }
    }
    files
}
