//! Tests of pages that a rule reads by a plan, and of links that it follows from there.

use std::time::Duration;

use crawler_model::crawl::{Kill, RuleError};
use crawler_model::plugin::Limits;
use crawler_plugin::{CallReport, Rules as _};
use serde_json::{Value, json};

use crate::guests::{config, context, describing, page, plugin, plugin_of};
use crate::{URL, check_kill, gave_up, killed};

/// Page whose end tags are left out, as HTML allows.
const LIST: &str = "<base href=/shop/><ul><li>1 <a href=a>Salt &amp; pepper</a><li><a href='http://['>Odd</a>\
    <li><a href=//b.test/c>Größe</a> 3</ul>";

async fn parse_with(rule: &str, html: &str, change: impl FnOnce(&mut Limits)) -> CallReport {
    let (config, page) = (config(change, &[]), page(URL, html.to_owned()));
    plugin().await.parse(config, rule, page, context()).await
}

async fn read(html: &str, change: impl FnOnce(&mut Limits)) -> Value {
    let report = parse_with("extract", html, change).await;
    let output = report.result.expect("the page can be read");
    serde_json::from_str(&output.items[0].json).expect("items are JSON")
}

async fn skipped(rule: &str, html: &str, change: impl FnOnce(&mut Limits)) -> String {
    match gave_up(parse_with(rule, html, change).await) {
        RuleError::Skip(why) => why.into(),
        other => panic!("it did not skip the page: {other:?}"),
    }
}

#[tokio::test]
async fn a_plan_reads_rows_of_a_page_and_keeps_what_is_only_followed_from_the_rule() {
    let none = u32::MAX;
    let found = read(LIST, |_| ()).await;
    assert_eq!(found["groups"], json!([[none, none, none]]));
    assert_eq!(found["columns"][2], json!([[], []]));
    assert_eq!(found["base"], "http://a.test/shop/");
    assert_eq!(found["truncated"], false);
    let text = found["text"].as_str().unwrap();
    let values = |column: usize| -> Vec<&str> {
        let spans = found["columns"][column][1].as_array().unwrap();
        let at = |n: usize| spans[n].as_u64().unwrap() as usize;
        (0..spans.len() / 2)
            .map(|n| &text[at(2 * n)..at(2 * n + 1)])
            .collect()
    };
    assert_eq!(values(0), ["1 Salt & pepper", "Odd", "Größe 3"]);
    assert_eq!(values(1), ["Salt & pepper", "Odd", "Größe"]);
    assert!(!text.contains("b.test"), "{text}");
}

#[tokio::test]
async fn what_is_read_is_followed_without_its_coming_to_the_rule() {
    let report = parse_with("follow-field", LIST, |_| ()).await;
    let output = report.result.unwrap();
    let requests = output.requests.iter();
    let found: Vec<_> = requests
        .map(|r| (r.url.as_str(), &*r.rule, r.priority, &r.state[..]))
        .collect();
    let state = &b"kept"[..];
    assert_eq!(
        found,
        [
            ("http://a.test/shop/a", "ok", 3, state),
            ("http://b.test/c", "ok", 3, state),
            ("http://b.test/c", "loop", 3, state),
            ("http://a.test/shop/a", "loop", 3, state),
        ]
    );
    assert_eq!(output.n_bad_urls, 1);
    let refused: Value = serde_json::from_str(&output.items[0].json).unwrap();
    assert_eq!(
        refused["refused"],
        json!([
            "refused: rule 9999 does not exist; the plugin describes 46",
            "refused: field 7 does not exist; the plan has 3",
            "refused: capture 9 does not exist; the field has 3",
            "refused: plan 5 does not exist; the plugin describes 2",
        ])
    );
}

