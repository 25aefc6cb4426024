//! Selectors as authors write them: read, bounded, composed with those of their rows, and made into what a page is
//! matched with.
//!
//! One pass over a page knows what came before an element and nothing of what follows. All that asks for the latter
//! is refused here, with a message that says so and the way out.

mod fault;
mod program;
mod read;

pub use fault::SelectorFault;
pub(crate) use program::{Before, Program, Question, Test};
pub(crate) use read::read;

/// One part of a comma list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Alternative {
    /// Whether it began with `>`: its first step is a child of the row.
    pub(crate) is_child: bool,
    /// The last is what is selected. Never empty.
    pub(crate) steps: Vec<Step>,
}

/// A compound selector, and how its element stands to that of the step before.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Step {
    /// Says nothing in the first step.
    pub(crate) combinator: Combinator,
    pub(crate) compound: Compound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Combinator {
    /// ` `
    Descendant,
    /// `>`
    Child,
    /// `+`
    Next,
    /// `~`
    Later,
}

/// What one element is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Compound {
    /// In lower case. None: any.
    pub(crate) name: Option<String>,
    pub(crate) conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Condition {
    /// Classes and ids are attributes, too.
    Attribute {
        /// In lower case.
        name: String,
        value: ValueTest,
    },
    /// Its place among its siblings, counted from 1, is `step` times some number, and `offset`.
    Place {
        step: i32,
        offset: i32,
        /// Among those of its name only.
        of_type: bool,
    },
    /// None of these.
    Not(Vec<Compound>),
    /// One of these.
    Is(Vec<Compound>),
}

/// What the value of an attribute is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ValueTest {
    /// Only that it is there.
    Any,
    Is(ValueMatch, String, Case),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ValueMatch {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Case {
    Exact,
    Ignored,
    /// Ignored in HTML, exact in svg and math.
    IgnoredInHtml,
}

impl Alternative {
    /// What an element may be asked.
    pub(crate) fn n_conditions(&self) -> usize {
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

/// Puts the selector of the row before each alternative that began with `>`, every one with every one, since
/// `ul, ol` with `> li` means `ul > li, ol > li`. None if there would be more than `most`.
pub(crate) fn compose(
    row: &[Alternative],
    own: &[Alternative],
    most: usize,
) -> Option<Vec<Alternative>> {
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
