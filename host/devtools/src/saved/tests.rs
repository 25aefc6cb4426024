//! Tests of calls that are kept and read again, and of files that are not calls.

use bytes::Bytes;

use super::*;
use crawler_fetch::charset;
use crawler_model::headers::Headers;
use crawler_model::id::Digest;
use crawler_model::page::{FetchRecord, PageText};

fn name(text: &str) -> CallName {
    text.parse().unwrap()
}

fn page() -> Page {
    let mut headers = Headers::default();
    headers.push("content-type", "text/html; charset=iso-8859-1");
    headers.push("set-cookie", "session=secret");
    let body = Bytes::from_static(b"<p>caf\xe9 au lait");
    Page {
        url: "http://a.test/menu".parse().unwrap(),
        requested_url: "http://a.test/".parse().unwrap(),
        status: 203,
        redirects: vec!["http://a.test/".parse().unwrap()],
        fetched_at: 1_700_000_000_000,
        truncated: false,
        text: charset::decode(&body, headers.get("content-type"), None),
        headers,
        body,
        record: FetchRecord::default(),
    }
}

fn keep(folder: &Path, is_replacing: bool) -> Result<SavedCall, SavedError> {
    let params = [("lang".to_owned(), "fr".to_owned())].into();
    keep_as(folder, params, None, is_replacing)
}

fn keep_as(
    folder: &Path,
    params: BTreeMap<String, String>,
    state: Option<&str>,
    is_replacing: bool,
) -> Result<SavedCall, SavedError> {
    let fetched = Fetched {
        rule: "list",
        params,
        limits: limit("fuel"),
        state,
        page: &page(),
        is_kept: false,
    };
    SavedCall::keep(folder, &name("menu"), fetched, is_replacing)
}

fn limit(name: &str) -> LimitOverrides {
    let mut limits = LimitOverrides::default();
    limits.set(name, "7").unwrap();
    limits
}

fn page_of(call: &SavedCall) -> &SavedPage {
    match &call.called {
        CallTarget::Rule { page, .. } => page,
        CallTarget::Root { .. } => panic!("root has no page"),
    }
}

#[test]
fn a_page_is_read_as_it_was_kept_but_for_its_cookies() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("some/pages");
    let kept = keep(&pages, false).unwrap();
    assert_eq!(names(&pages).unwrap(), [name("menu")]);
    let call = SavedCall::read(&pages, &name("menu")).unwrap();
    assert_eq!(call, kept);
    assert_eq!(
        (call.called.name(), call.params["lang"].as_str()),
        ("list", "fr")
    );
    let saved = page_of(&call);
    assert_eq!(saved.charset.as_deref(), Some("windows-1252"));
    let (read, context) = saved.page(&pages, 1 << 20).unwrap();
    let before = page();
    assert_eq!(read.text(), "<p>café au lait");
    let PageText {
        charset, source, ..
    } = read.text;
    assert_eq!((charset, source), (before.text.charset, before.text.source));
    let about = |page: &Page| {
        let Page {
            url,
            requested_url,
            redirects,
            ..
        } = page.clone();
        (
            url,
            requested_url,
            redirects,
            page.status,
            page.fetched_at,
            page.truncated,
        )
    };
    assert_eq!(about(&read), about(&before));
    assert_eq!(read.headers.get("set-cookie"), None);
    assert_eq!(read.headers.len(), 1);
    assert_eq!((context.depth, context.attempt), (0, 1));
    let (cut, _) = saved.page(&pages, 6).unwrap();
    assert_eq!((cut.text().as_ref(), cut.truncated), ("<p>caf", true));
}

#[test]
fn a_kept_body_is_whole_and_its_digest_is_that_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let fetched = Fetched {
        rule: "picture",
        params: BTreeMap::new(),
        limits: LimitOverrides::default(),
        state: None,
        page: &page(),
        is_kept: true,
    };
    let mut call = SavedCall::keep(folder.path(), &name("menu"), fetched, false).unwrap();
    let note = || {
        let text = std::fs::read(path_of(folder.path(), &name("menu"))).unwrap();
        let file: serde_json::Value = serde_json::from_slice(&text).unwrap();
        file["page"]["kept"].as_str().unwrap().to_owned()
    };
    assert_eq!(note(), Digest::of(&page().body).to_string());
    // The body is longer than limit `body`: it is neither cut nor decoded.
    std::fs::write(folder.path().join("menu.html"), "<p>thé").unwrap();
    let (read, context) = page_of(&call).page(folder.path(), 3).unwrap();
    assert_eq!(
        (&read.body[..], read.truncated),
        ("<p>thé".as_bytes(), false)
    );
    assert_eq!(read.text(), "");
    let digest = Digest::of("<p>thé".as_bytes());
    assert_eq!(context.kept, Some(digest));
    let limits = LimitOverrides::default();
    let is_new = call.update(folder.path(), &name("menu"), Outcome::default(), &limits);
    assert!(is_new.unwrap());
    assert_eq!(note(), digest.to_string());
}

