//! The gallery of plugins: each gives the items that an independent extraction gives of the same site.
//!
//! The other side is `gallery/extract.py`. It fetches by urllib and reads pages by parsel, and has no code in common
//! with the plugins.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crawler_model::id::Digest;
use crawler_tests::http;
use crawler_tests::process::{Ended, Home, Process};
use crawler_tests::python::python;
use crawler_tests::web::Web;
use crawler_tests::{PATIENCE, guests};
use serde_json::Value;

use crate::files::digests;
use crate::server::{Server, lines};

mod site;

use site::Edition;

/// Version of the library that reads pages on the other side.
const PARSEL: &str = "parsel==1.12.1";

/// A crawl of a plugin: its name, its params, further arguments, and the number of items that it finds.
struct Case {
    plugin: &'static str,
    params: Vec<String>,
    arguments: Vec<String>,
    n_items: usize,
}

/// The site and the host of its reviews.
struct Stage {
    web: Web,
    reviews: Web,
    edition: Edition,
}

impl Stage {
    fn open() -> Self {
        let edition = Arc::new(AtomicUsize::new(1));
        let reviews = site::open_reviews();
        let web = site::open(&reviews, &edition);
        Self {
            web,
            reviews,
            edition,
        }
    }

    fn case(&self, plugin: &'static str, start: (&str, &str), n_items: usize) -> Case {
        let (param, path) = start;
        Case {
            plugin,
            params: vec![format!("{param}={}", self.web.url(path))],
            arguments: Vec::new(),
            n_items,
        }
    }
}

impl Case {
    fn with(mut self, params: &[(&str, &str)]) -> Self {
        let params = params.iter();
        self.params
            .extend(params.map(|(name, value)| format!("{name}={value}")));
        self
    }

    fn and(mut self, argument: String) -> Self {
        self.arguments.push(argument);
        self
    }

    /// Crawls in the terminal.
    fn run(&self, home: &Home) -> Ended {
        let guest = guests::guest(self.plugin).display().to_string();
        let mut arguments = vec![
            "run".to_owned(),
            guest,
            "--allow-networks=127.0.0.0/8".to_owned(),
        ];
        arguments.extend(self.params.iter().map(|param| format!("--param={param}")));
        home.run(arguments.iter().chain(&self.arguments))
    }

    /// Returns what the other side finds, in the order of the texts.
    #[track_caller]
    fn expected(&self, python: &Path, script: &Path) -> Vec<String> {
        let mut command = Command::new(python);
        let command = command.arg(script).arg(self.plugin).args(&self.params);
        let ended = Process::start(command).wait(PATIENCE);
        assert_eq!(ended.code, Some(0), "{}: {}", self.plugin, ended.stderr);
        sorted(lines(&ended.stdout))
    }
}

/// Returns items as texts that are equal if the items are, in their order.
fn sorted(items: Vec<Value>) -> Vec<String> {
    let mut texts: Vec<String> = items.iter().map(Value::to_string).collect();
    texts.sort();
    texts
}

#[test]
fn the_gallery_finds_what_an_independent_extraction_finds() {
    let home = Home::new();
    let Some(python) = python(home.path(), "parsel", &[PARSEL]) else {
        return;
    };
    let script = home.write("extract.py", include_str!("gallery/extract.py"));
    let stage = Stage::open();
    let reviews = format!("--scope={}", stage.reviews.address());
    let account = [("user", site::USER), ("password", site::PASSWORD)];
    let searches = [("searches", "sea,  north wind , nothing&nowhere,the")];
    let cases = [
        stage.case("books", ("start", "/catalogue/page-1.html"), 5),
        stage.case("broken_links", ("start", "/links/"), 3),
        stage.case("json_api", ("api", "/api/"), 8),
        stage.case("json_api", ("api", "/api"), 8),
        stage
            .case("login", ("start", "/account/orders"), 5)
            .with(&account),
        stage
            .case("search_form", ("start", "/library/"), 9)
            .with(&searches),
        stage
            .case("search_form", ("start", "/library/desk"), 9)
            .with(&searches),
        stage.case("sitemap", ("site", "/guide/"), 5),
        stage
            .case("sitemap", ("site", "/"), 3)
            .with(&[("since", "2026-07-01")]),
        stage
            .case("several_hosts", ("start", "/shop/"), 5)
            .and(reviews),
        stage.case("table", ("start", "/peaks.html"), 6),
        stage.case("incremental", ("start", "/news/"), 3),
        stage
            .case("files", ("start", "/album/"), 4)
            .and("--files=kept".to_owned()),
    ];
    for case in cases {
        let ended = case.run(&home);
        let name = (case.plugin, &case.params);
        assert_eq!(ended.code, Some(0), "{name:?}: {}", ended.stderr);
        let found = sorted(lines(&ended.stdout));
        assert_eq!(found, case.expected(&python, &script), "{name:?}");
        assert_eq!(found.len(), case.n_items, "{name:?}: {found:#?}");
        if case.plugin == "files" {
            check_files(&stage, &home.path().join("kept"), &lines(&ended.stdout));
        }
    }
    check_runs(&stage, &python, &script);
}

