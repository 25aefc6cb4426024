//! Subjects that messages are published under: a template, and names from elsewhere that stay within their token.
//!
//! A name in a subject keeps ASCII letters, digits, `-` and `_`. All other bytes are written as `%` and two digits, as in
//! URLs: a name has no dot, which would begin a token, and no wildcard.

use std::fmt;
use std::str::FromStr;

use crawler_model::crawl::ItemRecord;

use crate::digest;

/// Largest number of bytes of a name in a subject. A longer one is cut, and ends with a digest of all of it.
const NAME_MAX: usize = 96;
/// Number of hexadecimal digits of such a digest.
const DIGEST_DIGITS: usize = 16;
/// Largest number of bytes of a subject. Servers take 4 KiB with all that stands in its line.
const SUBJECT_MAX: usize = 1_000;

/// Template of subjects, such as `crawler.{resource}.{kind}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectTemplate {
    text: String,
    /// Pieces of each token.
    tokens: Vec<Vec<Piece>>,
}

/// Piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Resource,
    Kind,
    Run,
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
        let tokens = self.tokens.iter().map(|token| {
            let pieces = token.iter().map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Resource => encoded(resource),
                Piece::Kind => encoded(&record.schema),
                Piece::Run => record.run.to_string(),
            });
            pieces.collect::<String>()
        });
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
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, behind) = match rest.strip_prefix('{') {
            Some(inner) => {
                let closed = inner.split_once('}');
                let (name, behind) = closed.ok_or("a brace is not closed")?;
                (named(name)?, behind)
            }
            None => {
                let (plain, behind) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
                if let Some(c) = plain.chars().find(|c| !is_plain(*c)) {
                    return Err(format!(
                        "it has the character {c:?}; there are letters, digits, -, _ and ."
                    ));
                }
                (Piece::Text(plain.to_owned()), behind)
            }
        };
        pieces.push(piece);
        rest = behind;
    }
    Ok(pieces)
}

fn named(name: &str) -> Result<Piece, String> {
    match name {
        "resource" => Ok(Piece::Resource),
        "kind" => Ok(Piece::Kind),
        "run" => Ok(Piece::Run),
        _ => Err(format!(
            "{{{name}}} stands for nothing; there are {{resource}}, {{kind}} and {{run}}"
        )),
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

/// Returns the largest number of bytes that these pieces give.
fn max_bytes(pieces: &[Piece]) -> usize {
    let lengths = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.len(),
        Piece::Resource | Piece::Kind => NAME_MAX,
        Piece::Run => u64::MAX.to_string().len(),
    });
    lengths.sum()
}

/// Returns a name as a part of a token.
fn encoded(name: &str) -> String {
    if name.is_empty() {
        // A token has to have a character, and no other name gives this one.
        return "~".to_owned();
    }
    let mut token = String::new();
    // Length of the beginning that stays if the name is too long; it ends with a whole character of the token.
    let mut n_kept = 0;
    for byte in name.bytes() {
        if token.len() <= NAME_MAX - 1 - DIGEST_DIGITS {
            n_kept = token.len();
        }
        match is_plain(char::from(byte)) {
            true => token.push(char::from(byte)),
            false => token.push_str(&format!("%{byte:02X}")),
        }
    }
    if token.len() > NAME_MAX {
        token.truncate(n_kept);
        token.push('~');
        token.push_str(&digest([name])[..DIGEST_DIGITS]);
    }
    token
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
        let long = "x".repeat(NAME_MAX);
        assert_eq!(encoded(&long), long);
        let [one, other] = ["y", "z"].map(|end| encoded(&format!("{}{end}", "é".repeat(90))));
        assert!(one.len() <= NAME_MAX && other.len() <= NAME_MAX);
        assert_ne!(one, other);
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
