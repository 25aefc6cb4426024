//! The differences that the author's guide names, each by a small page: the values of a plan, and those of the
//! tree of a browser.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use scraper::Html;

#[path = "support/compared.rs"]
mod compared;
#[path = "support/marked.rs"]
mod marked;
#[path = "support/reference.rs"]
mod reference;
#[path = "support/written.rs"]
mod written;

use compared::read;
use marked::{Class, classes};
use reference::{Read, of_tree};

const GUIDE: &str = include_str!("../../src/extract.rs");

/// Returns the beginnings of the rows of the guide's table.
fn rows_of_guide() -> Vec<&'static str> {
    let (_, table) = GUIDE
        .split_once("/// | in the page | a plan reads | a browser has |\n")
        .unwrap();
    // The line below the head has no spaces.
    let rows = table.lines().skip(1);
    rows.map_while(|line| line.strip_prefix("/// | ")).collect()
}

struct Case {
    /// Beginning of a row of the guide's table.
    class: &'static str,
    page: String,
    plan: &'static str,
    /// Values of each field of the plan.
    ours: &'static [&'static [&'static str]],
    browsers: &'static [&'static [&'static str]],
    /// Class that the random tests give the page. The other classes do not occur in their pages.
    marked: Option<Class>,
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            class: "a formatting element (",
            page: body("<div><a href=x>1</div><p>2</p>"),
            plan: ".href = a -> @href\n.a = a",
            ours: &[&["x"], &["1"]],
            browsers: &[&["x", "x"], &["1", "2"]],
            marked: Some(Class::OpenedAgain),
        },
        Case {
            class: "a formatting element (",
            page: body("<b>1<p>2</b>3</p>"),
            plan: ".b = b\n.p = p",
            ours: &[&["123"], &["23"]],
            browsers: &[&["1", "2"], &["23"]],
            marked: Some(Class::OpenedAgain),
        },
        Case {
            class: "a block (",
            page: body("<b>1<p>2</b>3</p>"),
            plan: ".in = b > p\n.behind = body > p",
            ours: &[&["23"], &[]],
            browsers: &[&[], &["23"]],
            marked: Some(Class::OpenedAgain),
        },
        Case {
            class: "a block (",
            page: body("<b>1<span>2<p>3</b>4</p>5</span>"),
            plan: ".span = span\n.in = span > p\n.behind = body > p",
            ours: &[&["234"], &["34"], &[]],
            browsers: &[&["2"], &[], &["34"]],
            marked: Some(Class::OpenedAgain),
        },
        Case {
            class: "one that is left open in another",
            page: body("<i>1<span><i>2</span></i>3"),
            plan: ".i = i",
            ours: &[&["12", "2"]],
            browsers: &[&["123", "2"]],
            marked: None,
        },
        Case {
            class: "text or elements in a table",
            page: body("<table>1<p>2</p><tr><td>3</table>"),
            plan: ".table = table\n.p = body > p",
            ours: &[&["123"], &[]],
            browsers: &[&["3"], &["2"]],
            marked: Some(Class::MovedOutOfTable),
        },
        Case {
            class: "a start tag without a place",
            page: body("<div>1<td>2</td></div>"),
            plan: ".td = td\n.div = div",
            ours: &[&["2"], &["12"]],
            browsers: &[&[], &["12"]],
            marked: Some(Class::IgnoredTag),
        },
        Case {
            class: "a start tag without a place",
            page: body("<form>1<form>2</form>"),
            plan: ".form = form",
            ours: &[&["12", "2"]],
            browsers: &[&["12"]],
            marked: Some(Class::IgnoredTag),
        },
        Case {
            class: "`</p>` or `</br>`",
            page: body("1</p>2</br>"),
            plan: ".made = p, br -> tag",
            ours: &[&[]],
            browsers: &[&["p", "br"]],
            marked: Some(Class::MadeOfEndTag),
        },
        Case {
            class: "a `</form>` in a cell",
            page: body("<form><table><tr><td></form>1</table></form>2"),
            plan: ".form = form",
            ours: &[&["1"]],
            browsers: &[&["12"]],
            marked: None,
        },
        Case {
            class: "`script`, `link`, `meta`",
            page: "<!doctype html><html><head></head><link href=1><body></body></html>".to_owned(),
            plan: ".head = head > link -> @href\n.html = html > link -> @href",
            ours: &[&[], &["1"]],
            browsers: &[&["1"], &[]],
            marked: None,
        },
        Case {
            class: "`frameset`",
            page: "<!doctype html><html><head></head><frameset>1<frame src=2><div>3".to_owned(),
            plan: ".src = frame -> @src\n.div = div",
            ours: &[&["2"], &["3"]],
            browsers: &[&["2"], &[]],
            marked: None,
        },
        Case {
            class: "no tag of `html`",
            page: "<title>1</title><p>2".to_owned(),
            plan: ".p = body > p\n.first = p:first-child\n.head = head > title",
            ours: &[&[], &[], &[]],
            browsers: &[&["2"], &["2"], &["1"]],
            marked: Some(Class::MadeUpRoot),
        },
        Case {
            class: "an end tag that 64",
            page: body(&format!("<div>{}1</div>2", "<span>".repeat(64))),
            plan: ".div = div",
            ours: &[&["12"]],
            browsers: &[&["1"]],
            marked: None,
        },
        Case {
            class: "lines that end in CR LF",
            page: body("<p id='1\0b\r\n'>1\0b\r\n3</p>"),
            plan: ".id = p -> @id\n.raw = p -> raw",
            ours: &[&["1\0b\r\n"], &["1\0b\r\n3"]],
            browsers: &[&["1\u{fffd}b\n"], &["1b\n3"]],
            marked: None,
        },
        Case {
            class: "a line end right behind",
            page: body("<pre>\n1</pre><textarea>\n2</textarea>"),
            plan: ".raw = pre, textarea -> raw",
            ours: &[&["\n1", "\n2"]],
            browsers: &[&["1", "2"]],
            marked: None,
        },
        Case {
            class: "the element `image`",
            page: body("<image>"),
            plan: ".tag = image, img -> tag",
            ours: &[&["image"]],
            browsers: &[&["img"]],
            marked: None,
        },
        Case {
            class: "names in `svg` and `math`",
            page: body("<svg viewBox=1><foreignObject>2</foreignObject></svg>"),
            plan: ".box = [viewbox] -> present\n.object = foreignobject\n.exact = foreignObject",
            ours: &[&[""], &["2"], &["2"]],
            browsers: &[&[], &[], &["2"]],
            marked: None,
        },
        Case {
            class: "`math` right in `svg`",
            page: body("<math><svg><title><b>1</b></title></svg></math>"),
            plan: ".svg = svg",
            ours: &[&["1"]],
            browsers: &[&[""]],
            marked: None,
        },
        Case {
            class: "`math` right in `svg`",
            page: body("<svg><foreignObject><![CDATA[<i>1]]></foreignObject></svg>"),
            plan: ".svg = svg",
            ours: &[&["1]]>"]],
            browsers: &[&["<i>1"]],
            marked: None,
        },
    ]
}

