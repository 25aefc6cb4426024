//! Reader of selectors, as CSS defines them, in one pass from left to right.

mod any_case;
mod formula;
mod text;

use crate::{Alternative, Case, Combinator, Compound, Condition, SelectorFault, Step};
use crate::{ValueMatch, ValueTest};
use any_case::ANY_CASE;
use text::is_space;

/// Reads the alternatives of a selector. At most `most_bytes` of text are read, and `nesting` bounds the
/// recursion.
///
/// ```
/// use crawler_selector::{BYTES_MAX, NESTING_MAX, read};
///
/// let alternatives = read("ul > li, ol > li", BYTES_MAX, NESTING_MAX)?;
/// assert_eq!(alternatives.len(), 2);
/// let fault = read("h1 +", BYTES_MAX, NESTING_MAX).unwrap_err();
/// assert!(fault.to_string().starts_with("there is nothing after a `+`"));
/// # Ok::<(), crawler_selector::SelectorFault>(())
/// ```
pub fn read(
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
    let mut reader = Reader {
        text,
        at: 0,
        nesting,
    };
    let mut alternatives = Vec::new();
    loop {
        reader.skip_space();
        let is_child = reader.eat(b'>');
        reader.skip_space();
        alternatives.push(Alternative {
            is_child,
            steps: reader.steps()?,
        });
        if !reader.eat(b',') {
            return Ok(alternatives);
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    /// Position in the text, always between two characters.
    at: usize,
    nesting: usize,
}

impl Reader<'_> {
    /// Reads compound selectors and combinators up to a comma or the end.
    fn steps(&mut self) -> Result<Vec<Step>, SelectorFault> {
        let mut steps = Vec::new();
        let mut combinator = Combinator::Descendant;
        let mut sign = ">";
        loop {
            let Some(compound) = self.compound(0)? else {
                return Err(match self.peek() {
                    None | Some(b',') if steps.is_empty() => SelectorFault::Empty,
                    None | Some(b',' | b'>') => SelectorFault::Dangling(sign),
                    Some(_) => self.refused(),
                });
            };
            steps.push(Step {
                combinator,
                compound,
            });
            // `a b` has its combinator in the space, `a > b` has not.
            let is_apart = self.skip_space();
            (combinator, sign) = match self.peek() {
                None | Some(b',') => return Ok(steps),
                Some(b'>') => (Combinator::Child, ">"),
                Some(b'+') => (Combinator::Next, "+"),
                Some(b'~') => (Combinator::Later, "~"),
                Some(_) if is_apart && self.begins_compound() => {
                    combinator = Combinator::Descendant;
                    continue;
                }
                Some(_) => return Err(self.refused()),
            };
            self.at += 1;
            self.skip_space();
        }
    }

    /// Reads one compound selector, if one begins here. `depth` is the number of parentheses around it.
    fn compound(&mut self, depth: usize) -> Result<Option<Compound>, SelectorFault> {
        let mut compound = Compound::default();
        let start = self.at;
        while self.begins_compound() {
            match self.peek() {
                Some(b'*') if self.at == start => self.at += 1,
                Some(b'.') => {
                    self.at += 1;
                    let value = self.sign_name("there is no class name after `.`")?;
                    compound.attribute("class", ValueMatch::Word, value);
                }
                Some(b'#') => {
                    self.at += 1;
                    let value = self.sign_name("there is no id after `#`")?;
                    compound.attribute("id", ValueMatch::Equal, value);
                }
                Some(b'[') => compound.conditions.push(self.attribute()?),
                Some(b':') => compound.conditions.push(self.pseudo(depth)?),
                _ if self.at == start => compound.name = Some(self.name()?.to_ascii_lowercase()),
                _ => {
                    return Err(SelectorFault::Syntax(
                        "the name of an element, or `*`, stands before its conditions, as in a.b",
                    ));
                }
            }
        }
        Ok((self.at > start).then_some(compound))
    }

    /// Reads the name behind a `.` or a `#`.
    fn sign_name(&mut self, missing: &'static str) -> Result<String, SelectorFault> {
        match self.peek() {
            Some(b'0'..=b'9') => Err(SelectorFault::Digit),
            Some(_) if self.begins_name() => self.name(),
            Some(_) => Err(self.refused()),
            None => Err(SelectorFault::Syntax(missing)),
        }
    }

    /// Reads `:name` or `:name(…)`.
    fn pseudo(&mut self, depth: usize) -> Result<Condition, SelectorFault> {
        let start = self.at;
        self.at += 1;
        let is_element = self.eat(b':');
        if !self.begins_name() {
            return Err(match self.peek() {
                None => SelectorFault::Syntax("there is no name after `:`"),
                Some(_) => self.refused(),
            });
        }
        let name = self.name()?.to_ascii_lowercase();
        let has_arguments = self.peek() == Some(b'(');
        if is_element {
            return Err(match name.as_str() {
                "attr" => SelectorFault::Attr,
                "text" => SelectorFault::Text,
                _ => SelectorFault::PseudoElement(self.text[start..self.at].to_owned()),
            });
        }
        let first = |of_type| Condition::Place {
            step: 0,
            offset: 1,
            of_type,
        };
        match (name.as_str(), has_arguments) {
            ("first-child", false) => Ok(first(false)),
            ("first-of-type", false) => Ok(first(true)),
            ("not", true) => Ok(Condition::Not(self.list(depth + 1)?)),
            ("is" | "where", true) => Ok(Condition::Is(self.list(depth + 1)?)),
            ("nth-child" | "nth-of-type", true) => self.place(&name),
            (_, true) => Err(SelectorFault::PseudoClass(format!(":{name}()"))),
            (_, false) => Err(SelectorFault::PseudoClass(format!(":{name}"))),
        }
    }

    /// Reads the parentheses of `:not()` and `:is()`: compound selectors.
    fn list(&mut self, depth: usize) -> Result<Vec<Compound>, SelectorFault> {
        if depth > self.nesting {
            return Err(SelectorFault::TooDeep {
                limit: self.nesting,
            });
        }
        self.at += 1;
        let mut list = Vec::new();
        loop {
            self.skip_space();
            let compound = self.compound(depth)?;
            self.skip_space();
            match (self.peek(), compound) {
                (None, _) => return Err(SelectorFault::Unclosed('(')),
                (Some(b')' | b','), None) => return Err(SelectorFault::Empty),
                (Some(b')'), Some(compound)) => {
                    self.at += 1;
                    list.push(compound);
                    return Ok(list);
                }
                (Some(b','), Some(compound)) => {
                    self.at += 1;
                    list.push(compound);
                }
                (Some(b'>' | b'+' | b'~'), _) => return Err(SelectorFault::CombinatorInside),
                (Some(_), Some(_)) if self.begins_compound() => {
                    return Err(SelectorFault::CombinatorInside);
                }
                (Some(_), _) => return Err(self.refused()),
            }
        }
    }

    /// Reads the parentheses of `:nth-child()`: `2n+1`, `odd`.
    fn place(&mut self, name: &str) -> Result<Condition, SelectorFault> {
        self.at += 1;
        let start = self.at;
        let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-') || is_space(b);
        while self.peek().is_some_and(is_part) {
            self.at += 1;
        }
        let formula = self.text[start..self.at].to_ascii_lowercase();
        if formula.split_ascii_whitespace().any(|word| word == "of") {
            return Err(SelectorFault::Of(format!(":{name}()")));
        }
        match self.peek() {
            None => return Err(SelectorFault::Unclosed('(')),
            Some(b')') => self.at += 1,
            Some(_) => return Err(self.refused()),
        }
        let (step, offset) = formula::read(&formula).ok_or(
            SelectorFault::Syntax(
                "what is between the parentheses is not understood; write a number, odd, even, or as in 2n+1",
            ),
        )?;
        Ok(Condition::Place {
            step,
            offset,
            of_type: name == "nth-of-type",
        })
    }

    /// Reads `[name='value']`.
    fn attribute(&mut self) -> Result<Condition, SelectorFault> {
        self.at += 1;
        self.skip_space();
        let name = match self.peek() {
            None => return Err(SelectorFault::Unclosed('[')),
            Some(b'|') => return Err(SelectorFault::Namespace),
            Some(b'0'..=b'9' | b']' | b'=') => {
                return Err(SelectorFault::Syntax(
                    "there is no attribute name after `[`",
                ));
            }
            Some(_) if self.begins_name() => self.name()?.to_ascii_lowercase(),
            Some(_) => return Err(self.refused()),
        };
        self.skip_space();
        let how = match (self.peek(), self.peek_second()) {
            (None, _) => return Err(SelectorFault::Unclosed('[')),
            (Some(b']'), _) => {
                self.at += 1;
                let value = ValueTest::Any;
                return Ok(Condition::Attribute { name, value });
            }
            (Some(b'='), _) => ValueMatch::Equal,
            (Some(b'~'), Some(b'=')) => ValueMatch::Word,
            (Some(b'|'), Some(b'=')) => ValueMatch::Language,
            (Some(b'^'), Some(b'=')) => ValueMatch::Start,
            (Some(b'$'), Some(b'=')) => ValueMatch::End,
            (Some(b'*'), Some(b'=')) => ValueMatch::Part,
            (Some(b'|'), _) => return Err(SelectorFault::Namespace),
            (Some(_), _) => return Err(self.refused()),
        };
        self.at += if how == ValueMatch::Equal { 1 } else { 2 };
        self.skip_space();
        let value = match self.peek() {
            None => return Err(SelectorFault::Unclosed('[')),
            Some(quote @ (b'"' | b'\'')) => self.string(quote)?,
            Some(_) if self.begins_name() => self.name()?,
            Some(_) => {
                return Err(SelectorFault::Syntax(
                    "what is between `[` and `]` is not understood; put the value in quotes",
                ));
            }
        };
        self.skip_space();
        let case = match self.peek() {
            Some(b'i' | b'I') => Some(Case::Ignored),
            Some(b's' | b'S') => Some(Case::Exact),
            _ => None,
        };
        self.at += usize::from(case.is_some());
        self.skip_space();
        match self.peek() {
            None => return Err(SelectorFault::Unclosed('[')),
            Some(b']') => self.at += 1,
            Some(_) => return Err(self.refused()),
        }
        let usual = if ANY_CASE.contains(&name.as_str()) {
            Case::IgnoredInHtml
        } else {
            Case::Exact
        };
        let value = ValueTest::Is(how, value, case.unwrap_or(usual));
        Ok(Condition::Attribute { name, value })
    }
}

impl Compound {
    fn attribute(&mut self, name: &str, how: ValueMatch, value: String) {
        self.conditions.push(Condition::Attribute {
            name: name.to_owned(),
            value: ValueTest::Is(how, value, Case::Exact),
        });
    }
}
