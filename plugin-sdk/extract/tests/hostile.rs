//! Pages and plans made to cost much: each has one outcome, and none takes the process down.
//!
//! Times are not asserted. The deadline is far away, so that only budgets of size decide. A state that grows with
//! the square of the page would show as a test that never ends.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use crawler_extract::{Budget, CompiledPlan, ExtractError, PlanLimits, extract};

#[path = "support/written.rs"]
mod written;

/// Plans that each page is read with.
const PLANS: [&str; 3] = [
    ".a = a[href] -> @href\n.h = h1, h2",
    "r < div\nr.t =\nr.i = -> inner\nr.b = b -> raw",
    ".a = p:nth-of-type(2)\n.b = first * -> @id\n.c = * * *\n.d = * > * -> present",
];

fn outcome(plan: &str, page: &str, budget: &Budget) -> String {
    let declared = written::plan(plan);
    let compiled = CompiledPlan::new(&declared, &PlanLimits::default()).unwrap();
    match extract(&compiled, page, budget) {
        Ok(captures) => {
            written::assert_sound(&declared, &captures);
            assert!(captures.n_captures() <= budget.n_captures);
            assert!(captures.text.len() <= budget.captured_bytes);
            let outcome = if captures.truncated {
                "truncated"
            } else {
                "ok"
            };
            outcome.to_owned()
        }
        Err(ExtractError::TooDeep { .. }) => "deep".to_owned(),
        Err(ExtractError::TooLarge { .. }) => "large".to_owned(),
        Err(ExtractError::TooSlow { .. }) => "slow".to_owned(),
    }
}

/// Returns the usual budget with a deadline that is far away.
fn far() -> Budget {
    Budget {
        deadline: Duration::from_secs(600),
        ..Budget::default()
    }
}

/// Checks the outcomes of the three plans.
#[track_caller]
fn check(page: &str, expected: &str) {
    let outcomes = PLANS.map(|plan| outcome(plan, page, &far()));
    let page = &page[..page.floor_char_boundary(40)];
    assert_eq!(outcomes.join(" "), expected, "{page}");
}

#[test]
fn elements_nest_as_deep_as_the_memory_allows() {
    check(&"<div>".repeat(16_000), "ok ok deep");
    // The third plan counts names, which takes half as much memory again.
    check(&"<div>".repeat(10_000), "ok ok ok");
    check(&"<div>".repeat(40_000), "deep deep deep");
    check(
        &format!("{}{}", "<div>x".repeat(16_000), "</div>".repeat(16_000)),
        "ok ok deep",
    );
    check(&"<div>".repeat(1_600_000), "deep deep deep");
    check(&"<ul><li>".repeat(5_000), "ok ok ok");
    check(&"<b>".repeat(10_000), "ok ok ok");
    check(&"<svg>".repeat(800_000), "deep deep deep");
    let tags: String = (0..400_000).map(|i| format!("<x{i}>")).collect();
    check(&tags, "deep deep deep");
}

#[test]
fn a_tag_is_as_long_as_the_page_may_be() {
    let attributes: String = (0..1_000_000).map(|i| format!(" a{i}")).collect();
    check(&format!("<a{attributes}>"), "ok ok ok");
    let value = "x".repeat(8 << 20);
    check(&format!("<a href='{value}'>"), "ok ok ok");
    check(&format!("<a href='{value}"), "ok ok ok");
    check(&format!("<{value}>"), "ok ok ok");
    check(&format!("<i title='{value}'>"), "ok ok ok");
}

#[test]
fn text_is_as_long_as_the_budget_allows() {
    let long = "x ".repeat(4 << 20);
    check(&long, "ok ok ok");
    check(&format!("<!--{long}"), "ok ok ok");
    check(&format!("<script>{long}"), "ok ok ok");
    check(&format!("<h1><div>{long}"), "ok truncated ok");
    check(
        &format!("<h1><div>{}{long}", "x".repeat(1 << 20)),
        "truncated truncated ok",
    );
    check(&format!("<h1><div>{}", "&amp;".repeat(1 << 20)), "ok ok ok");
    check(&format!("<h1><div>{}", "&".repeat(1 << 20)), "ok ok ok");
    check(&format!("<h1><div>&{}", "a".repeat(1 << 20)), "ok ok ok");
    check(
        &format!("<h1><div>&#{}65;", "0".repeat(1 << 20)),
        "ok ok ok",
    );
    check(&format!("<h1><div>{}", " ".repeat(1 << 20)), "ok ok ok");
    check(&format!("<h1><div>{}", "\0".repeat(1 << 20)), "ok ok ok");
    check(
        &format!("<h1><div>{}", "x<br>".repeat(1 << 17)),
        "ok ok truncated",
    );
}

