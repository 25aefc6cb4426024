//! Schemas that are read, items that fit them, and changes of schemas that are told.

use serde_json::json;

use super::*;

const PLENTY: u64 = 1 << 30;

fn read(schema: &Value) -> JsonSchema {
    JsonSchema::read(&schema.to_string()).unwrap()
}

/// Returns the fault of the item; empty if it fits.
fn check(schema: &Value, item: &str) -> String {
    let checked = read(schema).check(item, &mut PLENTY.clone());
    checked.err().map_or_else(String::new, |e| e.to_string())
}

#[track_caller]
fn checks(schema: Value, cases: &[(&str, &str)]) {
    for (item, expected) in cases {
        assert_eq!(check(&schema, item), *expected, "{schema} {item}");
    }
}

#[test]
fn an_item_is_what_its_schema_says() {
    checks(json!(true), &[("{}", ""), ("1", "")]);
    checks(json!(false), &[("{}", "{} is not of the kind nothing")]);
    checks(
        json!({"type": "integer", "minimum": 0, "maximum": 255}),
        &[
            ("7", ""),
            ("7.0", ""),
            ("70e-1", ""),
            ("7.5", "7.5 is not of the kind integer"),
            ("\"7\"", "\"7\" is not of the kind integer"),
            ("-1", "-1 is less than 0"),
            ("256", "256 is more than 255"),
        ],
    );
    checks(
        json!({"type": "integer", "maximum": 18_446_744_073_709_551_614_u64}),
        &[
            ("18446744073709551614", ""),
            (
                "18446744073709551615",
                "18446744073709551615 is more than 18446744073709551614",
            ),
        ],
    );
    checks(
        json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
        &[
            ("0.5", ""),
            ("0", "0 is not more than 0"),
            ("1.0", "1.0 is not less than 1"),
        ],
    );
    checks(
        json!({"type": ["string", "null"], "minLength": 2, "maxLength": 3}),
        &[
            ("null", ""),
            ("\"äö\"", ""),
            (r#""\u00e4\n""#, ""),
            ("\"ä\"", "it has 1 characters, fewer than 2"),
            ("\"abcd\"", "it has 4 characters, more than 3"),
            ("1", "1 is not of the kind string or null"),
        ],
    );
    checks(
        json!({"pattern": "^[a-z]+$"}),
        &[
            ("\"ab\"", ""),
            ("7", ""),
            ("\"A\"", "\"A\" does not match ^[a-z]+$"),
        ],
    );
    checks(
        json!({"enum": ["red", 2, null, {"a": [1.0]}]}),
        &[
            (r#""r\u0065d""#, ""),
            ("2.0", ""),
            ("null", ""),
            (r#"{ "a" : [1] }"#, ""),
            (
                "\"blue\"",
                r#""blue" is none of "red", 2, null, {"a":[1.0]}"#,
            ),
        ],
    );
    checks(json!({"const": 1}), &[("1", ""), ("2", "2 is none of 1")]);
    checks(
        json!({"const": 1, "enum": [1, 2]}),
        &[("1", ""), ("2", "2 is none of 1")],
    );
}

#[test]
fn what_is_in_an_item_is_found_at_its_place() {
    let book = json!({
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "tags/all": {"type": "array", "items": {"type": "string"}, "uniqueItems": true, "maxItems": 3},
            "at": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false},
        },
        "required": ["title", "tags/all"],
        "additionalProperties": {"type": "integer"},
        "maxProperties": 4,
    });
    checks(
        book,
        &[
            (r#"{"title": "a", "tags/all": []}"#, ""),
            (
                r#"{"title": "a", "tags/all": ["x", "y"], "at": ["a", 1], "more": 7}"#,
                "",
            ),
            ("[]", "[] is not of the kind object"),
            (r#"{"title": "a"}"#, r#"it has no "tags/all""#),
            (
                r#"{"title": 1, "tags/all": []}"#,
                "at /title: 1 is not of the kind string",
            ),
            (
                r#"{"title": "a", "tags/all": ["x", 1]}"#,
                "at /tags~1all/1: 1 is not of the kind string",
            ),
            (
                r#"{"title": "a", "tags/all": ["x", "x"]}"#,
                "at /tags~1all: \"x\" is in it twice",
            ),
            (
                r#"{"title": "a", "tags/all": ["x", "y", "z", "u"]}"#,
                "at /tags~1all: it has 4 elements, more than 3",
            ),
            (
                r#"{"title": "a", "tags/all": [], "at": ["a", 1, 2]}"#,
                "at /at/2: 2 is not of the kind nothing",
            ),
            (
                r#"{"title": "a", "tags/all": [], "more": "x"}"#,
                "at /more: \"x\" is not of the kind integer",
            ),
            (
                r#"{"title": "a", "tags/all": [], "b": 1, "c": 1, "d": 1}"#,
                "it has 5 properties, more than 4",
            ),
        ],
    );
    checks(
        json!({"patternProperties": {"^[0-9]+$": {"type": "integer"}}, "additionalProperties": false}),
        &[
            (r#"{"12": 1}"#, ""),
            (r#"{"12": "x"}"#, "at /12: \"x\" is not of the kind integer"),
            (
                r#"{"x": 1}"#,
                "at /x: the schema has no such property, and no others than it has",
            ),
        ],
    );
}

#[test]
fn of_several_shapes_the_one_that_is_meant_is_told_of() {
    let schema = json!({
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "left": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]},
                },
                "required": ["name"],
            },
        },
        "$ref": "#/$defs/Tree",
        "title": "Tree",
    });
    checks(
        schema,
        &[
            (r#"{"name": "a", "left": {"name": "b", "left": null}}"#, ""),
            (
                r#"{"name": "a", "left": {"left": null}}"#,
                r#"at /left: it has no "name""#,
            ),
            (
                r#"{"name": "a", "left": 1}"#,
                "at /left: 1 fits none of the 2 that it may be",
            ),
        ],
    );
    checks(
        json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        &[
            (r#"{"a": 1}"#, ""),
            (
                r#"{"c": 1}"#,
                r#"{"c": 1} fits none of the 2 that it may be"#,
            ),
            (
                r#"{"a": 1, "b": 1}"#,
                r#"{"a": 1, "b": 1} fits 2 of what it may be one of"#,
            ),
        ],
    );
    checks(
        json!({"allOf": [{"required": ["a"]}], "$ref": "#/$defs/b", "minProperties": 2, "$defs": {"b": {"required": ["b"]}}}),
        &[
            (r#"{"a": 1, "b": 1}"#, ""),
            (r#"{"a": 1, "c": 1}"#, r#"it has no "b""#),
        ],
    );
}

/// The schemas are those of the SDK for a struct with a field of itself, an enum with a tag, and a flattened map.
#[test]
fn schemas_of_rust_types_are_read() {
    let chapter = json!({
        "$defs": {"State": {"oneOf": [
            {"properties": {"is": {"const": "draft", "type": "string"}}, "required": ["is"], "type": "object"},
            {
                "properties": {
                    "is": {"const": "out", "type": "string"},
                    "year": {"format": "uint16", "maximum": 65535, "minimum": 0, "type": "integer"},
                },
                "required": ["is", "year"],
                "type": "object",
            },
        ]}},
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "additionalProperties": {"format": "uint32", "minimum": 0, "type": "integer"},
        "description": "A page of a book.",
        "properties": {
            "n": {"description": "From 1 on.", "format": "uint8", "maximum": 255, "minimum": 0, "type": "integer"},
            "note": {"type": ["string", "null"]},
            "state": {"$ref": "#/$defs/State"},
            "within": {"items": {"$ref": "#"}, "type": "array"},
        },
        "required": ["n", "within", "state"],
        "title": "Chapter",
        "type": "object",
    });
    checks(
        chapter.clone(),
        &[
            (
                r#"{"n": 1, "state": {"is": "out", "year": 1}, "more": 3, "within": [{"n": 2, "within": [], "state": {"is": "draft"}}]}"#,
                "",
            ),
            (
                r#"{"n": 1, "state": {"is": "draft"}, "within": [{"n": 256, "within": [], "state": {"is": "draft"}}]}"#,
                "at /within/0/n: 256 is more than 255",
            ),
            (
                r#"{"n": 1, "state": {"is": "gone"}, "within": []}"#,
                r#"at /state: {"is": "gone"} fits none of the 2 that it may be"#,
            ),
        ],
    );
    let told: Vec<_> = read(&chapter)
        .properties()
        .map(|(name, kinds, is_required)| format!("{name} {kinds} {is_required}"))
        .collect();
    let expected = [
        "n integer true",
        "note string or null false",
        "state object true",
        "within array true",
    ];
    assert_eq!(told, expected);
    let mut later = chapter.clone();
    later["$defs"]["State"]["oneOf"][1]["required"] = json!(["is"]);
    differ(
        chapter,
        later,
        &["/state: it may be something else now than it was one of"],
    );
}

#[test]
fn what_is_not_checked_or_never_ends_is_refused() {
    #[track_caller]
    fn refused(schema: &str, expected: &str) {
        let error = JsonSchema::read(schema).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    refused(
        "{",
        "not JSON: EOF while parsing an object at line 1 column 1",
    );
    refused("[]", "a schema is an object, true or false");
    refused(
        r#"{"type": "text"}"#,
        "at /type: \"text\" is no type of JSON Schema",
    );
    refused(
        r#"{"properties": {"a/b": {"if": true}}}"#,
        "at /properties/a~1b/if: items are not checked by this keyword; leave it out, or begin its name with x- where it demands nothing",
    );
    refused(
        r##"{"$ref": "#/$defs/gone"}"##,
        r##""#/$defs/gone" leads nowhere in this schema; write #/$defs/NAME"##,
    );
    refused(
        r#"{"$ref": "http://schema.example/"}"#,
        r##""http://schema.example/" leads nowhere in this schema; write #/$defs/NAME"##,
    );
    refused(
        r#"{"pattern": "("}"#,
        "at /pattern: \"(\" is no pattern: found open group without closing ')'",
    );
    refused(
        r#"{"maxItems": -1}"#,
        "at /maxItems: it is a number from 0 on, without a fraction",
    );
    refused(
        r#"{"anyOf": []}"#,
        "at /anyOf: it is a list of at least one schema",
    );
    let followed = "it refers to itself without a step into the value, or more than 16 schemas are about one value";
    refused(r##"{"allOf": [{"$ref": "#"}]}"##, followed);
    refused(
        r##"{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}"##,
        "at /$defs/a: schemas are nested too deep, or a $ref leads to itself",
    );
    refused(
        r#"{"pattern": "()()()()()()()()"}"#,
        "at /pattern: \"()()()()()()()()\" is no pattern: write its groups as (?:…)",
    );
    refused(
        r#"{"properties": {"a\u001b": {"$id": "x"}}}"#,
        "at /properties/a\\u{1b}/$id: only the whole schema may have one",
    );
    let patterns = json!({"prefixItems": vec![json!({"pattern": "a{300}"}); 100]}).to_string();
    let error = JsonSchema::read(&patterns).unwrap_err().to_string();
    assert!(
        error.ends_with("all of the schema together are too large"),
        "{error}"
    );
    let inner: BTreeMap<_, _> = (0..300).map(|n| (n.to_string(), true)).collect();
    let long = json!({"properties": {"x".repeat(30_000): {"properties": inner}}});
    let error = JsonSchema::read(&long.to_string()).unwrap_err().to_string();
    assert!(
        error.ends_with("there are too many schemas with long names in each other"),
        "{error}"
    );
    let deep = format!("{}true{}", r#"{"items":"#.repeat(100), "}".repeat(100));
    let error = JsonSchema::read(&deep).unwrap_err().to_string();
    assert!(
        error.ends_with("schemas are nested too deep, or a $ref leads to itself"),
        "{error}"
    );
    let pattern = json!({"pattern": "((a{100}){100}){100}"}).to_string();
    let error = JsonSchema::read(&pattern).unwrap_err().to_string();
    assert!(error.contains("is no pattern: "), "{error}");
}

#[test]
fn no_schema_takes_more_than_its_budget() {
    // Each level refers forty times to the next.
    let mut defs = serde_json::Map::new();
    for n in 0..15 {
        let next = json!({"$ref": format!("#/$defs/{}", n + 1)});
        defs.insert(n.to_string(), json!({"allOf": vec![next; 40]}));
    }
    defs.insert("15".to_owned(), json!({"type": "object"}));
    let schema = read(&json!({"$defs": defs, "$ref": "#/$defs/0"}));
    let mut budget = 1_000_000;
    assert_eq!(schema.check("{}", &mut budget), Err(Unfit::OverBudget));
    let told = schema.differences(&schema);
    assert!(told.is_empty(), "{told:?}");

    // Cycles of two lengths meet in as many pairs as the product of the lengths.
    let cycle = |n: usize| {
        let link = |inner: Value| json!({"properties": {"x": inner}});
        read(&(0..n).fold(json!({"$ref": "#"}), |inner, _| link(inner)))
    };
    let told = cycle(29).differences(&cycle(30));
    assert_eq!(told, ["the schemas are too large to be compared"]);
    let names: Vec<String> = (0..5_000).map(|n| n.to_string()).collect();
    let parts =
        |name: &str| json!({"allOf": vec![json!({"$ref": format!("#/$defs/{name}")}); 1_000]});
    let many = json!({"$ref": "#/$defs/a", "$defs": {"a": parts("b"), "b": parts("c"), "c": {}}});
    let told = read(&json!({ "required": names })).differences(&read(&many));
    assert_eq!(told, ["the schemas are too large to be compared"]);

    let mut budget = 10_000;
    let long = format!("{:?}", "a".repeat(5_000));
    assert_eq!(
        read(&json!({"pattern": "^(a|aa){50}$"})).check(&long, &mut budget),
        Err(Unfit::OverBudget)
    );
    // Nested values are bounded by the JSON that is accepted; with them, nested schemas are bounded too.
    let nested = json!({"$defs": {"a": {"allOf": [{"allOf": [{"items": {"$ref": "#/$defs/a"}}]}]}}, "$ref": "#/$defs/a"});
    let item = format!("{}{}", "[".repeat(120), "]".repeat(120));
    let error = check(&nested, &item);
    assert!(
        error.ends_with("schemas and values are nested deeper than 256 in each other"),
        "{error}"
    );
    let many = format!(
        "[{}]",
        (0..70_000)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(",")
    );
    assert_eq!(
        check(&json!({"uniqueItems": true}), &many),
        "it has more elements than 65536, which are not compared with each other"
    );
}

#[track_caller]
fn differ(old: Value, new: Value, expected: &[&str]) {
    assert_eq!(read(&old).differences(&read(&new)), expected, "{old} {new}");
}

#[test]
fn what_readers_could_stumble_over_is_told() {
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    let old = object(
        json!({"title": {"type": "string"}, "pence": {"type": "integer", "format": "uint32", "minimum": 0}, "tags": {"type": "array", "items": {"type": "string"}}}),
        json!(["title", "pence"]),
    );
    differ(old.clone(), old.clone(), &[]);
    differ(
        old.clone(),
        json!(true),
        &["it may be of the kind array or string or number or boolean or null now"],
    );
    let more = object(
        json!({"title": {"type": "string", "minLength": 1}, "pence": {"type": "integer", "format": "uint32", "minimum": 0}, "tags": {"type": "array", "items": {"enum": ["a"]}}, "new": true}),
        json!(["title", "pence", "tags"]),
    );
    differ(old.clone(), more, &[]);
    let less = object(
        json!({"title": {"type": ["string", "null"]}, "pence": {"type": "integer", "format": "int64"}, "tags": {"type": "array", "items": {"type": "integer"}}}),
        json!(["title"]),
    );
    differ(
        old.clone(),
        less,
        &[
            "/pence: it may be less than 0 now",
            "/pence: its format was \"uint32\" and is \"int64\" now",
            "/tags/-: it may be of the kind integer now",
            "/title: it may be of the kind null now",
            "\"pence\" may be missing now",
        ],
    );
    differ(
        old,
        object(json!({"tags": {"type": "array"}}), json!([])),
        &[
            "\"pence\" is gone",
            "/tags/-: it may be anything now",
            "\"title\" is gone",
        ],
    );
    differ(
        json!({"enum": ["a", "b"]}),
        json!({"enum": ["b", "c", "d"]}),
        &["it may be \"c\", \"d\" now"],
    );
    differ(
        json!({"enum": ["a"]}),
        json!({"type": "string"}),
        &["it may be something else now than \"a\""],
    );
    differ(
        json!({"maxLength": 3, "pattern": "^a", "uniqueItems": true}),
        json!({"maxLength": 4}),
        &[
            "it may have more than 3 characters now",
            "its pattern was \"^a\" and is none now",
            "it may have elements twice now",
        ],
    );
    differ(
        json!({"additionalProperties": {"type": "integer"}}),
        json!({"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}}),
        &["/a: it may be of the kind string now"],
    );
}

#[test]
fn choices_are_compared_one_by_one() {
    let option = |inner: Value| json!({"anyOf": [inner, {"type": "null"}]});
    let book = json!({"type": "object", "required": ["a"]});
    differ(option(book.clone()), book.clone(), &[]);
    differ(option(book.clone()), option(book.clone()), &[]);
    differ(
        book.clone(),
        option(book.clone()),
        &["it may be of the kind null now"],
    );
    differ(
        json!({"type": ["object", "null"]}),
        option(book.clone()),
        &[],
    );
    differ(
        option(book),
        option(json!({"type": "object"})),
        &["it may be something else now than it was one of"],
    );
    // An enumeration gains a kind, or loses one.
    let kinds = |names: &[&str]| {
        let each = names
            .iter()
            .map(|name| json!({"required": [name], "type": "object"}));
        json!({"oneOf": each.collect::<Vec<_>>()})
    };
    differ(kinds(&["a", "b"]), kinds(&["b"]), &[]);
    differ(
        kinds(&["a"]),
        kinds(&["a", "b"]),
        &["it may be something else now than it was one of"],
    );
    // The demands of each choice are demanded by the whole.
    let each = json!({"anyOf": [{"required": ["a", "b"]}, {"required": ["a", "c"]}]});
    differ(json!({"required": ["a"]}), each, &[]);
    // These schemas lead back to themselves.
    let tree = |name: Value| json!({"$defs": {"T": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]}, "name": name}}}, "$ref": "#/$defs/T"});
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    differ(tree(text.clone()), tree(text.clone()), &[]);
    differ(
        tree(text),
        tree(number),
        &["/name: it may be of the kind integer now"],
    );
}
