//! Positions in the items of a run, at which an interrupted reader continues.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crawler_model::crawl::ItemRecord;
use crawler_model::id::{ResourceId, Run, Shard};

/// Position in a run, as the items before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPosition {
    /// Id of the resource.
    pub resource: ResourceId,
    /// The run that is read; the present run may be a later one.
    pub run: Run,
    /// Items that a reader has had.
    pub before: ItemsBefore,
}

/// Items before a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemsBefore {
    /// Number of items of each shard that has any. Items of a shard keep their order for every later reader, so these
    /// counts are exact. While a run goes on, the order among shards depends on what each of them has just then.
    ByShard(BTreeMap<Shard, u64>),
    /// Number of items of all shards together, as earlier versions counted them. With several shards, it is exact only
    /// if the run was over.
    Total(u64),
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

impl ItemsBefore {
    /// Adds the item of a shard that was read last. Returns false if it was among them already, by the numbers of items
    /// that were read of each shard.
    pub(super) fn add(&mut self, shard: Shard, n_read: &BTreeMap<Shard, u64>) -> bool {
        match self {
            Self::ByShard(n_before) => {
                let n_read = n_read.get(&shard).copied().unwrap_or_default();
                let n_before = n_before.entry(shard).or_default();
                let is_new = n_read > *n_before;
                *n_before = n_read.max(*n_before);
                is_new
            }
            Self::Total(n_before) => {
                let is_new = n_read.values().sum::<u64>() > *n_before;
                if is_new {
                    *self = Self::ByShard(n_read.clone());
                }
                is_new
            }
        }
    }
}

impl Default for ItemsBefore {
    fn default() -> Self {
        Self::ByShard(BTreeMap::new())
    }
}

impl fmt::Display for ItemPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.", self.resource, self.run)?;
        match &self.before {
            ItemsBefore::Total(n_before) => write!(f, "{n_before}"),
            ItemsBefore::ByShard(n_before) => {
                for (n, (shard, n_before)) in n_before.iter().enumerate() {
                    let comma = if n > 0 { "," } else { "" };
                    write!(f, "{comma}{shard}:{n_before}")?;
                }
                Ok(())
            }
        }
    }
}

impl FromStr for ItemPosition {
    type Err = ItemPositionError;

    fn from_str(text: &str) -> Result<Self, ItemPositionError> {
        parsed(text).ok_or_else(|| ItemPositionError {
            text: text[..text.floor_char_boundary(80)].to_owned(),
        })
    }
}

fn parsed(text: &str) -> Option<ItemPosition> {
    let (resource, rest) = text.split_once('.')?;
    let (run, before) = rest.split_once('.')?;
    let before = match before.contains(':') {
        true => ItemsBefore::ByShard(counts(before)?),
        false => ItemsBefore::Total(before.parse().ok()?),
    };
    Some(ItemPosition {
        resource: ResourceId(resource.parse().ok()?),
        run: Run(run.parse().ok()?),
        before,
    })
}

/// Parses the number of items of each shard, like `0:5,1:12`.
fn counts(text: &str) -> Option<BTreeMap<Shard, u64>> {
    let mut counts = BTreeMap::new();
    for count in text.split(',') {
        let (shard, n_before) = count.split_once(':')?;
        let shard = Shard(shard.parse().ok()?);
        if counts.insert(shard, n_before.parse().ok()?).is_some() {
            return None;
        }
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_back_from_its_text_and_nothing_else_is_one() {
        let by_shard = |counts: &[(u32, u64)]| {
            let counts = counts.iter().map(|(shard, n)| (Shard(*shard), *n));
            ItemsBefore::ByShard(counts.collect())
        };
        for (before, expected) in [
            (by_shard(&[(0, 1_000)]), "0:1000"),
            (by_shard(&[(0, 5), (31, 12)]), "0:5,31:12"),
            (ItemsBefore::Total(7), "7"),
        ] {
            let position = ItemPosition {
                resource: ResourceId(u64::MAX),
                run: Run(2),
                before,
            };
            let text = position.to_string();
            assert_eq!(text, format!("{}.2.{expected}", u64::MAX));
            assert_eq!(text.parse::<ItemPosition>().unwrap(), position);
        }
        for text in [
            "",
            "1",
            "1.2",
            "1.2.",
            "1.2.3.4",
            "1.2.x",
            "1.2.-3",
            "1..3",
            "1.2.0:",
            "1.2.:3",
            "1.2.0:3,",
            "1.2.0:3,4",
            "1.2.0:3,0:4",
            "1.2.0:3.4",
        ] {
            let error = text.parse::<ItemPosition>().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
