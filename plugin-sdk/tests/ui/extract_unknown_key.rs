use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Book {
    #[css("a", atr = "href")]
    url: String,
    #[css("p", required)]
    price: u32,
    #[css(default)]
    stock: u32,
    #[css("b", attr = "")]
    id: String,
    #[css("b", raw, raw)]
    text: String,
    #[rows("li", default)]
    tags: Vec<Tag>,
}

#[derive(Extract)]
struct Tag {
    #[css("")]
    text: String,
}

fn main() {}
