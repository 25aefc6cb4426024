//! Nodes: the processes of a cluster, as they register and as placement sees them.
//!
//! A worker has the labels that it was started with, and two that nobody gives it: `id`, its node id,
//! and `host`, the host of the address that others reach it at. A selector asks for any of them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use super::crawl::UnixMillis;
use super::id::{IdError, Incarnation, NAME_MAX, NodeId, check_name};

/// What a process does in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Accepts calls, places resources.
    Master,
    /// Crawls.
    Worker,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Master => "master",
            Role::Worker => "worker",
        })
    }
}

/// A node's registration, written under its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// `worker-1`.
    pub id: NodeId,
    /// What it does.
    pub role: Role,
    /// Where its gRPC answers: `127.0.0.1:9091`.
    pub address: String,
    /// Where its HTTP answers; empty where it does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub http: String,
    /// Tells this process from an earlier one under the same id.
    pub incarnation: Incarnation,
    /// Labels for selectors, beside those of [`Node::label`] that follow from the rest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How many shards it takes at once; 0 for a master.
    pub capacity: u32,
    /// The version of the program.
    pub version: String,
    /// The newest version of the plugins' interface that it runs; empty where it does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub interface: String,
    /// It takes nothing new.
    #[serde(default)]
    pub draining: bool,
    /// Milliseconds since 1970.
    pub started_at: u64,
    /// Token that other workers show to be let in with links; empty where nobody is.
    #[serde(default, skip_serializing_if = "CallToken::is_empty")]
    pub call_token: CallToken,
    /// True if the worker takes part in the turns of hosts that are shared over all workers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_turns: bool,
}

/// A secret of one process, which those who may read the store show when they call it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallToken(String);

impl CallToken {
    /// Makes a token of bytes that nobody can guess.
    pub fn of(random: [u8; 32]) -> Self {
        Self(hex::encode(random))
    }

    /// Returns true for the token that lets nobody in.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the secret, for whoever shows it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns true if this is what a caller has shown. Takes as long for a good guess as for a bad one.
    pub fn is(&self, shown: &[u8]) -> bool {
        let hash = |bytes: &[u8]| sha2::Sha256::digest(bytes);
        !self.is_empty() && hash(self.0.as_bytes()) == hash(shown)
    }
}

impl fmt::Debug for CallToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallToken(..)")
    }
}

/// What happened to a node's registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvent {
    /// What happened.
    pub change: NodeChange,
    /// As registered; as it was, where it left.
    pub node: Node,
}

/// How a registration changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeChange {
    /// It is there now.
    Joined,
    /// It is not there any more.
    Left,
    /// It is another process under the same id, or says something else of itself.
    Changed,
}

impl NodeChange {
    /// One word, as the API gives it.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeChange::Joined => "joined",
            NodeChange::Left => "left",
            NodeChange::Changed => "changed",
        }
    }
}

/// A master that leads or would lead, under `election/<lease>`: of those there are, the one whose key
/// was created first leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contender {
    /// `master-2`.
    pub id: NodeId,
    /// Where its gRPC answers.
    pub address: String,
}

/// The label that is a node's id.
const ID: &str = "id";
/// The label that is the host of a node's address.
const HOST: &str = "host";
/// Labels of one node, and of one selector.
const MAX_LABELS: usize = 32;

impl Node {
    /// The value of this label; none where it has no such label.
    pub fn label(&self, key: &str) -> Option<&str> {
        match key {
            ID => Some(self.id.as_str()),
            HOST => Some(self.host()),
            key => self.labels.get(key).map(String::as_str),
        }
    }

    fn host(&self) -> &str {
        let host = match self.address.rsplit_once(':') {
            Some((host, _port)) => host,
            None => &self.address,
        };
        let literal = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        literal.unwrap_or(host)
    }
}

/// A label that a node is started with: `gpu=true`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    key: String,
    value: String,
}

/// Why a text is no label, or labels do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// No equals sign.
    #[error("label {text:?} has no '='; write KEY=VALUE, like gpu=true")]
    Form {
        /// As received.
        text: String,
    },
    /// The key is no name.
    #[error(transparent)]
    Key(#[from] IdError),
    /// Nothing behind the equals sign.
    #[error("label {key} has no value; write {key}=VALUE")]
    NoValue {
        /// Its key.
        key: String,
    },
    /// The value is too long to be shown everywhere.
    #[error("the value of label {key} is {n_bytes} bytes long; at most {NAME_MAX} are allowed")]
    TooLong {
        /// Its key.
        key: String,
        /// How long the value was.
        n_bytes: usize,
    },
    /// A character that has no place in a value.
    #[error("the value of label {key} has {found:?}; use letters, digits, '-', '_', '.' and ':'")]
    Character {
        /// Its key.
        key: String,
        /// The first character that is not allowed.
        found: char,
    },
    /// A label that a node has anyway.
    #[error("label {key} is given to every node by itself; take another key")]
    BuiltIn {
        /// `id` or `host`.
        key: String,
    },
    /// One key, two values.
    #[error("label {key} is given twice; a node has one value for it")]
    Twice {
        /// Its key.
        key: String,
    },
    /// More than a record should hold.
    #[error("there are {n} labels; at most {MAX_LABELS} are allowed")]
    TooMany {
        /// So many.
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

/// The labels of one node.
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

/// Refuses what is no key of a label.
pub fn check_label_key(key: &str) -> Result<(), LabelError> {
    Ok(check_name("label key", key)?)
}

/// Refuses what is no value of a label. Colons are those of IPv6 addresses.
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

/// Refuses more labels than one node or selector may have.
pub fn check_n_labels(n: usize) -> Result<(), LabelError> {
    if n > MAX_LABELS {
        Err(LabelError::TooMany { n })
    } else {
        Ok(())
    }
}

/// A worker that somebody has told to give away what it has, under `draining/<worker>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draining {
    /// When that was.
    pub since: UnixMillis,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r14_a_token_is_known_by_itself_and_shown_to_nobody() {
        let token = CallToken::of([7; 32]);
        assert!(token.is(token.expose().as_bytes()));
        assert!(!token.is(CallToken::of([8; 32]).expose().as_bytes()));
        assert!(!token.is(b""));
        // Nodes of versions without tokens let nobody in.
        assert!(!CallToken::default().is(b""));
        assert!(!format!("{token:?}").contains("07"));
    }

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

    #[test]
    fn every_node_has_its_id_and_host_as_labels() {
        let node = |address: &str| Node {
            id: "worker-1".parse().unwrap(),
            role: Role::Worker,
            address: address.to_owned(),
            http: String::new(),
            incarnation: Incarnation(1),
            // A record that somebody else wrote does not say what a node's id is.
            labels: [("id", "x"), ("gpu", "true")]
                .map(|(k, v)| (k.into(), v.into()))
                .into(),
            capacity: 1,
            version: "0".into(),
            interface: String::new(),
            draining: false,
            started_at: 0,
            call_token: CallToken::default(),
            shares_turns: false,
        };
        let one = node("10.0.0.5:9090");
        assert_eq!(one.label("id"), Some("worker-1"));
        assert_eq!(one.label("host"), Some("10.0.0.5"));
        assert_eq!(one.label("gpu"), Some("true"));
        assert_eq!(one.label("zone"), None);
        assert_eq!(node("[fd00::1]:9090").label("host"), Some("fd00::1"));
        assert_eq!(node("node.test").label("host"), Some("node.test"));
    }
}
