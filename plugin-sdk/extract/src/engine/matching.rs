//! Matching of elements with the selectors of a plan, during the walk over a page.
//!
//! Each open element keeps the states of the program that it matches, and those that the elements around it match.
//! These answer the questions about its children. No elements are walked through, so the work for one element
//! depends on the plan alone.

use std::borrow::Cow;
use std::collections::HashMap;

use super::meter::Meter;
use crate::selector::{Before, Case, Combinator, Program, Question, Test, ValueMatch, ValueTest};
use crate::steps;
use crate::walk::Start;

/// State of matching inside of the innermost open element.
pub(super) struct Matcher<'a> {
    program: &'a Program,
    /// Number of 64-bit words that hold one bit for each state.
    n_words: usize,
    /// Words of each [`Row`] for each open element; the first entry is for the page.
    bits: Vec<u64>,
    open: Vec<Children>,
    types: Types,
    /// States that the beginning element matches.
    matched: Vec<u64>,
    selected: Vec<u64>,
    is_selected: bool,
    values: Values<'a>,
}

/// Counts of the children that an open element has had.
#[derive(Debug, Default)]
struct Children {
    n: u32,
    /// Number of names that were counted when the element began.
    n_types: usize,
}

/// Sets of states that are kept for an open element, one behind the other.
#[derive(Clone, Copy)]
enum Row {
    /// States that the element itself matches.
    Own,
    /// States that the element, or an element around it, matches.
    Around,
    /// States that the last of its children so far matches.
    Last,
    /// States that any of its children so far matches.
    Any,
}

/// Values of those attributes of an element that the program asks for. They are looked up when the first one is
/// asked for.
struct Values<'p> {
    found: Vec<Option<&'p str>>,
    is_read: bool,
}

/// Numbers of children of each name that the open elements have had.
#[derive(Debug, Default)]
struct Types {
    /// Counts, by the place of the parent among the open elements and the hash of the name.
    counts: HashMap<(usize, u64), u32>,
    /// Keys of the counts in the order of counting, so that they can be removed.
    counted: Vec<(usize, u64)>,
}

/// Element that conditions are checked against.
struct Asked<'e, 'p> {
    element: &'e Start<'p>,
    place: u32,
    place_of_type: u32,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
        let n_words = program.states().len().div_ceil(64);
        let mut matcher = Self {
            program,
            n_words,
            bits: Vec::new(),
            open: Vec::with_capacity(32),
            types: Types::default(),
            matched: vec![0; n_words],
            selected: vec![0; program.n_selectors().div_ceil(64)],
            is_selected: false,
            values: Values {
                found: vec![None; program.attributes().len()],
                is_read: false,
            },
        };
        matcher.enter();
        matcher
    }

    /// Number of open elements.
    pub(super) fn n_open(&self) -> usize {
        self.open.len() - 1
    }

    /// Bytes that are kept for each open element.
    pub(super) fn n_bytes_of_each(&self) -> usize {
        self.n_rows() * self.n_words.max(1) * size_of::<u64>()
    }

    /// Bytes that are kept for names that are counted.
    pub(super) fn n_bytes_of_types(&self) -> usize {
        self.types.counted.len() * 64
    }

    /// Begins an element. Its matches can be asked for until the next element begins. Returns true if it matches
    /// anything.
    pub(super) fn begin(&mut self, element: &Start<'a>, meter: &mut Meter) -> bool {
        let depth = self.open.len() - 1;
        self.open[depth].n += 1;
        self.values.is_read = false;
        let place_of_type = if self.program.asks_types() {
            self.types.count(depth, element.hash())
        } else {
            0
        };
        let asked = Asked {
            element,
            place: self.open[depth].n,
            place_of_type,
        };
        self.matched.fill(0);
        if std::mem::take(&mut self.is_selected) {
            self.selected.fill(0);
        }
        let program = self.program;
        for state in program.states_of(element.hash()).into_iter().flatten() {
            steps::add(1);
            let declared = &program.states()[*state];
            if self.follows(declared.before) && self.passes(&asked, &declared.test, meter) {
                self.matched[state / 64] |= 1 << (state % 64);
                for selector in &declared.selects {
                    self.selected[selector / 64] |= 1 << (selector % 64);
                    self.is_selected = true;
                }
            }
        }
        if program.asks_siblings() {
            for word in 0..self.n_words {
                let matched = self.matched[word];
                *self.word(Row::Last, word) = matched;
                *self.word(Row::Any, word) |= matched;
            }
        }
        self.is_selected
    }

    /// Returns true if the beginning element matches a selector.
    pub(super) fn is_selected(&self, selector: usize) -> bool {
        self.selected[selector / 64] >> (selector % 64) & 1 == 1
    }

    /// Returns the value of an attribute of the beginning element, as written.
    pub(super) fn value(
        &mut self,
        element: &Start<'a>,
        attribute: usize,
        meter: &mut Meter,
    ) -> Option<&'a str> {
        self.values.get(self.program, element, attribute, meter)
    }

    /// Opens the element that began.
    pub(super) fn enter(&mut self) {
        let n_words = self.n_words;
        let n_rows = self.n_rows();
        steps::add(n_rows * n_words);
        let end = self.bits.len();
        self.bits.extend_from_slice(&self.matched);
        if self.open.is_empty() {
            self.bits.resize(end + n_rows * n_words, 0);
        } else {
            let around = end - n_rows * n_words + Row::Around as usize * n_words;
            for word in 0..n_words {
                self.bits
                    .push(self.bits[around + word] | self.matched[word]);
            }
            self.bits.resize(end + n_rows * n_words, 0);
        }
        self.open.push(Children {
            n: 0,
            n_types: self.types.counted.len(),
        });
    }

    /// Ends the innermost open element.
    pub(super) fn leave(&mut self) {
        if let Some(ended) = self.open.pop() {
            self.types.forget(ended.n_types);
            self.bits
                .truncate(self.bits.len() - self.n_rows() * self.n_words);
        }
    }

    fn n_rows(&self) -> usize {
        if self.program.asks_siblings() { 4 } else { 2 }
    }

    /// Returns a word of the innermost open element.
    fn word(&mut self, row: Row, word: usize) -> &mut u64 {
        let at = self.bits.len() - (self.n_rows() - row as usize) * self.n_words + word;
        &mut self.bits[at]
    }

    /// Returns true if the elements before the beginning element allow the state.
    fn follows(&self, before: Before) -> bool {
        let Some((combinator, state)) = before else {
            return true;
        };
        let row = match combinator {
            Combinator::Descendant => Row::Around,
            Combinator::Child => Row::Own,
            Combinator::Next => Row::Last,
            Combinator::Later => Row::Any,
        };
        let at = self.bits.len() - (self.n_rows() - row as usize) * self.n_words + state / 64;
        self.bits[at] >> (state % 64) & 1 == 1
    }

    fn passes(&mut self, asked: &Asked<'_, 'a>, test: &Test, meter: &mut Meter) -> bool {
        // The result is not used any more.
        if meter.is_over() {
            return false;
        }
        if let Some((hash, name)) = &test.name {
            let element = asked.element;
            if *hash != element.hash() || !element.name().eq_ignore_ascii_case(name) {
                return false;
            }
        }
        test.questions
            .iter()
            .all(|question| self.answers(asked, question, meter))
    }

    fn answers(&mut self, asked: &Asked<'_, 'a>, question: &Question, meter: &mut Meter) -> bool {
        steps::add(1);
        // Each question may read a value of any length.
        if meter.is_over() {
            return false;
        }
        match question {
            Question::Attribute { index, value } => {
                let element = asked.element;
                let found = self.values.get(self.program, element, *index, meter);
                found.is_some_and(|found| is_value(found, value, element.is_html(), meter))
            }
            &Question::Place {
                step,
                offset,
                of_type,
            } => {
                let place = if of_type {
                    asked.place_of_type
                } else {
                    asked.place
                };
                is_place(place, step, offset)
            }
            Question::Not(tests) => !tests.iter().any(|test| self.passes(asked, test, meter)),
            Question::Is(tests) => tests.iter().any(|test| self.passes(asked, test, meter)),
        }
    }
}

