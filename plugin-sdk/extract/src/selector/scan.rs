//! Reads the text of a selector once, from left to right.
//!
//! It is stricter than CSS where the parser behind it is not safe or not right, and leaves to that parser
//! what is only a mistake: the form of an attribute test, of `2n+1`, of a name.

use super::{Alternative, SelectorFault};

/// The alternatives of a selector. At most `most_bytes` of text are looked at, and `nesting` bounds the recursion.
pub(crate) fn read(
    text: &str,
    most_bytes: usize,
    nesting: usize,
) -> Result<Vec<Alternative>, SelectorFault> {
    if text.len() > most_bytes {
        return Err(SelectorFault::TooLong {
            n: text.len(),
            limit: most_bytes,
        });
    }
    let mut scan = Scan {
        text,
        at: 0,
        nesting,
    };
    let mut alternatives = Vec::new();
    loop {
        scan.skip_space();
        let is_child = scan.eat(b'>');
        scan.skip_space();
        let start = scan.at;
        let (n_steps, end) = scan.steps()?;
        alternatives.push(Alternative {
            text: text[start..end].to_owned(),
            is_child,
            n_steps,
        });
        if !scan.eat(b',') {
            return Ok(alternatives);
        }
    }
}

struct Scan<'a> {
    text: &'a str,
    /// Always between two characters.
    at: usize,
    nesting: usize,
}

