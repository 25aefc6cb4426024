//! Other crawlers that the benchmark `peers` compares with: their programs, and what a comparison is made of.
//!
//! Crawlers are only compared if they found the same. [`Found::differences`] tells what one found and another did not.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::{cargo, repository, skipped};

/// Item that every crawler gives of a page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Item {
    /// Address without query and fragment.
    pub url: String,
    /// Text of the first title.
    pub title: String,
    /// Number of headings.
    pub headings: u64,
    /// Number of different pages of the site that the page links to.
    pub links: u64,
}

/// Everything that a crawl has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Items by their addresses.
    pub pages: BTreeMap<String, Item>,
    /// Addresses of items that came more than once.
    pub twice: Vec<String>,
}

impl Found {
    /// Adds the items of a text: JSON lines that are items, or have one in the field `item`.
    pub fn add(&mut self, lines: &str) -> Result<(), String> {
        for line in lines.lines() {
            let wrong = |why: serde_json::Error| format!("{why} in {line}");
            let mut value: Value = serde_json::from_str(line).map_err(wrong)?;
            if let Some(item) = value.get_mut("item") {
                value = item.take();
            }
            let item: Item = serde_json::from_value(value).map_err(wrong)?;
            match self.pages.entry(item.url.clone()) {
                Entry::Vacant(place) => drop(place.insert(item)),
                Entry::Occupied(_) => self.twice.push(item.url),
            }
        }
        Ok(())
    }

    /// Number of items.
    pub fn n_items(&self) -> usize {
        self.pages.len() + self.twice.len()
    }

    /// Returns a sentence for each page about which this crawl and another one do not agree.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        for (url, item) in &self.pages {
            match other.pages.get(url) {
                None => differences.push(format!("{url} is missing")),
                Some(another) if another != item => differences.push(format!(
                    "{url} has {}, and not {}",
                    content(another),
                    content(item)
                )),
                Some(_) => {}
            }
        }
        let surplus = other.pages.keys();
        let surplus = surplus.filter(|url| !self.pages.contains_key(*url));
        differences.extend(surplus.map(|url| format!("{url} is surplus")));
        differences.extend(other.twice.iter().map(|url| format!("{url} came again")));
        differences
    }
}

fn content(item: &Item) -> String {
    let Item {
        title,
        headings,
        links,
        ..
    } = item;
    format!("title {title:?}, {headings} headings, {links} links")
}

/// Returns the median, the mean of the two in the middle if there is an even number of values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n.is_multiple_of(2) => f64::midpoint(values[half - 1], values[half]),
        _ => values[half],
    }
}

/// Returns the order in which `n` crawlers take their turns in a round. Each round begins with the next crawler, and every
/// other one goes backwards, so that no crawler always finds the machine as the same other one has left it.
pub fn order(n: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..n).map(move |turn| match round.is_multiple_of(2) {
        true => (round + turn) % n,
        false => (round + n - turn) % n,
    })
}

/// Builds the peers in Rust, and returns their programs by name. If some cannot be built, it says so, and the others
/// are there.
pub fn programs() -> BTreeMap<String, PathBuf> {
    let folder = repository().join("tests/peers");
    let mut programs = BTreeMap::new();
    for package in ["bare", "spider-peer"] {
        let selection = ["--release", "--locked", "--package", package];
        match cargo::try_build(&folder, &selection) {
            // A library may have the name of a program.
            Ok(built) => programs.extend(
                built
                    .into_iter()
                    .filter(|(_, file)| file.extension().is_none()),
            ),
            Err(why) => skipped(package, &why),
        }
    }
    programs
}

/// Version of a crate that the peers in Rust are built with.
pub fn version_of(package: &str) -> String {
    let path = repository().join("tests/peers/Cargo.lock");
    let lock = std::fs::read_to_string(&path)
        .unwrap_or_else(|e| panic!("{} cannot be read: {e}", path.display()));
    locked(&lock, package).unwrap_or_else(|| panic!("{} has no {package}", path.display()))
}

/// Returns the highest version of a crate in a lock file.
fn locked(lock: &str, package: &str) -> Option<String> {
    let mark = format!("name = \"{package}\"\nversion = \"");
    // Versions of one crate are in ascending order.
    let (_, rest) = lock.rsplit_once(&mark)?;
    rest.split('"').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(url: &str, links: u64) -> String {
        format!("{{\"url\":\"{url}\",\"title\":\"T\",\"headings\":1,\"links\":{links}}}\n")
    }

    fn found(lines: &[String]) -> Found {
        let mut found = Found::default();
        found.add(&lines.concat()).unwrap();
        found
    }

    #[test]
    fn crawls_with_the_same_items_agree_in_any_order() {
        let one = found(&[line("/a", 1), line("/b", 2)]);
        let other = found(&[line("/b", 2), line("/a", 1)]);
        assert!(one.differences(&other).is_empty());
        assert_eq!(one.n_items(), 2);
    }

    #[test]
    fn an_item_in_an_envelope_is_the_item() {
        let item = line("/a", 1);
        let record = format!("{{\"run\":1,\"item\":{}}}\n", item.trim_end());
        assert_eq!(found(&[record]), found(&[item]));
    }

    #[test]
    fn each_kind_of_difference_is_told() {
        let one = found(&[line("/a", 1), line("/b", 2)]);
        let other = found(&[line("/b", 3), line("/c", 1), line("/c", 1)]);
        assert_eq!(other.n_items(), 3);
        assert_eq!(
            one.differences(&other),
            [
                "/a is missing",
                "/b has title \"T\", 1 headings, 3 links, and not title \"T\", 1 headings, 2 links",
                "/c is surplus",
                "/c came again",
            ]
        );
    }

    #[test]
    fn a_line_that_is_no_item_is_an_error() {
        let why = Found::default().add("{\"url\":\"/a\"}").unwrap_err();
        assert!(why.contains("{\"url\":\"/a\"}"), "{why}");
    }

    #[test]
    fn a_median_is_the_value_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
    }

    #[test]
    fn turns_begin_with_another_crawler_and_change_direction() {
        let order = |round| order(4, round).collect::<Vec<_>>();
        assert_eq!(order(0), [0, 1, 2, 3]);
        assert_eq!(order(1), [1, 0, 3, 2]);
        assert_eq!(order(2), [2, 3, 0, 1]);
        assert_eq!(order(3), [3, 2, 1, 0]);
        assert_eq!(order(4), [0, 1, 2, 3]);
    }

    #[test]
    fn a_version_is_that_of_the_lock_file() {
        let lock = "name = \"a\"\nversion = \"1.0.0\"\n\nname = \"a\"\nversion = \"2.0.1\"\nsource = \"x\"\n";
        assert_eq!(locked(lock, "a").as_deref(), Some("2.0.1"));
        assert_eq!(locked(lock, "b"), None);
    }

    #[test]
    fn what_the_peers_are_made_of_is_locked() {
        for package in ["lol_html", "reqwest", "scraper", "spider"] {
            assert!(!version_of(package).is_empty(), "{package}");
        }
    }
}
