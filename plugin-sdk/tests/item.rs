//! Schemas of items.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crawler_plugin_sdk::{Plugin as _, prelude::*};
use serde::Serialize;
use serde_json::{Value, json};

/// A page of a book.
#[derive(Item, Serialize)]
#[serde(rename_all = "camelCase")]
struct Chapter<'p> {
    long_title: Cow<'p, str>,
    /// From 1 on.
    #[serde(rename = "n")]
    number: u8,
    #[serde(skip)]
    #[allow(dead_code, reason = "not written")]
    seen: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    within: Vec<Chapter<'p>>,
    state: State,
    #[serde(flatten)]
    more: BTreeMap<String, u32>,
}

#[derive(Item, Serialize)]
#[serde(tag = "is", rename_all = "lowercase")]
#[expect(dead_code, reason = "only its shape is of use")]
enum State {
    Draft,
    Out { year: u16 },
}

struct Books;

#[plugin(items(Chapter<'_> = "chapter", State))]
impl Books {
    fn root(_: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn page(_: &Page, _: &mut Crawl) -> Result {
        Ok(())
    }
}

#[test]
fn the_schema_tells_what_serde_writes() {
    let [chapter, state] = Books::DESCRIPTION.items else {
        panic!("two kinds of items");
    };
    assert_eq!((chapter.name, state.name), ("chapter", "state"));
    let schema: Value = serde_json::from_str(&chapter.schema()).unwrap();
    assert_eq!(schema["title"], "Chapter");
    assert_eq!(schema["description"], "A page of a book.");
    assert_eq!(
        schema["required"],
        json!(["longTitle", "n", "within", "state"])
    );
    let fields = &schema["properties"];
    assert_eq!(fields["longTitle"], json!({"type": "string"}));
    assert_eq!(
        fields["n"],
        json!({"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255, "description": "From 1 on."})
    );
    assert_eq!(fields["seen"], Value::Null);
    assert_eq!(fields["note"], json!({"type": ["string", "null"]}));
    assert_eq!(
        fields["within"],
        json!({"type": "array", "items": {"$ref": "#"}})
    );
    assert_eq!(fields["state"], json!({"$ref": "#/$defs/State"}));
    let state = schema["$defs"]["State"]["oneOf"].as_array().unwrap();
    assert_eq!(
        state[1]["properties"]["is"],
        json!({"type": "string", "const": "out"})
    );
}

/// What an API sends and a rule passes on.
#[derive(Debug, Default, Item, serde::Deserialize, Serialize)]
#[serde(default)]
struct Offer {
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    id: u64,
    left: Option<std::num::NonZeroI32>,
    #[serde(flatten)]
    price: Price,
    #[serde(flatten)]
    more: BTreeMap<String, u32>,
}

#[derive(Debug, Default, Item, serde::Deserialize, Serialize)]
enum Price {
    #[default]
    None,
    Pence(u32),
}

fn as_text<S: serde::Serializer>(id: &u64, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&id.to_string())
}

#[test]
fn schemas_have_no_keyword_that_items_are_not_checked_by() {
    let schema = Offer::schema();
    assert!(
        !schema.contains("unevaluated") && !schema.contains("\"not\""),
        "{schema}"
    );
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["properties"]["id"]["type"], "string");
    assert_eq!(
        schema["properties"]["left"]["type"],
        json!(["integer", "null"])
    );
}

#[derive(Item, Serialize)]
#[item(key = "n")]
struct Numbered {
    #[serde(rename = "n")]
    number: u32,
}

#[derive(Item, Serialize)]
#[item(key = "number")]
struct Misnamed {
    #[serde(rename = "n")]
    number: u32,
}

#[test]
fn a_key_is_in_the_schema_under_its_written_name() {
    let written = serde_json::to_value(Numbered { number: 7 }).unwrap();
    let schema: Value = serde_json::from_str(&Numbered::schema()).unwrap();
    assert_eq!((&schema["x-key"], &written["n"]), (&json!("n"), &json!(7)));
    assert_eq!(schema["properties"]["n"]["type"], "integer");
    assert!(!Offer::schema().contains("x-key"));
}

#[test]
#[should_panic(expected = "the key \"number\" is no field of the item")]
fn a_key_that_is_not_written_is_refused() {
    let written = serde_json::to_value(Misnamed { number: 7 }).unwrap();
    panic!("{written} has {}", Misnamed::schema());
}
