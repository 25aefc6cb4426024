//! Whole pages give the trees of a browser, also without the end tags that may be left out.

use crawler_extract::mutation::without_optional_end_tags;

use super::documentation;
use super::outline::{Node, add, browser, told};

#[test]
fn good_pages_are_what_a_browser_makes_of_them() {
    let pages = [
        "",
        "text",
        "a < b & c > d </",
        "<!doctype html><html lang=en><head><title>a</title></head><body><p>b</p></body></html>\n<!-- c -->\n",
        "<html><head>\n<meta charset=utf-8>\n</head>\n<body>\n<br><hr/><img src=x>\n</body>\n</html>",
        "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul><dl><dt>a</dt><dd>b</dd></dl>",
        "<table><caption>a</caption><colgroup><col><col></colgroup><thead><tr><th>b</th></tr></thead>\
         <tbody><tr><td>c<table><tbody><tr><td>d</td></tr></tbody></table></td></tr></tbody></table>",
        "<select><optgroup label=a><option>b</option></optgroup><hr><option>c</option></select>",
        "<ruby>a<rt>b</rt><rp>c</rp></ruby><button><p>d</p></button><form><input></form>",
        "<svg viewBox='0 0 1 1'><path d='M0'/><title>a</title><foreignObject><p>b</p></foreignObject></svg>",
        "<math><mi>x</mi><mtext><p>a</p></mtext></math>",
        "<script>if (a</b/.exec('<p>')) {}</script><style>p > a {}</style><textarea><p></textarea>",
        "<script><!--<script></script><p>--></script><noscript><p></noscript><title></p></title>",
        "<P CLASS=a>b</P><Li>c</lI><custom-ELEMENT>d</CUSTOM-element>",
        "<template><tr><td>a</td></tr></template><template><li>b</li></template>",
        "<a href='>'>a</a><a title=\"</a>\">b</a><a x=y/>c</a>",
        "<!-- <p> --><!--><p>a</p><!---><?x <p>?>",
        "the end is <!-- not",
        "<br><p the end is not",
        "<plaintext></p><li>",
    ];
    for page in pages {
        assert_eq!(told(page), browser(page), "{page}");
    }
}

/// Tags without which a browser reads these pages differently: a `p` goes on, and a body of a table becomes a part
/// of its head.
const CUT: [&str; 2] = ["</p>", "<tbody>"];

const N_PAGES: usize = 200;

/// Smallest size of a page, in bytes. Most pages are about one small function and hold little.
const SMALLEST: u64 = 20_000;

#[test]
fn real_pages_are_what_a_browser_makes_of_them() {
    let pages = documentation::pages(N_PAGES, SMALLEST..u64::MAX);
    if pages.is_empty() {
        return;
    }
    let mut faults = Vec::new();
    let mut check = |what: &str, path: &str, page: &str, expected: &[Node]| {
        if without_space(told(page)) != expected {
            faults.push(format!("{path}, {what}"));
        }
    };
    let mut n_left_out = 0;
    for (path, page) in &pages {
        let expected = without_space(browser(page));
        check("as it is", path, page, &expected);
        let omitted = without_optional_end_tags(page);
        n_left_out += page.matches("</").count() - omitted.matches("</").count();
        check("without what may be left out", path, &omitted, &expected);
        let cut = CUT.iter().fold(omitted, |page, tag| page.replace(tag, ""));
        check("without more", path, &cut, &without_space(browser(&cut)));
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(
        n_left_out > 5_000,
        "only {n_left_out} end tags were left out"
    );
}

/// Returns the tree without white space in its texts, because leaving out an end tag moves the white space behind
/// it. Scripts are left out too, because some of them write tags.
fn without_space(nodes: Vec<Node>) -> Vec<Node> {
    let mut out = Vec::new();
    for node in nodes {
        match node {
            Node::Text(text) => {
                let text: String = text.split_ascii_whitespace().collect();
                add(&mut out, Node::Text(text));
            }
            Node::Element(name, _) if name == "script" => {
                add(&mut out, Node::Element(name, Vec::new()))
            }
            Node::Element(name, children) => {
                add(&mut out, Node::Element(name, without_space(children)))
            }
        }
    }
    out
}
