//! Names of tables, columns and indices: made from names that plugins and users choose, within what all servers take.
//!
//! A name keeps its letters where it can, because [`Dialect::quote`] makes any of them safe. A name that has to change,
//! because it is too long or has a character that some server refuses, ends with a digest of what it was made from, so
//! that two names never become one. Names of indices have a `-`, which no table has: SQLite keeps tables and indices in one
//! space of names.
//!
//! [`Dialect::quote`]: crate::dialect::Dialect::quote

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// Largest number of bytes of a name. PostgreSQL cuts longer ones off without a word, MySQL refuses them.
const NAME_MAX: usize = 63;
/// Number of bytes of the digest at the end of a name, in hexadecimal digits.
const DIGEST_DIGITS: usize = 8;
/// Table in which SQLite keeps the columns of the sink.
const OUR_COLUMNS: &str = "crawler_columns";
/// Names of columns that the sink has itself, and names that a server refuses.
const RESERVED: [&str; 26] = [
    "_key",
    "_resource",
    "_resource_id",
    "_kind",
    "_url",
    "_run",
    "_at",
    "_item",
    "_first_seen",
    "_last_seen",
    "_rest",
    "_version",
    "_natural_key",
    "_valid_from",
    "_valid_to",
    "tableoid",
    "xmin",
    "cmin",
    "xmax",
    "cmax",
    "ctid",
    "oid",
    "db_row_id",
    "db_trx_id",
    "db_roll_ptr",
    "fts_doc_id",
];

/// Name of a table, a column or an index, which every server takes if it is quoted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identifier(String);

impl Identifier {
    /// Returns a name that the sink has chosen.
    pub(crate) fn own(name: &'static str) -> Self {
        Self(name.to_owned())
    }

    /// Returns the names of the columns of fields, in the order of the fields. Names that differ by case only are one
    /// name to SQLite and MySQL, so all of them get a digest: none may take the column of another one later.
    pub(crate) fn of_fields<'f>(fields: impl IntoIterator<Item = &'f str>) -> Vec<(&'f str, Self)> {
        let fields: BTreeSet<&str> = fields.into_iter().collect();
        let mut n_alike: HashMap<String, usize> = HashMap::new();
        for field in &fields {
            *n_alike.entry(field.to_lowercase()).or_default() += 1;
        }
        let named = fields.into_iter().map(|field| {
            let name = match n_alike[&field.to_lowercase()] {
                1 => Self::of_field(field),
                _ => Self::with_digest(&kept_of(field), field),
            };
            (field, name)
        });
        named.collect()
    }

    fn of_field(field: &str) -> Self {
        let kept = kept_of(field);
        let is_reserved = RESERVED.contains(&kept.to_lowercase().as_str());
        if kept == field && !kept.is_empty() && !is_reserved && kept.len() <= NAME_MAX {
            return Self(kept);
        }
        Self::with_digest(&kept, field)
    }

    /// Returns the name of a table that a template gives: letters in lower case, digits and `_`, so that it can be
    /// written without quotes. `origin` is what tells the table apart if the text alone `is_ambiguous`.
    fn of_table(text: &str, origin: &str, is_ambiguous: bool) -> Self {
        let plain: String = text
            .to_lowercase()
            .chars()
            .map(|c| match c.is_alphanumeric() && !is_refused(c) {
                true => c,
                false => '_',
            })
            .collect();
        // SQLite keeps this beginning for itself.
        let plain = match plain.starts_with("sqlite_") {
            true => format!("_{plain}"),
            false => plain,
        };
        let is_kept = plain == text && plain != OUR_COLUMNS && !is_ambiguous;
        match is_kept && plain.len() <= NAME_MAX {
            true => Self(plain),
            false => Self::with_digest(&plain, origin),
        }
    }

    /// Returns this name with a digest, for a table whose name another one has.
    pub(crate) fn apart(&self) -> Self {
        Self::with_digest(&self.0, &format!("{}\0", self.0))
    }

    /// Returns the name of a table that belongs to this one.
    pub(crate) fn with(&self, suffix: &'static str) -> Self {
        let name = format!("{}{suffix}", self.0);
        match name.len() <= NAME_MAX {
            true => Self(name),
            false => Self::with_digest(&self.0, &name),
        }
    }

    /// Returns a name of an index of this table, whose purpose is one word. The index of a table that was renamed keeps its
    /// name, so names may be taken.
    pub(crate) fn index(&self, purpose: &'static str, taken: &[String]) -> Self {
        let name = format!("{}-{purpose}", self.0);
        let is_free = |name: &String| taken.iter().all(|taken| !taken.eq_ignore_ascii_case(name));
        if name.len() <= NAME_MAX && is_free(&name) {
            return Self(name);
        }
        let mut others = (0..=taken.len()).map(|n| {
            // The digest is behind a `-` as well.
            let Self(cut) = Self::with_digest(&self.0, &format!("{name}{n}"));
            let (head, digest) = cut.split_at(cut.len() - DIGEST_DIGITS - 1);
            format!("{head}-{}", &digest[1..])
        });
        let free = others.find(is_free);
        Self(free.expect("there are more of these names than taken ones"))
    }

    /// Returns the beginning of a name with a digest of what the name is made from.
    fn with_digest(name: &str, origin: &str) -> Self {
        let mut end = name.len().min(NAME_MAX - 1 - DIGEST_DIGITS);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let digest = hex::encode(Sha256::digest(origin.as_bytes()));
        Self(format!("{}_{}", &name[..end], &digest[..DIGEST_DIGITS]))
    }

    /// Name without quotes.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns a name without characters that a server refuses.
