//! Rules of names: the characters of a name, and the segments of a name in a namespace.

use super::error::{IdError, NAME_MAX};

/// Refuses a text that is not a name of one segment.
pub(crate) fn check_name(what: &'static str, text: &str) -> Result<(), IdError> {
    check_length(what, text)?;
    match misplaced(text) {
        Some(found) => Err(IdError::Character {
            what,
            text: text.to_owned(),
            found,
        }),
        None => Ok(()),
    }
}

/// Refuses a text that is not a name of one or more segments, separated by slashes.
pub(super) fn check_segments(what: &'static str, text: &str) -> Result<(), IdError> {
    if !text.contains('/') {
        return check_name(what, text);
    }
    check_length(what, text)?;
    for segment in text.split('/') {
        if segment.is_empty() {
            return Err(IdError::EmptySegment {
                what,
                text: text.to_owned(),
            });
        }
        if let Some(found) = misplaced(segment) {
            return Err(IdError::Segment {
                what,
                text: text.to_owned(),
                found,
            });
        }
    }
    Ok(())
}

fn check_length(what: &'static str, text: &str) -> Result<(), IdError> {
    match text.len() {
        0 => Err(IdError::Empty { what }),
        1..=NAME_MAX => Ok(()),
        n_bytes => Err(IdError::TooLong { what, n_bytes }),
    }
}

/// Returns the first character that is not allowed at its place in a segment.
fn misplaced(segment: &str) -> Option<char> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let first = segment.chars().next()?;
    if !first.is_ascii_alphanumeric() {
        return Some(first);
    }
    segment.chars().find(|c| !is_allowed(*c))
}
