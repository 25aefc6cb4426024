//! Selectors of one plan as one list of states: each beginning of a selector is one state, and equal ones are
//! shared.
//!
//! An element matches a state if it matches the last step, and the element that the combinator names matches the
//! state before. The matcher keeps the states of each open element. So an element is checked against each step at
//! most once, whatever is around it.

use std::collections::{BTreeMap, HashMap};

use super::{Alternative, Combinator, Compound, Condition, ValueTest};
use crate::walk::names;

/// Program that matches elements.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    states: Vec<State>,
    n_selectors: usize,
    /// States that require a name, by its hash.
    named: BTreeMap<u64, Vec<usize>>,
    /// States that require no name.
    unnamed: Vec<usize>,
    /// Bits of the hashes that are required: for most elements they alone show that no state requires their name.
    names: u64,
    /// Names of attributes that are required, each once.
    attributes: Vec<String>,
    asks_siblings: bool,
    asks_types: bool,
    known: HashMap<(Before, Compound), usize>,
}

/// State that has to be matched before, with its combinator. If `None`, any element may begin the selector.
pub(crate) type Before = Option<(Combinator, usize)>;

/// The beginning of a selector, or all of it.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) before: Before,
    pub(crate) test: Test,
    /// Selectors that end with this state.
    pub(crate) selects: Vec<usize>,
}

/// A compound selector.
#[derive(Debug, Clone)]
pub(crate) struct Test {
    /// Name with its hash.
    pub(crate) name: Option<(u64, String)>,
    pub(crate) questions: Vec<Question>,
}

/// Condition on an element, beside its name.
#[derive(Debug, Clone)]
pub(crate) enum Question {
    /// Condition on an attribute; `index` is that of its name in the program's attributes.
    Attribute {
        index: usize,
        value: ValueTest,
    },
    Place {
        step: i32,
        offset: i32,
        of_type: bool,
    },
    Not(Vec<Test>),
    Is(Vec<Test>),
}

impl Program {
    /// Adds a selector that is matched if one of these alternatives is. Returns its index.
    pub(crate) fn add(&mut self, alternatives: &[Alternative]) -> usize {
        let selector = self.n_selectors;
        self.n_selectors += 1;
        for alternative in alternatives {
            let mut before: Before = None;
            let mut steps = alternative.steps.iter().peekable();
            while let Some(step) = steps.next() {
                let state = self.state(before, &step.compound);
                match steps.peek() {
                    Some(next) => before = Some((next.combinator, state)),
                    None => self.states[state].selects.push(selector),
                }
            }
        }
        selector
    }

    fn state(&mut self, before: Before, compound: &Compound) -> usize {
        let key = (before, compound.clone());
        if let Some(state) = self.known.get(&key) {
            return *state;
        }
        if let Some((Combinator::Next | Combinator::Later, _)) = before {
            self.asks_siblings = true;
        }
        let state = self.states.len();
        let test = self.test(compound);
        match &test.name {
            Some((hash, _)) => {
                self.names |= name_bit(*hash);
                self.named.entry(*hash).or_default().push(state);
            }
            None => self.unnamed.push(state),
        }
        self.states.push(State {
            before,
            test,
            selects: Vec::new(),
        });
        self.known.insert(key, state);
        state
    }

    fn test(&mut self, compound: &Compound) -> Test {
        let name = compound.name.as_ref();
        Test {
            name: name.map(|name| (names::hash(name.as_bytes()), name.clone())),
            questions: compound
                .conditions
                .iter()
                .map(|condition| self.question(condition))
                .collect(),
        }
    }

    fn question(&mut self, condition: &Condition) -> Question {
        let mut tests = |list: &[Compound]| list.iter().map(|c| self.test(c)).collect();
        match condition {
            Condition::Not(list) => Question::Not(tests(list)),
            Condition::Is(list) => Question::Is(tests(list)),
            Condition::Attribute { name, value } => Question::Attribute {
                index: self.attribute(name),
                value: value.clone(),
            },
            &Condition::Place {
                step,
                offset,
                of_type,
            } => {
                self.asks_types |= of_type;
                Question::Place {
                    step,
                    offset,
                    of_type,
                }
            }
        }
    }

    /// Returns the index of an attribute, whatever the case of its name.
    pub(crate) fn attribute(&mut self, name: &str) -> usize {
        let name = name.to_ascii_lowercase();
        let found = self.attributes.iter().position(|known| *known == name);
        found.unwrap_or_else(|| {
            self.attributes.push(name);
            self.attributes.len() - 1
        })
    }

    pub(crate) fn states(&self) -> &[State] {
        &self.states
    }

    pub(crate) fn n_selectors(&self) -> usize {
        self.n_selectors
    }

    pub(crate) fn attributes(&self) -> &[String] {
        &self.attributes
    }

    /// Returns the states that an element of this name may match: those that require the name, and those without a
    /// name.
    pub(crate) fn states_of(&self, hash: u64) -> [&[usize]; 2] {
        let named = if self.names & name_bit(hash) != 0 {
            self.named.get(&hash).map_or(&[][..], Vec::as_slice)
        } else {
            &[]
        };
        [named, &self.unnamed]
    }

    /// Returns true if a state depends on the siblings before an element.
    pub(crate) fn asks_siblings(&self) -> bool {
        self.asks_siblings
    }

    /// Returns true if a state depends on the place among siblings of one name.
    pub(crate) fn asks_types(&self) -> bool {
        self.asks_types
    }
}

/// Returns one of 64 bits, which stands for the hash of a name.
fn name_bit(hash: u64) -> u64 {
    1 << (hash >> 58)
}
