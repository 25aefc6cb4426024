//! Nodes as certificates and join tokens name them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crawler_model::id::NodeId;
use crawler_model::node::Role;

/// Scheme of the URIs that name nodes.
const SCHEME: &str = "crawler://";
/// Longest name of a host in bytes.
const HOST_MAX: usize = 253;
/// Longest part of a name between two dots in bytes.
const HOST_PART_MAX: usize = 63;

/// Node of a cluster, as its certificate names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeName {
    /// Identity of the cluster.
    pub cluster: String,
    /// Role of the node.
    pub role: Role,
    /// Id of the node.
    pub id: NodeId,
}

impl NodeName {
    /// Returns the URI that stands in the certificate of the node.
    pub fn uri(&self) -> String {
        format!("{SCHEME}{}/{}/{}", self.cluster, self.role, self.id)
    }

    /// Returns the node that a URI names, or `None` if it is about something else.
    pub fn of_uri(uri: &str) -> Option<Self> {
        let (cluster, rest) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let (role, id) = rest.split_once('/')?;
        (!cluster.is_empty()).then_some(())?;
        Some(Self {
            cluster: cluster.to_owned(),
            role: parse_role(role)?,
            id: id.parse().ok()?,
        })
    }
}

/// Returns the role that a word names.
pub fn parse_role(word: &str) -> Option<Role> {
    [Role::Master, Role::Worker]
        .into_iter()
        .find(|role| role.to_string() == word)
}

/// Host under which others reach a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A DNS name, in lower case.
    Dns(String),
    /// An IP address.
    Ip(IpAddr),
}

/// Text that is not the name or the address of one host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host; write a name like node-1.example, or an IP address")]
pub struct HostError(String);

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let literal = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        if let Ok(address) = literal.unwrap_or(text).parse() {
            return Ok(Host::Ip(address));
        }
        let is_part = |part: &str| {
            (1..=HOST_PART_MAX).contains(&part.len())
                && !part.starts_with('-')
                && !part.ends_with('-')
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        match text.len() <= HOST_MAX && text.split('.').all(is_part) {
            true => Ok(Host::Dns(text.to_ascii_lowercase())),
            false => Err(HostError(text.chars().take(HOST_MAX).collect())),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Dns(name) => f.write_str(name),
            Host::Ip(address) => address.fmt(f),
        }
    }
}

/// Ids of nodes: one of them, or all that begin in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodePattern {
    /// The id, or its beginning.
    stem: String,
    /// True if more may follow.
    is_open: bool,
}

/// Text that is no pattern of node ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no nodes; write an id like worker-1, or a beginning with one * at the end, like worker-*"
)]
pub struct PatternError(String);

impl NodePattern {
    /// Returns the pattern of all ids that nodes of a role have.
    pub fn of_role(role: Role) -> Self {
        Self {
            stem: format!("{role}-"),
            is_open: true,
        }
    }

    /// True if the pattern is or begins this id.
    pub fn matches(&self, id: &NodeId) -> bool {
        match self.is_open {
            true => id.as_str().starts_with(&self.stem),
            false => id.as_str() == self.stem,
        }
    }
}

impl FromStr for NodePattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (stem, is_open) = match text.strip_suffix('*') {
            Some(stem) => (stem, true),
            None => (text, false),
        };
        let is_any = is_open && stem.is_empty();
        match is_any || stem.parse::<NodeId>().is_ok() {
            true => Ok(Self {
                stem: stem.to_owned(),
                is_open,
            }),
            false => Err(PatternError(text.chars().take(HOST_MAX).collect())),
        }
    }
}

impl TryFrom<String> for NodePattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<NodePattern> for String {
    fn from(pattern: NodePattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for NodePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stem)?;
        match self.is_open {
            true => f.write_str("*"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_one_id_or_a_beginning() {
        let matches = |pattern: &str, id: &str| {
            let pattern: NodePattern = pattern.parse().unwrap();
            pattern.matches(&id.parse().unwrap())
        };
        assert!(matches("worker-1", "worker-1"));
        assert!(!matches("worker-1", "worker-11"));
        assert!(matches("worker-1*", "worker-1") && matches("worker-1*", "worker-11"));
        assert!(!matches("worker-1*", "worker-2"));
        assert!(matches("*", "master-1"));
        assert!(NodePattern::of_role(Role::Worker).matches(&"worker-3".parse().unwrap()));
        assert!(!NodePattern::of_role(Role::Worker).matches(&"master-3".parse().unwrap()));
    }

    #[test]
    fn a_star_stands_at_the_end_only() {
        for wrong in ["", "*-1", "worker-**", "w*r", "a b", "a/b*"] {
            wrong.parse::<NodePattern>().unwrap_err();
        }
        for right in ["worker-*", "*", "worker-1"] {
            assert_eq!(right.parse::<NodePattern>().unwrap().to_string(), right);
        }
    }

    #[test]
    fn a_host_is_a_name_or_an_address() {
        for (text, shown) in [
            ("Node-1.Example", "node-1.example"),
            ("10.0.0.1", "10.0.0.1"),
            ("[fd00::1]", "fd00::1"),
            ("fd00::1", "fd00::1"),
        ] {
            assert_eq!(text.parse::<Host>().unwrap().to_string(), shown);
        }
        for wrong in ["", "*.example", "a..b", "-a", "a:1", "a/b", "a b"] {
            wrong.parse::<Host>().unwrap_err();
        }
    }

    #[test]
    fn the_uri_names_cluster_role_and_id() {
        let node = NodeName {
            cluster: "0f".to_owned(),
            role: Role::Worker,
            id: "worker-1".parse().unwrap(),
        };
        assert_eq!(node.uri(), "crawler://0f/worker/worker-1");
        assert_eq!(NodeName::of_uri(&node.uri()), Some(node));
    }

    #[test]
    fn a_uri_of_another_form_names_no_node() {
        for wrong in [
            "https://0f/worker/worker-1",
            "crawler:///worker/worker-1",
            "crawler://0f/leader/worker-1",
            "crawler://0f/worker/",
            "crawler://0f/worker/a/b",
            "crawler://0f/worker",
            "crawler://0f",
        ] {
            assert_eq!(NodeName::of_uri(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_word_names_a_role() {
        assert_eq!(parse_role("worker"), Some(Role::Worker));
        assert_eq!(parse_role("master"), Some(Role::Master));
        assert_eq!(parse_role("Worker"), None);
    }
}