fn body(content: &str) -> String {
    format!("<!doctype html><html><head></head><body>{content}</body></html>")
}

#[track_caller]
fn assert_values(read: &Read, expected: &[&[&str]], case: &Case) {
    let values = |field: &Vec<(u32, String)>| -> Vec<String> {
        field.iter().map(|(_, value)| value.clone()).collect()
    };
    let found: Vec<Vec<String>> = read.fields.iter().map(values).collect();
    assert_eq!(found, expected, "{}", case.page);
}

#[test]
fn each_class_of_difference_reads_as_the_guide_says() {
    for case in cases() {
        let plan = written::plan(case.plan);
        assert_values(&read(&plan, &case.page), case.ours, &case);
        let tree = Html::parse_document(&case.page);
        assert_values(&of_tree(&plan, &tree), case.browsers, &case);
    }
}

#[test]
fn pages_of_a_class_are_known_by_their_tree() {
    for case in cases().iter().filter(|case| case.marked.is_some()) {
        let found = classes(&case.page);
        assert_eq!(found, case.marked.into_iter().collect(), "{}", case.page);
    }
}

#[test]
fn the_guide_and_the_tests_name_the_same_classes() {
    let cases = cases();
    let rows = rows_of_guide();
    let rows_of = |class: &str| rows.iter().filter(|row| row.starts_with(class)).count();
    for case in &cases {
        assert_eq!(rows_of(case.class), 1, "{}", case.class);
    }
    let named: BTreeSet<&str> = cases.iter().map(|case| case.class).collect();
    assert_eq!(named.len(), rows.len(), "{rows:#?}");
}
