use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Book {
    #[css("li", regex = "(author")]
    author: String,
    #[css("a", attr = "href", regex = "[0-9]+")]
    next: Links,
    #[css("li", present, regex = "x")]
    has_author: bool,
    #[page(title)]
    title: String,
    #[page(url)]
    url: Option<String>,
    #[page(state)]
    tag: Price,
}

struct Price;

#[derive(Extract)]
struct Tag {
    #[page(state)]
    tag: Price,
}

fn main() {}
