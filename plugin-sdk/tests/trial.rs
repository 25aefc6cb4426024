//! Native tests see what the crawler would do.

use crawler_plugin_sdk::prelude::*;
use crawler_plugin_sdk::testing::Trial;
use crawler_plugin_sdk::{Level, Plugin, info};

#[derive(Item, serde::Serialize)]
struct Line(String);

#[derive(Item, serde::Serialize)]
struct LineCount {
    n_lines: usize,
}

#[derive(Item, serde::Serialize)]
struct Stars {
    #[schemars(range(max = 5))]
    n: u32,
}

struct Lines;

#[plugin(
    items(Line = "text", LineCount, Stars),
    version = "1.2.0",
    hosts("a.test"),
    limits(item_bytes = 7)
)]
impl Lines {
    fn root(crawl: &mut Crawl) -> Result {
        crawl.follow("lines.txt", Self::COUNT)
    }

    #[rule(name = "count-lines")]
    fn count(page: &Page, crawl: &mut Crawl) -> Result {
        let n_lines = page.text().lines().count();
        info!("{n_lines} lines");
        crawl.follow_all(["next.txt", "http://["], Self::COUNT)?;
        crawl.emit(&LineCount { n_lines })
    }

    #[rule]
    fn line(page: &Page, crawl: &mut Crawl) -> Result {
        crawl.emit(&Line(page.text().to_owned()))
    }

    #[rule]
    fn stars(page: &Page, crawl: &mut Crawl) -> Result {
        for line in page.text().lines() {
            crawl.emit(&Stars { n: line.parse()? })?;
        }
        Ok(())
    }
}

fn page() -> Page {
    Page::from_html("http://a.test/b/lines.txt", "one\ntwo")
}

#[test]
fn the_description_says_what_the_attribute_says() {
    let description = Lines::DESCRIPTION;
    assert_eq!(
        (description.name, description.version),
        ("crawler-plugin-sdk", "1.2.0")
    );
    assert_eq!(description.rules, ["count-lines", "line", "stars"]);
    let items: Vec<_> = description.items.iter().map(|item| item.name).collect();
    assert_eq!(items, ["text", "line_count", "stars"]);
    assert_eq!(description.hosts, ["a.test"]);
    assert_eq!(description.limits, [("item-bytes", 7)]);
    assert_eq!(
        (Lines::COUNT.name(), Lines::LINE.name()),
        ("count-lines", "line")
    );
}

#[test]
fn rules_are_called_by_their_number() {
    let count = |page: &Page, crawl: &mut Crawl| Lines::call_rule(0, page, crawl);
    assert_eq!(
        Trial::new().parse(count, &page()).unwrap().items[0].item,
        "line_count"
    );
    let none = |page: &Page, crawl: &mut Crawl| Lines::call_rule(3, page, crawl);
    let error = Trial::new().parse(none, &page()).unwrap_err();
    assert_eq!(
        error,
        RuleError::fatal("the plugin has no rule of number 3")
    );
}

#[test]
fn items_of_another_shape_than_their_type_tells_are_refused_as_by_the_crawler() {
    let stars = |text: &str| {
        let page = Page::from_html("http://a.test/", text);
        Trial::new().parse(Lines::stars, &page)
    };
    assert_eq!(stars("1\n5").unwrap().items.len(), 2);
    let expected = "item 2, of schema stars: at /n: 6 is more than 5";
    assert_eq!(stars("5\n6").unwrap_err(), RuleError::unexpected(expected));
}

#[test]
fn addresses_are_resolved_and_bad_ones_of_pages_are_dropped_without_an_error() {
    let outcome = Trial::new().parse(Lines::count, &page()).unwrap();
    assert_eq!(outcome.urls(), ["http://a.test/b/next.txt"]);
    assert_eq!(outcome.bad_urls, ["http://["]);
    // The author of `root` wrote its addresses by hand, so a bad one is an error, as in the crawler.
    let error = Trial::new().root(Lines::root).unwrap_err();
    let expected =
        r#"url "lines.txt" is relative, and in root there is no page to resolve it against"#;
    assert_eq!(error, RuleError::unexpected(expected));
}

#[test]
fn each_call_has_its_own_log() {
    let trial = Trial::new();
    for _ in 0..2 {
        let outcome = trial.parse(Lines::count, &page()).unwrap();
        assert_eq!(outcome.logs, [(Level::Info, "2 lines".to_owned())]);
    }
}

#[test]
fn an_item_that_is_no_object_is_refused_as_by_the_crawler() {
    let error = Trial::new().parse(Lines::line, &page()).unwrap_err();
    let expected = "an item is one JSON object: invalid type: string \"one\\ntwo\", expected a JSON object at line 1 column 10";
    assert_eq!(error, RuleError::unexpected(expected));
}

#[test]
fn an_error_is_told_with_its_causes() {
    #[derive(Debug)]
    struct Outer(std::num::ParseIntError);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("no price")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let error = Outer("x".parse::<u8>().unwrap_err());
    let expected = "error: no price: invalid digit found in string";
    assert_eq!(RuleError::from(error).to_string(), expected);
}

struct Params;

#[plugin(params(
    start_page(about = "First page", default = "http://a.test/"),
    "start-url"(about = "Another page"),
    type(about = "Kind of pages", optional),
    r#in(about = "Folder")
))]
impl Params {
    fn root(crawl: &mut Crawl) -> Result {
        crawl.follow(crawl.config().require("start_page")?, Self::PAGE)?;
        crawl.follow(crawl.config().require("start-url")?, Self::PAGE)
    }

    #[rule]
    fn page(_: &Page, _: &mut Crawl) -> Result {
        Ok(())
    }
}

#[test]
fn params_are_described_in_the_order_declared() {
    let params = Params::DESCRIPTION.params.unwrap();
    let names: Vec<_> = params.iter().map(|param| param.name).collect();
    assert_eq!(names, ["start_page", "start-url", "type", "in"]);
    let optional: Vec<_> = params.iter().map(|param| param.is_optional).collect();
    assert_eq!(optional, [false, false, true, false]);
    let schema = Params::DESCRIPTION.params_schema().unwrap();
    assert!(schema.ends_with(r#""required":["start-url","in"],"additionalProperties":false}"#));
}

#[test]
fn no_list_of_params_is_not_an_empty_one() {
    assert_eq!(Lines::DESCRIPTION.params, None);
    assert_eq!(Lines::DESCRIPTION.params_schema(), None);
    struct Closed;
    #[plugin(params())]
    impl Closed {
        fn root(_: &mut Crawl) -> Result {
            Ok(())
        }

        #[rule]
        fn page(_: &Page, _: &mut Crawl) -> Result {
            Ok(())
        }
    }
    assert_eq!(Closed::DESCRIPTION.params, Some(&[][..]));
}

#[test]
fn a_trial_of_a_plugin_has_its_defaults() {
    let error = Trial::of::<Params>().root(Params::root).unwrap_err();
    assert!(error.to_string().contains("param `start-url` is missing"));
    let trial = Trial::of::<Params>().param("start-url", "http://b.test/");
    let outcome = trial.root(Params::root).unwrap();
    assert_eq!(outcome.urls(), ["http://a.test/", "http://b.test/"]);
}