#[test]
fn crossing_and_stray_tags_are_read() {
    check(&"<a><b></a></b>".repeat(30_000), "ok ok ok");
    check(&"</div>".repeat(1 << 17), "ok ok ok");
    check(&"<div></p></b>".repeat(10_000), "ok ok ok");
    check(&"<".repeat(1 << 20), "ok ok ok");
    check(&"</".repeat(1 << 19), "ok ok ok");
    check(&"<!".repeat(1 << 19), "ok ok ok");
    check(&"<template>".repeat(10_000), "ok ok ok");
    check(&"<template></template>".repeat(20_000), "ok ok ok");
}

#[test]
fn captures_are_as_many_as_the_budget_allows() {
    check(&"<a href=x></a>".repeat(100_000), "ok ok ok");
    check(&"<a href=x></a>".repeat(100_001), "truncated ok ok");
    check(
        &format!("<b>{}", "<a href=x></a>".repeat(100_001)),
        "truncated ok truncated",
    );
    check(&"<div></div>".repeat(33_333), "ok ok ok");
    check(&"<div></div>".repeat(33_334), "ok truncated ok");
}

#[test]
fn names_of_many_kinds_beside_each_other_are_read() {
    // Names that `:nth-of-type` counts take memory, and no more time than others.
    let tags = |n: usize| -> String { (0..n).map(|i| format!("<x{i}></x{i}>")).collect() };
    check(&tags(30_000), "ok ok ok");
    check(&tags(100_000), "ok ok deep");
}

#[test]
fn a_plan_that_asks_for_nothing_is_bounded_too() {
    // Without any selector, open elements have to be counted all the same.
    assert_eq!(outcome("", "<p>x", &far()), "ok");
    assert_eq!(outcome("", &"<svg>".repeat(800_000), &far()), "deep");
}

#[test]
fn the_worst_plan_that_is_allowed_is_read_at_the_end_of_a_small_page() {
    // Every element matches every step of every selector.
    let steps = |i: usize| {
        format!(
            ".f{i} = {} -> present\n",
            vec![format!(":not(.x{i})"); 4].join(" ")
        )
    };
    let plan: String = (0..40).map(steps).collect();
    assert_eq!(outcome(&plan, &"<b>".repeat(12_000), &far()), "truncated");
}

#[test]
fn rows_and_first_values_do_not_cost_the_square() {
    let plan = "r < div\nr.f = first b -> @id\n.g = first i\nr.e = -> present";
    let nested = "<div><b id=x></b><i></i><b id=y></b>".repeat(12_000);
    assert_eq!(outcome(plan, &nested, &far()), "ok");
    let beside = "<div><b id=x></b><i></i><b id=y></b></div>".repeat(30_000);
    assert_eq!(outcome(plan, &beside, &far()), "ok");
}

#[test]
fn a_page_is_as_long_as_the_budget_allows() {
    let budget = Budget {
        page_bytes: 1_000,
        ..Budget::default()
    };
    assert_eq!(outcome(PLANS[0], &"x".repeat(1_000), &budget), "ok");
    assert_eq!(outcome(PLANS[0], &"x".repeat(1_001), &budget), "large");
}

#[test]
fn a_page_of_50_megabytes_is_read_where_its_limit_is_raised() {
    let page = "<li>row <b id=x>one</b>".repeat(50_000_000 / 23) + "<title>end</title>";
    let raised = Budget {
        page_bytes: 64 << 20,
        ..far()
    };
    let plan = CompiledPlan::new(&written::plan(".t = title"), &PlanLimits::default()).unwrap();
    let captures = extract(&plan, &page, &raised).unwrap();
    assert_eq!((captures.n_captures(), &captures.text[..]), (1, "end"));
    let usual = Budget {
        page_bytes: 24 << 20,
        ..far()
    };
    assert_eq!(outcome(".t = title", &page, &usual), "large");
}

#[test]
fn without_time_every_page_is_too_slow() {
    let budget = Budget {
        deadline: Duration::ZERO,
        ..Budget::default()
    };
    for page in ["", "x", "<div>"] {
        assert_eq!(outcome(PLANS[0], page, &budget), "slow");
    }
}

#[test]
fn no_budget_at_all_is_no_panic() {
    let nothing = Budget {
        page_bytes: 1_000,
        n_captures: 0,
        captured_bytes: 0,
        memory: 0,
        deadline: Duration::from_secs(600),
    };
    let everything = Budget {
        page_bytes: usize::MAX,
        n_captures: usize::MAX,
        captured_bytes: usize::MAX,
        memory: usize::MAX,
        deadline: Duration::MAX,
    };
    let page = "<div>a<b>c</b></div>";
    assert_eq!(outcome(PLANS[1], page, &nothing), "truncated");
    assert_eq!(outcome(PLANS[1], &page.repeat(9), &nothing), "truncated");
    assert_eq!(outcome(PLANS[1], &"<b>".repeat(9), &nothing), "deep");
    assert_eq!(outcome(PLANS[1], "no tag", &nothing), "ok");
    assert_eq!(outcome(PLANS[1], page, &everything), "ok");
}
