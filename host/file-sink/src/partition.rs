//! Folders that files are put into: a template, and names from elsewhere that never leave the folder of the sink.
//!
//! A name in a path keeps ASCII letters, digits, `-`, `_` and `.`. All other bytes are written as `%` and two digits, as
//! in URLs, and so is a first character that is no letter or digit: a name is never `.` or `..`, has no slash, and does not
//! begin as files that readers skip. Readers of partitions in the way of Hive decode it.

use std::fmt;
use std::str::FromStr;

use crawler_model::crawl::ItemRecord;
use crawler_sink::template::{Piece, Placeholder, Syntax, encoded, filled, max_bytes};

/// Largest number of bytes between two slashes: the bound of most file systems.
const SEGMENT_MAX: usize = 255;
/// Largest number of bytes of a whole path. Names of objects have 1024 bytes at most, with a prefix and the name of the
/// file.
pub(crate) const PATH_MAX: usize = 600;
/// Name of a folder for items that have no value, as readers of partitions know it.
pub(crate) const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Syntax between two slashes.
const SYNTAX: Syntax = Syntax {
    placeholders: &[
        Placeholder::Resource,
        Placeholder::Kind,
        Placeholder::Date,
        Placeholder::Run,
    ],
    plain: &['-', '_', '.', '='],
    plain_words: "-, _, ., = and /",
};

/// Template of the folders of files, such as `{resource}/{kind}/dt={date}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    text: String,
    segments: Vec<Vec<Piece>>,
}

/// Fault of a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{template:?} is no template of folders: {why}")]
pub struct PartitionError {
    template: String,
    why: String,
}

impl Partition {
    /// Returns the folder of an item, as a path below the folder of the sink.
    pub(crate) fn folder(&self, resource: &str, record: &ItemRecord) -> String {
        let segments = self.segments.iter();
        let segments = segments.map(|pieces| filled(pieces, resource, record, name_in_path));
        segments.collect::<Vec<String>>().join("/")
    }
}

impl Default for Partition {
    fn default() -> Self {
        let text = "{resource}/{kind}/dt={date}";
        text.parse().expect("the template of this file is one")
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Partition {
    type Err = PartitionError;

    fn from_str(text: &str) -> Result<Self, PartitionError> {
        let refused = |why: String| PartitionError {
            template: text.to_owned(),
            why,
        };
        let segments = text.split('/').map(segment);
        let segments: Vec<Vec<Piece>> = segments.collect::<Result<_, String>>().map_err(refused)?;
        let n_bytes = segments.iter().map(|segment| max_bytes(segment) + 1);
        if n_bytes.sum::<usize>() > PATH_MAX {
            let why = format!("its paths may have more than {PATH_MAX} bytes");
            return Err(refused(why));
        }
        Ok(Self {
            text: text.to_owned(),
            segments,
        })
    }
}

/// Parses what is between two slashes.
fn segment(text: &str) -> Result<Vec<Piece>, String> {
    if text.is_empty() {
        return Err("a name between slashes is empty".to_owned());
    }
    if text.starts_with(['.', '_']) {
        return Err(format!(
            "{text:?} begins with a character with which readers skip files"
        ));
    }
    let pieces = SYNTAX.parse(text)?;
    if max_bytes(&pieces) > SEGMENT_MAX {
        return Err(format!(
            "a name like {text:?} may have more than {SEGMENT_MAX} bytes"
        ));
    }
    Ok(pieces)
}

/// Returns a name as a part of a path.
fn name_in_path(name: &str) -> String {
    if name.is_empty() {
        return NO_VALUE.to_owned();
    }
    encoded(name, |place, byte| {
        let is_inner = place > 0 && matches!(byte, b'-' | b'_' | b'.');
        byte.is_ascii_alphanumeric() || is_inner
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::record;
    use crawler_sink::template::NAME_MAX;

    fn folder(template: &str, resource: &str, kind: &str) -> String {
        let partition: Partition = template.parse().unwrap();
        let record = ItemRecord {
            schema: kind.to_owned(),
            ..record(1, "{}")
        };
        partition.folder(resource, &record)
    }

    #[test]
    fn names_and_dates_stand_in_their_places() {
        let path = folder("{resource}/{kind}/dt={date}", "books", "book");
        assert_eq!(path, "books/book/dt=2026-11-28");
        let path = folder("all-{kind}.{resource}/run={run}", "books", "book");
        assert_eq!(path, "all-book.books/run=1");
        assert_eq!(
            Partition::default().to_string(),
            "{resource}/{kind}/dt={date}"
        );
    }

    #[test]
    fn no_name_leaves_the_folder() {
        for (name, path) in [
            ("team/books", "team%2Fbooks"),
            ("..", "%2E."),
            (".", "%2E"),
            ("../../etc", "%2E.%2F..%2Fetc"),
            (".hidden", "%2Ehidden"),
            ("_skipped", "%5Fskipped"),
            ("a b=c%", "a%20b%3Dc%25"),
            ("B\u{fc}cher", "B%C3%BCcher"),
            ("a#1\0", "a%231%00"),
            ("{date}", "%7Bdate%7D"),
            ("", NO_VALUE),
        ] {
            assert_eq!(folder("{kind}", "books", name), path);
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        for c in ["x", "/", "\u{fc}"] {
            let one = folder("{kind}", "books", &c.repeat(200));
            let other = folder("{kind}", "books", &c.repeat(201));
            assert_ne!(one, other);
            for path in [one, other] {
                assert!(path.len() <= NAME_MAX, "{path}");
                let kept = path.split_once('~').unwrap().0;
                let mut escapes = kept.split('%').skip(1);
                assert!(escapes.all(|escape| escape.len() >= 2), "{path}");
            }
        }
        let whole = "x".repeat(NAME_MAX);
        assert_eq!(folder("{kind}", "books", &whole), whole);
    }

    #[test]
    fn the_folder_of_a_long_name_is_the_same_for_ever() {
        // Files are in it already: with another one, a plan that is carried out again would write them once more.
        let name = format!("_team/{}", "ü".repeat(50));
        let expected = "%5Fteam%2F%C3%BC%C3%BC%C3%BC%C3%BC%C3%BC%C3%BC%C3%BC%C3%BC%C3%BC%C3%BC%C3%BC%C3~261f65dd7d631802/all";
        assert_eq!(folder("{kind}/all", "books", &name), expected);
    }

    #[test]
    fn templates_that_make_no_sense_are_refused() {
        let long = "{kind}".repeat(3);
        let deep = ["{kind}"; 7].join("/");
        for (template, why) in [
            ("", "a name between slashes is empty"),
            ("/a", "a name between slashes is empty"),
            ("a//b", "a name between slashes is empty"),
            (
                "../a",
                "\"..\" begins with a character with which readers skip files",
            ),
            (
                "a/_b",
                "\"_b\" begins with a character with which readers skip files",
            ),
            (
                "{shard}",
                "{shard} stands for nothing; there are {resource}, {kind}, {date} and {run}",
            ),
            ("{kind", "a brace is not closed"),
            (
                "a b",
                "it has the character ' '; there are letters, digits, -, _, ., = and /",
            ),
            ("a%2Fb", "it has the character '%'"),
            ("a}", "it has the character '}'"),
            (
                long.as_str(),
                "a name like \"{kind}{kind}{kind}\" may have more than 255 bytes",
            ),
            (deep.as_str(), "its paths may have more than 600 bytes"),
        ] {
            let error = template.parse::<Partition>().unwrap_err().to_string();
            let expected = format!("{template:?} is no template of folders: {why}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
