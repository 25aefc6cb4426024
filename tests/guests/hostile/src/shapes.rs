//! Items with schemas that they fit or not.

use crate::crawler::rules::output;
use crate::exports::crawler::rules::rules::RuleError;

/// Returns the schema of a book. Property `slow` is checked four times by each of twelve schemas.
pub fn book() -> String {
    let mut slow = String::new();
    for n in 0..12 {
        let next = format!(r##"{{"$ref":"#/$defs/{}"}}"##, n + 1);
        slow += &format!(r#""{n}":{{"allOf":[{next},{next},{next},{next}]}},"#);
    }
    format!(
        r##"{{
            "type": "object",
            "properties": {{
                "title": {{"type": "string"}},
                "by": {{"items": {{"type": "string"}}}},
                "slow": {{"$ref": "#/$defs/0"}},
                "deep": {{"$ref": "#/$defs/deep"}}
            }},
            "required": ["title"],
            "$defs": {{
                {slow}
                "12": true,
                "deep": {{"allOf": [{{"items": {{"$ref": "#/$defs/deep"}}}}]}}
            }}
        }}"##
    )
}

/// Emits items of which the first two are books, the second as deep as items may be.
pub fn bad() -> Result<(), RuleError> {
    let mut said = Vec::new();
    let deep = format!(
        r#"{{"title": "a", "deep": {}{}}}"#,
        "[".repeat(126),
        "]".repeat(126)
    );
    for json in [
        r#"{"title": "a"}"#,
        &deep,
        r#"{"title": "a", "by": [1]}"#,
        "{}",
    ] {
        let taken = output::emit(1, json);
        said.push(taken.map_or_else(|e| crate::text(&e), |()| "taken".into()));
    }
    Err(RuleError::Skip(said.join("; ")))
}
