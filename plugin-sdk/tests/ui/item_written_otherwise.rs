use crawler_plugin_sdk::prelude::*;

#[derive(Item, serde::Serialize)]
pub struct Book {
    #[serde(serialize_with = "as_text")]
    id: u64,
}

fn as_text<S: serde::Serializer>(id: &u64, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&id.to_string())
}

fn main() {}
