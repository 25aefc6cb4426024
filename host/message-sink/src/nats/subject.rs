//! Subjects that messages are published under: a template, and names from elsewhere that stay within their token.
//!
//! A name in a subject keeps ASCII letters, digits, `-` and `_`. All other bytes are written as `%` and two digits, as in
//! URLs: a name has no dot, which would begin a token, and no wildcard.

use std::fmt;
use std::str::FromStr;

use crawler_model::crawl::ItemRecord;
use crawler_sink::template::{Piece, Placeholder, Syntax, encoded, filled, max_bytes};

/// Largest number of bytes of a subject. Servers take 4 KiB with all that stands in its line.
const SUBJECT_MAX: usize = 1_000;

/// Syntax between two dots.
const SYNTAX: Syntax = Syntax {
    placeholders: &[Placeholder::Resource, Placeholder::Kind, Placeholder::Run],
    plain: &['-', '_'],
    plain_words: "-, _ and .",
};

/// Template of subjects, such as `crawler.{resource}.{kind}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectTemplate {
    text: String,
    /// Pieces of each token.
    tokens: Vec<Vec<Piece>>,
}

/// Fault of a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{template:?} is no template of subjects: {why}")]
pub struct SubjectError {
    template: String,
    why: String,
}

impl SubjectTemplate {
    /// Returns the subject of an item.
    pub(crate) fn subject(&self, resource: &str, record: &ItemRecord) -> String {
        let tokens = self.tokens.iter();
        let tokens = tokens.map(|pieces| filled(pieces, resource, record, name_in_token));
        tokens.collect::<Vec<String>>().join(".")
    }

    /// Returns a subject with wildcards that matches those of all items.
    pub(crate) fn pattern(&self) -> String {
        let tokens = self.tokens.iter().map(|token| match &token[..] {
            [Piece::Text(text)] => text.as_str(),
            _ => "*",
        });
        tokens.collect::<Vec<&str>>().join(".")
    }
}

impl fmt::Display for SubjectTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for SubjectTemplate {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, SubjectError> {
        let refused = |why: String| SubjectError {
            template: text.to_owned(),
            why,
        };
        if text.starts_with('_') {
            let why = "subjects that begin with _ are the server's own";
            return Err(refused(why.to_owned()));
        }
        let tokens = text.split('.').map(token);
        let tokens: Vec<Vec<Piece>> = tokens.collect::<Result<_, String>>().map_err(refused)?;
        let n_bytes = tokens.iter().map(|token| max_bytes(token) + 1);
        if n_bytes.sum::<usize>() > SUBJECT_MAX {
            let why = format!("its subjects may have more than {SUBJECT_MAX} bytes");
            return Err(refused(why));
        }
        Ok(Self {
            text: text.to_owned(),
            tokens,
        })
    }
}

/// Parses what is between two dots.
fn token(text: &str) -> Result<Vec<Piece>, String> {
    if text.is_empty() {
        return Err("a name between dots is empty".to_owned());
    }
    SYNTAX.parse(text)
}

/// Returns a name as a part of a token.
fn name_in_token(name: &str) -> String {
    if name.is_empty() {
        // A token has to have a character, and no other name gives this one.
        return "~".to_owned();
    }
    encoded(name, |_, byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::record;

    fn subject(template: &str, resource: &str, kind: &str) -> String {
        let template: SubjectTemplate = template.parse().unwrap();
        let record = ItemRecord {
            schema: kind.to_owned(),
            ..record(1, "{}")
        };
        template.subject(resource, &record)
    }

    #[test]
    fn names_stand_in_their_tokens() {
        let found = subject("crawler.{resource}.{kind}", "books", "book");
        assert_eq!(found, "crawler.books.book");
        let found = subject("all-{kind}.run{run}", "books", "book");
        assert_eq!(found, "all-book.run1");
    }

    #[test]
    fn no_name_adds_a_token_or_a_wildcard() {
        for (name, token) in [
            ("team/books", "team%2Fbooks"),
            ("a.b", "a%2Eb"),
            ("*", "%2A"),
            (">", "%3E"),
            ("a b\r\n", "a%20b%0D%0A"),
            ("é", "%C3%A9"),
            ("", "~"),
        ] {
            assert_eq!(subject("{resource}", name, "book"), token, "{name:?}");
        }
    }

    #[test]
    fn a_pattern_matches_all_subjects() {
        for (template, pattern) in [
            ("crawler.{resource}.{kind}", "crawler.*.*"),
            ("items", "items"),
            ("a.x-{kind}.b", "a.*.b"),
        ] {
            let template: SubjectTemplate = template.parse().unwrap();
            assert_eq!(template.pattern(), pattern);
        }
    }

    #[test]
    fn a_template_that_makes_no_subject_is_refused() {
        let too_long = format!("{}.a", "a".repeat(SUBJECT_MAX));
        for (template, why) in [
            ("", "a name between dots is empty"),
            ("a..b", "a name between dots is empty"),
            (
                "_INBOX.a",
                "subjects that begin with _ are the server's own",
            ),
            (
                "$JS.API",
                "it has the character '$'; there are letters, digits, -, _ and .",
            ),
            (
                "a.*",
                "it has the character '*'; there are letters, digits, -, _ and .",
            ),
            ("{kind", "a brace is not closed"),
            (
                "{date}",
                "{date} stands for nothing; there are {resource}, {kind} and {run}",
            ),
            (
                too_long.as_str(),
                "its subjects may have more than 1000 bytes",
            ),
        ] {
            let error = template.parse::<SubjectTemplate>().unwrap_err();
            let expected = format!("{template:?} is no template of subjects: {why}");
            assert_eq!(error.to_string(), expected);
        }
    }
}
