//! Templates of the places of items, such as `{resource}/{kind}/dt={date}`: what a sink writes to follows from the item.
//!
//! A placeholder stands for a name from elsewhere, which a sink encodes so that it stays within its part of the place.

use sha2::{Digest as _, Sha256};

use super::fields;
use crawler_model::crawl::ItemRecord;

/// Largest number of bytes of an encoded name. A longer one is cut, and ends with a digest of all of it.
pub const NAME_MAX: usize = 96;
/// Number of hexadecimal digits of such a digest.
const DIGEST_DIGITS: usize = 16;

/// Property of an item that a placeholder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// Name of the resource.
    Resource,
    /// Kind of the item.
    Kind,
    /// Day on which the page was fetched, in UTC.
    Date,
    /// Run of the resource.
    Run,
}

/// Piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text that stands for itself.
    Text(String),
    /// Placeholder.
    Of(Placeholder),
}

/// Syntax of the templates of a sink.
#[derive(Debug, Clone, Copy)]
pub struct Syntax {
    /// Placeholders that there are.
    pub placeholders: &'static [Placeholder],
    /// Characters that stand for themselves, beside ASCII letters and digits.
    pub plain: &'static [char],
    /// The same in words, for messages.
    pub plain_words: &'static str,
}

impl Placeholder {
    /// Returns the word between the braces.
    fn as_str(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Kind => "kind",
            Self::Date => "date",
            Self::Run => "run",
        }
    }

    /// Returns the largest number of bytes that it may stand for.
    fn max_bytes(self) -> usize {
        match self {
            Self::Resource | Self::Kind => NAME_MAX,
            Self::Date => "9999-12-31".len(),
            Self::Run => u64::MAX.to_string().len(),
        }
    }
}

impl Syntax {
    /// Parses a template, or a part of one between separators.
    ///
    /// # Errors
    ///
    /// The error is the rest of a sentence about the template.
    pub fn parse(&self, text: &str) -> Result<Vec<Piece>, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, behind) = match rest.strip_prefix('{') {
                Some(inner) => {
                    let closed = inner.split_once('}');
                    let (name, behind) = closed.ok_or("a brace is not closed")?;
                    (Piece::Of(self.named(name)?), behind)
                }
                None => {
                    let end = rest.find('{').unwrap_or(rest.len());
                    let (plain, behind) = rest.split_at(end);
                    if let Some(c) = plain.chars().find(|c| !self.is_plain(*c)) {
                        let plain = self.plain_words;
                        return Err(format!(
                            "it has the character {c:?}; there are letters, digits, {plain}"
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

    fn is_plain(&self, c: char) -> bool {
        c.is_ascii_alphanumeric() || self.plain.contains(&c)
    }

    fn named(&self, name: &str) -> Result<Placeholder, String> {
        let mut all = self.placeholders.iter();
        if let Some(placeholder) = all.find(|placeholder| placeholder.as_str() == name) {
            return Ok(*placeholder);
        }
        let all = self.placeholders.iter();
        let all: Vec<String> = all.map(|word| format!("{{{}}}", word.as_str())).collect();
        let (last, others) = all.split_last().expect("a syntax has placeholders");
        let others = others.join(", ");
        Err(format!(
            "{{{name}}} stands for nothing; there are {others} and {last}"
        ))
    }
}

/// Returns the largest number of bytes that pieces stand for.
pub fn max_bytes(pieces: &[Piece]) -> usize {
    let lengths = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.len(),
        Piece::Of(placeholder) => placeholder.max_bytes(),
    });
    lengths.sum()
}

/// Returns the text that pieces stand for, for an item of a resource. Names are written by `encode`.
pub fn filled(
    pieces: &[Piece],
    resource: &str,
    record: &ItemRecord,
    encode: impl Fn(&str) -> String,
) -> String {
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Of(Placeholder::Resource) => encode(resource),
        Piece::Of(Placeholder::Kind) => encode(&record.schema),
        Piece::Of(Placeholder::Date) => fields::time(record.fetched_at)[..10].to_owned(),
        Piece::Of(Placeholder::Run) => record.run.to_string(),
    });
    texts.collect()
}

/// Returns a name of which the bytes stay that `is_plain` is true for, by their place and value. All others are written
/// as `%` and two digits, as in URLs. A name that becomes too long is cut, and ends with `~`, which no other name has, and
/// a digest.
pub fn encoded(name: &str, is_plain: impl Fn(usize, u8) -> bool) -> String {
    let mut text = String::new();
    // Length of the beginning that stays if the name is too long; it ends with a whole character of the text.
    let mut n_kept = 0;
    for (place, byte) in name.bytes().enumerate() {
        if text.len() <= NAME_MAX - 1 - DIGEST_DIGITS {
            n_kept = text.len();
        }
        match is_plain(place, byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    if text.len() > NAME_MAX {
        let digest = hex::encode(Sha256::digest(name.as_bytes()));
        text.truncate(n_kept);
        text.push('~');
        text.push_str(&digest[..DIGEST_DIGITS]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNTAX: Syntax = Syntax {
        placeholders: &[Placeholder::Kind, Placeholder::Date, Placeholder::Run],
        plain: &['-'],
        plain_words: "and -",
    };

    #[test]
    fn what_is_no_template_is_told() {
        let pieces = SYNTAX.parse("a-{kind}").unwrap();
        let expected = [Piece::Text("a-".to_owned()), Piece::Of(Placeholder::Kind)];
        assert_eq!(pieces, expected);
        assert_eq!(max_bytes(&pieces), 2 + NAME_MAX);
        for (text, why) in [
            ("{kind", "a brace is not closed"),
            (
                "{resource}",
                "{resource} stands for nothing; there are {kind}, {date} and {run}",
            ),
            (
                "a.b",
                "it has the character '.'; there are letters, digits, and -",
            ),
        ] {
            assert_eq!(SYNTAX.parse(text), Err(why.to_owned()), "{text}");
        }
    }

    #[test]
    fn long_names_with_one_beginning_stay_apart() {
        let of = |name: &str| encoded(name, |_, byte| byte.is_ascii_alphanumeric());
        let long = "x".repeat(NAME_MAX);
        assert_eq!(of(&long), long);
        let [one, other] = ["y", "z"].map(|end| of(&format!("{}{end}", "é".repeat(90))));
        assert!(one.len() <= NAME_MAX && other.len() <= NAME_MAX);
        assert_ne!(one, other);
        // No byte is cut in the middle.
        let kept = one.split_once('~').unwrap().0;
        assert!(kept.len().is_multiple_of(3), "{kept}");
    }

    #[test]
    fn the_short_form_of_a_long_name_is_the_same_for_ever() {
        let of = |name: &str| encoded(name, |_, byte| byte.is_ascii_alphanumeric());
        // Folders and subjects have these names already: with others, items that come again would be there twice.
        for (name, expected) in [
            (
                "x".repeat(NAME_MAX + 1),
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx~19a8f07eeb7f3d0c",
            ),
            (
                format!("{}y", "é".repeat(90)),
                "%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9~d01cf1b4a069e549",
            ),
        ] {
            assert_eq!(of(&name), expected);
        }
    }
}
