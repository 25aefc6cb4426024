//! Nodes: the processes of a cluster, as they register and as placement sees them.
//!
//! A worker has the labels that it was started with, and two built-in ones: `id`, its node id, and `host`,
//! the host of the address at which others reach it. A selector may ask for any of them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use super::crawl::UnixMillis;
use super::id::{IdError, Incarnation, NAME_MAX, NodeId, check_name};

/// Role of a process in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Accepts calls and places resources.
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

/// Registration of a node, written under its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Id of the node, such as `worker-1`.
    pub id: NodeId,
    /// Role of the node.
    pub role: Role,
    /// Address of its gRPC server, such as `127.0.0.1:9091`.
    pub address: String,
    /// Address of its HTTP server; empty if not published.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub http: String,
    /// Number that distinguishes this process from an earlier one under the same id.
    pub incarnation: Incarnation,
    /// Labels for selectors, beside the built-in ones of [`Node::label`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Largest number of shards that the node takes at once; 0 for a master.
    pub capacity: u32,
    /// Version of the program.
    pub version: String,
    /// Newest version of the plugin interface that the node supports; empty if not published.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub interface: String,
    /// True if the node takes no new shards.
    #[serde(default)]
    pub draining: bool,
    /// Time of the start, in milliseconds since 1970.
    pub started_at: u64,
    /// Token that other workers must show to deliver links; empty if nobody may.
    #[serde(default, skip_serializing_if = "CallToken::is_empty")]
    pub call_token: CallToken,
    /// True if the worker takes part in sharing the turns of hosts with all other workers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_turns: bool,
}

/// Secret of one process. Callers that can read the store show it when they call the process.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallToken(String);

impl CallToken {
    /// Makes a token from random bytes.
    pub fn of(random: [u8; 32]) -> Self {
        Self(hex::encode(random))
    }

    /// True for the empty token, which admits nobody.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the secret, for a caller that shows it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// True if this is the token that a caller has shown. The time taken does not depend on how much of it
    /// is right.
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

/// Change of a node's registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvent {
    /// Kind of the change.
    pub change: NodeChange,
    /// The registration; if the node left, its last one.
    pub node: Node,
}

/// Kind of change of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeChange {
    /// The node has joined.
    Joined,
    /// The node has left.
    Left,
    /// Another process has taken over the id, or the registration says something else.
    Changed,
}

impl NodeChange {
    /// Returns the word that the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeChange::Joined => "joined",
            NodeChange::Left => "left",
            NodeChange::Changed => "changed",
        }
    }
}

/// A master that leads or is ready to lead, stored under `election/<lease>`. The contender whose key was
/// created first leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contender {
    /// Id of the master, such as `master-2`.
    pub id: NodeId,
    /// Address of its gRPC server.
    pub address: String,
}

/// Name of the label that holds a node's id.
const ID: &str = "id";
/// Name of the label that holds the host of a node's address.
const HOST: &str = "host";
/// Largest number of labels of one node or one selector.
const MAX_LABELS: usize = 32;

impl Node {
    /// Returns the value of a label, or `None` if the node does not have it.
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

/// Refuses more labels than one node or selector may have.
pub fn check_n_labels(n: usize) -> Result<(), LabelError> {
    if n > MAX_LABELS {
        Err(LabelError::TooMany { n })
    } else {
        Ok(())
    }
}

/// Request that a worker give away its shards, stored under `draining/<worker>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draining {
    /// Time of the request.
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
        // Nodes of versions without tokens admit nobody.
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
            // A label in a foreign record does not override a node's id.
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