impl Scan<'_> {
    /// Compound selectors and combinators up to a comma or the end. How many compounds there were, and where
    /// the last of them ended: what follows may look like white space, but `a\ ` ends with an escape.
    fn steps(&mut self) -> Result<(usize, usize), SelectorFault> {
        let mut n_steps = 0;
        loop {
            if self.conditions(0)? == 0 {
                return Err(match self.peek() {
                    None | Some(b',') if n_steps == 0 => SelectorFault::Empty,
                    None | Some(b',') => SelectorFault::Dangling,
                    Some(_) => self.refused(),
                });
            }
            n_steps += 1;
            let end = self.at;
            // `a b` has its combinator in the space, `a > b` has not.
            let is_apart = self.skip_space();
            match self.peek() {
                None | Some(b',') => return Ok((n_steps, end)),
                Some(b'>') => {
                    self.at += 1;
                    self.skip_space();
                }
                Some(_) if is_apart && self.begins_condition() => {}
                Some(_) => return Err(self.refused()),
            }
        }
    }

    /// One compound selector: how many conditions it has, 0 if none begins here. `depth` is the number of
    /// `:not(` around it.
    fn conditions(&mut self, depth: usize) -> Result<usize, SelectorFault> {
        let mut n = 0;
        while self.begins_condition() {
            match self.peek() {
                Some(b'*') => self.at += 1,
                Some(sign @ (b'.' | b'#')) => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'0'..=b'9') => return Err(SelectorFault::Digit),
                        Some(_) if self.begins_name() => self.name()?,
                        Some(_) => return Err(self.refused()),
                        None if sign == b'.' => {
                            return Err(SelectorFault::Syntax("there is no class name after `.`"));
                        }
                        None => return Err(SelectorFault::Syntax("there is no id after `#`")),
                    }
                }
                Some(b'[') => self.attribute()?,
                Some(b':') => self.pseudo(depth)?,
                _ => self.name()?,
            }
            n += 1;
        }
        Ok(n)
    }

    /// `:name` or `:name(…)`.
    fn pseudo(&mut self, depth: usize) -> Result<(), SelectorFault> {
        let start = self.at;
        self.at += 1;
        let is_element = self.eat(b':');
        let name_start = self.at;
        self.name()?;
        let name = self.text[name_start..self.at].to_ascii_lowercase();
        let has_arguments = self.peek() == Some(b'(');
        if name.is_empty() {
            return Err(match self.peek() {
                None => SelectorFault::Syntax("there is no name after `:`"),
                Some(_) => self.refused(),
            });
        }
        if is_element {
            return Err(SelectorFault::PseudoElement(
                self.text[start..self.at].to_owned(),
            ));
        }
        match (name.as_str(), has_arguments) {
            ("first-child" | "first-of-type", false) => Ok(()),
            ("not", true) => self.negation(depth + 1),
            ("nth-child" | "nth-of-type", true) => self.formula(&name),
            (_, true) => Err(SelectorFault::PseudoClass(format!(":{name}()"))),
            (_, false) => Err(SelectorFault::PseudoClass(format!(":{name}"))),
        }
    }

    /// What is between the parentheses of `:not()`. The matcher takes all conditions in there as one list, so
    /// that only a list of single conditions means what CSS says, and only where it is negated.
    fn negation(&mut self, depth: usize) -> Result<(), SelectorFault> {
        if depth > self.nesting {
            return Err(SelectorFault::TooDeep {
                limit: self.nesting,
            });
        }
        self.at += 1;
        loop {
            self.skip_space();
            let n = self.conditions(depth)?;
            self.skip_space();
            match self.peek() {
                None => return Err(SelectorFault::Unclosed('(')),
                Some(b')' | b',') if n == 0 => return Err(SelectorFault::Empty),
                Some(b')' | b',') if n > 1 => return Err(SelectorFault::CompoundInNot),
                Some(b')') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b',') if depth.is_multiple_of(2) => return Err(SelectorFault::ListInNot),
                Some(b',') => self.at += 1,
                Some(b'>' | b'+' | b'~') => return Err(SelectorFault::CombinatorInNot),
                Some(_) if n > 0 && self.begins_condition() => {
                    return Err(SelectorFault::CombinatorInNot);
                }
                Some(_) => return Err(self.refused()),
            }
        }
    }

    /// What is between the parentheses of `:nth-child()`: `2n+1`, `odd`.
    fn formula(&mut self, name: &str) -> Result<(), SelectorFault> {
        self.at += 1;
        let start = self.at;
        let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-') || is_space(b);
        while self.peek().is_some_and(is_part) {
            self.at += 1;
        }
        let formula = &self.text[start..self.at];
        if formula
            .split_ascii_whitespace()
            .any(|word| word.eq_ignore_ascii_case("of"))
        {
            return Err(SelectorFault::Of(format!(":{name}()")));
        }
        match self.peek() {
            None => Err(SelectorFault::Unclosed('(')),
            Some(b')') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(self.refused()),
        }
    }

    /// `[name='value']`.
    fn attribute(&mut self) -> Result<(), SelectorFault> {
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b']') {
            return Err(SelectorFault::Syntax(
                "there is no attribute name after `[`",
            ));
        }
        loop {
            match self.peek() {
                None => return Err(SelectorFault::Unclosed('[')),
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(quote @ (b'"' | b'\'')) => self.string(quote)?,
                Some(b'\\') => self.escape()?,
                Some(b'|') if self.peek_second() != Some(b'=') => {
                    return Err(SelectorFault::Namespace);
                }
                Some(b'[' | b'(' | b'{' | b'/') => return Err(self.refused()),
                Some(byte) if is_control(byte) => return Err(self.refused()),
                Some(_) => self.skip_character(),
            }
        }
    }

    fn string(&mut self, quote: u8) -> Result<(), SelectorFault> {
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(SelectorFault::Unclosed(char::from(quote))),
                Some(b'\\') => self.escape()?,
                // A line break ends a string in CSS, and all after it would be read differently.
                Some(byte) if is_control(byte) || is_break(byte) => return Err(self.refused()),
                Some(byte) => {
                    self.skip_character();
                    if byte == quote {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Letters, digits, `-`, `_`, escapes; none is none.
    fn name(&mut self) -> Result<(), SelectorFault> {
        loop {
            match self.peek() {
                Some(b'\\') => self.escape()?,
                Some(b'0'..=b'9') => self.at += 1,
                Some(_) if self.begins_name() => self.skip_character(),
                _ => return Ok(()),
            }
        }
    }

    /// A backslash and what it stands before: up to six hexadecimal digits and one white space, or any character.
    fn escape(&mut self) -> Result<(), SelectorFault> {
        self.at += 1;
        match self.peek() {
            None => Err(SelectorFault::Unclosed('\\')),
            Some(byte) if is_control(byte) || is_break(byte) => Err(self.refused()),
            Some(byte) if byte.is_ascii_hexdigit() => {
                let end = self.at + 6;
                while self.at < end && self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                    self.at += 1;
                }
                let is_return = self.eat(b'\r');
                if !(self.eat(b'\n') || is_return) && self.peek().is_some_and(is_space) {
                    self.at += 1;
                }
                Ok(())
            }
            Some(_) => {
                self.skip_character();
                Ok(())
            }
        }
    }

    /// For what is here and has no place here.
    fn refused(&self) -> SelectorFault {
        match (self.peek(), self.peek_second()) {
            (Some(b'+'), _) => SelectorFault::Combinator("+"),
            (Some(b'~'), _) => SelectorFault::Combinator("~"),
            (Some(b'|'), Some(b'|')) => SelectorFault::Combinator("||"),
            (Some(b'|'), _) => SelectorFault::Namespace,
            (Some(b'/'), Some(b'*')) => SelectorFault::Comment,
            (Some(b'>'), _) => SelectorFault::Dangling,
            _ => SelectorFault::Unexpected {
                character: self.text[self.at..].chars().next().unwrap_or(' '),
                at: self.at,
            },
        }
    }

    fn begins_condition(&self) -> bool {
        matches!(self.peek(), Some(b'*' | b'.' | b'#' | b'[' | b':' | b'\\')) || self.begins_name()
    }

    fn begins_name(&self) -> bool {
        let is_letter =
            |b: u8| b.is_ascii_alphabetic() || matches!(b, b'-' | b'_' | b'\\') || !b.is_ascii();
        self.peek().is_some_and(is_letter)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn peek_second(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at + 1).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_here = self.peek() == Some(byte);
        self.at += usize::from(is_here);
        is_here
    }

    fn skip_character(&mut self) {
        self.at = self.text.ceil_char_boundary(self.at + 1);
    }

    /// Whether there was any.
    fn skip_space(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
        self.at > start
    }
}

/// White space as CSS has it.
fn is_space(byte: u8) -> bool {
    byte == b' ' || byte == b'\t' || is_break(byte)
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b'\x0c')
}

/// What is below the space and no white space. CSS turns some of it into others before it reads.
fn is_control(byte: u8) -> bool {
    byte < b' ' && !is_space(byte)
}