#[test]
fn nothing_is_replaced_that_was_not_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let kept = keep(folder.path(), false).unwrap();
    assert!(matches!(
        keep(folder.path(), false),
        Err(SavedError::Present { .. })
    ));
    // The body may belong to another call as well.
    std::fs::remove_file(path_of(folder.path(), &name("menu"))).unwrap();
    assert!(matches!(
        keep(folder.path(), false),
        Err(SavedError::Present { .. })
    ));
    assert_eq!(keep(folder.path(), true).unwrap(), kept);
}

#[test]
fn a_page_that_is_fetched_again_is_called_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut call = keep(folder.path(), false).unwrap();
    let state = Some("café");
    assert_ne!(
        keep_as(folder.path(), BTreeMap::new(), state, true).unwrap(),
        call
    );
    call = SavedCall::read(folder.path(), &name("menu")).unwrap();
    assert_eq!(call.params["lang"], "fr");
    assert!(
        call.update(
            folder.path(),
            &name("menu"),
            Outcome::default(),
            &limit("items")
        )
        .unwrap()
    );
    let again = keep_as(folder.path(), BTreeMap::new(), None, true).unwrap();
    assert_eq!(again, call);
    let (_, context) = page_of(&again).page(folder.path(), 1 << 20).unwrap();
    assert_eq!(context.state.as_ref(), "café".as_bytes());
    let other = [("lang".to_owned(), "de".to_owned())].into();
    let other = keep_as(folder.path(), other, Some(""), true).unwrap();
    assert_eq!(
        (other.params["lang"].as_str(), &other.outcome),
        ("de", &call.outcome)
    );
    let (_, context) = page_of(&other).page(folder.path(), 1 << 20).unwrap();
    assert!(context.state.is_empty());
}

#[test]
fn a_page_is_fetched_again_with_the_limits_of_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let limits = |rule, given: &LimitOverrides| {
        SavedCall::fetch_limits(folder.path(), &name("menu"), rule, given)
    };
    assert_eq!(limits("list", &limit("items")), limit("items"));
    let kept = keep(folder.path(), false).unwrap();
    assert_eq!(kept.limits, limit("fuel"));
    let none = LimitOverrides::default();
    assert_eq!(limits("list", &none), limit("fuel"));
    assert_eq!(
        limits("list", &limit("items")),
        limit("fuel").and(&limit("items"))
    );
    let mut other = LimitOverrides::default();
    other.set("fuel", "9").unwrap();
    assert_eq!(limits("list", &other), other);
    assert_eq!(limits("detail", &none), none);
    std::fs::write(path_of(folder.path(), &name("menu")), "{").unwrap();
    assert_eq!(limits("list", &none), none);
}

#[test]
fn what_comes_of_a_call_is_kept_unless_somebody_has_changed_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut call = keep(folder.path(), false).unwrap();
    let mut late = call.clone();
    let (none, items) = (LimitOverrides::default(), limit("items"));
    let mut update = |limits| call.update(folder.path(), &name("menu"), Outcome::default(), limits);
    assert!(update(&none).unwrap());
    assert!(!update(&none).unwrap(), "nothing is new");
    assert!(update(&items).unwrap());
    assert!(!update(&none).unwrap(), "limits stay");
    assert_eq!(SavedCall::read(folder.path(), &name("menu")).unwrap(), call);
    assert_eq!(call.outcome, Some(Outcome::default()));
    assert_eq!(call.limits, limit("fuel").and(&items));
    let error = late.update(folder.path(), &name("menu"), Outcome::default(), &none);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("it was changed meanwhile")
    );
}

