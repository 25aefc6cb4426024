//! Tests of statistics: what is added up, and that it stays small.

use serde_json::value::RawValue;

use super::*;
use crate::crawl::{ItemKey, ItemRecord, Request};
use crate::id::Run;
use crate::plugin::Schema;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn item(schema: &str, json: &str) -> ItemRecord {
    ItemRecord {
        key: ItemKey(String::new()),
        url: String::new(),
        rule: String::new(),
        schema: schema.to_owned(),
        run: Run(1),
        fetched_at: 0,
        item: RawValue::from_string(json.to_owned()).unwrap(),
        change: None,
    }
}

/// Adds an attempt at a page of a root request.
fn note(statistics: &mut Statistics, at: &str, end: End<'_>, observed: &Observed) {
    statistics.note(Attempt {
        url: &url(at),
        root: Some(Request::get(url(at), "page").fingerprint()),
        end,
        observed,
    });
}

fn status(status: u16) -> Observed {
    Observed {
        status,
        ..Observed::default()
    }
}

#[test]
fn pages_are_counted_by_their_last_status() {
    let mut statistics = Statistics::default();
    let parsed = End::Done(Done::Parsed);
    for (end, observed) in [
        (parsed, status(200)),
        (parsed, status(200)),
        (End::Retry, status(503)),
        (End::Dead("status-503"), status(503)),
        (End::Dead("timeout"), status(0)),
    ] {
        note(&mut statistics, "http://a.test/", end, &observed);
    }
    assert_eq!(statistics.statuses, [(200, 2), (503, 1)].into());
    for n in 0..100 {
        note(&mut statistics, "http://a.test/", parsed, &status(300 + n));
    }
    assert_eq!(statistics.statuses.len(), MAX_STATUSES + 1);
    assert_eq!(statistics.statuses[&OTHER_STATUSES], 70);
}

#[test]
fn each_reason_of_a_death_has_one_example() {
    let mut statistics = Statistics::default();
    for n in 0..3 {
        let at = format!("http://a.test/{n}");
        note(&mut statistics, &at, End::Dead("timeout"), &status(0));
    }
    let expected = [("timeout".to_owned(), "http://a.test/0".to_owned())];
    assert_eq!(statistics.dead_examples, expected.into());
}

#[test]
fn a_root_request_without_a_page_is_told_until_it_gives_one() {
    let mut statistics = Statistics::default();
    let moved = Observed {
        refused_target: Some((url("http://www.a.test/"), "out-of-scope")),
        ..status(301)
    };
    let gone = End::Done(Done::Gone);
    let redirected = End::Done(Done::Redirected);
    note(&mut statistics, "http://a.test/", redirected, &moved);
    note(&mut statistics, "http://b.test/", gone, &status(404));
    // A redirect that is followed leads to another request.
    note(&mut statistics, "http://c.test/", redirected, &status(301));
    let lost: Vec<_> = statistics
        .lost_roots
        .iter()
        .map(|r| r.end.as_str())
        .collect();
    assert_eq!(lost, ["redirected", "gone"]);
    assert_eq!(statistics.lost_roots[0].target, "http://www.a.test/");
    assert_eq!(statistics.lost_roots[0].refusal, "out-of-scope");
    assert_eq!(statistics.lost_roots[1].status, 404);
    let parsed = End::Done(Done::Parsed);
    note(&mut statistics, "http://b.test/", parsed, &status(200));
    assert_eq!(statistics.lost_roots.len(), 1);
}

#[test]
fn a_url_that_is_too_long_is_cut_with_a_mark() {
    let mut statistics = Statistics::default();
    let at = format!("http://a.test/{}", "x".repeat(300));
    note(&mut statistics, &at, End::Dead("timeout"), &status(0));
    let [root] = statistics.lost_roots.as_slice() else {
        panic!("{statistics:?}")
    };
    assert_eq!(root.url, format!("{}…", &at[..197]));
    assert_eq!(statistics.dead_examples["timeout"], root.url);
}

