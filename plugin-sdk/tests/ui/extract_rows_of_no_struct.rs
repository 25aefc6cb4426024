use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Book {
    #[rows("li")]
    tags: [Tag; 3],
    #[rows("li")]
    pairs: Vec<(Tag, Tag)>,
    #[rows("li")]
    books: Vec<Book>,
}

fn main() {}