#[test]
fn what_is_no_saved_call_is_told_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let odd = name("odd");
    let page = r#""page": {"url": "http://a.test/", "body": "gone.html"}"#;
    let body = |body: &str| {
        format!(r#"{{"rule": "a", "page": {{"url": "http://a.test/", "body": "{body}"}}}}"#)
    };
    let cases = [
        ("{".to_owned(), "it is no saved call: EOF"),
        (
            r#"{"rule": "list"}"#.to_owned(),
            r#"a rule is called with a page: "page" is missing"#,
        ),
        (
            format!("{{{page}}}"),
            r#"a page is for a rule: "rule" is missing"#,
        ),
        (
            format!(r#"{{"rule": "a", "now": 5, {page}}}"#),
            r#""now" is for root"#,
        ),
        (r#"{"rlue": "list"}"#.to_owned(), "unknown field `rlue`"),
        (
            r#"{"limits": {"memroy": 5}}"#.to_owned(),
            r#"there is no limit "memroy"; the limits are fuel, "#,
        ),
        (
            r#"{"limits": {"fuel": 0}}"#.to_owned(),
            "limit fuel must be above zero",
        ),
        (
            r#"{"limits": {"fuel": "1G"}}"#.to_owned(),
            r#"invalid type: string "1G", expected u64"#,
        ),
        (
            body("../../secret"),
            r#"body "../../secret" is no file beside the call's"#,
        ),
        (
            body("/etc/hostname"),
            r#"body "/etc/hostname" is no file beside the call's"#,
        ),
        (body("a/.."), r#"body "a/.." is no file beside the call's"#),
        (body(""), r#"body "" is no file beside the call's"#),
        (
            r#"{"rule": "a", "page": {"url": "/x", "body": "b"}}"#.to_owned(),
            "relative URL without a base",
        ),
    ];
    for (text, expected) in cases {
        std::fs::write(path_of(folder.path(), &odd), text).unwrap();
        let error = SavedCall::read(folder.path(), &odd)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("odd.call.json: ") && error.contains(expected),
            "{error}"
        );
    }
    let read = |body_is: &str| {
        std::fs::write(path_of(folder.path(), &odd), body(body_is)).unwrap();
        let call = SavedCall::read(folder.path(), &odd).unwrap();
        crawler_process::telemetry::chain(&page_of(&call).page(folder.path(), 1).unwrap_err())
    };
    let error = read("gone.html");
    assert!(error.contains("gone.html: No such file"), "{error}");
    // A file that may never end, or leads elsewhere, is not opened.
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.html")).unwrap();
    std::fs::create_dir(folder.path().join("folder.html")).unwrap();
    for odd_file in ["zero.html", "folder.html"] {
        let error = read(odd_file);
        assert!(error.ends_with("it is no plain file"), "{error}");
    }
    std::fs::write(folder.path().join("a b.call.json"), "{}").unwrap();
    let error = names(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("the name of a call has 1 to 100 letters"),
        "{error}"
    );
}

#[test]
fn a_call_by_hand_needs_little_and_may_have_more() {
    let full = r#"{"rule": "list", "page": {"url": "http://a.test/", "body": "b.html", "depth": 2,
        "attempt": 3, "state": {"hex": "00ff"}, "headers": [["Content-Type", "text/plain"]]}}"#;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("b.html"), "x").unwrap();
    std::fs::write(path_of(folder.path(), &name("full")), full).unwrap();
    let mut call = SavedCall::read(folder.path(), &name("full")).unwrap();
    let (page, context) = page_of(&call).page(folder.path(), 9).unwrap();
    assert_eq!(
        (context.depth, context.attempt, &context.state[..]),
        (2, 3, &[0, 0xff][..])
    );
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, Some("text/plain"))
    );
    assert_eq!(page_of(&call).charset, None);
    // A byte order mark is no part of the text: native tests have to know.
    std::fs::write(folder.path().join("b.html"), "\u{feff}x").unwrap();
    let none = LimitOverrides::default();
    call.update(folder.path(), &name("full"), Outcome::default(), &none)
        .unwrap();
    assert_eq!(page_of(&call).charset.as_deref(), Some("UTF-8"));
    assert_eq!(SavedCall::read(folder.path(), &name("full")).unwrap(), call);
}

#[test]
fn a_name_is_made_of_the_rule_and_the_end_of_the_path() {
    let cases = [
        ("http://a.test/", "list"),
        (
            "http://a.test/books/The%20Waves.html?x=1",
            "list-the-20waves",
        ),
        ("http://a.test/books/7/", "list-7"),
        ("http://a.test/a-b_c.d.html", "list-a-b-c-d"),
    ];
    for (url, expected) in cases {
        assert_eq!(CallName::of("list", &url.parse().unwrap()), name(expected));
    }
    let long = format!("http://a.test/{}", "word-".repeat(100));
    let long = CallName::of("list", &long.parse().unwrap());
    assert!(long.to_string().parse::<CallName>().is_ok());
    let long = CallName::of(&"rule".repeat(30), &"http://a.test/7".parse().unwrap());
    assert!(long.to_string().parse::<CallName>().is_ok());
    let elsewhere = CallName::of("../x", &"http://a.test/7".parse().unwrap());
    assert_eq!(elsewhere, name("---x-7"));
}

#[test]
fn a_body_lies_in_a_file_of_its_kind() {
    let cases = [
        (None, "html"),
        (Some("text/html; charset=utf-8"), "html"),
        (Some("application/ld+json"), "json"),
        (Some("Application/XML"), "xml"),
        (Some("text/plain"), "txt"),
        (Some("image/png"), "png"),
        (Some("application/x-other"), "bin"),
    ];
    for (kind, expected) in cases {
        assert_eq!(ending(kind), expected);
    }
}
