//! Selectors as authors write them: they are read, bounded, and composed with those of their rows.
//!
//! The crawler matches pages by them, and the macros of the SDK refuse at their place those that it would refuse.
//!
//! One pass over a page knows the elements before an element and none of those that follow. Every condition on the
//! latter is refused here, with a message that says so and the way out.

mod fault;
mod read;

pub use fault::SelectorFault;
pub use read::read;

/// Largest length of a selector, in bytes, unless limits say otherwise.
pub const BYTES_MAX: usize = 512;
/// Largest depth to which parentheses nest in a selector, unless limits say otherwise.
pub const NESTING_MAX: usize = 8;

/// One part of a comma list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Alternative {
    /// True if it began with `>`: its first step is a child of the row.
    pub is_child: bool,
    /// Steps; the last is the selected element. Never empty.
    pub steps: Vec<Step>,
}

/// A compound selector, and the relation of its element to that of the step before.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Step {
    /// Combinator; it has no meaning in the first step.
    pub combinator: Combinator,
    /// Conditions on its element.
    pub compound: Compound,
}

/// Relation of the element of a step to that of the step before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combinator {
    /// ` `
    Descendant,
    /// `>`
    Child,
    /// `+`
    Next,
    /// `~`
    Later,
}

/// Conditions on one element.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Compound {
    /// Name in lower case. If `None`, any name matches.
    pub name: Option<String>,
    /// Conditions beside the name; all of them have to hold.
    pub conditions: Vec<Condition>,
}

/// Condition on an element, beside its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Condition {
    /// A condition on an attribute. Classes and ids are attributes, too.
    Attribute {
        /// Name in lower case.
        name: String,
        /// Condition on its value.
        value: ValueTest,
    },
    /// A condition on the place among siblings, counted from 1: `step` times some number, plus `offset`.
    Place {
        /// Distance between two places that match.
        step: i32,
        /// Place that matches if the number is 0.
        offset: i32,
        /// True if only siblings of the same name are counted.
        of_type: bool,
    },
    /// A list of selectors of which none may match.
    Not(Vec<Compound>),
    /// A list of selectors of which one has to match.
    Is(Vec<Compound>),
}

/// Condition on the value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ValueTest {
    /// The attribute is there, with any value.
    Any,
    /// The value compares with this text.
    Is(ValueMatch, String, Case),
}

/// Comparison of a value with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueMatch {
    /// `=`
    Equal,
    /// `~=`
    Word,
    /// `|=`
    Language,
    /// `^=`
    Start,
    /// `$=`
    End,
    /// `*=`
    Part,
}

/// Meaning of capitals in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Case {
    /// Capitals differ from small letters.
    Exact,
    /// Capitals equal small letters.
    Ignored,
    /// Case is ignored in HTML, and exact in svg and math.
    IgnoredInHtml,
}

impl Alternative {
    /// Number of conditions that an element may be checked against.
    pub fn n_conditions(&self) -> usize {
        self.steps.iter().map(|s| s.compound.n_conditions()).sum()
    }
}

impl Compound {
    fn n_conditions(&self) -> usize {
        let of = |condition: &Condition| match condition {
            Condition::Attribute { .. } | Condition::Place { .. } => 1,
            Condition::Not(list) | Condition::Is(list) => list.iter().map(Self::n_conditions).sum(),
        };
        let n: usize = self.conditions.iter().map(of).sum();
        (n + usize::from(self.name.is_some())).max(1)
    }
}

/// Puts the selector of the row before each alternative that began with `>`. Every pair is made, since `ul, ol`
/// with `> li` means `ul > li, ol > li`. Returns `None` if there would be more than `most`.
pub fn compose(row: &[Alternative], own: &[Alternative], most: usize) -> Option<Vec<Alternative>> {
    let n_children = own.iter().filter(|a| a.is_child).count();
    let n = n_children.saturating_mul(row.len()) + own.len() - n_children;
    if n > most {
        return None;
    }
    let mut all: Vec<Alternative> = Vec::with_capacity(n);
    for alternative in own {
        if !alternative.is_child {
            all.push(alternative.clone());
            continue;
        }
        all.extend(row.iter().map(|outer| {
            let mut steps = outer.steps.clone();
            steps.extend(alternative.steps.iter().cloned());
            steps[outer.steps.len()].combinator = Combinator::Child;
            Alternative {
                is_child: false,
                steps,
            }
        }));
    }
    Some(all)
}

#[cfg(test)]
mod tests;
