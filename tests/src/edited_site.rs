//! A site that is edited between two runs of a crawl, and the changes that the second run tells.

use serde_json::{Value, json};

use crate::http::text;
use crate::web::{Site, Web};

/// Opens the site. Its first page leads to two visits. From the second run on one of them is at another place, one is gone,
/// and one is new.
pub fn open() -> Web {
    let leaf = |url: &str, state: &str| json!({"url": url, "rule": "leaf", "state": state});
    let before = json!([leaf("/1", "moved"), leaf("/2", "gone")]).to_string();
    let after = json!([leaf("/3", "moved"), leaf("/4", "new")]).to_string();
    let site = Site::new().handle("/", move |asked| {
        let page = match asked.nth {
            1 => before.clone(),
            _ => after.clone(),
        };
        async move { page }
    });
    let paths = ["/1", "/2", "/3", "/4"];
    paths
        .iter()
        .fold(site, |site, path| site.page(path, "[]"))
        .open()
}

/// Returns changes as lines, sorted: pages may end in any order.
#[track_caller]
pub fn told(changes: &[Value]) -> Vec<String> {
    let line = |change: &Value| {
        let (word, key) = (text(&change["change"]), text(&change["key"]));
        let fields = change.get("fields").cloned().unwrap_or_else(|| json!([]));
        format!("{word} {key} {fields}")
    };
    let mut told: Vec<String> = changes.iter().map(line).collect();
    told.sort();
    told
}

/// Checks the records of a sink that has the changes of two runs of a crawl of the site.
#[track_caller]
pub fn check(web: &Web, records: &[Value]) {
    let page = format!("added {} []", web.url("/"));
    let first = ["added gone []", &page, "added moved []"];
    let second = [
        "added new []",
        r#"changed moved ["url"]"#,
        "removed gone []",
    ];
    for (run, expected) in [(1, first), (2, second)] {
        let of_run = records.iter().filter(|record| record["run"] == run);
        let mut changes: Vec<Value> = of_run.map(|record| record["item"].clone()).collect();
        assert_eq!(told(&changes), expected, "run {run}");
        changes.sort_by_key(|change| change["number"].as_u64());
        let numbers = changes.iter().map(|change| change["number"].as_u64());
        assert!(numbers.eq((0..3).map(Some)), "{changes:?}");
    }
}
