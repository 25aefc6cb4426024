//! Plugins on the engine: which are admitted, what a call may do, and that a rule that does more is ended
//! without a trace. The pool has one slot.

#[path = "engine/bounds.rs"]
mod bounds;
#[path = "engine/extract.rs"]
mod extract;
#[path = "engine/guests.rs"]
mod guests;
#[path = "engine/links.rs"]
mod links;
#[path = "engine/load.rs"]
mod load;
#[path = "engine/spans.rs"]
mod spans;

use std::time::Duration;

use crawler_model::crawl::{Kill, RuleError};
use crawler_model::id::Digest;
use crawler_model::plugin::Limits;
use crawler_plugin::engine::{Engine, EngineSettings};
use crawler_plugin::{CallFailure, CallReport, KillReport, LogLevel, Rules as _};
use guests::{config, context, hostile, page, plugin, settings};

const URL: &str = "http://a.test/dir/page";

async fn parse_with(rule: &str, change: impl FnOnce(&mut Limits)) -> CallReport {
    let config = config(change, &[("greeting", "hello")]);
    let page = page(URL, "<p>größe</p>");
    plugin().await.parse(config, rule, page, context()).await
}

async fn parse(rule: &str) -> CallReport {
    parse_with(rule, |_| ()).await
}

/// Checks that a page is parsed as it should be, whatever came before.
async fn assert_a_good_page_is_parsed() {
    let output = parse("ok").await.result.expect("a good page is parsed");
    assert_eq!(output.items.len(), 1);
    assert_eq!(output.items[0].json, r#"{"url":"http://a.test/dir/page"}"#);
    assert_eq!(output.requests[0].url.as_str(), "http://a.test/dir/next");
}

fn killed(report: CallReport) -> Box<KillReport> {
    match report.result {
        Err(CallFailure::Killed(kill)) => kill,
        other => panic!("not killed: {other:?}"),
    }
}

fn gave_up(report: CallReport) -> RuleError {
    match report.result {
        Err(CallFailure::Rule(error)) => error,
        other => panic!("did not give up: {other:?}"),
    }
}

/// Checks that the rule is ended for this reason, that nothing of it is kept, and that the slot is as good as
/// before.
#[track_caller]
fn check_kill(report: CallReport, kill: Kill, message: &str) -> Box<KillReport> {
    let report = killed(report);
    assert_eq!((report.kill, report.message.as_str()), (kill, message));
    report
}

#[tokio::test]
async fn a_rule_reads_its_page_and_its_params() {
    let output = parse("show-page").await.result.unwrap();
    assert_eq!(
        output.items[0].json,
        r#"{"url":"http://a.test/dir/page","status":200,"header":"text/html","n_headers":1,"text":"<p>größe</p>","body":14,"depth":2,"attempt":1,"state":"carried","referrer":"http://a.test/list","greeting":"hello"}"#
    );
    assert_eq!(output.items[0].schema, "any");
}

#[tokio::test]
async fn root_hands_over_the_first_requests() {
    let report = plugin().await.root(config(|_| (), &[]), 1).await;
    let output = report.result.unwrap();
    assert_eq!(output.requests[0].url.as_str(), "http://a.test/");
    assert_eq!(*output.requests[0].rule, *"ok");
}

#[tokio::test]
async fn a_call_tells_what_it_cost() {
    let usage = parse("ok").await.usage;
    assert!(usage.fuel > 1_000, "{usage:?}");
    assert!(usage.peak_memory >= 1 << 20, "{usage:?}");
}

#[tokio::test]
async fn a_rule_that_gives_up_says_why_and_leaves_nothing() {
    assert_eq!(
        gave_up(parse("retry").await),
        RuleError::Retry {
            after_ms: Some(1_500),
            why: "busy\\n".into()
        }
    );
}

#[tokio::test]
async fn f31_hints_are_no_way_to_hand_over_more_than_a_call_may() {
    check_kill(
        parse_with("retry", |limits| limits.item_bytes = 1 << 20).await,
        Kill::OverBudget,
        "the rule handed over more in one call than limit item-bytes would ever allow",
    );
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn a_rule_that_the_plugin_does_not_have_fails_the_resource() {
    let RuleError::Fatal(why) = gave_up(parse("gone").await) else {
        panic!("not fatal");
    };
    assert!(
        why.starts_with("plugin hostile@0.1.0 has no rule \"gone\"; it has ok, loop, "),
        "{why}"
    );
}

#[tokio::test]
async fn f31_a_loop_ends_when_its_fuel_is_used_up() {
    let report = parse_with("loop", |limits| limits.fuel = 10_000_000).await;
    assert_eq!(report.usage.fuel, 10_000_000);
    check_kill(
        report,
        Kill::OutOfFuel,
        "the rule used up its fuel; limit fuel is 10000000; raise it with --limit fuel=VALUE",
    );
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn f31_a_loop_ends_when_its_time_on_the_processor_is_used_up() {
    let report = parse_with("loop", |limits| {
        limits.cpu = Duration::from_millis(50);
        limits.fuel = u64::MAX / 2;
    })
    .await;
    check_kill(
        report,
        Kill::OutOfCpu,
        "the rule held the processor for too long; limit cpu is 50ms; raise it with --limit cpu=VALUE",
    );
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn f31_a_loop_of_host_calls_is_charged_for_them() {
    let report = parse_with("spin-on-host", |limits| {
        limits.fuel = 10_000_000;
    })
    .await;
    check_kill(
        report,
        Kill::OutOfFuel,
        "the rule used up its fuel with host calls; limit fuel is 10000000; raise it with --limit fuel=VALUE",
    );
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn f31_a_rule_that_sleeps_ends_with_its_time() {
    let report = parse_with("sleep", |limits| {
        limits.timeout = Duration::from_millis(50);
    })
    .await;
    check_kill(
        report,
        Kill::OutOfTime,
        "the call did not end in time; limit timeout is 50ms; raise it with --limit timeout=VALUE",
    );
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn f31_a_rule_that_hoards_memory_ends_at_the_limit() {
    for rule in ["alloc", "alloc-at-once"] {
        let report = parse_with(rule, |limits| limits.memory = 8 << 20).await;
        assert!(report.usage.peak_memory <= 8 << 20, "{:?}", report.usage);
        let kill = killed(report);
        assert_eq!(kill.kill, Kill::OutOfMemory, "{kill:?}");
        assert!(
            kill.message
                .ends_with("; limit memory is 8192 KiB; raise it with --limit memory=VALUE"),
            "{kill:?}"
        );
        assert_a_good_page_is_parsed().await;
    }
}

#[tokio::test]
async fn f31_a_plugin_that_needs_more_memory_than_the_limit_does_not_start() {
    let report = parse_with("ok", |limits| limits.memory = 64 << 10).await;
    assert_eq!(killed(report).kill, Kill::OutOfMemory);
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn f31_endless_recursion_ends_the_call_and_not_the_process() {
    let report = check_kill(
        parse("recurse").await,
        Kill::StackOverflow,
        "the rule recursed too deeply; its call stack is used up",
    );
    assert!((10..=20).contains(&report.backtrace.len()), "{report:?}");
    let frames = report.own_frames();
    assert!(
        frames[0].contains("recurse (") && frames[0].ends_with(" times)"),
        "{frames:?}"
    );
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn f31_a_trap_tells_where_it_was() {
    let report = check_kill(
        parse("trap").await,
        Kill::Trapped,
        "wasm trap: wasm `unreachable` instruction executed",
    );
    assert_eq!(
        report.backtrace.last().map(|frame| frame.name.as_str()),
        Some("hostile.wasm!crawler:rules/rules@0.1.1#parse"),
        "{report:?}"
    );
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn f31_a_panic_tells_its_message_and_place() {
    let call = parse("panic").await;
    assert!(call.logs.is_empty(), "the message is told once: {call:?}");
    let report = killed(call);
    assert_eq!(report.kill, Kill::Trapped);
    let message = report.message.as_str();
    assert!(
        message.starts_with("the rule panicked at src/lib.rs:"),
        "{message}"
    );
    assert!(message.ends_with(": no such \\u{1b}[31mbook"), "{message}");
    assert_eq!(message.matches("no such").count(), 1, "{message}");
    let is_foreign = |frame: &String| {
        ["std::", "core::", "__rustc::"]
            .iter()
            .any(|c| frame.contains(c))
    };
    let own = report.own_frames();
    assert!(!own.iter().any(is_foreign), "{own:?}");
    let n_told = own
        .iter()
        .filter(|frame| *frame == "hostile::look_for_a_book");
    assert_eq!(n_told.count(), 1, "{report:?}");
    assert!(report.all_frames().iter().any(is_foreign), "{report:?}");
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn f31_exit_ends_the_call_and_not_the_process() {
    check_kill(
        parse("exit").await,
        Kill::Denied,
        "the rule called exit, which ends a process; return an error instead",
    );
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn f31_a_rule_that_does_not_listen_to_its_budget_is_ended() {
    check_kill(
        parse_with("item-flood", |limits| limits.items = 10).await,
        Kill::OverBudget,
        "100 calls of output were refused; the last one because: limit items is 10 for one call; raise it with --limit items=VALUE",
    );
    assert_a_good_page_is_parsed().await;
    check_kill(
        parse_with("follow-flood", |_| ()).await,
        Kill::OverBudget,
        "100 calls of output were refused; the last one because: limit requests is 2000 for one call; raise it with --limit requests=VALUE",
    );
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn f31_a_rule_is_told_which_budget_it_exceeds() {
    let output = parse("follow-budget").await.result.unwrap();
    assert!(output.requests.is_empty());
    assert_eq!(
        output.items[0].json,
        r#"{"error":"over budget: limit requests is 2000 for one call; raise it with --limit requests=VALUE"}"#
    );
    assert_eq!(
        gave_up(parse("item-huge").await),
        RuleError::Skip(
            "over budget: limit item-bytes is 4194304 for one call; raise it with --limit item-bytes=VALUE"
                .into()
        )
    );
}

#[tokio::test]
async fn f31_what_is_not_one_json_object_is_refused_and_an_item_is_one_line() {
    let output = parse("bad-json").await.result.unwrap();
    let item = &output.items[0].json;
    assert!(!item.contains('\n') && !item.contains('\r'), "{item}");
    let item: serde_json::Value = serde_json::from_str(item).unwrap();
    let refused = item["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 6);
    assert_eq!(
        refused[5],
        "refused: an item is one JSON object: recursion limit exceeded at line 1 column 132"
    );
    assert_eq!(
        gave_up(parse("bad-schema").await),
        RuleError::Skip("refused: schema 7 does not exist; the plugin describes 2".into())
    );
}

#[tokio::test]
async fn an_item_has_the_shape_that_its_schema_tells_and_looking_for_it_has_its_price() {
    let skipped = [
        "taken",
        "taken",
        "refused: item 3, of schema book: at /by/0: 1 is not of the kind string",
        "refused: item 3, of schema book: it has no \"title\"",
    ];
    let RuleError::Skip(why) = gave_up(parse("bad-shape").await) else {
        panic!("not skipped");
    };
    assert_eq!(why.as_str(), skipped.join("; "));
    assert_eq!(killed(parse("slow-shape").await).kill, Kill::OutOfFuel,);
}

#[tokio::test]
async fn links_of_a_page_resolve_against_it_and_nonsense_among_them_is_counted() {
    let output = parse("follow-odd").await.result.unwrap();
    let urls: Vec<&str> = output.requests.iter().map(|r| r.url.as_str()).collect();
    assert_eq!(urls, ["http://a.test/b", "http://c.test/d"]);
    assert_eq!(output.n_bad_urls, 2);
    let RuleError::Skip(why) = gave_up(parse("follow-nowhere").await) else {
        panic!("not skipped");
    };
    assert!(
        why.starts_with("refused: rule 9999 does not exist; the plugin describes "),
        "{why}"
    );
}

#[tokio::test]
async fn a_bad_url_in_root_is_refused() {
    let root = |url| async move {
        gave_up(
            plugin()
                .await
                .root(config(|_| (), &[("root", url)]), 1)
                .await,
        )
    };
    assert_eq!(
        root("next").await,
        RuleError::Fatal(
            "refused: url \"next\" is relative, and in root there is no page to resolve it against"
                .into()
        )
    );
    assert_eq!(
        root("http://[").await,
        RuleError::Fatal("refused: url \"http://[\" does not parse: invalid IPv6 address".into())
    );
}

#[tokio::test]
async fn f31_root_has_no_page_and_no_more_time_than_parse() {
    let root = |root, fuel| async move {
        let config = config(|limits| limits.fuel = fuel, &[("root", root)]);
        plugin().await.root(config, 1).await
    };
    check_kill(
        root("page", 10_000_000).await,
        Kill::Denied,
        "the plugin asked for a page in root, where there is none",
    );
    let report = root("loop", 10_000_000).await;
    assert_eq!(killed(report).kill, Kill::OutOfFuel);
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn f31_a_flood_of_log_lines_is_bounded_and_charged() {
    let report = parse_with("log-flood", |limits| {
        limits.fuel = 10_000_000;
        limits.log_lines = 3;
    })
    .await;
    assert_eq!(report.logs.len(), 3);
    assert!(report.n_logs_dropped > 1_000);
    assert_eq!(killed(report).kill, Kill::OutOfFuel);

    let report = parse("log-huge").await;
    assert_eq!(killed(report).kill, Kill::OverBudget);
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn log_lines_come_back_in_order_and_harmless() {
    let report = parse("log-some").await;
    assert!(report.result.is_ok());
    assert_eq!((report.logs.len(), report.n_logs_dropped), (200, 800));
    assert_eq!(report.logs[199].message, "199\\u{1b}]0;x\\u{7}");
    let printed: Vec<_> = parse("print")
        .await
        .logs
        .into_iter()
        .map(|line| (line.level, line.message))
        .collect();
    assert_eq!(
        printed,
        [
            (LogLevel::Info, "to stdout".into()),
            (LogLevel::Warn, "to stderr".into())
        ]
    );
}

#[tokio::test]
async fn f31_a_page_cannot_read_what_another_page_left_in_memory() {
    assert!(parse("write-secret").await.result.is_ok());
    let report = parse_with("read-secret", |_| ()).await;
    assert_eq!(report.result.unwrap().items[0].json, r#"{"found":0}"#);
}

#[tokio::test]
async fn the_same_page_gives_the_same_items_for_the_same_fuel() {
    let (one, other) = (parse("probe").await, parse("probe").await);
    assert_eq!(one.usage.fuel, other.usage.fuel);
    assert_eq!(one.usage.peak_memory, other.usage.peak_memory);
    let (one, other) = (one.result.unwrap(), other.result.unwrap());
    assert_eq!(one.items, other.items);

    let elsewhere = page("http://a.test/other", "");
    let report = plugin()
        .await
        .parse(config(|_| (), &[]), "probe", elsewhere, context())
        .await;
    assert_ne!(one.items, report.result.unwrap().items);
}

#[tokio::test]
async fn a_guest_sees_nothing_of_this_machine() {
    let output = parse("probe").await.result.unwrap();
    let item: serde_json::Value = serde_json::from_str(&output.items[0].json).unwrap();
    assert_eq!(item["wall"], 1_700_000_000_123_u64);
    assert_eq!(item["passed"], 1_000);
    assert_eq!(item["env"], 0);
    assert_eq!(item["nan"], 0);
    assert_eq!(item["files"], false);
    assert_eq!(item["stdin"], 0);
}

#[tokio::test]
async fn f31_calls_that_find_the_pool_in_use_wait_for_their_turn() {
    let calls = (0..50).map(|_| parse("ok"));
    for report in futures::future::join_all(calls).await {
        assert!(report.result.is_ok(), "{report:?}");
    }
}

#[tokio::test]
async fn calls_share_a_budget_of_memory_beside_the_slots_of_the_pool() {
    let engine = Engine::new(EngineSettings {
        call_memory: 128 << 20,
        ..settings(2)
    });
    let engine = engine.expect("the engine starts");
    let loaded = engine.load(Digest::of(&hostile()), hostile()).await;
    let plugin = loaded.expect("the plugin is loaded");
    // The first call is ended after a while; a call that has room beside it has long ended by then.
    let first_to_end = async |memory: u64| {
        let long = config(
            |limits| {
                limits.memory = memory;
                limits.timeout = Duration::from_secs(2);
            },
            &[],
        );
        let long = plugin.parse(long, "sleep", page(URL, ""), context());
        let short = plugin.parse(config(|_| (), &[]), "ok", page(URL, ""), context());
        tokio::select! {
            biased;
            _ = long => "long",
            _ = short => "short",
        }
    };
    assert_eq!(first_to_end(64 << 20).await, "short");
    assert_eq!(first_to_end(65 << 20).await, "long");
    // A call that needs more than there is for all calls would wait for ever.
    let large = config(|limits| limits.memory = 640 << 20, &[]);
    let report = plugin.parse(large, "ok", page(URL, ""), context()).await;
    let message = "the call may use 640 MiB of memory, and all calls of this process together 128 MiB, which is half of --memory; raise --memory, or lower --limit memory of the resource";
    check_kill(report, Kill::NoRoom, message);
}