/// Checks that the folder has the bodies that the site serves, each under the digest that its item names.
#[track_caller]
fn check_files(stage: &Stage, folder: &Path, items: &[Value]) {
    let served = |url: &str| Digest::of(&http::bytes(url)).to_string();
    let mut expected = BTreeSet::new();
    for item in items {
        let digest = served(http::text(&item["url"]));
        assert_eq!(item["digest"], digest, "{item}");
        expected.insert(digest);
    }
    // This one is a page: it is stored before the rule refuses it, and no item names it.
    expected.insert(served(stage.web.url("/album/gone.pdf").as_str()));
    assert_eq!(expected.len(), 4, "two of five files are the same");
    assert_eq!(digests(folder), expected);
}

/// Checks that a further run gives the items that are not in the run before.
#[track_caller]
fn check_runs(stage: &Stage, python: &Path, script: &Path) {
    let server = Server::start();
    server.push("incremental", &[]);
    let case = stage.case("incremental", ("start", "/news/"), 3);
    let param = format!("--param={}", case.params[0]);
    server.ok(&["resource", "add", "incremental", &param, "--unchanged=skip"]);
    server.finished("incremental");
    let before = case.expected(python, script);
    assert_eq!(sorted(server.items("incremental")), before);
    assert_eq!(before.len(), case.n_items, "{before:?}");

    stage.edition.store(2, Ordering::Relaxed);
    server.ok(&["resource", "restart", "incremental"]);
    server.finished("incremental");
    let mut new = case.expected(python, script);
    new.retain(|item| !before.contains(item));
    assert_eq!(sorted(server.items("incremental")), new);
    assert_eq!(new.len(), 2, "{new:?}");

    // Nothing is new, and the clock of the first page leads nowhere else.
    server.ok(&["resource", "restart", "incremental"]);
    let counts = &server.finished("incremental")["counts"];
    assert_eq!(
        (&counts["items"], &counts["parsed"], &counts["dead"]),
        (&0.into(), &1.into(), &0.into()),
        "{counts}"
    );
}

#[test]
fn a_refused_login_ends_the_crawl_with_the_reason_of_the_site() {
    let stage = Stage::open();
    let case = stage.case("login", ("start", "/account/orders"), 0);
    let ended = case
        .with(&[("user", site::USER), ("password", "wrong")])
        .run(&Home::new());
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let reason = "the login is refused: Name or password is wrong.";
    assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    // The form is sent once.
    let log = stage.web.log();
    let n_sent = log.iter().filter(|hit| hit.method == "POST").count();
    assert_eq!(n_sent, 1);
}

#[test]
fn reviews_out_of_scope_are_told_and_their_products_missing() {
    let stage = Stage::open();
    let ended = stage
        .case("several_hosts", ("start", "/shop/"), 1)
        .run(&Home::new());
    let found = lines(&ended.stdout);
    let names: Vec<&Value> = found.iter().map(|product| &product["name"]).collect();
    assert_eq!(names, ["Spoon"], "{}", ended.stderr);
    assert!(ended.stderr.contains("127.0.0.2"), "{}", ended.stderr);
    assert!(stage.reviews.log().is_empty());
}
