//! Days and moments of pages, as they are read, refused and written.

#![allow(clippy::unwrap_used, reason = "a test")]

use crawler_plugin_sdk::prelude::*;
use serde_json::{Value, json};

#[derive(Debug, Extract, Item, serde::Serialize, serde::Deserialize)]
struct Article {
    #[css("p.day", format = "%d %B %Y")]
    day: Date,
    #[css("p.short", format = "%A, %d.%m.%y")]
    short: Option<Date>,
    #[css("time", attr = "datetime")]
    iso: Vec<Date>,
    #[css("p.at", format = "%d %b %Y %H:%M %z")]
    at: Option<DateTime>,
    #[css("p.local", format = "%m/%d/%Y %I:%M %p", offset = "-05:00")]
    local: Option<DateTime>,
    #[css("b", attr = "datetime")]
    moments: Vec<DateTime>,
    #[css("i", attr = "datetime", offset = "+02:00")]
    here: Vec<DateTime>,
}

struct News;

#[plugin(items(Article), reads(Article))]
impl News {
    fn root(_: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn article(_: &Page, _: &mut Crawl) -> Result {
        Ok(())
    }
}

fn read(html: &str) -> Result<Value> {
    let html = format!("<p class=day>1 July 2026</p>{html}");
    let page = Page::from_html("http://news.test/1", html);
    Ok(serde_json::to_value(page.extract::<Article>()?)?)
}

#[track_caller]
fn check(html: &str, field: &str, expected: Value) {
    assert_eq!(read(html).unwrap()[field], expected, "{html}");
}

#[track_caller]
fn check_refused(html: &str, expected: &str) {
    let error = read(html).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn days_are_read_by_their_format_and_written_as_iso_8601() {
    check("", "day", json!("2026-07-01"));
    check(
        "<p class=short>Wednesday, 01.07.26",
        "short",
        json!("2026-07-01"),
    );
    check(
        "<p class=short>Wednesday, 01.07.70",
        "short",
        json!("1970-07-01"),
    );
    check("<p class=short>Mon,1.7.69", "short", json!("2069-07-01"));
    check("", "short", Value::Null);
}

#[test]
fn days_without_a_format_are_those_of_the_attribute_datetime() {
    let times = |texts: &[&str]| -> String {
        let one = |text: &&str| format!("<time datetime='{text}'></time>");
        texts.iter().map(one).collect()
    };
    check(
        &times(&[
            " 2026-07-01 ",
            "2026-07-01T23:30-05:00",
            "2026-07-01 10:00",
            "0001-01-01",
        ]),
        "iso",
        json!(["2026-07-01", "2026-07-01", "2026-07-01", "0001-01-01"]),
    );
    for text in [
        "2026-02-30",
        "07/01/2026",
        "2026-07",
        "2026-07-01x",
        "2026-07-01 or so",
        "",
        "12026-07-01",
        "+2026-7-01",
        "26-07-01",
        "2026-7-1",
        "2026-07-01 10 comments",
        "2026-07-01T10",
    ] {
        check_refused(
            &times(&[text]),
            "it is not as `2026-07-01`; say how it is written: format =",
        );
    }
}

#[test]
fn moments_keep_the_offset_of_the_page_or_have_that_of_the_key() {
    check(
        "<p class=at> 1 Jul 2026\n 08:05 +0200",
        "at",
        json!("2026-07-01T08:05:00+02:00"),
    );
    check(
        "<p class=local>7/1/2026 5:05 PM",
        "local",
        json!("2026-07-01T17:05:00-05:00"),
    );
    let moments = "<b datetime=2026-07-01T08:05:06Z></b><b datetime='2026-07-01 08:05+0130'></b>\
        <b datetime=2026-07-01t08:05:06.250-05:00></b>";
    check(
        moments,
        "moments",
        json!([
            "2026-07-01T08:05:06+00:00",
            "2026-07-01T08:05:00+01:30",
            "2026-07-01T08:05:06.250-05:00"
        ]),
    );
    let here = "<i datetime='2026-07-01T08:05'></i><i datetime='2026-07-01T08:05Z'></i>";
    check(
        here,
        "here",
        json!(["2026-07-01T08:05:00+02:00", "2026-07-01T08:05:00+00:00"]),
    );
}

#[test]
fn what_is_there_but_no_date_is_an_error_with_field_text_and_format() {
    let error = read("<p class=short>Tuesday, 01.07.26")
        .unwrap_err()
        .to_string();
    let expected = "error: \"Tuesday, 01.07.26\" is no value for `Article.short`, read from an element `p.short`: it is not as the format `%A, %d.%m.%y`: ";
    assert!(error.starts_with(expected), "{error}");
    check_refused(
        "<p class=short>soon",
        "it is not as the format `%A, %d.%m.%y`",
    );
    check_refused(
        "<p class=at>1 Jul 2026 08:05",
        "it is not as the format `%d %b %Y %H:%M %z`",
    );
    check_refused(
        "<p class=local>13/1/2026 5:05 PM",
        "it is not as the format",
    );
    check_refused(
        "<b datetime=2026-07-01T08:05></b>",
        "it tells no offset from UTC; say which: offset = \"+00:00\"",
    );
    check_refused(
        "<b datetime=2026-07-01></b>",
        "it is not as `2026-07-01T12:30:00+02:00`",
    );
    check_refused(
        "<b datetime='2026-07-01T08:05Z!'></b>",
        "it is not as `2026-07-01T12:30:00+02:00`",
    );
    let page = Page::from_html("http://news.test/1", "<p class=day>1 July +12026");
    let error = page.extract::<Article>().unwrap_err().to_string();
    assert!(
        error.ends_with("the year 12026 has not four digits"),
        "{error}"
    );
}

#[test]
fn the_schema_says_which_strings_they_are_and_they_are_read_again() {
    let schema: Value = serde_json::from_str(&Article::schema()).unwrap();
    let fields = &schema["properties"];
    assert_eq!(fields["day"], json!({"type": "string", "format": "date"}));
    assert_eq!(
        fields["moments"]["items"],
        json!({"type": "string", "format": "date-time"})
    );
    assert_eq!(fields["short"]["type"], json!(["string", "null"]));
    let article = read("<b datetime=2026-07-01T08:05:06Z></b>").unwrap();
    let again: Article = serde_json::from_value(article.clone()).unwrap();
    assert_eq!(serde_json::to_value(again).unwrap(), article);
}

#[test]
fn they_are_parsed_compared_and_taken_apart() {
    let date = |text: &str| text.parse::<Date>().unwrap();
    assert!(date("2026-07-01") < date("2026-07-02"));
    let moment = |text: &str| text.parse::<DateTime>().unwrap();
    assert_eq!(
        moment("2026-07-01T08:05Z"),
        moment("2026-07-01T10:05+02:00")
    );
    assert_eq!(moment("1970-01-01T00:00:01+00:00").unix_millis(), 1000);
    assert_eq!(moment("2026-07-01T23:59-11:00").date(), date("2026-07-01"));
    let error = "soon".parse::<Date>().unwrap_err().to_string();
    assert!(error.starts_with("error: \"soon\" is no day: "), "{error}");
    let error = DateTime::parse("1.7.2026 8:00", "%d.%m.%Y %H:%M").unwrap_err();
    assert!(
        error.to_string().contains("it is not as the format"),
        "{error}"
    );
}
