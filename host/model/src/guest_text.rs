//! Text that a guest can influence: its log lines, its reasons for giving up, its panic messages
//! and the names of its functions.
//!
//! A guest chooses such text, and what a host function makes of it may be far longer than what the
//! guest wrote: a symbol of 4 KiB can demangle to gigabytes. So the host keeps it in this type
//! only, which is bounded and harmless however it was made.

use std::fmt::{self, Write};
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// Text of at most [`GuestText::MAX`] bytes in which nothing moves a cursor, rings a bell or turns text around:
/// such characters are escaped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct GuestText(Box<str>);

impl GuestText {
    /// Largest number of bytes of one text; the rest of a longer one is dropped.
    pub const MAX: usize = 4 << 10;

    /// Keeps the start of what `text` shows. Formatting is broken off at the bound, so that a
    /// value which would show as gigabytes takes neither the memory nor the time.
    pub fn of(text: impl fmt::Display) -> Self {
        Self::within(Self::MAX, text)
    }

    /// Keeps at most `max` bytes, which are no more than [`GuestText::MAX`].
    pub fn within(max: usize, text: impl fmt::Display) -> Self {
        let mut kept = Escaped {
            text: String::new(),
            max: max.min(Self::MAX),
        };
        // An error means that the bound is reached, or that a value cannot be shown any further.
        let _is_cut = write!(kept, "{text}");
        Self(kept.text.into_boxed_str())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Writer that takes text up to a bound and returns an error from there on.
struct Escaped {
    text: String,
    max: usize,
}

impl Write for Escaped {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        for c in more.chars() {
            let before = self.text.len();
            if steers(c) {
                write!(self.text, "{}", c.escape_default())?;
            } else {
                self.text.push(c);
            }
            if self.text.len() > self.max {
                self.text.truncate(before);
                return Err(fmt::Error);
            }
        }
        Ok(())
    }
}

/// Returns true for characters that a terminal or an editor acts on: controls, line separators, and marks that reorder
/// what follows them.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

impl fmt::Display for GuestText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Deref for GuestText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<&str> for GuestText {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl From<&str> for GuestText {
    fn from(text: &str) -> Self {
        Self::of(text)
    }
}

impl From<String> for GuestText {
    fn from(text: String) -> Self {
        Self::of(text)
    }
}

impl From<GuestText> for String {
    fn from(text: GuestText) -> Self {
        text.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_steer_a_terminal() {
        assert_eq!(
            GuestText::of("a\u{1b}[31m\r\nb\u{202e}").as_str(),
            "a\\u{1b}[31m\\r\\nb\\u{202e}"
        );
        assert_eq!(GuestText::of("größe 😀").as_str(), "größe 😀");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(
            GuestText::of("é".repeat(GuestText::MAX)).len(),
            GuestText::MAX
        );
        assert_eq!(GuestText::within(3, "éé").as_str(), "é");
        assert!(GuestText::of("\u{1}".repeat(GuestText::MAX)).len() <= GuestText::MAX);
        assert_eq!(
            GuestText::within(usize::MAX, "x".repeat(9_000)).len(),
            GuestText::MAX
        );
    }

    #[test]
    fn r01_formatting_is_broken_off_at_the_bound() {
        /// Writes as many bytes as are taken, and counts them.
        struct Endless<'a>(&'a std::cell::Cell<usize>);

        impl fmt::Display for Endless<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                while self.0.get() < 1 << 20 {
                    f.write_str("S1_S1_S1_")?;
                    self.0.set(self.0.get() + 9);
                }
                Ok(())
            }
        }

        let n_shown = std::cell::Cell::new(0);
        let text = GuestText::of(Endless(&n_shown));
        assert_eq!(text.len(), GuestText::MAX);
        assert!(n_shown.get() <= GuestText::MAX, "{}", n_shown.get());
    }

    #[test]
    fn a_text_that_is_read_back_is_bounded_again() {
        let long = serde_json::to_string(&"x".repeat(9_000)).unwrap();
        let read: GuestText = serde_json::from_str(&long).unwrap();
        assert_eq!(read.len(), GuestText::MAX);
    }
}
