//! A page of real documentation, and its links and headings without a sandbox.

use std::path::Path;
use std::process::Command;

use scraper::{ElementRef, Html, Selector};

/// A page of usual size, where the documentation of Rust is installed.
#[expect(
    clippy::print_stderr,
    reason = "a benchmark that says what it left out"
)]
pub(crate) fn read() -> Option<String> {
    let asked = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .expect("rustc can be started");
    let sysroot = String::from_utf8_lossy(&asked.stdout);
    let page = Path::new(sysroot.trim()).join("share/doc/rust/html/std/error/struct.Report.html");
    let read = std::fs::read_to_string(&page);
    if read.is_err() {
        eprintln!("left out: there is no {}", page.display());
    }
    read.ok()
}

/// What the plugin `outline` emits: its headings and links as JSON.
pub(crate) fn outline(document: &str) -> String {
    let select = |css| Selector::parse(css).expect("a fixed selector parses");
    let dom = Html::parse_document(document);
    let headings: Vec<String> = dom
        .select(&select("h1, h2, h3, h4, h5, h6"))
        .map(text)
        .collect();
    let links: Vec<&str> = dom
        .select(&select("a[href]"))
        .filter_map(|a| a.attr("href"))
        .collect();
    serde_json::json!({ "headings": headings, "links": links }).to_string()
}

fn text(element: ElementRef<'_>) -> String {
    let text: String = element.text().collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
