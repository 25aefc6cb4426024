//! Sinks of a crawl, by the names that config files give them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::text::as_text;

/// Largest number of bytes of a name.
const MAX_NAME: usize = 63;
/// Largest number of sinks of one resource: each has a position in the outbox of every shard.
pub(super) const MAX_SINKS: u64 = 8;
/// Name of the sink in the data root, which every process has.
const LINES: &str = "lines";

/// Name of a sink, such as `shop-2`. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SinkName(Arc<str>);

impl SinkName {
    /// Largest number of bytes of a name.
    pub const MAX_BYTES: usize = MAX_NAME;

    /// Returns the name of the sink in the data root, whose items `crawler items` reads.
    pub fn lines() -> Self {
        Self(LINES.into())
    }

    /// Returns true for the sink in the data root.
    pub fn is_lines(&self) -> bool {
        &*self.0 == LINES
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SinkName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_char = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
        let is_name = (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_char);
        is_name.then(|| Self(text.into())).ok_or_else(|| {
            let shown = &text[..text.floor_char_boundary(MAX_NAME + 1)];
            format!(
                "takes names of sinks, which have 1 to {MAX_NAME} characters of a-z, 0-9, -, _ and ., unlike {shown:?}"
            )
        })
    }
}

as_text!(SinkName);

/// Names of the sinks that get every item of a resource. There is at least one, and each is there once. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkNames(Arc<[SinkName]>);

impl SinkNames {
    /// Creates the set of these names; without any, it is the sink in the data root.
    pub fn of(names: impl IntoIterator<Item = SinkName>) -> Self {
        let mut names: Vec<SinkName> = names.into_iter().collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            names.push(SinkName::lines());
        }
        Self(names.into())
    }

    /// Iterates over the names in their order.
    pub fn iter(&self) -> impl Iterator<Item = &SinkName> {
        self.0.iter()
    }

    /// Returns true if a sink has this name.
    pub fn contains(&self, name: &SinkName) -> bool {
        self.0.contains(name)
    }

    /// Returns true if the sink in the data root is the only one.
    pub fn is_only_lines(&self) -> bool {
        self.0.iter().all(SinkName::is_lines)
    }
}

impl Default for SinkNames {
    fn default() -> Self {
        Self::of([])
    }
}

impl fmt::Display for SinkNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::list::list(f, &self.0, "none")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SinkName {
        text.parse().unwrap()
    }

    #[test]
    fn names_of_sinks_are_short_and_plain() {
        let longest = "x".repeat(MAX_NAME);
        for text in ["lines", "a", "shop-2", "db_1.eu", longest.as_str()] {
            assert_eq!(name(text).to_string(), text);
        }
        let long = "é".repeat(MAX_NAME);
        for text in ["", "A", "a b", "a/b", "é", "none!", long.as_str()] {
            let error = text.parse::<SinkName>().unwrap_err();
            assert!(error.starts_with("takes names of sinks"), "{error}");
            assert!(error.len() < 250, "{error}");
        }
    }

    #[test]
    fn a_resource_has_each_of_its_sinks_once() {
        let default = SinkNames::default();
        assert!(default.is_only_lines());
        assert_eq!(default.to_string(), "lines");
        let names = SinkNames::of(["lines", "db", "lines"].map(name));
        assert_eq!(names.to_string(), "db, lines");
        assert!(names.contains(&name("db")) && !names.contains(&name("dbs")));
        assert!(!names.is_only_lines());
        assert!(!SinkNames::of([name("db")]).is_only_lines());
    }
}
