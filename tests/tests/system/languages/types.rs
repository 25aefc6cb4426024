//! The types of the SDK for JavaScript, by the compiler of TypeScript: they fit every plugin and every example.

use std::fs;

use crawler_tests::process::Home;
use crawler_tests::repository;

use super::tools::typescript;
use super::{copied, example};

/// Rules with lines that are errors: the compiler refuses a mark at a line that is none.
const TYPES: &str = include_str!("types.js");

/// Beginning of a file of examples, each of which is the body of a function.
const NAMES: &str = "// @ts-check
import { attr, blocked, fatal, inner, links, log, plugin, present, raw, retry, rows, skip, tag, text } from './crawler.js';
";

#[test]
fn types_of_the_javascript_sdk_fit_plugins_and_examples() {
    let Some(tools) = typescript() else { return };
    let home = Home::new();
    home.ok(["plugin", "new", "kiosk", "--lang", "js"]);
    let kiosk = home.path().join("kiosk");
    let guide = format!("// @ts-check\n{}", example("js"));
    let examples = documented();
    for (file, text) in [
        ("types.js", TYPES),
        ("guide.js", &guide),
        ("examples.js", &examples),
    ] {
        fs::write(kiosk.join("src").join(file), text).expect("a file can be written");
    }
    tools.check_types(&kiosk);
    for name in ["books_js", "broken_links_js"] {
        let folder = copied(&home, name);
        let settings = folder.join("jsconfig.json");
        fs::copy(kiosk.join("jsconfig.json"), settings).expect("a file can be copied");
        tools.check_types(&folder);
    }
}

/// Returns the examples of the types, which stand in comments, as functions that have a page and a crawl.
fn documented() -> String {
    let types = repository().join("plugin-sdk/js/crawler.d.ts");
    let types = fs::read_to_string(types).expect("the types are there");
    let mut examples = Vec::new();
    for (n, comment) in types.split("@example\n").skip(1).enumerate() {
        let (comment, _) = comment.split_once("*/").expect("a comment ends");
        let lines = comment.lines().map(str::trim_start);
        let lines = lines.map(|line| line.strip_prefix("* ").unwrap_or_default());
        let code: Vec<&str> = lines.collect();
        let code = code.join("\n").replace("export const", "const");
        examples.push(format!(
            "/** @param {{import('./crawler.js').Page}} page @param {{import('./crawler.js').Crawl}} crawl */\n\
             export function example{n}(page, crawl) {{\n{code}\n}}\n"
        ));
    }
    assert!(examples.len() > 20, "{}", examples.len());
    format!("{NAMES}{}", examples.join("\n"))
}
