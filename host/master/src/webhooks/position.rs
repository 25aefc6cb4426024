//! Position of a webhook: the events that its receiver was sent, or that were given up. Pure.
//!
//! Everything that was written up to a revision counts as sent. If one write concerns many resources, such as the loss of a
//! worker, or if many are sent again with a mark, the position is in the middle of them: names up to one of them are further.

use serde::{Deserialize, Serialize};

use crawler_model::id::ResourceName;
use crawler_store::Revision;

/// Position of a webhook. Everything that it claims stays true.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// Revision of the store up to which all events were sent or given up.
    revision: u64,
    /// Names that are further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ahead: Option<Ahead>,
}

/// Names that are further than others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Ahead {
    /// The last of these names.
    name: ResourceName,
    /// Revision up to which their events were sent or given up.
    revision: u64,
}

impl Position {
    /// Returns the position of a receiver that was sent all events up to a revision.
    pub(super) fn at(revision: Revision) -> Self {
        Self {
            revision: revision.0,
            ahead: None,
        }
    }

    /// Returns this position for a receiver that, for names up to this one, was sent all events up to a later revision.
    pub(super) fn with_names_up_to(self, name: &ResourceName, revision: Revision) -> Self {
        let ahead = Some(Ahead {
            name: name.clone(),
            revision: revision.0,
        });
        Self { ahead, ..self }
    }

    /// Returns the revision up to which the events of all names were sent.
    pub(super) fn revision(&self) -> Revision {
        Revision(self.revision)
    }

    /// Returns true if the event of a write that concerned this name was sent.
    pub(super) fn includes(&self, name: &ResourceName, revision: Revision) -> bool {
        let is_ahead = |ahead: &Ahead| *name <= ahead.name && revision.0 <= ahead.revision;
        revision.0 <= self.revision || self.ahead.as_ref().is_some_and(is_ahead)
    }

    /// Moves on to what was reached later.
    pub(super) fn advance(&mut self, reached: Self) {
        self.revision = self.revision.max(reached.revision);
        let known = self.ahead.take();
        let known = known.filter(|known| known.revision > self.revision);
        self.ahead = match (known, reached.ahead) {
            (Some(known), Some(reached)) if known.revision > reached.revision => Some(known),
            (known, reached) => reached.or(known),
        };
    }

    /// Moves on to a name in a pass over all names, in their order, that sends everything up to a revision.
    pub(super) fn pass(&mut self, name: &ResourceName, revision: Revision) {
        // An earlier pass that was cut off may have come further.
        if self.ahead.as_ref().is_none_or(|ahead| ahead.name <= *name) {
            self.ahead = Some(Ahead {
                name: name.clone(),
                revision: revision.0,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ResourceName {
        text.parse().unwrap()
    }

    fn includes(position: &Position, text: &str, revision: u64) -> bool {
        position.includes(&name(text), Revision(revision))
    }

    #[test]
    fn names_of_one_write_are_included_up_to_the_last_one() {
        let position = Position::at(Revision(7)).with_names_up_to(&name("m"), Revision(8));
        assert!(includes(&position, "z", 7) && includes(&position, "m", 8));
        assert!(!includes(&position, "n", 8) && !includes(&position, "a", 9));
        let position = Position::at(Revision(7));
        assert!(includes(&position, "a", 7) && !includes(&position, "a", 8));
    }

    #[test]
    fn a_position_forgets_nothing_when_it_moves() {
        let mut position = Position::at(Revision(5));
        // A pass over all names is cut off.
        for text in ["a", "b"] {
            position.pass(&name(text), Revision(20));
        }
        assert!(includes(&position, "b", 20) && !includes(&position, "c", 6));
        // The next leader knows the changes since the position.
        let further = |base, text| {
            Position::at(Revision(base)).with_names_up_to(&name(text), Revision(base + 1))
        };
        position.advance(further(8, "k"));
        assert!(includes(&position, "b", 20) && includes(&position, "c", 8));
        position.advance(Position::at(Revision(20)));
        assert_eq!(position, Position::at(Revision(20)));
        position.advance(further(20, "k"));
        position.advance(further(20, "l"));
        assert!(includes(&position, "l", 21) && !includes(&position, "m", 21));
    }

    #[test]
    fn a_pass_that_begins_again_keeps_the_names_of_the_last_one() {
        let mut position = Position::at(Revision(5));
        position.pass(&name("m"), Revision(20));
        position.pass(&name("a"), Revision(30));
        assert!(includes(&position, "m", 20) && !includes(&position, "a", 30));
        position.pass(&name("m"), Revision(30));
        assert!(includes(&position, "a", 30) && !includes(&position, "n", 6));
    }

    #[test]
    fn records_of_earlier_versions_have_a_revision_alone() {
        let position: Position = serde_json::from_str(r#"{"revision":7,"write_id":"0"}"#).unwrap();
        assert_eq!(position, Position::at(Revision(7)));
        assert_eq!(
            serde_json::to_string(&position).unwrap(),
            r#"{"revision":7}"#
        );
    }
}
