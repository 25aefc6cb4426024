//! Bodies of the calls about access tokens and join tokens.

use serde_json::Value;

use super::{Fields, texts, wrong};
use crate::problem::Problem;
use crawler_proto::{IssueJoinTokenRequest, IssueTokenRequest, RevokeTokensRequest};

/// Example of a body that asks for a token.
pub(in crate::http) const ISSUE_EXAMPLE: &str =
    r#"{"subject":"alice","roles":["operator"],"namespaces":["team"]}"#;

/// Example of a body that takes tokens back.
pub(in crate::http) const REVOKE_EXAMPLE: &str = r#"{"subject":"alice"}"#;

/// Example of a body that asks for a join token.
pub(in crate::http) const JOIN_EXAMPLE: &str = r#"{"role":"worker","nodes":"worker-1"}"#;

/// Parses a join token that is asked for.
pub(in crate::http) fn issue_join(bytes: &[u8]) -> Result<IssueJoinTokenRequest, Problem> {
    let known = ["role", "nodes", "labels", "uses", "valid_for_ms"];
    let mut fields = Fields::of_body(bytes, &known, JOIN_EXAMPLE)?;
    Ok(IssueJoinTokenRequest {
        role: fields.text("role")?.unwrap_or_default(),
        nodes: fields.text("nodes")?.unwrap_or_default(),
        labels: texts("labels", fields.object("labels")?)?,
        uses: fields.number("uses")?.unwrap_or_default(),
        valid_for_ms: fields.number("valid_for_ms")?.unwrap_or_default(),
    })
}

/// Parses a token that is asked for.
pub(in crate::http) fn issue(bytes: &[u8]) -> Result<IssueTokenRequest, Problem> {
    let known = ["subject", "roles", "namespaces", "valid_for_ms"];
    let mut fields = Fields::of_body(bytes, &known, ISSUE_EXAMPLE)?;
    Ok(IssueTokenRequest {
        subject: fields.text("subject")?.unwrap_or_default(),
        roles: words(&mut fields, "roles")?,
        namespaces: words(&mut fields, "namespaces")?,
        valid_for_ms: fields.number("valid_for_ms")?.unwrap_or_default(),
    })
}

/// Parses which tokens are taken back.
pub(in crate::http) fn revoke(bytes: &[u8]) -> Result<RevokeTokensRequest, Problem> {
    let known = ["id", "subject", "issued_before"];
    let mut fields = Fields::of_body(bytes, &known, REVOKE_EXAMPLE)?;
    Ok(RevokeTokensRequest {
        id: fields.text("id")?.unwrap_or_default(),
        subject: fields.text("subject")?.unwrap_or_default(),
        issued_before: fields.number("issued_before")?.unwrap_or_default(),
    })
}

/// Parses a list of words, which may be absent.
fn words(fields: &mut Fields, name: &str) -> Result<Vec<String>, Problem> {
    let value = fields.take(name).unwrap_or(Value::Array(Vec::new()));
    let words = match &value {
        Value::Array(words) => words
            .iter()
            .map(|word| word.as_str().map(ToOwned::to_owned))
            .collect(),
        _ => None,
    };
    words.ok_or_else(|| wrong(name, "an array of strings", &value))
}
