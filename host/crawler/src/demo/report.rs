//! Text about a crawl of the shop for the terminal: the differences of its items from the truth, and its
//! report. The functions turn values into text; printing is left to `cli`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use url::Url;

use crawler_model::id::{NodeId, PluginRef, ResourceName};

/// Number of differences that [`Differences::lines`] spells out.
const N_SHOWN: usize = 5;

/// Differences of a crawl's items from the truth.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Differences {
    /// URLs whose item is missing.
    pub missing: Vec<String>,
    /// URLs of items that should not be there: of no book, or of one already seen.
    pub extra: Vec<String>,
    /// Fields with wrong values.
    pub different: Vec<Difference>,
}

/// One field with a wrong value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// URL of the item.
    pub url: String,
    /// Name of the field.
    pub field: String,
    /// Value that was crawled. If `None`, the item lacks the field.
    pub found: Option<Value>,
    /// Value of the truth. If `None`, the item should lack the field.
    pub expected: Option<Value>,
}

/// Compares the items of a crawl, in any order, with the truth. Items are matched by `url`.
pub fn compare(items: &[Value], truth: &[Value]) -> Differences {
    let mut differences = Differences::default();
    let mut expected: BTreeMap<&str, &Value> =
        truth.iter().map(|item| (url_of(item), item)).collect();
    for item in items {
        let url = url_of(item);
        match expected.remove(url) {
            Some(expected) => compare_fields(url, item, expected, &mut differences.different),
            None => differences.extra.push(url.to_owned()),
        }
    }
    differences.missing = expected.into_keys().map(str::to_owned).collect();
    differences
}

impl Differences {
    /// Returns true if there are no differences.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.extra.is_empty() && self.different.is_empty()
    }

    /// Returns a line for each of the first five differences, and one that counts the rest.
    pub fn lines(&self) -> Vec<String> {
        let missing = self.missing.iter().map(|url| format!("missing: {url}"));
        let extra = self.extra.iter().map(|url| format!("too many: {url}"));
        let different = self.different.iter().map(|d| {
            format!(
                "different: {}: {} is {}, should be {}",
                d.url,
                d.field,
                or_absent(&d.found),
                or_absent(&d.expected)
            )
        });
        let mut lines: Vec<String> = missing.chain(extra).chain(different).collect();
        let n_more = lines.len().saturating_sub(N_SHOWN);
        lines.truncate(N_SHOWN);
        if n_more > 0 {
            lines.push(format!("and {n_more} more"));
        }
        lines
    }
}

fn url_of(item: &Value) -> &str {
    item["url"].as_str().unwrap_or("(an item without url)")
}

fn compare_fields(url: &str, found: &Value, expected: &Value, different: &mut Vec<Difference>) {
    let empty = serde_json::Map::new();
    let found = found.as_object().unwrap_or(&empty);
    let expected = expected.as_object().unwrap_or(&empty);
    let surplus = found.keys().filter(|field| !expected.contains_key(*field));
    for field in expected.keys().chain(surplus) {
        let (found, expected) = (found.get(field), expected.get(field));
        if found != expected {
            different.push(Difference {
                url: url.to_owned(),
                field: field.clone(),
                found: found.cloned(),
                expected: expected.cloned(),
            });
        }
    }
}

fn or_absent(value: &Option<Value>) -> String {
    value
        .as_ref()
        .map_or_else(|| "absent".to_owned(), Value::to_string)
}

/// Report of a crawl of the shop, in five lines.
#[derive(Debug, Clone)]
pub struct DemoReport {
    /// Address of the shop.
    pub shop: Url,
    /// Number of books that the shop sells.
    pub n_books: usize,
    /// Plugin that was pushed.
    pub plugin: PluginRef,
    /// Size of the plugin.
    pub plugin_bytes: usize,
    /// Resource that was added.
    pub resource: ResourceName,
    /// Worker that took the resource.
    pub worker: NodeId,
    /// Number of pages fetched.
    pub n_pages: u64,
    /// Number of items that were read back.
    pub n_items: usize,
    /// Folder that keeps everything.
    pub data: PathBuf,
}

impl DemoReport {
    /// Returns the report in five lines.
    pub fn lines(&self, differences: &Differences) -> [String; 5] {
        [
            format!("a shop with {} books opened at {}", self.n_books, self.shop),
            format!(
                "plugin {} ({} kB of WebAssembly) was checked in a process of its own and pushed to the master",
                self.plugin,
                self.plugin_bytes.div_ceil(1_000),
            ),
            format!(
                "resource {} was added; {} took it and asked the plugin where to start",
                self.resource, self.worker
            ),
            format!(
                "{} pages were fetched, each parsed in a sandbox of its own; {} items are in {}",
                self.n_pages,
                self.n_items,
                self.data.display(),
            ),
            verdict(self.n_books, differences),
        ]
    }
}

fn verdict(n_books: usize, differences: &Differences) -> String {
    if differences.is_empty() {
        return format!("all {n_books} books match what the shop sells, letter by letter");
    }
    let mut urls: Vec<&str> = differences
        .different
        .iter()
        .map(|d| d.url.as_str())
        .collect();
    urls.dedup();
    format!(
        "of {n_books} books in the shop, the crawl misses {}, has {} too many, and reads {} wrongly",
        differences.missing.len(),
        differences.extra.len(),
        urls.len(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(n: u32) -> Value {
        json!({"url": format!("http://shop.test/book/{n}.html"), "price_pence": 100 * n})
    }

    #[test]
    fn equal_items_in_any_order_do_not_differ() {
        assert!(compare(&[item(2), item(1)], &[item(1), item(2)]).is_empty());
    }

    #[test]
    fn what_is_missing_too_many_or_different_is_named() {
        let mut wrong = item(2);
        wrong["price_pence"] = json!(7);
        wrong["colour"] = json!("red");
        let differences = compare(&[item(1), item(1), wrong], &[item(1), item(2), item(3)]);
        assert_eq!(
            differences.lines(),
            [
                "missing: http://shop.test/book/3.html",
                "too many: http://shop.test/book/1.html",
                "different: http://shop.test/book/2.html: price_pence is 7, should be 200",
                "different: http://shop.test/book/2.html: colour is \"red\", should be absent",
            ]
        );
    }

    #[test]
    fn at_most_five_differences_are_spelled_out() {
        let truth: Vec<Value> = (1..=9).map(item).collect();
        let lines = compare(&[], &truth).lines();
        assert_eq!(lines.len(), 6);
        assert_eq!(lines[5], "and 4 more");
    }

    #[test]
    fn the_story_ends_with_the_verdict() {
        let report = DemoReport {
            shop: "http://127.0.0.1:4000/".parse().unwrap(),
            n_books: 3,
            plugin: "books@1.0.0".parse().unwrap(),
            plugin_bytes: 123_456,
            resource: "books".parse().unwrap(),
            worker: "worker-1".parse().unwrap(),
            n_pages: 10,
            n_items: 2,
            data: "shelf".into(),
        };
        let good = report.lines(&Differences::default());
        assert!(good[1].contains("books@1.0.0 (124 kB"), "{}", good[1]);
        assert!(
            good[3].contains("10 pages were fetched, each"),
            "{}",
            good[3]
        );
        assert_eq!(
            good[4],
            "all 3 books match what the shop sells, letter by letter"
        );
        let bad = report.lines(&compare(&[item(1), item(2)], &[item(1), item(2), item(3)]));
        assert_eq!(
            bad[4],
            "of 3 books in the shop, the crawl misses 1, has 0 too many, and reads 0 wrongly"
        );
    }
}
