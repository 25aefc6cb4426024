//! A run after another: the pages that are asked for again, those that are parsed again, and the items that stay.

use std::collections::BTreeMap;

use crawler_tests::web::{Asked, HeaderMap, IntoResponse as _, Response, Site, StatusCode, Web};
use serde_json::{Value, json};

use crate::server::{Server, lines, text};

const DATE: &str = "Wed, 18 Nov 2026 10:00:00 GMT";

/// Opens a site. The first page has an ETag, and leads to one with a date, one that is recognized by its content
/// alone, and one that is new whenever it is asked for; that one leads to a further page from the second time on.
fn site() -> Web {
    let links = r#"[{"url": "/dated"}, {"url": "/plain"}, {"url": "/news"}]"#;
    Site::new()
        .handle("/", move |asked| async move {
            unless(&asked, ("if-none-match", "etag"), "\"v1\"", links)
        })
        .handle("/dated", |asked| async move {
            unless(&asked, ("if-modified-since", "last-modified"), DATE, "[]")
        })
        .page("/plain", "[]")
        .handle("/news", |asked| async move {
            let (etag, body) = match asked.nth {
                1 => ("\"n1\"".to_owned(), "[]".to_owned()),
                nth => (
                    format!("\"n{nth}\""),
                    format!(r#"[{{"url": "/late", "state": "{nth}"}}]"#),
                ),
            };
            unless(&asked, ("if-none-match", "etag"), &etag, &body)
        })
        .page("/late", "[]")
        .open()
}

/// Returns 304 if the request has this validator as its condition, and otherwise the page with it.
fn unless(asked: &Asked, (condition, header): (&str, &str), is: &str, body: &str) -> Response {
    let page = [(header.to_owned(), is.to_owned())];
    match asked.headers.get(condition) {
        Some(known) if known == is => (StatusCode::NOT_MODIFIED, page).into_response(),
        _ => (page, body.to_owned()).into_response(),
    }
}

/// Returns the condition of each request of one run, and the status of its answer, by path. No path occurs twice.
#[track_caller]
fn asked(web: &Web, n_before: usize) -> BTreeMap<String, (Option<String>, u16)> {
    let condition = |headers: &HeaderMap| {
        let names = ["if-none-match", "if-modified-since"].into_iter();
        let mut found = names.filter_map(|name| headers.get(name));
        found
            .next()
            .and_then(|value| Some(value.to_str().ok()?.to_owned()))
    };
    let mut asked = BTreeMap::new();
    for hit in web.log().split_off(n_before) {
        let status = hit.status.map_or(0, |status| status.as_u16());
        let again = asked.insert(hit.path.clone(), (condition(&hit.headers), status));
        assert_eq!(again, None, "{} was asked for twice", hit.path);
    }
    asked.remove("/robots.txt");
    asked
}

fn expected(asked: &[(&str, Option<&str>, u16)]) -> BTreeMap<String, (Option<String>, u16)> {
    let asked = asked.iter();
    asked
        .map(|(path, condition, status)| {
            ((*path).to_owned(), (condition.map(str::to_owned), *status))
        })
        .collect()
}

/// Begins a further run. Returns the resource once it is finished, and the requests of the run.
#[track_caller]
fn run_again(server: &Server, web: &Web) -> (Value, BTreeMap<String, (Option<String>, u16)>) {
    let n_before = web.log().len();
    server.ok(&["resource", "restart", "books"]);
    let books = server.finished("books");
    (books, asked(web, n_before))
}

/// Returns the paths of the items of the present run, in order.
#[track_caller]
fn paths(items: &[Value]) -> Vec<String> {
    let path = |item: &Value| {
        let url: url::Url = text(&item["url"]).parse().expect("a URL");
        url.path().to_owned()
    };
    items.iter().map(path).collect()
}

#[track_caller]
fn check_counts(books: &Value, run: u64, parsed: u64, other_done: u64) {
    let counts = &books["counts"];
    let found = ["parsed", "other_done", "items", "dead", "due"].map(|name| &counts[name]);
    assert_eq!(
        found,
        [parsed, other_done, parsed, 0, 0]
            .map(|n| json!(n))
            .each_ref(),
        "{books}"
    );
    assert_eq!(books["run"], run, "{books}");
}

/// Checks that the items of the first of two runs are read at every door, in parts too.
#[track_caller]
fn check_earlier_items(server: &Server, first: &[Value]) {
    let read = |arguments: &[&str]| {
        let items = ["items", "books", "--run=1"];
        server.ok(&[&items, arguments].concat())
    };
    for found in [
        lines(&read(&["--envelope"])),
        lines(&read(&[
            "--envelope",
            "--follow",
            "--since=1h",
            "--kind=visit",
        ])),
        lines(
            &server
                .get("/crawler/resource/books/items?envelope&run=1")
                .text,
        ),
    ] {
        assert_eq!(found.len(), first.len(), "{found:?}");
        assert!(found.iter().all(|item| first.contains(item)), "{found:?}");
    }
    assert_eq!(lines(&read(&["--limit=3"])).len(), 3);
    assert_eq!(read(&["--kind=gone"]), "");
    let table = read(&["--limit=1", "-o=table"]);
    let table: Vec<&str> = table.lines().collect();
    assert!(table[0].starts_with("FETCHED "), "{table:?}");
    assert!(
        table[1].contains(" visit ") && table.len() == 2,
        "{table:?}"
    );
}

const FIRST: [(&str, Option<&str>, u16); 4] = [
    ("/", None, 200),
    ("/dated", None, 200),
    ("/plain", None, 200),
    ("/news", None, 200),
];

#[test]
fn f25_pages_that_have_not_changed_are_neither_sent_nor_parsed_again_where_that_is_asked_for() {
    let web = site();
    let server = Server::with_puppet();
    server.add("books", &web.url("/"), &["--unchanged=skip"]);
    let first = server.finished("books");
    check_counts(&first, 1, 4, 0);
    assert_eq!(asked(&web, 0), expected(&FIRST));
    let records = server.records("books");
    assert_eq!(paths(&records), ["/", "/dated", "/news", "/plain"]);

    // The links of the first page are known, though no rule has read it in this run.
    let (second, seen) = run_again(&server, &web);
    let again = [
        ("/", Some("\"v1\""), 304),
        ("/dated", Some(DATE), 304),
        ("/plain", None, 200),
        ("/news", Some("\"n1\""), 200),
        ("/late", None, 200),
    ];
    assert_eq!(seen, expected(&again));
    check_counts(&second, 2, 2, 3);
    assert_eq!(paths(&server.records("books")), ["/late", "/news"]);
    for (path, said) in [
        ("/", "done: not-modified at 20"),
        ("/dated", "done: not-modified at 20"),
        ("/plain", "done: not-modified at 20"),
        ("/news", "done: parsed at 20"),
    ] {
        let why = server.ok(&["frontier", "why", "books", web.url(path).as_str()]);
        assert!(why.starts_with(said), "{path}: {why}");
    }

    // The items of the first run keep their positions.
    let mut in_order = records.clone();
    in_order.sort_by_key(|record| text(&record["position"]).to_owned());
    let mut kept = 0;
    for record in &in_order {
        let place = text(&record["position"]);
        let path = format!("/crawler/resource/books/items?envelope&after={place}");
        let rest = lines(&server.get(&path).text);
        assert!(rest.iter().all(|rest| records.contains(rest)), "{rest:?}");
        kept = kept.max(rest.len());
    }
    assert_eq!(kept, records.len() - 1);
    check_earlier_items(&server, &records);

    // Validators of a page outlive a run in which it was not sent.
    let (third, seen) = run_again(&server, &web);
    let conditions = ["/", "/dated", "/news", "/late"].map(|path| seen[path].clone());
    let known = |condition: &str, status| (Some(condition.to_owned()), status);
    let (etag, date) = (known("\"v1\"", 304), known(DATE, 304));
    assert_eq!(conditions, [etag, date, known("\"n2\"", 200), (None, 200)]);
    check_counts(&third, 3, 1, 4);
}

#[test]
fn pages_are_parsed_anew_once_links_are_followed_otherwise() {
    let web = site();
    let server = Server::with_puppet();
    server.add("books", &web.url("/"), &["--unchanged=skip"]);
    server.finished("books");
    server.ok(&["resource", "update", "books", "--scope=other.example"]);
    let (second, seen) = run_again(&server, &web);
    assert_eq!(
        seen,
        expected(&[&FIRST[..], &[("/late", None, 200)]].concat())
    );
    check_counts(&second, 2, 5, 0);
    let (third, seen) = run_again(&server, &web);
    assert_eq!(seen["/"], (Some("\"v1\"".to_owned()), 304));
    check_counts(&third, 3, 1, 4);
}

#[test]
fn pages_that_are_not_due_are_not_asked_for_and_not_lost() {
    let web = site();
    let server = Server::with_puppet();
    let settings = ["--unchanged=skip", "--revisit=1h", "--max-pages=4"];
    server.add("books", &web.url("/"), &settings);
    server.finished("books");
    let (second, seen) = run_again(&server, &web);
    assert_eq!(seen, expected(&[]));
    check_counts(&second, 2, 0, 4);
    assert_eq!(second["counts"]["outcomes"], json!({"not-due": 4}));
    let why = server.ok(&["frontier", "why", "books", web.url("/dated").as_str()]);
    assert!(why.starts_with("done: not-due at 20"), "{why}");

    // They are known as before once they are due.
    let update = ["resource", "update", "books", "--revisit=0s"];
    server.ok(&[&update[..], &["--max-pages=9"]].concat());
    let (third, seen) = run_again(&server, &web);
    assert_eq!(seen["/"], (Some("\"v1\"".to_owned()), 304));
    assert_eq!(seen["/news"], (Some("\"n1\"".to_owned()), 200));
    check_counts(&third, 3, 2, 3);
}

#[test]
fn unless_asked_otherwise_a_further_run_parses_every_page_anew() {
    let web = site();
    let server = Server::with_puppet();
    server.add("books", &web.url("/"), &[]);
    server.finished("books");
    let (second, seen) = run_again(&server, &web);
    assert_eq!(
        seen,
        expected(&[&FIRST[..], &[("/late", None, 200)]].concat())
    );
    check_counts(&second, 2, 5, 0);
    let all = ["/", "/dated", "/late", "/news", "/plain"];
    assert_eq!(paths(&server.records("books")), all);

    // Validators are kept all the same: the setting holds from the next run on.
    server.ok(&["resource", "update", "books", "--unchanged=skip"]);
    let (third, seen) = run_again(&server, &web);
    assert_eq!(seen["/"], (Some("\"v1\"".to_owned()), 304));
    assert_eq!(seen["/dated"], (Some(DATE.to_owned()), 304));
    check_counts(&third, 3, 1, 4);
    let diff = server.get("/crawler/resource/books/runs/diff?before=2&after=3");
    let diff = diff.json();
    assert_eq!(diff["settings"], json!(["unchanged"]), "{diff}");
    assert_eq!(diff["before"]["outcomes"], json!({"parsed": 5}));
    let outcomes = json!({"not-modified": 4, "parsed": 1});
    assert_eq!(diff["after"]["outcomes"], outcomes);
    let shown = server.ok(&["resource", "diff", "books", "2", "3"]);
    assert!(
        shown.contains("\nsettings that differ: unchanged\n"),
        "{shown}"
    );
}
