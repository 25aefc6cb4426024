//! Tests of links that a rule tells apart by their addresses, and of what that costs it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crawler_model::crawl::{Kill, RuleError};
use crawler_model::plugin::Limits;
use crawler_plugin::{CallReport, Rules as _};
use serde_json::Value;
use url::Url;

use crate::guests::{component, config, context, page, plugin, plugin_of};
use crate::{URL, check_kill, gave_up};

/// Number of links of `contents.html` in the documentation of Python 3.11, and of the pages that they lead to.
const N_LINKS: usize = 13_962;
const N_PAGES: usize = 491;

/// Address that such a page comes from.
const CONTENTS: &str = "http://a.test/3/contents.html";

/// Returns a table of contents in the shape of that page: nested lists, and links to parts of pages.
fn contents() -> String {
    let mut html = "<base href=/3/><ul>".to_owned();
    for n in 0..N_LINKS {
        let (page, part) = (n * N_PAGES / N_LINKS, n % 28);
        let folder = ["library", "reference", "c-api", "whatsnew"][page % 4];
        let address = match part {
            0 => format!("{folder}/module{page}.html"),
            _ => format!("{folder}/module{page}.html#section-{part}"),
        };
        writeln!(
            html,
            "<li class=\"toctree-l2\"><a class=\"reference internal\" href=\"{address}\">{page}.{part}. A section \
             with a <code class=\"docutils literal notranslate\"><span class=\"pre\">name</span></code></a></li>"
        )
        .expect("a text takes all");
    }
    html + "</ul>"
}

async fn site(html: String) -> CallReport {
    let outline = plugin_of(component("outline", "tests/guests/outline")).await;
    let page = page(CONTENTS, html);
    outline
        .parse(config(|_| (), &[]), "site", page, context())
        .await
}

#[tokio::test]
async fn a_twentieth_of_the_fuel_tells_14_000_links_apart() {
    let report = site(contents()).await;
    let requests = report.result.expect("the fuel is enough").requests;
    assert_eq!(requests.len(), N_PAGES);
    let of_library = requests
        .iter()
        .filter(|request| *request.rule == *"declared");
    assert_eq!(of_library.count(), N_PAGES.div_ceil(4));
    let most = Limits::default().fuel / 20;
    assert!(report.usage.fuel < most, "{} of {most}", report.usage.fuel);
}

/// Returns the real page, as `tests/run` got it or Debian has it, of any version. If there is none, a line says so.
#[expect(clippy::print_stdout, reason = "the line is read by tests/run")]
#[expect(
    clippy::disallowed_methods,
    reason = "tests/run names what it has got in the environment"
)]
fn real_contents() -> Option<String> {
    const INSTALLED: &str = "/usr/share/doc/python3-doc/html/contents.html";
    let got = std::env::var_os("CRAWLER_PYTHON_CONTENTS").map(std::fs::read_to_string);
    let html = got.and_then(Result::ok);
    let html = html.or_else(|| std::fs::read_to_string(INSTALLED).ok());
    if html.is_none() {
        println!(
            "skipped: python3-doc: there is no {INSTALLED} to read (Debian: apt-get install python3-doc)"
        );
    }
    html
}

/// Returns the pages of its host that the links of a page lead to, read by its text alone.
fn pages_linked(html: &str) -> (usize, BTreeSet<String>) {
    let page: Url = CONTENTS.parse().expect("it is whole");
    let tags = html.split("<a ").skip(1);
    let tags = tags.filter_map(|tag| tag.split('>').next());
    let addresses = tags.filter_map(|tag| tag.split("href=\"").nth(1)?.split('"').next());
    let (mut n_links, mut pages) = (0, BTreeSet::new());
    for address in addresses {
        n_links += 1;
        let mut url = page.join(address).expect("the page has good links");
        url.set_fragment(None);
        if url.host() == page.host() {
            pages.insert(url.to_string());
        }
    }
    (n_links, pages)
}

