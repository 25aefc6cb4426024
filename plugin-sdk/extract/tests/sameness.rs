//! Captures of the engine are those of a document tree by the same plan, value for value.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crawler_extract::mutation::Random;
use crawler_extract::{Plan, Take};
use scraper::Html;

#[path = "support/compared.rs"]
mod compared;
#[path = "support/reference.rs"]
mod reference;
#[path = "support/written.rs"]
mod written;

use compared::{omitted, read};

/// Checks that both read the same, and returns the number of values.
#[track_caller]
fn check(plan: &Plan, page: &str) -> usize {
    let tree = Html::parse_document(page);
    let (ours, theirs) = (read(plan, page), reference::of_tree(plan, &tree));
    assert_eq!(ours, theirs, "{plan:#?}\n{page}");
    ours.fields.iter().map(Vec::len).sum()
}

#[test]
fn pages_and_plans_of_chance_read_the_same() {
    let mut n_values = 0;
    for seed in 0..1_500 {
        let mut random = Random::new(seed);
        let page = page(&mut random);
        for _ in 0..3 {
            let plan = plan_of_chance(&mut random);
            n_values += check(&plan, &page);
        }
    }
    assert!(
        n_values > 10_000,
        "{n_values} values are too few to mean anything"
    );
}

#[test]
fn pages_of_chance_without_their_end_tags_read_the_same() {
    for seed in 0..1_500 {
        let mut random = Random::new(seed);
        let page = omitted(&page(&mut random));
        let mut plan = plan_of_chance(&mut random);
        // Inner HTML is as it was written, and a tree would write it in full.
        plan.fields.retain(|f| f.take != Take::Inner);
        check(&plan, &page);
    }
}

/// Returns a page that has the end tag of every element, and no element that a browser would move.
fn page(random: &mut Random) -> String {
    let mut page = "<!DOCTYPE html><html><head><title>a</title></head><body>".to_owned();
    let mut n_left = 5 + random.below(60);
    while n_left > 0 {
        node(random, &mut page, 0, &mut n_left);
    }
    page + "</body></html>"
}

fn node(random: &mut Random, page: &mut String, depth: usize, n_left: &mut usize) {
    *n_left = n_left.saturating_sub(1);
    match random.below(12) {
        0..=2 => page.push_str(random.pick(&["x", " ", " y\n z ", "&amp;", "é", "a &lt; b", "  "])),
        3 => page.push_str(random.pick(&[
            "<br>",
            "<img class=\"a\">",
            "<!--c-->",
            "<script>no</script>",
        ])),
        4 if random.below(3) == 0 => {
            page.push_str("<template><div class=\"a\">no</div></template>")
        }
        5 => {
            let id = *n_left;
            page.push_str(&format!("<table class=\"b\"><tbody><tr><td id=\"{id}\">"));
            children(random, page, depth, n_left);
            page.push_str("</td><td class=\"c\">t</td></tr></tbody></table>");
        }
        6 => {
            page.push_str("<ul>");
            for _ in 0..random.below(4) {
                element(random, page, "li", depth, n_left);
            }
            page.push_str("</ul>");
        }
        _ => {
            let tag = random.pick(&["div", "section", "div", "span", "em"]);
            element(random, page, tag, depth, n_left);
        }
    }
}

fn element(random: &mut Random, page: &mut String, tag: &str, depth: usize, n_left: &mut usize) {
    page.push_str(&format!("<{tag}"));
    if random.below(2) == 0 {
        page.push_str(&format!(
            " class=\"{}\"",
            random.pick(&["a", "b", "a b", "c a"])
        ));
    }
    // Attributes have the order in which scraper writes them again.
    if random.below(6) == 0 {
        page.push_str(random.pick(&[" data-x=\"one two\"", " data-x=\"one-a\""]));
    }
    if random.below(3) == 0 {
        page.push_str(&format!(" id=\"{n_left}\""));
    }
    if random.below(6) == 0 {
        page.push_str(random.pick(&[" title=\"x &amp; y\"", " title=\"\""]));
    }
    page.push('>');
    children(random, page, depth, n_left);
    page.push_str(&format!("</{tag}>"));
}

fn children(random: &mut Random, page: &mut String, depth: usize, n_left: &mut usize) {
    for _ in 0..random.below(4) {
        if depth < 8 {
            node(random, page, depth + 1, n_left);
        }
    }
}

fn plan_of_chance(random: &mut Random) -> Plan {
    let mut text = String::new();
    let n_groups = random.below(4);
    for i in 0..n_groups {
        if i > 0 && random.below(2) == 0 {
            let parent = random.below(i);
            text.push_str(&format!("g{parent}/g{i} < {}\n", selector(random, true)));
        } else {
            text.push_str(&format!("g{i} < {}\n", selector(random, false)));
        }
    }
    for i in 0..1 + random.below(5) {
        let takes = [
            "text", "text", "raw", "inner", "present", "tag", "@id", "@title",
        ];
        let take = random.pick(&takes);
        let first = random.pick(&["", "", "first "]);
        if n_groups > 0 && random.below(4) > 0 {
            let group = random.below(n_groups);
            let selector = if random.below(4) == 0 {
                String::new()
            } else {
                selector(random, true)
            };
            text.push_str(&format!("g{group}.f{i} = {first}{selector} -> {take}\n"));
        } else {
            text.push_str(&format!(
                ".f{i} = {first}{} -> {take}\n",
                selector(random, false)
            ));
        }
    }
    written::plan(&text)
}

fn selector(random: &mut Random, is_in_row: bool) -> String {
    let n_parts = if random.below(4) == 0 { 2 } else { 1 };
    let parts: Vec<String> = (0..n_parts).map(|_| part(random, is_in_row)).collect();
    parts.join(", ")
}

fn part(random: &mut Random, is_in_row: bool) -> String {
    let mut text = String::new();
    if is_in_row && random.below(3) == 0 {
        text.push_str("> ");
    }
    text.push_str(&compound(random));
    for _ in 0..random.below(3) {
        text.push_str(random.pick(&[" ", " > ", ">"]));
        text.push_str(&compound(random));
    }
    text
}

fn compound(random: &mut Random) -> String {
    let conditions = [
        ".a",
        ".b",
        ".c",
        "#3",
        "[id]",
        "[title]",
        "[title='']",
        "[class=a]",
        "[class='A' i]",
        "[data-x~=two]",
        "[data-x|=one]",
        "[data-x^=one]",
        "[data-x$=a]",
        "[data-x*='e t']",
        ":first-child",
        ":first-of-type",
        ":nth-child(2)",
        ":nth-child(2n+1)",
        ":nth-child(-n+2)",
        ":nth-of-type(2)",
        ":nth-of-type(even)",
        ":not(.a)",
        ":not(div)",
        ":not(.a, .b)",
        ":not([id], span, #2)",
        ":not(:first-child)",
        ":not(:not(.a))",
        ":not(:not(:not(.b, em)))",
        ":not(:nth-of-type(1))",
    ];
    let mut text = random
        .pick(&[
            "div", "div", "span", "li", "ul", "section", "em", "td", "*", "", "DIV", "img",
        ])
        .to_owned();
    while text.is_empty() || random.below(4) == 0 {
        let condition = random
            .pick(&conditions)
            .replace("#3", "#\\33 ")
            .replace("#2", "#\\32 ");
        text.push_str(&condition);
    }
    text
}
