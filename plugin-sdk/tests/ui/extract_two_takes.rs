use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Book {
    #[css("a", attr = "href", inner)]
    url: String,
    #[css("p", raw, present)]
    is_there: bool,
    #[css("p", present)]
    price: u32,
    #[css("p", present, default)]
    is_new: bool,
    #[css("p", default)]
    tags: Vec<String>,
    #[css("a", attr = "href", default)]
    next: Links,
    #[css("a", attr = "href")]
    all: Vec<Links>,
}

fn main() {}
