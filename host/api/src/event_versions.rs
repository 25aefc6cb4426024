//! Versions of events of resources and nodes, in watches and in histories, as readers keep them and bring them back. To readers
//! they are opaque.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::problem::Problem;
use crawler_master::control::resource_watch::WatchQuery;
use crawler_model::id::{NodeId, ResourceId};

/// Version of a reader that knows nothing.
const NOTHING: &str = "0";

/// Versions of the events of one question to one store: a reader that asks for other names, may see others, or has read from
/// a store that was restored since, begins anew.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventVersions {
    question: u64,
}

impl EventVersions {
    /// Returns the versions of events that answer this query from the store with this id.
    pub(crate) fn of(query: &WatchQuery, store_id: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        store_id.hash(&mut hasher);
        query.name_prefix.hash(&mut hasher);
        for namespace in &query.grants.namespaces {
            namespace.as_str().hash(&mut hasher);
        }
        Self {
            question: hasher.finish(),
        }
    }

    /// Returns the versions of events in the history of this resource in the store with this id.
    pub(crate) fn of_history(resource: ResourceId, store_id: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        ("history", store_id, resource).hash(&mut hasher);
        Self {
            question: hasher.finish(),
        }
    }

    /// Returns the versions of events in the history of this node, or of all nodes, in the store with this id.
    pub(crate) fn of_nodes(node: Option<&NodeId>, store_id: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        ("history of nodes", store_id, node).hash(&mut hasher);
        Self {
            question: hasher.finish(),
        }
    }

    /// Returns the text of a version; 0 is that of a reader that knows nothing.
    pub(crate) fn text(self, version: u64) -> String {
        match version {
            0 => NOTHING.to_owned(),
            version => format!("{version}-{:016x}", self.question),
        }
    }

    /// Parses a version that a reader brings back. Returns `None` if the reader has to begin anew.
    pub(crate) fn parse(self, text: &str) -> Result<Option<u64>, Problem> {
        if text.is_empty() || text == NOTHING {
            return Ok(None);
        }
        let parts = text.split_once('-').and_then(|(version, question)| {
            let question = u64::from_str_radix(question, 16).ok()?;
            Some((version.parse().ok()?, question))
        });
        let Some((version, question)) = parts else {
            let detail = format!("version takes the id of an event, not {text:?}");
            return Err(Problem::invalid(detail, "leave it out to begin anew"));
        };
        Ok(Some(version).filter(|_| question == self.question))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::access::Grants;

    #[test]
    fn a_version_of_a_history_holds_for_one_life_of_a_name() {
        let versions = EventVersions::of_history(ResourceId(1), "one");
        let text = versions.text(7);
        assert_eq!(versions.parse(&text).unwrap(), Some(7));
        for (id, store_id) in [(2, "one"), (1, "two")] {
            let other = EventVersions::of_history(ResourceId(id), store_id);
            assert_eq!(other.parse(&text).unwrap(), None);
        }
    }

    #[test]
    fn a_version_of_the_history_of_a_node_holds_for_that_node() {
        let one: NodeId = "worker-1".parse().unwrap();
        let versions = EventVersions::of_nodes(Some(&one), "one");
        let text = versions.text(7);
        assert_eq!(versions.parse(&text).unwrap(), Some(7));
        let all = EventVersions::of_nodes(None, "one");
        assert_eq!(all.parse(&text).unwrap(), None);
    }

    #[test]
    fn a_version_holds_for_the_question_that_it_answered() {
        let query = |prefix: &str, namespaces: &[&str]| WatchQuery {
            name_prefix: prefix.to_owned(),
            grants: Grants {
                namespaces: namespaces
                    .iter()
                    .map(|name| name.parse().unwrap())
                    .collect(),
                ..Grants::default()
            },
            ..WatchQuery::default()
        };
        let versions = EventVersions::of(&query("a", &["team"]), "one");
        let text = versions.text(7);
        assert_eq!(versions.parse(&text).unwrap(), Some(7));
        for other in [query("b", &["team"]), query("a", &["team", "other"])] {
            let parsed = EventVersions::of(&other, "one").parse(&text);
            assert_eq!(parsed.unwrap(), None, "{other:?}");
        }
        // A backup was restored into another store.
        let restored = EventVersions::of(&query("a", &["team"]), "two");
        assert_eq!(restored.parse(&text).unwrap(), None);
        for nothing in ["", &versions.text(0)] {
            assert_eq!(versions.parse(nothing).unwrap(), None);
        }
        for bad in ["7", "x-0", "7-x", "-", "none"] {
            versions.parse(bad).unwrap_err();
        }
    }
}