fn kept_of(field: &str) -> String {
    let kept: String = field
        .chars()
        .map(|c| if is_refused(c) { '_' } else { c })
        .collect();
    kept.trim_end().to_owned()
}

/// True if a server refuses the character in a name.
fn is_refused(c: char) -> bool {
    // MySQL stores names in three bytes a character.
    c.is_control() || c > '\u{ffff}'
}

/// Template of the name of a table: letters from a to z, digits and `_`, with `{resource}` and `{kind}`, which stand for
/// the name of a resource and for the kind of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableTemplate(String);

/// Fault of a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{template:?} is no template of a table: it has letters from a to z, digits, _, {{resource}} and {{kind}}, such as {{resource}}_{{kind}}"
)]
pub struct TemplateError {
    template: String,
}

impl TableTemplate {
    /// Returns the name of the table for the items of a kind.
    pub(crate) fn name(&self, resource: &str, kind: &str) -> Identifier {
        // The names themselves may contain the words in braces.
        let parts = self.0.split("{resource}");
        let parts: Vec<String> = parts.map(|part| part.replace("{kind}", kind)).collect();
        let text = parts.join(resource);
        match self.is_shared() {
            true => Identifier::of_table(&text, &text, false),
            false => {
                let is_ambiguous = self.is_ambiguous(resource, kind);
                Identifier::of_table(&text, &format!("{text}\0{resource}"), is_ambiguous)
            }
        }
    }

    /// Returns true if other names of a resource and a kind may give the same text: the end of the one that stands first
    /// is found by the beginning of what follows it in the template, so that it must not have this character itself.
    fn is_ambiguous(&self, resource: &str, kind: &str) -> bool {
        let places = [("{resource}", resource), ("{kind}", kind)];
        let found = places.map(|(word, name)| (self.0.find(word), word, name));
        let first = found.into_iter().min_by_key(|(place, _, _)| *place);
        let Some((Some(place), word, name)) = first else {
            return false;
        };
        match self.0[place + word.len()..].chars().next() {
            Some('{') | None => true,
            Some(separator) => name.contains(separator),
        }
    }

    /// Returns true if several resources, or several kinds of items, may share a table.
    pub(crate) fn is_shared(&self) -> bool {
        !(self.0.contains("{resource}") && self.0.contains("{kind}"))
    }
}

