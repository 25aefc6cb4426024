//! Pages full of tables read like their document trees, whatever tags they leave out.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it has seen"
)]

use std::collections::BTreeMap;

use crawler_extract::mutation::Random;
use crawler_extract::{Plan, Take};
use scraper::Html;

#[path = "support/compared.rs"]
mod compared;
#[path = "support/marked.rs"]
mod marked;
#[path = "tables/pages.rs"]
mod pages;
#[path = "support/reference.rs"]
mod reference;
#[path = "support/written.rs"]
mod written;

use compared::readings;
use marked::{Class, classes};

const PLANS: [&str; 8] = [
    "table < table\ntable/tr < tr\ntr/td < td, th\ntd.text =\ntd.rows = -> @rowspan\ntable.class = -> @class",
    ".td = table > tbody > tr > td\n.head = thead > tr > th\n.foot = tfoot td\n.never = table > tr, tbody > td",
    "table < table\ntable/part < > thead, > tbody, > tfoot\npart/tr < > tr\ntr/cell < > td, > th\ncell.raw = -> raw\n\
     part.tag = -> tag\ntable.never = > tr\ntable.caption = > caption\ntable.col = > colgroup > col -> @class",
    ".second = td:nth-child(2)\n.first = th:first-child\n.even = tr:nth-child(2n) > td:nth-of-type(2)\n\
     .tbody = tbody:nth-of-type(2) -> raw\n.not = td:not(:first-child):not(.a)",
    "td < td\ntd/li < ul > li\nli.text =\ntd.table = table td\ntd.p = p\ntd.a = a -> @href\ntd.b = > b",
    "tr < tr\ntr.inner = -> inner\ntr.first = first td\ntr.spans = [colspan], [rowspan] -> tag",
    ".table = table\n.raw = body > table, div > table -> raw\n.p = p\n.form = form input -> present\n.col = col -> @span",
    "table < table\ntable/inside < table table\ninside.td = td:first-child\ntable.last = first tfoot tr\n\
     table.id = #c, #r -> @id",
];

#[derive(Debug, Default)]
struct Outcome {
    n_pages: usize,
    /// Number of values of each plan and field in the tree.
    n_values: BTreeMap<(usize, String), usize>,
    n_comparable: usize,
    /// Number of pages of each class, and of those that read differently.
    excepted: BTreeMap<Class, (usize, usize)>,
}

/// Reads `n_pages` pages. Those of no class have to read the same.
fn outcome(plans: &[Plan], n_pages: u64, page: impl Fn(&mut Random) -> String) -> Outcome {
    let mut outcome = Outcome::default();
    for seed in 0..n_pages {
        let page = page(&mut Random::new(seed));
        let tree = Html::parse_document(&page);
        let classes = classes(&page);
        let mut is_different = false;
        for (n, plan) in plans.iter().enumerate() {
            let (ours, theirs) = readings(plan, &page, &tree);
            if classes.is_empty() {
                assert_eq!(ours, theirs, "{plan:#?}\n{page}");
            }
            is_different |= ours != theirs;
            for (field, values) in plan.fields.iter().zip(&theirs.fields) {
                let key = (n, field.name.clone());
                *outcome.n_values.entry(key).or_default() += values.len();
            }
        }
        outcome.n_pages += 1;
        outcome.n_comparable += usize::from(classes.is_empty());
        for class in classes {
            let (n_excepted, n_different) = outcome.excepted.entry(class).or_default();
            *n_excepted += 1;
            *n_different += usize::from(is_different);
        }
    }
    println!("{outcome:?}");
    outcome
}

#[test]
fn tables_read_the_same_whatever_tags_they_leave_out() {
    let outcome = outcome(&PLANS.map(written::plan), 400, pages::right);
    assert_eq!(outcome.n_comparable, 400, "{outcome:?}");
    for ((_, name), n_values) in &outcome.n_values {
        assert_eq!(*n_values > 0, name != "never", "{outcome:?}");
    }
    assert!(outcome.n_values.values().sum::<usize>() > 50_000);
}

#[test]
fn tables_with_mistakes_read_the_same_unless_a_browser_moves_something() {
    // Inner HTML is as it is written, and a wrong tag means something else with less around it.
    let mut plans = PLANS.map(written::plan);
    for plan in &mut plans {
        plan.fields.retain(|field| field.take != Take::Inner);
    }
    let outcome = outcome(&plans, 400, pages::wrong);
    assert!(outcome.n_comparable > 200, "{outcome:?}");
    assert!(
        outcome.excepted[&Class::MovedOutOfTable].1 > 30,
        "{outcome:?}"
    );
}
