use crawler_plugin_sdk::prelude::*;

struct Price;

#[derive(Extract)]
struct Book {
    #[css("p.price")]
    price: Price,
    #[css("p.price", with = pence)]
    pence: u32,
    #[rows("li")]
    tags: Vec<String>,
}

fn pence(text: &str) -> Option<u32> {
    text.parse().ok()
}

fn main() {}
