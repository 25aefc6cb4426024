//! The repair pass against a browser's tree builder: what lol_html sees in a repaired page is what html5ever
//! sees in the page.

#[path = "repair/differences.rs"]
mod differences;
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
