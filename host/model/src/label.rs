//! Labels: pairs of a key and a value, by which nodes and resources are selected.
//!
//! A worker has the labels that it was started with, and two built-in ones ([`Node::label`]). A resource has those
//! that its spec names.
//!
//! [`Node::label`]: super::node::Node::label

use std::collections::BTreeMap;
use std::str::FromStr;

use super::id::{IdError, NAME_MAX, check_name};

/// Name of the label that holds a node's id.
pub(super) const ID: &str = "id";
/// Name of the label that holds the host of a node's address.
pub(super) const HOST: &str = "host";
/// Returns a built-in label of a node with this id and address, or `None` if the label is not built in.
pub fn built_in<'a>(key: &str, id: &'a str, address: &'a str) -> Option<&'a str> {
    match key {
        ID => Some(id),
        HOST => Some(host(address)),
        _ => None,
    }
}

fn host(address: &str) -> &str {
    let host = match address.rsplit_once(':') {
        Some((host, _port)) => host,
        None => address,
    };
    let literal = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    literal.unwrap_or(host)
}

/// Largest number of labels of one node, one resource or one selector.
const MAX_LABELS: usize = 32;

/// A label that a node is started with, such as `gpu=true`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    key: String,
    value: String,
}

/// Reason why a text is not a label, or why labels conflict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// The text has no equals sign.
    #[error("label {text:?} has no '='; write KEY=VALUE, like gpu=true")]
    Form {
        /// The text, as received.
        text: String,
    },
    /// The key is not a valid name.
    #[error(transparent)]
    Key(#[from] IdError),
    /// The text has nothing after the equals sign.
    #[error("label {key} has no value; write {key}=VALUE")]
    NoValue {
        /// Key of the label.
        key: String,
    },
    /// The value is too long.
    #[error("the value of label {key} is {n_bytes} bytes long; at most {NAME_MAX} are allowed")]
    TooLong {
        /// Key of the label.
        key: String,
        /// Length of the value in bytes.
        n_bytes: usize,
    },
    /// The value has a character that is not allowed.
    #[error("the value of label {key} has {found:?}; use letters, digits, '-', '_', '.' and ':'")]
    Character {
        /// Key of the label.
        key: String,
        /// First character that is not allowed.
        found: char,
    },
    /// The label is built in, so it cannot be set.
    #[error("label {key} is given to every node by itself; take another key")]
    BuiltIn {
        /// Key of the label: `id` or `host`.
        key: String,
    },
    /// The same key is given with two values.
    #[error("label {key} is given twice; a node has one value for it")]
    Twice {
        /// Key of the label.
        key: String,
    },
    /// The number of labels is more than a record should hold.
    #[error("there are {n} labels; at most {MAX_LABELS} are allowed")]
    TooMany {
        /// Number of labels.
        n: usize,
    },
}

impl FromStr for Label {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(LabelError::Form {
                text: text.to_owned(),
            });
        };
        check_label_key(key)?;
        check_label_value(key, value)?;
        let (key, value) = (key.to_owned(), value.to_owned());
        match key.as_str() {
            ID | HOST => Err(LabelError::BuiltIn { key }),
            _ => Ok(Self { key, value }),
        }
    }
}

/// Collects the labels of one node.
pub fn labels(
    labels: impl IntoIterator<Item = Label>,
) -> Result<BTreeMap<String, String>, LabelError> {
    let mut together = BTreeMap::new();
    for Label { key, value } in labels {
        let before = together.insert(key.clone(), value.clone());
        if before.is_some_and(|before| before != value) {
            return Err(LabelError::Twice { key });
        }
    }
    check_n_labels(together.len())?;
    Ok(together)
}

/// Refuses a text that cannot be the key of a label.
pub fn check_label_key(key: &str) -> Result<(), LabelError> {
    Ok(check_name("label key", key)?)
}

/// Refuses a text that cannot be the value of a label. Colons are allowed for IPv6 addresses.
pub fn check_label_value(key: &str, value: &str) -> Result<(), LabelError> {
    let key = key.to_owned();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if value.is_empty() {
        Err(LabelError::NoValue { key })
    } else if value.len() > NAME_MAX {
        let n_bytes = value.len();
        Err(LabelError::TooLong { key, n_bytes })
    } else if let Some(found) = value.chars().find(|c| !is_allowed(*c)) {
        Err(LabelError::Character { key, found })
    } else {
        Ok(())
    }
}

/// Refuses labels of a resource or a selector that are too many, or that have an invalid key or value.
pub fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), LabelError> {
    check_n_labels(labels.len())?;
    labels.iter().try_for_each(|(key, value)| {
        check_label_key(key)?;
        check_label_value(key, value)
    })
}

fn check_n_labels(n: usize) -> Result<(), LabelError> {
    if n > MAX_LABELS {
        Err(LabelError::TooMany { n })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[&str]) -> Result<BTreeMap<String, String>, LabelError> {
        let each = texts.iter().map(|text| text.parse::<Label>());
        labels(each.collect::<Result<Vec<_>, _>>()?)
    }

    #[track_caller]
    fn check_refused(texts: &[&str], expected: &str) {
        assert_eq!(parse(texts).unwrap_err().to_string(), expected);
    }

    #[test]
    fn labels_are_keys_with_one_value_each() {
        let parsed = parse(&["gpu=true", "zone=eu-1.a", "gpu=true"]).unwrap();
        let expected = [("gpu", "true"), ("zone", "eu-1.a")];
        assert_eq!(parsed, expected.map(|(k, v)| (k.into(), v.into())).into());
        check_refused(
            &["gpu"],
            "label \"gpu\" has no '='; write KEY=VALUE, like gpu=true",
        );
        check_refused(&["=true"], "label key is empty");
        check_refused(
            &["g pu=1"],
            "label key \"g pu\" has ' '; use letters, digits, '-', '_' and '.', and start with a letter or digit",
        );
        check_refused(&["gpu="], "label gpu has no value; write gpu=VALUE");
        check_refused(
            &["gpu=a=b"],
            "the value of label gpu has '='; use letters, digits, '-', '_', '.' and ':'",
        );
        let long = format!("gpu={}", "x".repeat(129));
        check_refused(
            &[&long],
            "the value of label gpu is 129 bytes long; at most 128 are allowed",
        );
        check_refused(
            &["id=worker-7"],
            "label id is given to every node by itself; take another key",
        );
        check_refused(
            &["gpu=true", "gpu=false"],
            "label gpu is given twice; a node has one value for it",
        );
        let many: Vec<String> = (0..33).map(|n| format!("k{n}=v")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(parse(&many[..32]).is_ok());
        check_refused(&many, "there are 33 labels; at most 32 are allowed");
    }
}
