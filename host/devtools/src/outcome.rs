//! The outcome of a call in the form that is kept beside its page: JSON that a person can read and edit.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use similar::TextDiff;

use crawler_model::crawl::{Item, Request};
use crawler_plugin::CallOutput;

/// Number of lines around a difference that are shown.
const CONTEXT: usize = 3;

/// Outcome of a call that was not ended by the host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Outcome {
    /// Error with which the rule gave up, such as `skip: sold out`; its items and requests do not count then.
    #[serde(
        default,
        deserialize_with = "error_of_any_version",
        skip_serializing_if = "Option::is_none"
    )]
    pub error: Option<String>,
    /// Items, in the order emitted.
    #[serde(default)]
    pub items: Vec<KeptItem>,
    /// Requests, in the order followed.
    #[serde(default)]
    pub requests: Vec<KeptRequest>,
    /// Number of followed addresses that do not parse.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bad_urls: u64,
}

/// An item with the name of its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptItem {
    /// Name of the item's kind.
    pub kind: String,
    /// Fields of the item.
    pub item: Value,
}

/// A request; fields with usual values are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KeptRequest {
    rule: String,
    url: String,
    #[serde(default = "get", skip_serializing_if = "is_get")]
    method: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Octets>,
    #[serde(default, skip_serializing_if = "is_usual")]
    priority: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Octets>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    reload: bool,
    /// Statuses that the rule wants to see, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    accept_status: String,
    /// True if the body of the answer is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    keep_body: bool,
}

/// Bytes, kept as text if they are UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Octets {
    Text(String),
    Hex {
        #[serde(with = "hex::serde")]
        hex: Vec<u8>,
    },
}

impl Octets {
    pub(super) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Hex {
                hex: bytes.to_owned(),
            },
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Hex { hex } => hex,
        }
    }
}

impl Outcome {
    /// Returns the outcome of a call that succeeded.
    pub fn of(output: &CallOutput) -> Self {
        Self {
            error: None,
            items: output.items.iter().map(KeptItem::of).collect(),
            requests: output.requests.iter().map(KeptRequest::of).collect(),
            bad_urls: output.n_bad_urls,
        }
    }

    /// Returns the lines in which another outcome differs from this one, with the lines around them: `-`
    /// marks lines of this outcome, `+` those of the other. Empty if they are the same.
    pub fn difference(&self, other: &Self) -> String {
        if self == other {
            return String::new();
        }
        let [this, other] = [self, other].map(|outcome| {
            let value = serde_json::to_value(outcome).expect("an outcome is plain data");
            format!("{value:#}\n")
        });
        let diff = TextDiff::from_lines(&this, &other);
        let mut shown = diff.unified_diff();
        shown.context_radius(CONTEXT).to_string()
    }
}

impl KeptItem {
    fn of(item: &Item) -> Self {
        let value = serde_json::from_str(&item.json);
        Self {
            kind: item.schema.clone(),
            item: value.expect("items are known to be JSON"),
        }
    }
}

impl KeptRequest {
    /// Returns the request's rule and its URL.
    pub fn address(&self) -> (&str, &str) {
        (&self.rule, &self.url)
    }

    fn of(request: &Request) -> Self {
        let state = &request.state;
        Self {
            rule: request.rule.to_string(),
            url: request.url.to_string(),
            method: request.method.to_string(),
            headers: request.headers.clone(),
            body: request.body.as_deref().map(Octets::of),
            priority: request.priority,
            state: (!state.is_empty()).then(|| Octets::of(state)),
            reload: request.reload,
            accept_status: request.accept_status.to_string(),
            keep_body: request.keep_body,
        }
    }
}

/// Reads an error; earlier versions wrote code 0 with those that have no kind of their own.
fn error_of_any_version<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let error = Option::<String>::deserialize(from)?;
    Ok(error.map(|error| match error.strip_prefix("error 0: ") {
        Some(why) => format!("error: {why}"),
        None => error,
    }))
}

fn get() -> String {
    "GET".to_owned()
}

fn is_get(method: &str) -> bool {
    method == "GET"
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_usual(priority: &i32) -> bool {
    *priority == 0
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    fn output(price: u32) -> CallOutput {
        let item = json!({"title": "The Waves", "price": price});
        let mut next = Request::get("http://shop.test/2".parse().unwrap(), "list");
        let search = Request {
            method: "POST".into(),
            body: Some("q=sea".into()),
            state: Bytes::from_static(&[0xff, 0]),
            priority: 3,
            accept_status: "404".parse().unwrap(),
            keep_body: true,
            ..next.clone()
        };
        next.headers
            .push(("accept".to_owned(), "text/html".to_owned()));
        CallOutput {
            items: vec![Item {
                schema: "book".to_owned(),
                json: item.to_string(),
            }],
            requests: vec![next, search],
            n_bad_urls: 1,
        }
    }

    #[test]
    fn an_outcome_is_kept_with_all_that_is_not_as_usual() {
        let outcome = Outcome::of(&output(1_234));
        let kept = serde_json::to_value(&outcome).unwrap();
        let expected = json!({
            "items": [{"kind": "book", "item": {"title": "The Waves", "price": 1_234}}],
            "requests": [
                {"rule": "list", "url": "http://shop.test/2", "headers": [["accept", "text/html"]]},
                {"rule": "list", "url": "http://shop.test/2", "method": "POST", "body": "q=sea",
                    "priority": 3, "state": {"hex": "ff00"}, "accept-status": "404", "keep-body": true},
            ],
            "bad-urls": 1,
        });
        assert_eq!(kept, expected);
        assert_eq!(serde_json::from_value::<Outcome>(kept).unwrap(), outcome);
    }

    #[test]
    fn an_error_that_an_earlier_version_kept_is_the_same() {
        let read = |text: &str| serde_json::from_str::<Outcome>(text).unwrap();
        let kept = read(r#"{"error": "error 0: no price"}"#);
        assert_eq!(kept, read(r#"{"error": "error: no price"}"#));
        assert_ne!(kept, read(r#"{"error": "error 1: no price"}"#));
    }

    #[test]
    fn a_difference_shows_the_lines_that_changed_and_those_around_them() {
        let (one, other) = (Outcome::of(&output(1_234)), Outcome::of(&output(1_300)));
        assert_eq!(one.difference(&one), "");
        let shown = one.difference(&other);
        let changed: Vec<&str> = shown
            .lines()
            .filter(|line| line.starts_with(['-', '+']))
            .map(str::trim_end)
            .collect();
        assert_eq!(
            changed,
            ["-        \"price\": 1234,", "+        \"price\": 1300,"],
            "{shown}"
        );
        let given_up = Outcome {
            error: Some("skip: sold out".to_owned()),
            ..Outcome::default()
        };
        assert!(
            one.difference(&given_up)
                .contains("+  \"error\": \"skip: sold out\",")
        );
    }
}
