//! Listings: pages of keys in their order, with keys below a delimiter folded into common prefixes.

use std::ops::Bound;

use super::bucket::{Bucket, Object};

/// Largest number of entries of a page.
const LARGEST_PAGE: usize = 1000;

/// Question for one page.
pub(super) struct Query<'a> {
    pub(super) prefix: &'a str,
    /// Text that ends a common prefix. If `None`, keys are not folded.
    pub(super) delimiter: Option<&'a str>,
    pub(super) after: Position,
    /// Number of entries that the client wants at most.
    pub(super) limit: Option<usize>,
}

/// Place in the order of keys where a page ended, or where a client wants to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    Start,
    Key(String),
    /// After all keys with this common prefix.
    Prefix(String),
}

/// One page of a listing.
pub(super) struct Page<'a> {
    pub(super) objects: Vec<(&'a String, &'a Object)>,
    pub(super) prefixes: Vec<&'a str>,
    /// End of the page. If `None`, it is the last one.
    pub(super) next: Option<Position>,
}

impl Bucket {
    pub(super) fn list(&self, query: &Query<'_>) -> Page<'_> {
        let limit = query.limit.unwrap_or(LARGEST_PAGE).clamp(1, LARGEST_PAGE);
        let mut page = Page {
            objects: Vec::new(),
            prefixes: Vec::new(),
            next: None,
        };
        let mut last = Position::Start;
        let first = query.prefix.max(query.after.text());
        let range = (Bound::Included(first), Bound::Unbounded);
        for (key, object) in self.objects.range::<str, _>(range) {
            let Some(rest) = key.strip_prefix(query.prefix) else {
                break;
            };
            if query.after.covers(key) || last.covers(key) {
                continue;
            }
            if page.objects.len() + page.prefixes.len() == limit {
                page.next = Some(last);
                break;
            }
            let folded = query.delimiter.and_then(|delimiter| {
                let end = rest.find(delimiter)? + delimiter.len();
                Some(&key[..query.prefix.len() + end])
            });
            if let Some(prefix) = folded {
                page.prefixes.push(prefix);
                last = Position::Prefix(prefix.into());
            } else {
                page.objects.push((key, object));
                last = Position::Key(key.clone());
            }
        }
        page
    }
}

impl Position {
    /// Reads a continuation token. `None` if the server never gave it.
    pub(super) fn from_token(token: &str) -> Option<Self> {
        let (kind, text) = token.split_once(':')?;
        match kind {
            "key" => Some(Self::Key(text.into())),
            "prefix" => Some(Self::Prefix(text.into())),
            _ => None,
        }
    }

    pub(super) fn to_token(&self) -> String {
        match self {
            Self::Start => String::new(),
            Self::Key(key) => format!("key:{key}"),
            Self::Prefix(prefix) => format!("prefix:{prefix}"),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Start => "",
            Self::Key(text) | Self::Prefix(text) => text,
        }
    }

    /// Returns true if a key is not after this position.
    fn covers(&self, key: &str) -> bool {
        match self {
            Self::Start => false,
            Self::Key(last) => key <= last.as_str(),
            Self::Prefix(prefix) => key <= prefix.as_str() || key.starts_with(prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::bucket::Attributes;
    use super::*;

    /// Lists everything in pages, and returns the entries and the number of pages.
    fn all(
        bucket: &Bucket,
        prefix: &str,
        delimiter: Option<&str>,
        limit: usize,
    ) -> (Vec<String>, usize) {
        let (mut entries, mut n_pages) = (Vec::new(), 0);
        let mut after = Position::Start;
        loop {
            let query = Query {
                prefix,
                delimiter,
                after,
                limit: Some(limit),
            };
            let page = bucket.list(&query);
            n_pages += 1;
            let objects = page.objects.iter().map(|(key, _)| (*key).clone());
            let mut both: Vec<_> = objects
                .chain(page.prefixes.iter().map(|p| (*p).into()))
                .collect();
            assert!(both.len() <= limit);
            both.sort();
            entries.extend(both);
            let Some(next) = page.next else {
                return (entries, n_pages);
            };
            after = Position::from_token(&next.to_token()).unwrap();
            assert_eq!(after, next);
        }
    }

    #[test]
    fn pages_of_any_size_have_the_same_entries() {
        let keys = [
            "a", "a/", "a/1", "a/b/1", "a/b/2", "a/c/3", "a0", "b/1", "b:/2", "é/1",
        ];
        let mut bucket = Bucket::default();
        for key in keys {
            let object = Object::new(Bytes::new(), Attributes::default());
            bucket.objects.insert(key.into(), object);
        }
        let cases: [(&str, Option<&str>, &[&str]); 6] = [
            ("", None, &keys),
            ("", Some("/"), &["a", "a/", "a0", "b/", "b:/", "é/"]),
            ("a/", Some("/"), &["a/", "a/1", "a/b/", "a/c/"]),
            ("a/b/", None, &["a/b/1", "a/b/2"]),
            ("a", Some("/b/"), &["a", "a/", "a/1", "a/b/", "a/c/3", "a0"]),
            ("z", None, &[]),
        ];
        for (prefix, delimiter, expected) in cases {
            for limit in 1..=11 {
                let (entries, n_pages) = all(&bucket, prefix, delimiter, limit);
                assert_eq!(entries, expected, "{prefix}, {delimiter:?}, {limit}");
                assert_eq!(n_pages, expected.len().div_ceil(limit).max(1));
            }
        }
    }

    #[test]
    fn a_beginning_inside_a_prefix_folds_the_rest() {
        let mut bucket = Bucket::default();
        for key in ["a/1", "a/2", "b"] {
            let object = Object::new(Bytes::new(), Attributes::default());
            bucket.objects.insert(key.into(), object);
        }
        let page = bucket.list(&Query {
            prefix: "",
            delimiter: Some("/"),
            after: Position::Key("a/1".into()),
            limit: None,
        });
        assert_eq!(page.prefixes, ["a/"]);
        assert_eq!(page.objects.len(), 1);
    }
}