impl<'p> Values<'p> {
    fn get(
        &mut self,
        program: &Program,
        element: &Start<'p>,
        attribute: usize,
        meter: &mut Meter,
    ) -> Option<&'p str> {
        if !self.is_read {
            self.is_read = true;
            self.found.fill(None);
            for (name, value) in element.attributes() {
                meter.add(program.attributes().len());
                if meter.is_over() {
                    break;
                }
                let known = program
                    .attributes()
                    .iter()
                    .position(|known| known.eq_ignore_ascii_case(name));
                if let Some(index) = known {
                    self.found[index].get_or_insert(value);
                }
            }
        }
        self.found[attribute]
    }
}

impl Types {
    /// Counts a child, and returns the number of children of its name so far.
    fn count(&mut self, parent: usize, hash: u64) -> u32 {
        let count = self.counts.entry((parent, hash)).or_insert(0);
        if *count == 0 {
            self.counted.push((parent, hash));
        }
        *count += 1;
        *count
    }

    fn forget(&mut self, n_kept: usize) {
        for key in self.counted.drain(n_kept..) {
            self.counts.remove(&key);
        }
    }
}

/// Returns true if a place is `step` times a non-negative number, plus `offset`.
fn is_place(place: u32, step: i32, offset: i32) -> bool {
    let over = i64::from(place) - i64::from(offset);
    match i64::from(step) {
        0 => over == 0,
        step => over % step == 0 && over / step >= 0,
    }
}

/// Returns true if the value of an attribute, as written, passes the test.
fn is_value(written: &str, test: &ValueTest, is_html: bool, meter: &mut Meter) -> bool {
    let ValueTest::Is(how, wanted, case) = test else {
        return true;
    };
    meter.add(written.len());
    let value = htmlize::unescape_attribute(written);
    let ignores_case = match case {
        Case::Exact => false,
        Case::Ignored => true,
        Case::IgnoredInHtml => is_html,
    };
    if ignores_case {
        matches(*how, &lower(&value), &lower(wanted))
    } else {
        matches(*how, &value, wanted)
    }
}

/// Returns the text in lower case. Nearly all texts are in lower case already.
fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        text.to_ascii_lowercase().into()
    } else {
        text.into()
    }
}

fn matches(how: ValueMatch, value: &str, wanted: &str) -> bool {
    match how {
        ValueMatch::Equal => value == wanted,
        // A wanted word is never empty and contains no space.
        ValueMatch::Word => value.split_ascii_whitespace().any(|word| word == wanted),
        ValueMatch::Language => value
            .strip_prefix(wanted)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
        ValueMatch::Start => !wanted.is_empty() && value.starts_with(wanted),
        ValueMatch::End => !wanted.is_empty() && value.ends_with(wanted),
        ValueMatch::Part => !wanted.is_empty() && value.contains(wanted),
    }
}
