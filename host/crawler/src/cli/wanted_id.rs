//! The option `--id`: the id under which a process is to register.

use super::Failure;
use crawler_model::id::NodeId;
use crawler_model::node::Role;

/// Value of `--id` that asks for an id made of the host's name.
const HOST_ID: &str = "auto-host";

/// Id under which a process is to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedId {
    /// This id.
    Is(NodeId),
    /// Id that the process had before; at first the next free number of the cluster.
    Number,
    /// Id of this form that the process had before; at first the host's name with a random part.
    Host,
}

pub(super) fn wanted_id(role: Role, id: Option<&str>) -> Result<WantedId, Failure> {
    Ok(match id {
        None => WantedId::Number,
        Some(HOST_ID) => WantedId::Host,
        Some(id) => WantedId::Is(node_id(role, id)?),
    })
}

/// Parses the id of a node: `2` and `worker-2` are the same worker.
fn node_id(role: Role, id: &str) -> Result<NodeId, Failure> {
    let prefix = format!("{role}-");
    if id.is_empty() || id == prefix {
        return Err(Failure::new(
            format!("--id {id:?} names nobody"),
            "write a short one, like --id=2",
        ));
    }
    let whole = match id.starts_with(&prefix) {
        true => id.to_owned(),
        false => format!("{prefix}{id}"),
    };
    let parsed = whole.parse::<NodeId>();
    parsed.map_err(|e| {
        Failure::new(
            format!("--id {id:?}: {e}"),
            "write a short one, like --id=2",
        )
    })
}
