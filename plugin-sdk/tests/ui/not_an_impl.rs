use crawler_plugin_sdk::prelude::*;

#[plugin]
pub struct Books;

fn main() {}
