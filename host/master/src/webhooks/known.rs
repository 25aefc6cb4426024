//! Resources that a receiver knows of, so that one that is new to it is told from one that changes. Pure.

use std::collections::BTreeSet;

use super::position::Position;
use crate::observed::Ended;
use crawler_model::id::{ResourceId, ResourceName};
use crawler_store::Revision;

/// Resources that a receiver knows of: those that were there when nothing waited, and those that it was told of since. The
/// latter are as many as were added since then.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Position at which nothing waited.
    position: Position,
    /// Resources that the receiver was told of since, by the revision at which they began.
    since: BTreeSet<(Revision, ResourceId)>,
}

impl Known {
    /// Begins at a position.
    pub(super) fn at(position: Position) -> Self {
        Self {
            position,
            since: BTreeSet::new(),
        }
    }

    /// Returns true if the receiver does not know of a resource that began at this revision.
    pub(super) fn is_new(&self, name: &ResourceName, id: ResourceId, created: Revision) -> bool {
        !self.position.includes(name, created) && !self.since.contains(&(created, id))
    }

    /// Takes note that the receiver is told of a resource, or need not be. Returns true if it is new.
    pub(super) fn add(&mut self, name: &ResourceName, id: ResourceId, created: Revision) -> bool {
        let is_new = self.is_new(name, id, created);
        if is_new {
            self.since.insert((created, id));
        }
        is_new
    }

    /// Takes note that a resource is not there any more. Returns true if the receiver knows of it.
    pub(super) fn end(&mut self, name: &ResourceName, Ended { id, created }: Ended) -> bool {
        let is_known = !self.is_new(name, id, created);
        self.since.remove(&(created, id));
        is_known
    }

    /// Takes note that nothing waits at this position.
    pub(super) fn settle(&mut self, position: Position) {
        let next = Revision(position.revision().0.saturating_add(1));
        self.since = self.since.split_off(&(next, ResourceId(0)));
        self.position = position;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_new_once() {
        let name: ResourceName = "a".parse().unwrap();
        let (id, created) = (ResourceId(1), Revision(8));
        let mut known = Known::at(Position::at(Revision(7)));
        assert!(!known.add(&name, ResourceId(2), Revision(7)));
        assert!(known.add(&name, id, created) && !known.add(&name, id, created));
        // The write that brought it is not known whole yet.
        known.settle(Position::at(Revision(7)));
        assert!(!known.is_new(&name, id, created));
        known.settle(Position::at(Revision(8)));
        assert!(known.since.is_empty() && !known.is_new(&name, id, created));
    }

    #[test]
    fn the_end_of_a_resource_that_nobody_was_told_of_is_no_news() {
        let name: ResourceName = "a".parse().unwrap();
        let ended = |id, created| Ended {
            id: ResourceId(id),
            created: Revision(created),
        };
        let mut known = Known::at(Position::at(Revision(7)));
        assert!(known.end(&name, ended(1, 6)));
        assert!(!known.end(&name, ended(2, 8)));
        known.add(&name, ResourceId(2), Revision(8));
        assert!(known.end(&name, ended(2, 8)) && known.since.is_empty());
    }
}
