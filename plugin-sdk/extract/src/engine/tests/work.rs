//! Steps of matching and capturing on hostile pages: they never grow with the square of the length.

use super::*;
use crate::steps;

/// Size of the pages that are compared with pages of half the size. They are as deep as the limit allows.
const MANY: usize = 90_000;

/// Plans that use every kind of condition and every kind of value.
const PLANS: [&str; 7] = [
    ".a = a[href] -> @href\n.h = h1, h2",
    "r < div\nr.t =\nr.i = -> inner\nr.b = b -> raw",
    ".a = p:nth-of-type(2)\n.b = first * -> @id\n.c = * * *\n.d = * > * -> present",
    "r < div\nr.f = first b -> @id\n.g = first i\nr.e = -> present",
    "r < div\nr/s < b, i\ns.t = i\nr.u = b ~ i, b + i -> tag",
    ".a = * -> inner\n.b = * -> raw\n.c = *\n.d = * -> tag",
    ".a = :not(.x):not([title*=y]) :is(a, b)[id^=x] -> @id",
];

/// Reads a page with no budget but those of depth and of the walk, and returns the number of steps.
fn work(plan: &str, page: &str) -> usize {
    let plan = CompiledPlan::new(&written::plan(plan), &PlanLimits::default()).unwrap();
    let budget = Budget {
        page_bytes: usize::MAX,
        n_captures: usize::MAX,
        captured_bytes: usize::MAX,
        memory: usize::MAX,
        deadline: Duration::from_secs(600),
    };
    steps::take();
    let read = extract(&plan, page, &budget);
    assert!(read.is_ok_and(|captures| !captures.truncated), "{page:.40}");
    steps::take()
}

/// Checks that a page twice as long takes twice the work, for each plan.
fn check_linear(page: impl Fn(usize) -> String) {
    let (half, whole) = (page(MANY / 2), page(MANY));
    for plan in PLANS {
        let [of_half, of_whole] = [&half, &whole].map(|page| work(plan, page));
        assert!(
            of_whole <= 2 * of_half + of_half / 8 + 10_000,
            "{plan}\n{half:.40}: {of_half} steps, then {of_whole}"
        );
    }
}

fn repeated(piece: &str) -> impl Fn(usize) -> String {
    move |size| piece.repeat(size / piece.len())
}

#[test]
fn elements_in_each_other_and_beside_each_other_are_linear_work() {
    for piece in [
        "<div>",
        "<div>x",
        "<div> <b id=x>",
        "<div><b id=x></b><i></i><b id=y></b>",
        "<div><b id=x></b><i></i><b id=y></b></div>",
        "<div></div>",
        "<p></p>",
        "<b>",
        "<b>x</b>",
        "<b><i>x</i></b>",
        "<i class=x title=y>",
        "<a href=x></a>",
        "<h1>x<h2>y",
        "<ul><li>",
        "<a><b></a></b>",
        "<br>",
        "<template></template>",
        "<svg/>",
        "&amp;",
        "x ",
    ] {
        check_linear(repeated(piece));
    }
}

#[test]
fn what_lies_below_many_open_elements_is_linear_work() {
    for open in ["<div>", "<b>", "<div><b>", "<template>", "<i id=x>"] {
        for piece in [
            "<b id=x>x</b>",
            "<i></i>",
            "x ",
            "<br>",
            "<div>x</div>",
            "<p>x",
        ] {
            let open = open.repeat(MANY / 16 / open.len());
            check_linear(|size| format!("{open}{}", piece.repeat(size / piece.len())));
        }
    }
}

#[test]
fn one_huge_value_or_text_or_tag_is_linear_work() {
    check_linear(|size| format!("<a href='{0}' id='{0}' title='{0}'>", "x".repeat(size)));
    check_linear(|size| format!("<b id='{}'>", "&amp;".repeat(size / 5)));
    check_linear(|size| format!("<div><b>{}", "x ".repeat(size / 2)));
    check_linear(|size| format!("<div><b>{}", " ".repeat(size)));
    check_linear(|size| format!("<b {}>", "a=b ".repeat(size / 4)));
}
