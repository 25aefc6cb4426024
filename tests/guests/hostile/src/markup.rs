//! Texts that run as scripts wherever they are taken for markup, and a word that is wider than any window.

/// Name of a field.
const FIELD: &str = "<img src=x onerror=window.ran=1>";
/// A script that asks an address where nobody listens.
const SCRIPT: &str = "<script>window.ran=1;fetch('http://127.0.0.1:1')</script>";

/// Returns the markup and a word of 10 000 characters, as a text of JSON.
fn text() -> String {
    format!("\"{FIELD}{SCRIPT}{}\"", "x".repeat(10_000))
}

/// Returns a schema that fits any object.
pub(crate) fn schema() -> String {
    let text = text();
    format!(
        r#"{{"type": "object", "description": {text}, "properties": {{"{FIELD}": {{"title": {text}}}, {text}: {{}}}}}}"#
    )
}

/// Returns the schema of the params that `root` reads.
pub(crate) fn params() -> String {
    let param = format!(r#"{{"type": "string", "description": {}}}"#, text());
    format!(
        r#"{{"type": "object", "properties": {{"root": {param}, "rules": {param}}}, "required": ["root"], "additionalProperties": false}}"#
    )
}