#[tokio::test]
async fn links_that_are_followed_by_field_count_as_any_others() {
    let RuleError::Fatal(why) =
        gave_up(parse_with("follow-field", LIST, |limits| limits.requests = 2).await)
    else {
        panic!("the links are within the limit");
    };
    assert_eq!(
        why,
        "over budget: limit requests is 2 for one call; raise it with --limit requests=VALUE"
    );
}

#[tokio::test]
async fn a_page_is_read_once_and_costs_the_same_each_time() {
    let fuel = async |rule: &'static str| parse_with(rule, LIST, |_| ()).await.usage.fuel;
    let (once, again) = (fuel("extract").await, fuel("extract").await);
    assert_eq!(once, again);
    let long = "<p>some words</p>".repeat(20_000);
    let of_long = parse_with("extract-twice", &long, |_| ()).await.usage.fuel;
    assert!(of_long > long.len() as u64, "{of_long}");
    assert!(of_long < 2 * long.len() as u64, "{of_long}");
}

#[tokio::test]
async fn a_page_that_is_longer_than_a_mebibyte_is_read_too() {
    let page = format!("{}<li><a>last</a>", "<p>some words</p>".repeat(100_000));
    assert!(page.len() > 1 << 20);
    let found = read(&page, |_| ()).await;
    // The text is that of the row, and that of its link.
    assert_eq!(found["text"], "lastlast");
}

/// The runtime has one thread: a page that is read on it would keep others from going on.
#[tokio::test]
async fn others_go_on_while_a_page_that_is_longer_than_a_mebibyte_is_read() {
    let n_turns = async |n_paragraphs: usize| {
        let page = format!("{}<li>last", "<p>some words</p>".repeat(n_paragraphs));
        plugin().await;
        let mut n_turns = 0;
        let others = async {
            loop {
                n_turns += 1;
                tokio::task::yield_now().await;
            }
        };
        let found = tokio::select! {
            found = read(&page, |_| ()) => found,
            () = others => unreachable!("they go on for ever"),
        };
        assert_eq!(found["text"], "last");
        n_turns
    };
    let (of_short, of_long) = (n_turns(10).await, n_turns(400_000).await);
    assert!(of_long > 10 * of_short + 1_000, "{of_long}, {of_short}");
}

#[tokio::test]
async fn captures_beyond_their_limits_are_left_out_and_that_is_marked() {
    let found = read(LIST, |limits| limits.captures = 2).await;
    assert_eq!(found["truncated"], true, "{found}");
    let found = read(LIST, |limits| limits.capture_bytes = 5).await;
    assert_eq!(found["truncated"], true, "{found}");
    assert!(found["text"].as_str().unwrap().len() <= 5, "{found}");
}

#[tokio::test]
async fn what_is_cut_before_it_is_followed_unseen_is_logged_once() {
    let logs = async |n: u64| {
        let report = parse_with("follow-field", LIST, |limits| limits.captures = n).await;
        let lines = report.logs.into_iter();
        lines.map(|line| line.message).collect::<Vec<_>>()
    };
    assert_eq!(logs(100).await, [""; 0]);
    let line = "what `rows` reads of this page is cut: limit captures or capture-bytes is used up";
    assert_eq!(logs(2).await, [line]);
}

#[tokio::test]
async fn all_plans_of_a_call_share_its_limits() {
    let page = format!("{LIST}<p>one<p>two");
    let both = async |change: &dyn Fn(&mut Limits)| {
        let report = parse_with("extract-both", &page, change).await;
        let items = report.result.expect("the page can be read").items;
        let found = items.iter().map(|item| serde_json::from_str(&item.json));
        let found: Vec<Value> = found.collect::<Result<_, _>>().expect("items are JSON");
        found
    };
    let whole = both(&|_| ()).await;
    assert_eq!(
        (&whole[1]["text"], &whole[1]["truncated"]),
        (&json!("onetwo"), &json!(false))
    );
    // Three rows have three values each.
    let cut = both(&|limits| limits.captures = 12 + 1).await;
    assert_eq!((&cut[0], &cut[1]["text"]), (&whole[0], &json!("one")));
    assert_eq!(cut[1]["truncated"], true);
    // Text that stays with the host counts as well.
    let of_links = "a".len() + "http://[".len() + "//b.test/c".len();
    let of_first = whole[0]["text"].as_str().unwrap().len() + of_links;
    let cut = both(&|limits| limits.capture_bytes = of_first as u64 + 3).await;
    assert_eq!((&cut[0], &cut[1]["text"]), (&whole[0], &json!("one")));
    assert_eq!(cut[1]["truncated"], true);
}

