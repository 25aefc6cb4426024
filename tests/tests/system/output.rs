//! Formats of the items that `crawler run` writes, and colours of messages.

use std::fs;

use crawler_tests::guests;
use crawler_tests::process::{Ended, Home};
use crawler_tests::web::Site;
use serde_json::Value;

use crate::sites;

fn crawl(home: &Home, start: &url::Url, file: &str) -> Ended {
    let puppet = guests::guest("puppet").display().to_string();
    let param = format!("start={start}");
    let allow = "--allow-networks=127.0.0.0/8";
    home.run(["run", &puppet, "--param", &param, allow, "-o", file])
}

#[test]
fn the_ending_of_the_file_tells_how_items_are_written() {
    let web = sites::chain(3).open();
    let home = Home::new();
    let start = web.url("/0");
    let written = |file: &str| {
        let ended = crawl(&home, &start, file);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        fs::read_to_string(home.path().join(file)).expect("the file is there")
    };
    let lines = written("items.jsonl");
    let mut lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    let array = written("items.json");
    let mut array: Vec<Value> = serde_json::from_str(&array).expect("the file is one array");
    let by_url = |item: &Value| item["url"].to_string();
    lines.sort_by_key(by_url);
    array.sort_by_key(by_url);
    assert_eq!(array, lines);
    assert_eq!(array.len(), 3);
    let table = written("items.csv");
    let mut rows = table.lines();
    let head: Vec<&str> = rows.next().expect("there is a head").split(',').collect();
    let place = head.iter().position(|name| *name == "url");
    let place = place.unwrap_or_else(|| panic!("{table}"));
    let mut urls: Vec<&str> = rows.filter_map(|row| row.split(',').nth(place)).collect();
    urls.sort_unstable();
    assert_eq!(
        urls,
        ["/0", "/1", "/2"].map(|path| web.url(path).to_string())
    );
}

#[test]
fn a_crawl_without_items_leaves_an_empty_document() {
    let web = Site::new().open();
    let home = Home::new();
    for (file, text) in [
        ("items.jsonl", ""),
        ("items.json", "[]"),
        ("items.csv", "depth,state,url"),
    ] {
        fs::write(home.path().join(file), "items of an earlier crawl").expect("written");
        let ended = crawl(&home, &web.url("/nowhere"), file);
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        let left = fs::read_to_string(home.path().join(file)).expect("the file is there");
        let mut names: Vec<&str> = left.trim_end().split(',').collect();
        names.sort_unstable();
        assert_eq!(names.join(","), text, "{file}");
    }
}

#[test]
fn a_file_of_another_ending_is_refused_before_any_fetch() {
    let web = sites::chain(1).open();
    let home = Home::new();
    let ended = crawl(&home, &web.url("/0"), "items.xml");
    assert_eq!(ended.code, Some(2));
    let why = "no items are written as .xml; end it in .jsonl for an object a line, .json for an array, or .csv for a table, or give a path without an ending";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    assert!(!home.path().join("items.xml").exists());
    assert!(web.log().is_empty());
}

#[test]
fn a_format_in_place_of_a_file_is_refused_with_the_way_out() {
    let web = sites::chain(1).open();
    let home = Home::new();
    let ended = crawl(&home, &web.url("/0"), "json");
    assert_eq!(ended.code, Some(2));
    let why =
        "json is a format, and -o of this command names a file; write -o items.json for an array";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    assert!(!home.path().join("json").exists());
    assert!(web.log().is_empty());
    let ended = crawl(&home, &web.url("/0"), "./json");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(home.path().join("json").is_file());
}

#[test]
fn colours_are_asked_for_or_kept_out() {
    let home = Home::new();
    let colored = |arguments: &[&str]| {
        let ended = home.run(arguments);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        ended.stderr.contains('\u{1b}')
    };
    assert!(!colored(&["--nope"]));
    assert!(colored(&["--color", "always", "--nope"]));
    assert!(!colored(&["--color", "never", "--nope"]));
}
