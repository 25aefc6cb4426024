//! Changes of items from run to run, as the command line and HTTP show them.

use crawler_tests::web::{Method, Site, Web};
use serde_json::{Value, json};

use crate::server::{Server, lines, text};

/// Opens a site whose first page leads to two visits. From the second run on one of them is at another place, one is
/// gone, and one is new.
pub(crate) fn site() -> Web {
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
fn told(changes: &[Value]) -> Vec<String> {
    let line = |change: &Value| {
        let (word, key) = (text(&change["change"]), text(&change["key"]));
        format!("{word} {key} {}", change["fields"])
    };
    let mut told: Vec<String> = changes.iter().map(line).collect();
    told.sort();
    told
}

#[test]
fn changes_of_a_run_are_read_by_items_key_and_page() {
    let web = site();
    let server = Server::with_puppet();
    server.add("books", &web.url("/"), &["--changes=2"]);
    server.finished("books");
    server.ok(&["resource", "restart", "books"]);
    server.finished("books");

    let present = lines(&server.ok(&["items", "books", "--changes"]));
    // The item of the first page has no key; it is known by its page, and as it was.
    let expected = [
        "added new []",
        r#"changed moved ["url"]"#,
        "removed gone []",
    ];
    assert_eq!(told(&present), expected);
    let moved = present.iter().find(|change| change["key"] == "moved");
    let old = json!({"url": web.url("/1").as_str()});
    assert_eq!(moved.expect("it is told")["old"], old);
    let first = lines(&server.ok(&["items", "books", "--changes", "--run=1"]));
    let page = format!("added {} []", web.url("/"));
    assert_eq!(told(&first), ["added gone []", &page, "added moved []"]);

    let path = "/crawler/resource/books/changes";
    let page = server.get(&format!("{path}?page_size=1")).json();
    let totals = json!({
        "added": 1, "changed": 1, "unchanged": 1, "removed": 1,
        "repeated": 0, "lacking_key": 1, "complete": true,
    });
    assert_eq!(
        (&page["totals"], &page["next_page_token"]),
        (&totals, &json!("2.1"))
    );
    let rest = server.get(&format!("{path}?page_token=2.1")).json();
    let rest = rest["changes"].as_array().expect("a list of changes");
    let all = page["changes"].as_array().expect("a list of changes");
    assert_eq!(told(&[&all[..], &rest[..]].concat()), expected);
    let other = server.http(Method::GET, &format!("{path}?run=1&page_token=2.1"), None);
    assert_eq!(other.status, 400, "{other:?}");
}