#[tokio::test]
async fn a_page_that_cannot_be_read_within_its_limits_is_refused_with_the_way_out() {
    let deep = "<div>".repeat(40_000);
    assert_eq!(
        skipped("extract", &deep, |_| ()).await,
        "too deep: too many elements are open in each other: reading the page takes more than 2097152 bytes, a 32nd of limit memory, 4 MiB at the most; raise it with --limit memory=VALUE, or skip the page"
    );
    let why = skipped("extract", LIST, |limits| limits.body = 10).await;
    assert_eq!(
        why,
        format!(
            "too large: the text of the page has {} bytes, and 30 is the most, 3 times limit body; raise it with --limit body=VALUE, or skip the page",
            LIST.len()
        )
    );
    assert_eq!(
        skipped("extract-unknown", LIST, |_| ()).await,
        "unknown plan: plan 9 does not exist; the plugin describes 2"
    );
}

/// Plugins in interpreted languages ask for more memory.
#[tokio::test]
async fn a_plugin_that_asks_for_more_memory_reads_pages_no_deeper() {
    let asking = plugin_of(describing("memory")).await;
    assert_eq!(asking.description().limits["memory"], 256 << 20);
    let read = async |depth: usize| {
        let page = page(URL, "<div>".repeat(depth));
        let config = config(|_| (), &[]);
        asking.parse(config, "extract", page, context()).await
    };
    assert!(read(10_000).await.result.is_ok());
    let RuleError::Skip(why) = gave_up(read(20_000).await) else {
        panic!("it did not skip the page");
    };
    let told = "reading the page takes more than 2097152 bytes, a 32nd of limit memory";
    assert!(why.contains(told), "{why}");
}

#[tokio::test]
async fn reading_that_takes_the_processor_for_too_long_ends_the_call() {
    let long = "<li><a>x</a>".repeat(80_000);
    let change = |limits: &mut Limits| limits.cpu = Duration::from_nanos(1);
    for _try in 0..10 {
        let report = killed(parse_with("extract", &long, change).await);
        assert_eq!(report.kill, Kill::OutOfCpu);
        // Now and then a tick of the clock finds the rule before it reads.
        if !report.message.starts_with("the rule held the processor") {
            let expected = "reading the page took the processor for too long; limit cpu is 1ns; raise it with --limit cpu=VALUE";
            assert_eq!(report.message, expected);
            return;
        }
    }
    panic!("each call was ended before it has read the page");
}

#[tokio::test]
async fn a_base_that_leads_nowhere_is_left_out() {
    for base in ["javascript:void(0)", "data:,x", "http://["] {
        let page = format!("<base href='{base}'><li><a href=b>B</a>");
        let output = parse_with("follow-field", &page, |_| ()).await.result;
        // The rule then asks for a third link, which is not there.
        assert!(output.is_err(), "{base}");
        let found = read(&page, |_| ()).await;
        assert_eq!(found["base"], URL, "{base}");
    }
}

#[tokio::test]
async fn reading_again_and_again_ends_with_the_fuel() {
    let change = |limits: &mut Limits| limits.fuel = 50_000_000;
    let report = parse_with("extract-flood", LIST, change).await;
    check_kill(
        report,
        Kill::OutOfFuel,
        "the rule used up its fuel; limit fuel is 50000000; raise it with --limit fuel=VALUE",
    );
}