/// Checks which fields of items are told to be empty.
#[track_caller]
fn check_empty(schema: &str, items: &[&str], expected: &[&str]) {
    let items: Vec<_> = items.iter().map(|json| item("book", json)).collect();
    let mut statistics = Statistics::default();
    statistics.note(Attempt {
        url: &url("http://a.test/"),
        root: None,
        end: End::Done(Done::Parsed),
        observed: &Observed {
            kinds: Kind::of_items(&items),
            ..Observed::default()
        },
    });
    kinds::declare(
        &mut statistics.kinds,
        &[Schema {
            name: "book".to_owned(),
            json_schema: schema.to_owned(),
        }],
    );
    let empty: Vec<_> = statistics.empty_fields().map(|(_, field)| field).collect();
    assert_eq!(empty, expected);
}

#[test]
fn a_field_is_empty_if_no_item_has_a_value() {
    check_empty("", &[], &[]);
    check_empty("", &[r#"{"a":1,"b":null,"c":"","d":[]}"#], &["b", "c", "d"]);
    check_empty("", &[r#"{"a":0,"b":false,"c":" ","d":[null],"e":{}}"#], &[]);
    check_empty("", &[r#"{"a":""}"#, r#"{"a":"x"}"#, r#"{"a":""}"#], &[]);
    let nested = r#"{"a":{"x":null},"b":[[],{}],"\u0063":null,"d":-1.5e3}"#;
    check_empty("", &[nested], &["c"]);
    let schema = r#"{"type":"object","properties":{"a":{},"price":{"type":"number"}}}"#;
    check_empty(schema, &[r#"{"a":1}"#], &["price"]);
    // Without items there is nothing to be said of their fields.
    check_empty(schema, &[], &[]);
}

#[test]
fn a_kind_without_items_is_told_until_there_are_too_many() {
    let mut statistics = Statistics::default();
    let mut emit = |kind: &str| {
        let kinds = Kind::of_items(&[item(kind, "{}")]);
        kinds::merge(&mut statistics.kinds, &kinds);
        statistics.clone()
    };
    let long = "x".repeat(100);
    assert!(!emit("book").may_have_kind(&long));
    let few = emit(&long);
    assert!(few.may_have_kind("book") && few.may_have_kind(&long));
    assert!(!few.may_have_kind("author") && !few.may_have_kind(""));
    for n in 0..20 {
        emit(&format!("kind-{n}"));
    }
    assert!(emit("one more").may_have_kind("author"));
}

#[test]
fn the_hosts_with_most_links_are_known() {
    let mut hosts = TopHosts::default();
    for n in 0..1_000 {
        hosts.add(&format!("h{n}.test"), 1);
        hosts.add("often.test", 2);
        hosts.add("sometimes.test", 1);
    }
    let top: Vec<_> = hosts
        .top(2)
        .into_iter()
        .map(|host| host.host.as_str())
        .collect();
    assert_eq!(top, ["often.test", "sometimes.test"]);
    let often = hosts.top(1)[0];
    assert!(
        often.n - often.error <= 2_000 && often.n >= 2_000,
        "{often:?}"
    );
    let mut sum = TopHosts::default();
    sum.add("rare.test", 1);
    sum.merge(&hosts);
    sum.merge(&hosts);
    assert_eq!(sum.top(1)[0].host, "often.test");
    assert!(sum.top(1)[0].n >= 4_000);
    assert!(sum.top(100).len() <= 32);
}

fn read(pages: &[(&str, &[(&str, bool)])]) -> Statistics {
    let mut statistics = Statistics::default();
    for (plan, selectors) in pages {
        let pages = PlanMatches {
            pages: 1,
            selectors: selectors
                .iter()
                .map(|(name, is_matched)| ((*name).to_owned(), u64::from(*is_matched)))
                .collect(),
        };
        let one = [((*plan).to_owned(), pages)].into();
        plans::merge(&mut statistics.plans, &one);
    }
    statistics
}

#[test]
fn a_selector_is_unmatched_if_it_matched_on_no_page() {
    let statistics = read(&[
        ("page", &[("title", true), ("price", false)]),
        ("page", &[("title", false), ("price", false)]),
        ("list", &[("row", false), ("row.name", false)]),
        ("grid", &[("row", true), ("row.name", false)]),
    ]);
    let unmatched: Vec<_> = statistics.unmatched().collect();
    let expected = [("grid", "row.name"), ("list", "row"), ("page", "price")];
    assert_eq!(unmatched, expected);
}

#[test]
fn a_page_that_was_not_read_to_its_end_counts_no_selector() {
    let mut captures = crawler_extract::Captures::default();
    assert_eq!(Matched::of(&captures), Matched::default());
    captures.truncated = true;
    assert_ne!(Matched::of(&captures), Matched::default());
}

#[test]
fn the_sum_of_two_shards_is_that_of_one() {
    let mut whole = Statistics::default();
    let mut parts = [Statistics::default(), Statistics::default()];
    for (n, part) in [0, 1, 1, 0, 1].into_iter().enumerate() {
        let mut refused = RefusedHosts::default();
        refused.add("out-of-scope", &format!("h{n}.test"));
        let observed = Observed {
            refused_hosts: refused,
            kinds: Kind::of_items(&[item("book", r#"{"a":1,"b":null}"#)]),
            ..status(200)
        };
        for statistics in [&mut whole, &mut parts[part]] {
            let at = format!("http://a.test/{n}");
            let end = match n {
                0 => End::Dead("timeout"),
                _ => End::Done(Done::Parsed),
            };
            statistics.note(Attempt {
                url: &url(&at),
                root: None,
                end,
                observed: &observed,
            });
        }
    }
    let [mut sum, other] = parts;
    sum.add(&other);
    for statistics in [&mut sum, &mut whole] {
        for hosts in statistics.refused_hosts.values_mut() {
            hosts.merge(&TopHosts::default());
        }
    }
    assert_eq!(sum, whole);
}

#[test]
fn whatever_sites_and_rules_do_statistics_stay_small() {
    let mut statistics = Statistics::default();
    let reasons = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for n in 0..500_u32 {
        let long = format!("{n:04}{}", "\"\\\u{7}".repeat(500));
        let mut refused_hosts = RefusedHosts::default();
        for reason in reasons {
            refused_hosts.add(reason, &long);
        }
        let fields: Vec<_> = (0..20)
            .map(|m| format!(r#""{m}{n}{}":1"#, r#"\"\\"#.repeat(50)))
            .collect();
        let items = [item(&long, &format!("{{{}}}", fields.join(",")))];
        let observed = Observed {
            status: u16::try_from(n).unwrap(),
            refused_hosts,
            refused_target: Some((
                url(&format!("http://b.test/{}", "x".repeat(5_000))),
                "max-segment-repeats",
            )),
            plans: Vec::new(),
            kinds: Kind::of_items(&items),
        };
        statistics.note(Attempt {
            url: &url(&format!("http://a.test/{n}/{}", "x".repeat(5_000))),
            root: Some(Fingerprint([u8::try_from(n % 251).unwrap(); 16])),
            end: End::Dead(&long),
            observed: &observed,
        });
        let selectors = (0..9).map(|m| (format!("{m}{long}"), u64::MAX)).collect();
        let matches = PlanMatches {
            pages: u64::MAX,
            selectors,
        };
        plans::merge(&mut statistics.plans, &[(long, matches)].into());
    }
    // Every number is as long as it can be.
    for n in statistics.statuses.values_mut() {
        *n = u64::MAX;
    }
    for kind in statistics.kinds.values_mut() {
        kind.items = u64::MAX;
        kind.fields.values_mut().for_each(|n| *n = u64::MAX);
    }
    for hosts in statistics.refused_hosts.values_mut() {
        let most = hosts.top(usize::MAX).into_iter().map(|host| HostLinks {
            host: host.host.clone(),
            n: u64::MAX,
            error: u64::MAX,
        });
        *hosts = most.collect();
    }
    let before = statistics.clone();
    statistics.add(&before);
    let json = serde_json::to_vec(&statistics).unwrap();
    assert!(json.len() < 64 << 10, "{} bytes", json.len());
    assert_eq!(
        serde_json::from_slice::<Statistics>(&json).unwrap(),
        statistics
    );
}
