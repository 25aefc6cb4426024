//! The page of a master in a browser that stays open, compared with what another master tells.

use std::time::Instant;

use crawler_tests::chromium::Dialogue;
use crawler_tests::cluster::Node;
use crawler_tests::{PATIENCE, repository, until};
use serde_json::Value;
use tonic::Status;

use super::views;

/// An open page.
pub(super) struct Page {
    dialogue: Dialogue,
    /// Address of gRPC of the master that tells what the page has to show.
    master: String,
}

impl Page {
    /// Opens the page of one master, to be compared with what the other one tells. If there is no browser, it says so
    /// and returns `None`.
    #[track_caller]
    pub(super) fn open(of: &Node, told_by: &Node) -> Option<Self> {
        let script = repository().join("tests/tests/cluster/hour/page.mjs");
        let address = format!("http://{}", of.http);
        Some(Self {
            dialogue: Dialogue::start(&script, &[&address])?,
            master: told_by.grpc.clone(),
        })
    }

    /// Checks all views with numbers, of these resources. The page is at the overview before and after it, so that an
    /// overview that is open has to come to know what has happened by itself.
    #[track_caller]
    pub(super) fn check(&mut self, resources: &[&str]) {
        self.shows("#/", views::overview);
        self.shows("#/resources", views::list);
        self.shows("#/nodes", views::nodes);
        for name in resources {
            let view = format!("#/resources/{name}");
            self.shows(&view, |master| views::resource(master, name));
        }
        self.shows("#/", views::overview);
    }

    /// Checks the views of a crawl that does not go on.
    #[track_caller]
    pub(super) fn check_at_rest(&mut self, name: &str) {
        let of = |tab: &str| format!("#/resources/{name}/{tab}");
        self.shows(&of("frontier"), |master| views::frontier(master, name));
        self.shows(&of("errors"), |master| views::errors(master, name));
        self.agrees(&of("events"), views::shown_runs, |master| {
            views::finished_runs(master, name)
        });
    }

    /// Ends the browser. No script may have failed, and no request may have left the master.
    #[track_caller]
    pub(super) fn close(self) {
        self.dialogue.close();
    }

    /// Waits until a view shows what a master tells.
    #[track_caller]
    fn shows(&mut self, view: &str, told: impl Fn(&str) -> Result<Value, Status>) {
        self.agrees(view, part_of, told);
    }

    /// Waits until that part of a view which `part` takes is what a master tells both before and after the look.
    #[track_caller]
    fn agrees(
        &mut self,
        view: &str,
        part: fn(&Value, &Value) -> Value,
        told: impl Fn(&str) -> Result<Value, Status>,
    ) {
        let start = Instant::now();
        let mut next = told(&self.master);
        let what = format!("view {view} with what the master tells");
        until(&what, 2 * PATIENCE, || {
            let shown = self.dialogue.ask(view);
            let shown: Value =
                serde_json::from_str(&shown).unwrap_or_else(|e| panic!("{shown}: {e}"));
            let before = std::mem::replace(&mut next, told(&self.master));
            let is_same = match (&before, &next) {
                (Ok(before), Ok(after)) => before == after && part(&shown, before) == *before,
                (Err(_), _) | (_, Err(_)) => false,
            };
            let is_in_time = start.elapsed() < PATIENCE;
            assert!(
                is_same || is_in_time,
                "{view} shows {shown:#}\n\nthe master tells {before:#?}\n\nand then {next:#?}"
            );
            is_same.then_some(())
        });
    }
}

/// Returns what a view shows of that which is told: the fields of these names, and all rows.
fn part_of(shown: &Value, told: &Value) -> Value {
    match (shown, told) {
        (Value::Object(shown), Value::Object(told)) => {
            let fields = told.iter().map(|(name, told)| {
                let shown = shown.get(name).unwrap_or(&Value::Null);
                (name.clone(), part_of(shown, told))
            });
            Value::Object(fields.collect())
        }
        (Value::Array(shown), Value::Array(told)) => {
            let rows = shown.iter().enumerate();
            rows.map(|(n, row)| part_of(row, told.get(n).unwrap_or(row)))
                .collect()
        }
        (shown, _) => shown.clone(),
    }
}

#[test]
fn a_row_or_number_that_differs_is_found() {
    use serde_json::json;

    let told =
        json!({"figures": {"Items": "2"}, "tables": {"Shards": [{"Items": "2"}], "Errors": null}});
    let shown = |items: &str, shards: Value| json!({"figures": {"Items": items, "Run": "1"}, "tables": {"Shards": shards}});
    let agrees = |shown: Value| part_of(&shown, &told) == told;
    let row = json!({"Items": "2", "Dead": "0"});
    assert!(agrees(shown("2", json!([row]))));
    assert!(!agrees(shown("1", json!([row]))));
    assert!(!agrees(shown("2", json!([row, row]))));
    assert!(!agrees(shown("2", json!([]))));
    assert!(!agrees(shown("2", json!([{"Items": "1"}]))));
    assert!(!agrees(json!({"figures": {"Items": "2"}})));
    let error = json!({"figures": {"Items": "2"}, "tables": {"Shards": [row], "Errors": [{}]}});
    assert!(!agrees(error));
}