impl FromStr for TableTemplate {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let rest = text.replace("{resource}", "r").replace("{kind}", "k");
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if rest.is_empty() || !rest.chars().all(is_plain) {
            let template = text.to_owned();
            return Err(TemplateError { template });
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for TableTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn fields(fields: &[&str]) -> Vec<String> {
        let named = Identifier::of_fields(fields.iter().copied());
        named.into_iter().map(|(_, name)| name.0).collect()
    }

    fn table(template: &str, resource: &str, kind: &str) -> String {
        let template: TableTemplate = template.parse().unwrap();
        template.name(resource, kind).0
    }

    #[test]
    fn fields_keep_names_that_servers_take() {
        let names = ["a\"b`c'd", "fullName", "größe", "select", "x; DROP TABLE y"];
        assert_eq!(fields(&names), names);
    }

    #[test]
    fn names_that_servers_refuse_get_a_digest() {
        let long = "n".repeat(200);
        let all = fields(&["", "_URL", "a\0b", "ctid", "end ", &long, "smile\u{1f600}"]);
        let set: HashSet<&String> = all.iter().collect();
        assert_eq!(set.len(), all.len());
        for name in &all {
            let (_, digest) = name.rsplit_once('_').unwrap();
            assert_eq!(digest.len(), DIGEST_DIGITS, "{name}");
            assert!(name.len() <= NAME_MAX, "{name}");
            assert!(!name.chars().any(is_refused), "{name}");
        }
    }

    #[test]
    fn long_names_with_one_beginning_stay_apart() {
        let (one, other) = ("ä".repeat(100) + "1", "ä".repeat(100) + "2");
        let all = fields(&[&one, &other]);
        assert_ne!(all[0], all[1]);
        assert_eq!(all, fields(&[&other, &one]));
    }

    #[test]
    fn names_that_differ_by_case_stay_apart() {
        let all = fields(&["NAME", "Name", "name", "other"]);
        let folded: HashSet<String> = all.iter().map(|name| name.to_lowercase()).collect();
        assert_eq!(folded.len(), 4, "{all:?}");
        // The column of the only one is not taken by another one that comes later.
        assert_eq!(fields(&["Name"]), ["Name"]);
        assert!(!all.contains(&"Name".to_owned()), "{all:?}");
        assert_eq!(all[3], "other");
    }

    #[test]
    fn tables_have_plain_names() {
        let default = "{resource}_{kind}";
        assert_eq!(table(default, "books", "book_2"), "books_book_2");
        for (template, start) in [
            (default, "team_books_book_2_"),
            ("items_of_{kind}", "items_of_book_2_"),
            ("sqlite_{kind}", "_sqlite_book_2_"),
        ] {
            let name = table(template, "team/Books", "book 2");
            let (head, digest) = name.split_at(name.len() - DIGEST_DIGITS);
            assert_eq!(head, start);
            assert!(digest.chars().all(|c| c.is_ascii_hexdigit()), "{name}");
        }
        assert!(table("crawler_{kind}", "books", "columns").starts_with("crawler_columns_"));
        assert_eq!(table("{resource}_{kind}", "a", "b_c"), "a_b_c");
        assert_eq!(table("{kind}_of_{resource}", "a_of_b", "c"), "c_of_a_of_b");
        assert!(table("{kind}", "books", "{resource}").starts_with("_resource__"));
        assert!(table("{resource}", "{kind}", "book").starts_with("_kind__"));
    }

    #[test]
    fn tables_of_different_names_stay_apart() {
        let short = ["team/books", "team_books", "Team/books", "team-books"];
        let long = [200, 201].map(|n| "k".repeat(n));
        let resources = short.into_iter().chain(long.iter().map(String::as_str));
        let names = resources.map(|resource| table("{resource}", resource, ""));
        let names: HashSet<String> = names.collect();
        assert_eq!(names.len(), short.len() + long.len(), "{names:?}");
        assert!(names.iter().all(|name| name.len() <= NAME_MAX), "{names:?}");
    }

    #[test]
    fn parts_of_a_name_have_one_meaning() {
        let parts = [
            "a", "b", "a_b", "b_a", "a_b_a", "ab", "a_of_b", "of", "_of", "a_of",
        ];
        let templates = [
            "{resource}_{kind}",
            "{kind}_of_{resource}",
            "{resource}{kind}",
        ];
        for template in templates {
            let pairs = parts
                .iter()
                .flat_map(|one| parts.map(|other| (*one, other)));
            let names = pairs.map(|(resource, kind)| table(template, resource, kind));
            let names: HashSet<String> = names.collect();
            assert_eq!(names.len(), parts.len() * parts.len(), "{template}");
        }
    }

    #[test]
    fn no_index_has_the_name_of_a_table() {
        for kind in ["book".to_owned(), "k".repeat(58), "k".repeat(200)] {
            let template: TableTemplate = "{kind}".parse().unwrap();
            let table = template.name("books", &kind);
            let mut indices = ["key", "url"]
                .map(|purpose| table.index(purpose, &[]).0)
                .to_vec();
            indices.push(table.index("url", &indices).0);
            indices.push(table.index("url", &indices).0);
            let set: HashSet<&String> = indices.iter().collect();
            assert_eq!(set.len(), 4, "{indices:?}");
            for index in indices {
                assert!(index.contains('-') && index.len() <= NAME_MAX, "{index}");
                // A table of this name gets another one.
                assert_ne!(template.name("books", &index).0, index);
            }
        }
    }

    #[test]
    fn the_table_of_a_history_has_the_name_of_its_items() {
        let template: TableTemplate = "{kind}".parse().unwrap();
        let history = |kind: &str| template.name("books", kind).with("_history").0;
        assert_eq!(history("book"), "book_history");
        let long = history(&"k".repeat(60));
        assert!(long.len() <= NAME_MAX && long.starts_with("kkk"), "{long}");
        assert_ne!(long, template.name("books", &"k".repeat(60)).0);
    }

    #[test]
    fn templates_name_nothing_unknown() {
        for template in ["", "{run}", "{resource", "kind}", "Items", "a b", "a-b"] {
            let error = template.parse::<TableTemplate>().unwrap_err();
            assert!(
                error.to_string().contains("such as {resource}_{kind}"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_table_is_shared_unless_its_name_tells_resource_and_kind() {
        for (template, is_shared) in [("{resource}_{kind}", false), ("{kind}", true), ("x", true)] {
            let template: TableTemplate = template.parse().unwrap();
            assert_eq!(template.is_shared(), is_shared, "{template}");
        }
    }
}
