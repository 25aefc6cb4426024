//! Positions in the items of a run, at which an interrupted reader continues.

use std::fmt;
use std::str::FromStr;

use crawler_model::crawl::ItemRecord;
use crawler_model::id::{ResourceId, Run};

/// Position in a run, as the number of items before it. Items of a run keep their order: an item is at the same
/// position for every later reader, so a count is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemPosition {
    /// Id of the resource.
    pub resource: ResourceId,
    /// The run that is read; the present run may be a later one.
    pub run: Run,
    /// Number of items before the position.
    pub n_before: u64,
}

/// An item, and the position after it.
#[derive(Debug)]
pub struct PositionedItem {
    /// The item that a rule emitted.
    pub item: ItemRecord,
    /// Position at which a reader continues.
    pub next: ItemPosition,
}

/// Error about a text that is not a position.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is not a position that an item had")]
pub struct ItemPositionError {
    text: String,
}

impl fmt::Display for ItemPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.resource, self.run, self.n_before)
    }
}

impl FromStr for ItemPosition {
    type Err = ItemPositionError;

    fn from_str(text: &str) -> Result<Self, ItemPositionError> {
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        let mut number = || numbers.next().flatten();
        match (number(), number(), number(), numbers.next()) {
            (Some(resource), Some(run), Some(n_before), None) => Ok(Self {
                resource: ResourceId(resource),
                run: Run(run),
                n_before,
            }),
            _ => Err(ItemPositionError {
                text: text[..text.floor_char_boundary(80)].to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_back_from_its_text_and_nothing_else_is_one() {
        let position = ItemPosition {
            resource: ResourceId(u64::MAX),
            run: Run(2),
            n_before: 1_000,
        };
        assert_eq!(
            position.to_string().parse::<ItemPosition>().unwrap(),
            position
        );
        for text in ["", "1", "1.2", "1.2.3.4", "1.2.x", "1.2.-3", "1..3"] {
            let error = text.parse::<ItemPosition>().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
