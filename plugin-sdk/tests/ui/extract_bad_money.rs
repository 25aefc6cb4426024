use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Offer {
    #[css("b", decimal = "comma")]
    comma: Money,
    #[css("b", currency = "EUR")]
    cents: u32,
    #[css("b", decimal = ".", with = price)]
    two_ways: Money,
    #[css("b", currency = EUR)]
    no_text: Money,
}

fn main() {}
