use crawler_plugin_sdk::prelude::*;

#[derive(Item, serde::Serialize)]
pub struct Page<T> {
    of: T,
}

fn main() {}
