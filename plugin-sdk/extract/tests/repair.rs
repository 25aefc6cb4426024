//! The repair pass against a browser's tree builder: what lol_html sees in a repaired page is what html5ever
//! sees in the page.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it skips"
)]

#[path = "repair/differences.rs"]
mod differences;
#[path = "support/documentation.rs"]
mod documentation;
#[path = "repair/order.rs"]
mod order;
#[path = "repair/outline.rs"]
mod outline;
#[path = "repair/pages.rs"]
mod pages;
#[path = "support/random.rs"]
mod random;
#[path = "repair/soup.rs"]
mod soup;