#[tokio::test]
async fn the_contents_of_pythons_documentation_are_read_whole() {
    let Some(html) = real_contents() else {
        return;
    };
    let (n_links, expected) = pages_linked(&html);
    assert!(n_links > 10_000, "{n_links} links");
    let report = site(html).await;
    let requests = report.result.expect("the fuel is enough").requests;
    let found: Vec<String> = requests
        .iter()
        .map(|request| request.url.to_string())
        .collect();
    assert_eq!(found.len(), expected.len());
    assert_eq!(BTreeSet::from_iter(found), expected);
    let most = Limits::default().fuel / 20;
    assert!(report.usage.fuel < most, "{} of {most}", report.usage.fuel);
}

const LIST: &str = "<base href=/shop/><ul><li><a href='a#top'>Salt</a><li><a href='http://['>Odd</a>\
    <li><a href=//b.test/c>Größe</a><li><a href=a>Salt again</a></ul>";

async fn parse_with(rule: &str, html: &str, change: impl FnOnce(&mut Limits)) -> CallReport {
    let (config, page) = (config(change, &[]), page(URL, html.to_owned()));
    plugin().await.parse(config, rule, page, context()).await
}

async fn chosen(html: &str, change: impl FnOnce(&mut Limits)) -> Value {
    let output = parse_with("choose-links", html, change).await.result;
    let items = output.expect("links can be chosen").items;
    let found: Value = serde_json::from_str(&items[0].json).expect("items are JSON");
    found["chosen"].clone()
}

#[tokio::test]
async fn links_are_chosen_by_their_addresses_and_mistakes_are_told() {
    let found = chosen(LIST, |_| ()).await;
    let found: Vec<&str> = found
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(found[..2], ["[0]", "[1]"]);
    let why = "refused: `(` is no regular expression for links: found open group";
    assert!(found[2].starts_with(why), "{found:?}");
    assert_eq!(found[3], "refused: field 7 does not exist; the plan has 3");
    assert_eq!(
        found[4],
        "unknown plan: plan 5 does not exist; the plugin describes 2"
    );
    let RuleError::Skip(why) = gave_up(parse_with("choose-many", LIST, |_| ()).await) else {
        panic!("it did not skip the page");
    };
    assert_eq!(
        why,
        "there are 33 regular expressions for links; at most 32 are allowed: join some with `|`"
    );
}

#[tokio::test]
async fn choosing_costs_the_same_each_time() {
    let fuel = async || parse_with("choose-links", LIST, |_| ()).await.usage.fuel;
    assert_eq!(fuel().await, fuel().await);
}

#[tokio::test]
async fn links_that_are_cut_off_are_told_once() {
    let logs = async |n: u64| {
        let report = parse_with("choose-links", LIST, |limits| limits.captures = n).await;
        let lines = report.logs.into_iter();
        lines.map(|line| line.message).collect::<Vec<_>>()
    };
    assert_eq!(logs(100).await, [""; 0]);
    let line = "what `rows` reads of this page is cut: limit captures or capture-bytes is used up";
    assert_eq!(logs(2).await, [line]);
}

#[tokio::test]
async fn addresses_are_as_long_together_as_captures_may_be() {
    let base = "x".repeat(1_000);
    let page = format!("<base href='/{base}/'><li><a href=1></a><li><a href=2></a>");
    assert_eq!(chosen(&page, |_| ()).await[0], "[0, 1]");
    let found = chosen(&page, |limits| limits.capture_bytes = 2_000).await;
    assert_eq!(
        found[0],
        "too large: the addresses of the links have more than 2000 bytes together; raise it with --limit capture-bytes=VALUE, or skip the page"
    );
}

#[tokio::test]
async fn choosing_again_and_again_ends_with_the_fuel() {
    let change = |limits: &mut Limits| limits.fuel = 50_000_000;
    let report = parse_with("choose-flood", LIST, change).await;
    check_kill(
        report,
        Kill::OutOfFuel,
        "the rule used up its fuel with host calls; limit fuel is 50000000; raise it with --limit fuel=VALUE",
    );
}

/// Long pages are judged on another thread than short ones.
#[tokio::test]
async fn links_of_short_and_long_pages_are_all_chosen() {
    let links = |n: usize| (0..n).map(|n| format!("<li><a href={n}></a>"));
    for n in [900, 5_000] {
        let page: String = links(n).collect();
        let found = chosen(&page, |_| ()).await;
        let positions: Vec<u32> = serde_json::from_str(found[0].as_str().unwrap()).unwrap();
        assert_eq!(positions.len(), n);
    }
}
