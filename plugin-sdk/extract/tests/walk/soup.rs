//! Pages put together at random, always the same ones, for properties that no page may break.

use super::differences::Exception::{
    IgnoredTablePart, MadeOfEndTag, MovedOutOfPlain, MovedOutOfTable, OpenedAgain,
};
use super::differences::check;
use super::outline::told;
use crawler_extract::mutation::Random;

/// Pieces of a page of soup. `#` stands for a name.
const PIECES: [&str; 46] = [
    "<#>",
    "<#>",
    "<#>",
    "<#>",
    "<#>",
    "<#>",
    "<#>",
    "<#>",
    "</#>",
    "</#>",
    "</#>",
    "</#>",
    "</#>",
    "</#>",
    "x",
    "x",
    " ",
    "<#/>",
    "<# a=1>",
    "<# a='>'>",
    "<# a=\"</#>\" b>",
    "<# a=/>",
    "<# =x>",
    "</# a='>'>",
    "<#\n/ a>",
    "<!---->",
    "<!-- <#> -->",
    "<!-->",
    "<!--->",
    "<!--x--!>",
    "<!x>",
    "<?x?>",
    "</ x>",
    "</>",
    "<!doctype html>",
    "<![CDATA[<#>]]>",
    "<![CDATA[x",
    "<!--",
    "<",
    "</",
    "<#",
    "\0",
    "&amp;",
    "é",
    "<font color=a>",
    "<!--<script>",
];

const NAMES: [&str; 80] = [
    "a",
    "abbr",
    "address",
    "annotation-xml",
    "applet",
    "b",
    "body",
    "br",
    "button",
    "caption",
    "code",
    "col",
    "colgroup",
    "dd",
    "desc",
    "div",
    "dl",
    "dt",
    "em",
    "fieldset",
    "font",
    "foreignObject",
    "form",
    "frame",
    "g",
    "h1",
    "h2",
    "head",
    "hr",
    "html",
    "i",
    "iframe",
    "image",
    "img",
    "input",
    "li",
    "math",
    "mglyph",
    "mi",
    "nobr",
    "noscript",
    "object",
    "ol",
    "optgroup",
    "option",
    "p",
    "picture",
    "pre",
    "rb",
    "rp",
    "rt",
    "rtc",
    "ruby",
    "script",
    "select",
    "SPAN",
    "style",
    "svg",
    "table",
    "tbody",
    "td",
    "template",
    "textarea",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "ul",
    "x-row",
    "xmp",
    "p",
    "li",
    "tr",
    "td",
    "div",
    "table",
    "option",
    "ul",
    "b",
];

fn soup(seed: u64, names: &[&str]) -> String {
    let mut random = Random::new(seed);
    let mut page = String::new();
    for _ in 0..random.below(14) + 2 {
        for part in random.pick(&PIECES).split_inclusive('#') {
            match part.strip_suffix('#') {
                Some(before) => {
                    page.push_str(before);
                    page.push_str(random.pick(names));
                }
                None => page.push_str(part),
            }
        }
    }
    page
}

#[test]
fn what_begins_on_any_page_ends() {
    for seed in 0..300_000 {
        told(&soup(seed, &NAMES));
    }
}

/// Returns pages of start tags and end tags of these names, and text.
fn pages_of(names: &'static str, n: u64) -> impl Iterator<Item = String> {
    let names: Vec<&str> = names.split(' ').collect();
    (0..n).map(move |seed| {
        let mut random = Random::new(seed);
        let mut page = String::from("<!doctype html><html><head></head><body>");
        for n in 0..random.below(9) + 2 {
            let name = random.pick(&names);
            let slash = if random.below(5) < 3 { "" } else { "/" };
            page.push_str(&format!("<{slash}{name}>"));
            if random.below(3) > 0 {
                page.push_str(&n.to_string());
            }
        }
        page
    })
}

#[test]
fn elements_in_any_order_give_the_tree_of_a_browser() {
    let names = "div ul ol li dl dt dd p section span h1 h2 button select option optgroup table tr td th tbody \
                 thead caption colgroup col ruby rt rp rb rtc x-y form article address object hr input";
    let one_form = |page: &String| page.matches("<form>").count() < 2;
    check(
        pages_of(names, 100_000).filter(one_form),
        &[
            (IgnoredTablePart, 51_409),
            (MovedOutOfTable, 8_500),
            (MadeOfEndTag, 6_154),
        ],
    );
}

#[test]
fn formatting_elements_do_not_change_the_tree_around_them() {
    let names = "div ul li p a b i nobr span button x-y a b i object table td dl dd";
    check(
        pages_of(names, 100_000),
        &[
            (IgnoredTablePart, 16_031),
            (MovedOutOfTable, 15_926),
            (OpenedAgain, 11_448),
            (MovedOutOfPlain, 515),
            (MadeOfEndTag, 11_350),
        ],
    );
}

#[test]
fn svg_gives_the_tree_of_a_browser() {
    let names = "div ul li p section span svg g path svg h1 select x-y button";
    check(pages_of(names, 50_000), &[(MadeOfEndTag, 7_303)]);
}

#[test]
fn templates_give_the_tree_of_a_browser() {
    let names =
        "div ul li p template table tr td tbody caption colgroup col select template h1 span";
    check(
        pages_of(names, 50_000),
        &[
            (IgnoredTablePart, 29_301),
            (MovedOutOfTable, 7_381),
            (MadeOfEndTag, 5_471),
        ],
    );
}
