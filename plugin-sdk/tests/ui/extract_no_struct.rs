use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
enum Kind {
    Book,
}

#[derive(Extract)]
struct Pair(String, String);

#[derive(Extract)]
struct Nothing;

#[derive(Extract)]
struct Named<T> {
    #[css("h1")]
    name: T,
}

fn main() {}
