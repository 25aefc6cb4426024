//! What the engine captures is what a document tree has, by the same plan, value for value.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it skips"
)]

use crawler_extract::{Budget, CompiledPlan, Plan, PlanLimits, Take, extract};

#[path = "support/random.rs"]
mod random;
#[path = "support/reference.rs"]
mod reference;
#[path = "support/written.rs"]
mod written;

use random::Random;
use reference::Read;

fn read(plan: &Plan, page: &str) -> Read {
    let compiled =
        CompiledPlan::new(plan, &PlanLimits::default()).unwrap_or_else(|e| panic!("{e}"));
    let budget = Budget {
        deadline: std::time::Duration::from_secs(600),
        ..Budget::default()
    };
    let captures = extract(&compiled, page, &budget).unwrap();
    assert!(!captures.truncated);
    written::assert_sound(plan, &captures);
    reference::of_captures(plan, &captures)
}

/// How many values there were.
#[track_caller]
fn check(plan: &Plan, page: &str) -> usize {
    let (ours, theirs) = (read(plan, page), reference::of_tree(plan, page));
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
        // Inner HTML is as it was written, not as it would be written in full.
        plan.fields.retain(|f| f.take != Take::Inner);
        check(&plan, &page);
    }
}

/// A page that says of every element where it ends, and puts none where a browser would move it.
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
    // In the order in which scraper writes them again.
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

/// The plans that were measured before this was built.
const PLANS: [(&str, &str); 12] = [
    ("links", ".href = a[href] -> @href"),
    (
        "links and headings",
        ".href = a[href] -> @href\n.h = h1, h2, h3",
    ),
    (
        "rows of links",
        "a < a[href]\na.href = -> @href\na.text =\na.title = -> @title\na.code = code -> present",
    ),
    (
        "lists of three levels",
        "ul < ul\nul/li < li\nli/a < a\na.text =\na.href = -> @href",
    ),
    (
        "children",
        "list < ul, ol\nlist/item < > li\nitem.a = > a\nitem.p = > p",
    ),
    (
        "tables of three levels",
        "table < table\ntable/tr < tr\ntr/td < td, th\ntd.text =",
    ),
    ("table bodies", ".tr = table > tbody > tr"),
    (
        "code",
        ".code = pre > code -> raw\n.class = pre code -> @class",
    ),
    (
        "heads",
        ".title = title\n.meta = meta -> @content\n.link = link[rel] -> @href\n.lang = html -> @lang",
    ),
    (
        "sections",
        "s < section, div\ns.h = h1, h2, h3, h4\ns.text = first\ns.inner = > p -> inner\ns.a = a[href] -> @href",
    ),
    ("paragraphs", "p < p\np.text =\np.inner = -> inner"),
    (
        "positions",
        ".a = li:nth-child(2)\n.b = a:not(.x):not([title]) -> @href\n.c = p:nth-of-type(2n+1)\n.d = li:first-child > a\n.e = div:first-of-type -> @id",
    ),
];

/// Without all the tags of these that HTML lets an author leave out, as minifiers write it.
fn omitted(page: &str) -> String {
    let tags = [
        "</li>",
        "</p>",
        "</td>",
        "</th>",
        "</tr>",
        "</dt>",
        "</dd>",
        "</option>",
        "<tbody>",
        "</tbody>",
        "</thead>",
    ];
    tags.iter()
        .fold(page.to_owned(), |page, tag| page.replace(tag, ""))
}

/// About 300 pages of the documentation that comes with the compiler. None where it is not installed.
fn documentation() -> Vec<(String, String)> {
    let sysroot = std::process::Command::new("rustc")
        .args(["--print", "sysroot"])
        .output();
    let Ok(sysroot) = sysroot else {
        return Vec::new();
    };
    let root = std::path::Path::new(String::from_utf8(sysroot.stdout).unwrap().trim())
        .join("share/doc/rust/html");
    let mut paths = Vec::new();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "html") {
                // Redirects say nothing, and pages of megabytes take long where nothing is optimised.
                let size = path.metadata().unwrap().len();
                if (4_000..150_000).contains(&size) {
                    paths.push(path);
                }
            }
        }
    }
    paths.sort();
    let step = (paths.len() / 300).max(1);
    let chosen = paths.into_iter().step_by(step).take(300);
    chosen
        .map(|p| (p.display().to_string(), std::fs::read_to_string(p).unwrap()))
        .collect()
}

/// Pages of the documentation on which a plan reads otherwise than from a tree. Serialisation differs, and is
/// taken out by parsing what is inner HTML.
fn different(change: impl Fn(&str) -> String) -> Vec<String> {
    let pages = documentation();
    if pages.is_empty() {
        println!("skipped: the documentation of Rust is not installed");
    } else {
        assert!(pages.len() > 250, "only {} pages", pages.len());
    }
    let plans = PLANS.map(|(name, text)| (name, written::plan(text)));
    let mut different = Vec::new();
    for (path, page) in &pages {
        let page = change(page);
        for (name, plan) in &plans {
            let (ours, theirs) = (read(plan, &page), reference::of_tree(plan, &page));
            if normal(plan, ours) != normal(plan, theirs) {
                different.push(format!("{name}: {path}"));
            }
        }
    }
    different
}

fn normal(plan: &Plan, mut read: Read) -> Read {
    for (field, values) in plan.fields.iter().zip(&mut read.fields) {
        if field.take == Take::Inner {
            for (_, value) in values {
                *value = scraper::Html::parse_fragment(value).html();
            }
        }
    }
    read
}

#[test]
fn documentation_as_it_is_reads_the_same() {
    assert_eq!(different(str::to_owned), Vec::<String>::new());
}

#[test]
fn documentation_without_its_omissible_tags_reads_the_same() {
    assert_eq!(different(omitted), Vec::<String>::new());
}
