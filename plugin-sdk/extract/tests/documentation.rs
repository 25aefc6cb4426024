//! The documentation of Rust reads like its document tree: as it is, without the tags that may be left out, and
//! with mistakes.
//!
//! A page with mistakes may read differently only if its tree shows one of the differences that the author's guide
//! names. Each test says how many of a hundred pages show none at least, so that it means something.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it skips"
)]

use std::collections::BTreeMap;

use crawler_extract::Plan;
use crawler_extract::mutation::{
    Random, cut_off, with_stray_end_tags, without_end_tags, without_tags,
};
use scraper::Html;

#[path = "support/compared.rs"]
mod compared;
#[path = "support/documentation.rs"]
mod documentation;
#[path = "support/marked.rs"]
mod marked;
#[path = "documentation/pages.rs"]
mod pages;
#[path = "support/reference.rs"]
mod reference;
#[path = "support/written.rs"]
mod written;

use compared::{omitted, readings};
use marked::{Class, classes};
use pages::{DOCUMENTATION, PLANS};

/// Elements that a browser opens again if they were not closed.
const FORMATTING: [&str; 14] = [
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];

#[derive(Debug, Default)]
struct Outcome {
    n_pages: usize,
    /// Number of pages of no class, which have to read the same.
    n_comparable: usize,
    /// Number of pages of each class, and of those that read differently.
    excepted: BTreeMap<Class, (usize, usize)>,
    /// Number of pages on which formatting is opened again, and that have to read the same without any formatting.
    n_unformatted: usize,
    faults: Vec<String>,
}

impl Outcome {
    fn add(&mut self, plans: &[(&str, Plan)], page: &str, path: &str) {
        let classes = classes(page);
        let different = different(plans, page);
        self.n_pages += 1;
        for class in &classes {
            let (n_excepted, n_different) = self.excepted.entry(*class).or_default();
            *n_excepted += 1;
            *n_different += usize::from(!different.is_empty());
        }
        if classes.is_empty() {
            self.n_comparable += 1;
            self.fault(path, &different);
        } else if classes.contains(&Class::OpenedAgain) {
            let page = without_tags(page, is_formatting);
            if marked::classes(&page).is_empty() {
                self.n_unformatted += 1;
                self.fault(path, &self::different(plans, &page));
            }
        }
    }

    fn fault(&mut self, path: &str, plans: &[&str]) {
        if !plans.is_empty() {
            self.faults.push(format!("{}: {path}", plans.join(", ")));
        }
    }
}

/// Returns the names of the plans that read differently from the tree.
fn different<'a>(plans: &[(&'a str, Plan)], page: &str) -> Vec<&'a str> {
    let tree = Html::parse_document(page);
    let different = plans.iter().filter(|(_, plan)| {
        let (ours, theirs) = readings(plan, page, &tree);
        ours != theirs
    });
    different.map(|(name, _)| *name).collect()
}

/// Reads pages of the documentation with all plans after a change. Pages that the change leaves as they are do not
/// count. Returns `None` if the documentation is not installed.
fn outcome(change: impl Fn(&mut Random, &str) -> String) -> Option<Outcome> {
    let pages = &*DOCUMENTATION;
    if pages.is_empty() {
        return None;
    }
    let plans = PLANS.map(|(name, text)| (name, written::plan(text)));
    let mut outcome = Outcome::default();
    for (seed, (path, page)) in (0..).zip(pages) {
        let changed = change(&mut Random::new(seed), page);
        if changed != *page {
            outcome.add(&plans, &changed, path);
        }
    }
    println!("{outcome:?}");
    Some(outcome)
}

/// Checks that at least `at_least` of a hundred pages are of no class, and that all of these read the same.
#[track_caller]
fn check(at_least: usize, change: impl Fn(&mut Random, &str) -> String) {
    check_with_unformatted([at_least, 0], change);
}

/// Checks also that at least `unformatted` of a hundred pages have formatting that is opened again, and read the
/// same without it.
#[track_caller]
fn check_with_unformatted(
    [at_least, unformatted]: [usize; 2],
    change: impl Fn(&mut Random, &str) -> String,
) {
    let Some(outcome) = outcome(change) else {
        return;
    };
    assert!(
        outcome.faults.is_empty(),
        "{} readings:\n{}",
        outcome.faults.len(),
        outcome.faults.join("\n")
    );
    assert!(outcome.n_pages > 1_000, "{outcome:?}");
    assert!(
        outcome.n_comparable * 100 >= outcome.n_pages * at_least,
        "{outcome:?}"
    );
    assert!(
        outcome.n_unformatted * 100 >= outcome.n_pages * unformatted,
        "{outcome:?}"
    );
}

fn is_formatting(name: &str) -> bool {
    FORMATTING.contains(&name)
}

#[test]
fn documentation_as_it_is_reads_the_same() {
    // The comment only makes it another page.
    check(100, |_, page| format!("{page}<!-- -->"));
}

#[test]
fn documentation_without_its_omissible_tags_reads_the_same() {
    check(100, |_, page| omitted(page));
}

#[test]
fn documentation_cut_off_anywhere_reads_the_same() {
    check(95, |random, page| cut_off(page, random));
}

#[test]
fn documentation_that_lacks_end_tags_of_blocks_reads_the_same() {
    let blocks = |name: &str| !is_formatting(name);
    check(95, |random, page| without_end_tags(page, random, blocks));
}

#[test]
fn documentation_that_lacks_any_end_tags_reads_the_same_unless_formatting_is_opened_again() {
    check_with_unformatted([40, 20], |random, page| {
        without_end_tags(page, random, |_| true)
    });
}

#[test]
fn documentation_with_stray_end_tags_of_blocks_reads_the_same() {
    // To a browser, an end tag of `p` or `br` alone is an element.
    let blocks = |name: &str| !is_formatting(name) && !matches!(name, "p" | "br");
    check_with_unformatted([80, 2], |random, page| {
        with_stray_end_tags(page, random, blocks)
    });
}

#[test]
fn documentation_with_any_stray_end_tags_reads_the_same_unless_a_browser_makes_something_of_them() {
    check_with_unformatted([70, 2], |random, page| {
        with_stray_end_tags(page, random, |_| true)
    });
}
