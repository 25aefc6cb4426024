//! Nodes: the processes of a cluster, as they register and as placement sees them.
//!
//! A worker has the labels that it was started with, and two built-in ones: `id`, its node id, and `host`,
//! the host of the address at which others reach it. A selector may ask for any of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use super::crawl::UnixMillis;
use super::id::{Incarnation, NodeId};
use super::label::built_in;

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
    /// Address at which it serves profiles to its own machine; empty if it serves none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pprof: String,
    /// Number that distinguishes this process from an earlier one under the same id.
    pub incarnation: Incarnation,
    /// Labels for selectors, beside the built-in ones of [`Node::label`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Largest number of shards that the node takes at once; 0 for a master.
    pub capacity: u32,
    /// Version of the program; empty if not published.
    #[serde(default)]
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
    /// True if its servers speak TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
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
    /// True if its gRPC server speaks TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
}

impl Contender {
    /// Returns the URL of its gRPC server.
    pub fn url(&self) -> String {
        url(&self.address, self.tls)
    }
}

impl Node {
    /// Returns the URL of its gRPC server.
    pub fn url(&self) -> String {
        url(&self.address, self.tls)
    }

    /// Returns the value of a label, or `None` if the node does not have it.
    pub fn label(&self, key: &str) -> Option<&str> {
        let built_in = built_in(key, self.id.as_str(), &self.address);
        built_in.or_else(|| self.labels.get(key).map(String::as_str))
    }
}

fn url(address: &str, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{address}")
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

    #[test]
    fn every_node_has_its_id_and_host_as_labels() {
        let node = |address: &str| Node {
            id: "worker-1".parse().unwrap(),
            role: Role::Worker,
            address: address.to_owned(),
            http: String::new(),
            pprof: String::new(),
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
            tls: false,
        };
        let one = node("10.0.0.5:9090");
        assert_eq!(one.label("id"), Some("worker-1"));
        assert_eq!(one.label("host"), Some("10.0.0.5"));
        assert_eq!(one.label("gpu"), Some("true"));
        assert_eq!(one.label("zone"), None);
        assert_eq!(node("[fd00::1]:9090").label("host"), Some("fd00::1"));
        assert_eq!(node("node.test").label("host"), Some("node.test"));
    }

    #[test]
    fn a_record_without_a_word_about_tls_is_of_a_plain_server() {
        let plain = r#"{"id":"master-1","address":"10.0.0.5:9091"}"#;
        let contender: Contender = serde_json::from_str(plain).unwrap();
        assert_eq!(contender.url(), "http://10.0.0.5:9091");
        assert_eq!(serde_json::to_string(&contender).unwrap(), plain);
        let secure = Contender {
            tls: true,
            ..contender
        };
        assert_eq!(secure.url(), "https://10.0.0.5:9091");
        let written = serde_json::to_string(&secure).unwrap();
        assert!(written.ends_with(r#","tls":true}"#), "{written}");
    }
}
