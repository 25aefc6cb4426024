//! A selector that does not parse is a mistake in a rule: it ends the call, and names its place in the author's source.

#![cfg(feature = "dom")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Mutex;

use crawler_plugin_sdk::prelude::*;

/// Place of the last panic, and its message.
static TOLD: Mutex<Option<(String, u32, String)>> = Mutex::new(None);

#[track_caller]
fn check<T>(line: u32, call: impl FnOnce() -> T) {
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
    let (file, at, message) = TOLD.lock().unwrap().take().unwrap();
    assert!(file.ends_with("tests/dom.rs"), "{file}");
    assert_eq!(at, line, "{message}");
    let why = "selector `h1 +` does not parse: ";
    assert!(message.starts_with(why), "{message}");
}

// The hook is that of the process, so it has no other test.
#[test]
fn a_wrong_selector_names_the_line_of_the_rule() {
    set_hook(Box::new(|panic| {
        let place = panic.location().unwrap();
        let message = panic.payload_as_str().unwrap_or_default();
        let told = (place.file().to_owned(), place.line(), message.to_owned());
        *TOLD.lock().unwrap() = Some(told);
    }));
    let page = Page::from_html("http://a.test/", "<h1>x</h1>");
    let dom = page.dom();
    check(line!(), || dom.all("h1 +"));
    check(line!(), || dom.first("h1 +"));
    check(line!(), || dom.one("h1 +"));
    check(line!(), || dom.text_at("h1 +"));
    check(line!(), || dom.texts_at("h1 +"));
    check(line!(), || dom.attr_at("h1 +", "id"));
    check(line!(), || dom.attrs_at("h1 +", "id"));
    check(line!(), || dom.form_at("h1 +"));
    let root = dom.root_element();
    check(line!(), || root.all("h1 +"));
    check(line!(), || root.first("h1 +"));
}
