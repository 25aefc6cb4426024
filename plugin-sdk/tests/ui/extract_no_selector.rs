use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Book {
    title: String,
    #[css("p")]
    #[rows("li")]
    price: u32,
    #[rows("")]
    tags: Vec<Book>,
}

fn main() {}
