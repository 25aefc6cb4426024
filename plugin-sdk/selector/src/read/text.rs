//! Reader of the text of a selector: characters, names, strings and escapes.

use super::Reader;
use crate::SelectorFault;

impl Reader<'_> {
    pub(super) fn string(&mut self, quote: u8) -> Result<String, SelectorFault> {
        self.at += 1;
        let mut value = String::new();
        loop {
            match self.peek() {
                None => return Err(SelectorFault::Unclosed(char::from(quote))),
                Some(b'\\') => value.push(self.escape()?),
                // A line break ends a string in CSS, and the rest would be read differently.
                Some(byte) if is_control(byte) || is_break(byte) => return Err(self.refused()),
                Some(byte) if byte == quote => {
                    self.at += 1;
                    return Ok(value);
                }
                Some(_) => value.push_str(self.character()),
            }
        }
    }

    /// Reads letters, digits, `-`, `_` and escapes.
    pub(super) fn name(&mut self) -> Result<String, SelectorFault> {
        let mut name = String::new();
        loop {
            match self.peek() {
                Some(b'\\') => name.push(self.escape()?),
                Some(b'0'..=b'9' | b'-') => name.push_str(self.character()),
                Some(_) if self.begins_name() => name.push_str(self.character()),
                _ => return Ok(name),
            }
        }
    }

    /// Reads an escape: a backslash, then up to six hexadecimal digits and one white space, or any character.
    fn escape(&mut self) -> Result<char, SelectorFault> {
        self.at += 1;
        match self.peek() {
            None => Err(SelectorFault::Unclosed('\\')),
            Some(byte) if is_control(byte) || is_break(byte) => Err(self.refused()),
            Some(byte) if byte.is_ascii_hexdigit() => {
                let start = self.at;
                while self.at < start + 6 && self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                    self.at += 1;
                }
                let code = u32::from_str_radix(&self.text[start..self.at], 16).unwrap_or(0);
                let is_return = self.eat(b'\r');
                if !(self.eat(b'\n') || is_return) && self.peek().is_some_and(is_space) {
                    self.at += 1;
                }
                let character = char::from_u32(code).filter(|&c| c != '\0');
                Ok(character.unwrap_or(char::REPLACEMENT_CHARACTER))
            }
            Some(_) => Ok(self.character().chars().next().unwrap_or_default()),
        }
    }

    /// Returns the fault of text that is not allowed at this place.
    pub(super) fn refused(&self) -> SelectorFault {
        match (self.peek(), self.peek_second()) {
            (Some(b'|'), Some(b'|')) => SelectorFault::Combinator("||"),
            (Some(b'|'), _) => SelectorFault::Namespace,
            (Some(b'/'), Some(b'*')) => SelectorFault::Comment,
            (Some(b'/'), _) if self.text[..self.at].trim().is_empty() => SelectorFault::XPath,
            _ => SelectorFault::Unexpected {
                character: self.text[self.at..].chars().next().unwrap_or(' '),
                at: self.at,
            },
        }
    }

    pub(super) fn begins_compound(&self) -> bool {
        matches!(self.peek(), Some(b'*' | b'.' | b'#' | b'[' | b':')) || self.begins_name()
    }

    pub(super) fn begins_name(&self) -> bool {
        let is_letter =
            |b: u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b'\\') || !b.is_ascii();
        match self.peek() {
            // A minus alone, or before a digit, begins no name.
            Some(b'-') => self
                .peek_second()
                .is_some_and(|b| b == b'-' || is_letter(b)),
            byte => byte.is_some_and(is_letter),
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn peek_second(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at + 1).copied()
    }

    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let is_here = self.peek() == Some(byte);
        self.at += usize::from(is_here);
        is_here
    }

    /// Reads the character at this place.
    fn character(&mut self) -> &str {
        let start = self.at;
        self.at = self.text.ceil_char_boundary(self.at + 1);
        &self.text[start..self.at]
    }

    /// Skips white space. Returns true if there was any.
    pub(super) fn skip_space(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
        self.at > start
    }
}

/// Returns true for white space of CSS, which is the same as that of HTML.
pub(super) fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace()
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b'\x0c')
}

/// Returns true for bytes below the space that are no white space. CSS replaces some of them before it reads.
fn is_control(byte: u8) -> bool {
    byte < b' ' && !is_space(byte)
}
