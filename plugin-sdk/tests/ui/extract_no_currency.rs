use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Price {
    #[css("b", currency = "EURO")]
    euro: Money,
    #[css("b", default)]
    free: Money,
}

fn main() {}
