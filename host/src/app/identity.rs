//! As whom a process of a cluster registers.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use anyhow::Context as _;

use crate::model::id::NodeId;
use crate::model::node::Role;

/// Of the state folder: the id, and by its lock that a process has it.
const ID_FILE: &str = "node-id";
/// Characters of the host's name in an id.
const HOST_MAX: usize = 40;

/// The id of a process, for as long as this value lives.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) id: NodeId,
    /// No other process of this state folder takes the same.
    _lock: Option<File>,
}

impl Identity {
    /// The id that was asked for; or the one kept in the state folder, made of the host's name and
    /// something random when there is none. Where another process has that one, a new one that is not
    /// kept.
    pub(super) fn find(role: Role, asked: Option<NodeId>, state: &Path) -> anyhow::Result<Self> {
        if let Some(id) = asked {
            return Ok(Self { id, _lock: None });
        }
        let path = state.join(ID_FILE);
        let kept = kept(role, &path);
        kept.with_context(|| format!("cannot keep this node's id in {}", path.display()))
    }
}

fn kept(role: Role, path: &Path) -> io::Result<Identity> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file = File::options()
        .read(true)
        .append(true)
        .create(true)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Ok(Identity {
                id: fresh(role),
                _lock: None,
            });
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let text = std::fs::read_to_string(path)?;
    let present = text.trim().parse::<NodeId>().ok();
    let present = present.filter(|id| id.as_str().starts_with(&format!("{role}-")));
    let id = match present {
        Some(id) => id,
        None => {
            let id = fresh(role);
            std::fs::write(path, format!("{id}\n"))?;
            id
        }
    };
    Ok(Identity {
        id,
        _lock: Some(file),
    })
}

fn fresh(role: Role) -> NodeId {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    // As far as a host's name has characters that a node id may have.
    let host: String = host
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(HOST_MAX)
        .collect();
    let random = hex::encode(rand::random::<[u8; 3]>());
    let id = format!("{role}-{host}-{random}");
    id.parse()
        .expect("a role, letters, digits and dashes make an id")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(state: &Path) -> Identity {
        Identity::find(Role::Worker, None, state).unwrap()
    }

    #[test]
    fn an_id_is_kept_over_restarts_and_by_one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let first = find(&state);
        let id = first.id.clone();
        assert!(id.as_str().starts_with("worker-"));
        let beside = find(&state);
        assert_ne!(beside.id, id, "both run at the same time");
        drop((first, beside));
        assert_eq!(find(&state).id, id);
        let asked: NodeId = "worker-2".parse().unwrap();
        let found = Identity::find(Role::Worker, Some(asked.clone()), &state).unwrap();
        assert_eq!(found.id, asked);
        assert_eq!(find(&state).id, id);
    }

    #[test]
    fn a_file_that_holds_no_id_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "a b", "master-2"] {
            std::fs::write(folder.path().join(ID_FILE), text).unwrap();
            let id = find(folder.path()).id;
            assert_eq!(find(folder.path()).id, id);
        }
    }
}
