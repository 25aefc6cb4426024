//! `crawler version`: the version of this program, and those of the nodes of a cluster.

use std::collections::BTreeMap;

use clap::Args;
use crawler_proto as proto;
use serde::Serialize;

use super::{CalledMasters, print_note, table};

/// Version of this program.
const OWN: &str = env!("CARGO_PKG_VERSION");
/// Version of a node that does not tell it.
const UNKNOWN: &str = "unknown";

#[derive(Debug, Args)]
pub(super) struct VersionArgs {
    /// Ask a master for the versions of all nodes too, and tell if they differ
    #[arg(long)]
    cluster: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Versions of this program and of the nodes of a cluster.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Versions {
    program: &'static str,
    /// Nodes, in the order of the master. `None` if nobody asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<NodeVersion>>,
    /// True if nodes have different versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    mixed: Option<bool>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct NodeVersion {
    id: String,
    role: String,
    version: String,
}

pub(super) async fn run(args: VersionArgs, masters: &CalledMasters) -> anyhow::Result<()> {
    let nodes = match args.cluster {
        true => {
            let request = proto::ListNodesRequest::default();
            Some(masters.connect().await?.nodes(request).await?)
        }
        false => None,
    };
    let versions = Versions::of(nodes);
    if args.json {
        table::print_json(&versions)?;
    } else {
        table::print_line(&format!("crawler {OWN}"))?;
        if let Some(nodes) = &versions.nodes {
            let rows: Vec<_> = nodes.iter().map(NodeVersion::row).collect();
            table::print(["NODE", "ROLE", "VERSION"], &rows)?;
        }
    }
    if let Some(warning) = versions.warning() {
        print_note(&warning);
    }
    Ok(())
}

impl Versions {
    fn of(nodes: Option<Vec<proto::Node>>) -> Self {
        let nodes: Option<Vec<_>> = nodes.map(|nodes| nodes.into_iter().map(of_node).collect());
        let mut versions = Self {
            program: OWN,
            nodes,
            mixed: None,
        };
        if versions.nodes.is_some() {
            versions.mixed = Some(versions.by_version().len() > 1);
        }
        versions
    }

    /// Returns the nodes of each version.
    fn by_version(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut by_version: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for node in self.nodes.iter().flatten() {
            by_version.entry(&node.version).or_default().push(&node.id);
        }
        by_version
    }

    fn warning(&self) -> Option<String> {
        if self.mixed != Some(true) {
            return None;
        }
        let versions = self.by_version().into_iter();
        let versions = versions.map(|(version, ids)| format!("{version} ({})", ids.join(", ")));
        let versions: Vec<_> = versions.collect();
        Some(format!(
            "warning: nodes have different versions: {}; keep the time short in which they have",
            versions.join(", ")
        ))
    }
}

impl NodeVersion {
    fn row(&self) -> [String; 3] {
        [self.id.clone(), self.role.clone(), self.version.clone()]
    }
}

/// Returns the version of a node. A record that nobody can read has none.
fn of_node(node: proto::Node) -> NodeVersion {
    let (role, version) = match node.reason.is_empty() {
        true => (node.role, node.version),
        false => ("?".to_owned(), String::new()),
    };
    NodeVersion {
        id: node.id,
        role,
        version: match version.is_empty() {
            true => UNKNOWN.to_owned(),
            false => version,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, version: &str) -> proto::Node {
        proto::Node {
            id: id.to_owned(),
            role: "worker".to_owned(),
            version: version.to_owned(),
            ..proto::Node::default()
        }
    }

    #[test]
    fn nodes_of_one_version_need_no_warning() {
        let versions = Versions::of(Some(vec![node("a", "1.0.0"), node("b", "1.0.0")]));
        assert_eq!((versions.mixed, versions.warning()), (Some(false), None));
        let alone = Versions::of(None);
        assert_eq!((alone.mixed, alone.warning()), (None, None));
    }

    #[test]
    fn nodes_of_different_versions_are_named() {
        let nodes = vec![node("a", "1.0.0"), node("b", ""), node("c", "1.0.0")];
        let versions = Versions::of(Some(nodes));
        let warning = versions.warning().unwrap();
        let expected = "nodes have different versions: 1.0.0 (a, c), unknown (b);";
        assert!(warning.contains(expected), "{warning}");
    }

    #[test]
    fn a_record_that_nobody_can_read_has_an_unknown_version() {
        let broken = proto::Node {
            id: "/x".to_owned(),
            reason: "the record does not decode".to_owned(),
            ..proto::Node::default()
        };
        let versions = Versions::of(Some(vec![broken, node("a", "1.0.0")]));
        let json = serde_json::to_value(&versions).unwrap();
        let expected = serde_json::json!([
            {"id": "/x", "role": "?", "version": "unknown"},
            {"id": "a", "role": "worker", "version": "1.0.0"},
        ]);
        assert_eq!(json["nodes"], expected);
        assert_eq!(json["mixed"], true);
    }
}
