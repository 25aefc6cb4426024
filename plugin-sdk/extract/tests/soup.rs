//! Pages and plans that nobody would write: none causes a panic, and all captures are sound.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crawler_extract::mutation::Random;
use crawler_extract::{Budget, CompiledPlan, Field, Group, Plan, PlanLimits, Take, extract};

#[path = "support/written.rs"]
mod written;

const PIECES_OF_PAGES: [&str; 64] = [
    "<div>",
    "</div>",
    "<div class=a id='b'>",
    "<p>",
    "</p>",
    "<b>",
    "</b>",
    "<i>",
    "<a href='x&amp;y'>",
    "</a>",
    "<ul>",
    "<li>",
    "</li>",
    "</ul>",
    "<table>",
    "<tr>",
    "<td>",
    "</table>",
    "<tbody>",
    "<br>",
    "<br/>",
    "<img src=x>",
    "<svg>",
    "</svg>",
    "<path/>",
    "<![CDATA[",
    "]]>",
    "<math>",
    "<mi>",
    "<template>",
    "</template>",
    "<script>",
    "</script>",
    "<style>",
    "</style>",
    "<textarea>",
    "</textarea>",
    "<title>",
    "</title>",
    "<noscript>",
    "</noscript>",
    "<plaintext>",
    "<select>",
    "<option>",
    "<!--",
    "-->",
    "<!doctype html>",
    "<?x",
    "</",
    "<",
    ">",
    "&",
    "&amp",
    "&#x1F980;",
    "&#0;",
    "&#xD800",
    "&notit;",
    "é",
    "🦀",
    "\u{a0}",
    "\0",
    "\r\n",
    " ",
    "<base href=/b>",
];

const PIECES_OF_SELECTORS: [&str; 56] = [
    "div",
    "*",
    "a",
    "li",
    "p",
    "b",
    "svg",
    "é",
    ".a",
    "#b",
    ".",
    "#",
    "[href]",
    "[",
    "]",
    "[class='a']",
    "'",
    "\"",
    "=",
    "~=",
    "|=",
    "^=",
    ":not(",
    ":nth-child(",
    ":nth-of-type(",
    ":is(",
    ":has(",
    ")",
    "(",
    "2n+1",
    "odd",
    "of",
    ":first-child",
    ":first-of-type",
    "::before",
    ":",
    " ",
    " > ",
    ">",
    "+",
    "~",
    ",",
    "|",
    "||",
    "\\",
    "\\31 ",
    "/*",
    "*/",
    "&",
    "{",
    "\n",
    "\0",
    "@",
    "!",
    "1",
    "-",
];

fn text_of(random: &mut Random, pieces: &[&str], most: usize) -> String {
    let n = random.below(most);
    (0..n).map(|_| random.pick(pieces)).collect()
}

#[test]
fn no_page_and_no_plan_is_a_panic() {
    let limits = PlanLimits::default();
    let mut n_accepted = 0;
    let mut n_captures = 0;
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let plan = plan(&mut random);
        let Ok(compiled) = CompiledPlan::new(&plan, &limits) else {
            continue;
        };
        n_accepted += 1;
        for _ in 0..4 {
            let page = text_of(&mut random, &PIECES_OF_PAGES, 80);
            let budget = Budget {
                n_captures: [3, 20, 100_000][random.below(3)],
                captured_bytes: [0, 5, 50, 1 << 20][random.below(4)],
                memory: [0, 4 << 10, 2 << 20][random.below(3)],
                ..Budget::default()
            };
            if let Ok(captures) = extract(&compiled, &page, &budget) {
                written::assert_sound(&plan, &captures);
                assert!(captures.text.len() <= budget.captured_bytes);
                assert!(captures.n_captures() <= budget.n_captures);
                n_captures += captures.n_captures();
            }
        }
    }
    assert!(n_accepted > 1_000, "{n_accepted}");
    assert!(n_captures > 10_000, "{n_captures}");
}

#[test]
fn no_selector_is_a_panic() {
    let limits = PlanLimits::default();
    let mut n_accepted = 0;
    for seed in 0..200_000 {
        let mut random = Random::new(seed);
        let selector = text_of(&mut random, &PIECES_OF_SELECTORS, 12);
        let plan = Plan {
            name: "soup".to_owned(),
            groups: vec![group("g", None, "div"), group("h", Some(0), &selector)],
            fields: vec![],
        };
        match CompiledPlan::new(&plan, &limits) {
            Ok(_) => n_accepted += 1,
            Err(error) => assert!(
                error.to_string().contains("group \"h\", selector"),
                "{error}"
            ),
        }
    }
    assert!(n_accepted > 1_000, "{n_accepted}");
}

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan {
        name: "soup".to_owned(),
        ..Plan::default()
    };
    for i in 0..random.below(3) {
        let parent = (i > 0 && random.below(2) == 0).then_some(0);
        let selector = selector(random);
        plan.groups.push(group(&format!("g{i}"), parent, &selector));
    }
    for i in 0..random.below(5) {
        let group = random.below(plan.groups.len() + 1).checked_sub(1);
        let take = match random.below(6) {
            0 => Take::Text,
            1 => Take::TextRaw,
            2 => Take::Inner,
            3 => Take::Attr("href".to_owned()),
            4 => Take::Tag,
            _ => Take::Present,
        };
        plan.fields.push(Field {
            name: format!("f{i}"),
            group: group.map(|g| u32::try_from(g).unwrap()),
            selector: if random.below(4) == 0 {
                String::new()
            } else {
                selector(random)
            },
            take,
            first: random.below(3) == 0,
            keep: random.below(2) == 0,
        });
    }
    plan
}

fn group(name: &str, parent: Option<u32>, selector: &str) -> Group {
    Group {
        name: name.to_owned(),
        parent,
        selector: selector.to_owned(),
    }
}

/// Returns a selector that is mostly accepted.
fn selector(random: &mut Random) -> String {
    if random.below(20) == 0 {
        return text_of(random, &PIECES_OF_SELECTORS, 6);
    }
    let simple = [
        "div", "*", "b", "a", "li", "p", "br", "img", "svg", "template", "script", "td", "path",
        ":not(b)", "title",
    ];
    let first = random.pick(&simple);
    match random.below(6) {
        0 => format!("> {first}"),
        1 => format!("{first} {}", random.pick(&simple)),
        2 => format!("{first}, {}", random.pick(&simple)),
        3 => format!("{first}:nth-of-type(odd)"),
        _ => first.to_owned(),
    }
}
