//! Where the items of a run go on for a reader that was cut off.

use std::fmt;
use std::str::FromStr;

use crate::model::crawl::ItemRecord;
use crate::model::id::{ResourceId, Run};

/// Behind so many items of a run. Items of a run keep their order: what is read once is at the same
/// place for every later reader, so a count is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemPlace {
    /// This life of the resource.
    pub resource: ResourceId,
    /// The run that is read, though the present one may be another by now.
    pub run: Run,
    /// Items before it.
    pub n_before: u64,
}

/// An item, and the place behind it.
#[derive(Debug)]
pub struct PlacedItem {
    /// What a rule emitted.
    pub item: ItemRecord,
    /// Where to go on.
    pub next: ItemPlace,
}

/// A text that is no place.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is not a position that an item had")]
pub struct ItemPlaceError {
    text: String,
}

impl fmt::Display for ItemPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.resource, self.run, self.n_before)
    }
}

impl FromStr for ItemPlace {
    type Err = ItemPlaceError;

    fn from_str(text: &str) -> Result<Self, ItemPlaceError> {
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        let mut number = || numbers.next().flatten();
        match (number(), number(), number(), numbers.next()) {
            (Some(resource), Some(run), Some(n_before), None) => Ok(Self {
                resource: ResourceId(resource),
                run: Run(run),
                n_before,
            }),
            _ => Err(ItemPlaceError {
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
        let place = ItemPlace {
            resource: ResourceId(u64::MAX),
            run: Run(2),
            n_before: 1_000,
        };
        assert_eq!(place.to_string().parse::<ItemPlace>().unwrap(), place);
        for text in ["", "1", "1.2", "1.2.3.4", "1.2.x", "1.2.-3", "1..3"] {
            let error = text.parse::<ItemPlace>().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
