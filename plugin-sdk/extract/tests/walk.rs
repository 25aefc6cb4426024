//! The walk against a browser's tree builder: the walk of a page tells the tree that html5ever builds of it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it skips"
)]

#[path = "walk/differences.rs"]
mod differences;
#[path = "support/documentation.rs"]
mod documentation;
#[path = "walk/order.rs"]
mod order;
#[path = "walk/outline.rs"]
mod outline;
#[path = "walk/pages.rs"]
mod pages;
#[path = "walk/soup.rs"]
mod soup;
