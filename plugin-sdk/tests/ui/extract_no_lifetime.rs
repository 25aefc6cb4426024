use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Book {
    #[css("h1")]
    title: &str,
    #[css("h2")]
    subtitle: Option<&'a str>,
}

fn main() {}
