use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Book {
    #[css("h1 +")]
    title: String,
    #[css("a:has(b)", attr = "href")]
    next: Links,
    #[rows("li..book")]
    rows: Vec<Row>,
    #[css("p.price")]
    price: String,
}

#[derive(Extract)]
struct Row {
    #[css("> b, [id")]
    bold: Option<String>,
    #[css("")]
    text: String,
}

fn main() {}
