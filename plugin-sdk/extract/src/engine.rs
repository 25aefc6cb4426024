//! Reading of one page by one plan: one walk over the page fills the captures.
//!
//! The page is not trusted. Time and memory grow with its length and with the plan, never with a product of both
//! that the page could choose. Work that is still too much ends at a budget.

mod matching;
mod meter;
mod read;
mod rows;
mod text;

use std::ops::ControlFlow;
use std::time::Duration;

use crate::captures::Captures;
use crate::plan::CompiledPlan;
use crate::walk::{MOST_OPEN, Start, TextKind, Visitor, names, walk};
use matching::Matcher;
use meter::Meter;
use read::Reading;

/// Bytes that the walk and the reading keep for each open element. Matching adds its own.
const ELEMENT: usize = 112;
/// Smallest budget of memory, in bytes.
const LEAST_MEMORY: usize = 1 << 10;

/// Limits of the work on one page.
///
/// Beyond the limit of captures or of captured bytes, the rest is cut: earlier captures stay and are marked as
/// truncated. Beyond the limit of size, memory or time, reading fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of the page. The limit is always below 4 GiB.
    pub page_bytes: usize,
    /// Number of rows of all groups and captures of all fields together.
    pub n_captures: usize,
    /// Bytes of decoded text. Nested captures share them.
    pub captured_bytes: usize,
    /// Bytes for the elements that are open: 112 for each, and 16 more for each 64 steps of the plan, 32 if the
    /// plan has `+` or `~`; and 64 for each name whose elements `:nth-of-type()` counts. The limit is at least 1
    /// KiB. Never are more than 32 768 elements open in each other.
    pub memory: usize,
    /// Processor time for the whole page. It is checked every 4 KiB of the page, and every 64 KiB of text that is
    /// searched for a plan.
    pub deadline: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            page_bytes: 32 << 20,
            n_captures: 100_000,
            captured_bytes: 8 << 20,
            memory: 2 << 20,
            deadline: Duration::from_millis(500),
        }
    }
}

/// A page that cannot be read within its budget. Nothing of it is captured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// Memory is used up.
    #[error(
        "reading the page takes more than {memory} bytes, at {of_each} for each element that is open in another: raise the memory of the budget, up to 4 MiB, or skip the page"
    )]
    TooDeep {
        /// Limit of the budget, in bytes.
        memory: usize,
        /// Bytes for each open element, by this plan.
        of_each: usize,
    },
    /// The page is too long.
    #[error(
        "the page has {n_bytes} bytes, and {limit} is the limit; raise the page bytes of the budget, or fetch less of the page"
    )]
    TooLarge {
        /// Bytes of the page.
        n_bytes: usize,
        /// Limit of the budget, in bytes.
        limit: usize,
    },
    /// Time is used up.
    #[error(
        "reading the page takes longer than {deadline:?}; use fewer selectors and begin them with a tag name, raise the deadline of the budget, or skip the page"
    )]
    TooSlow {
        /// Limit of the budget.
        deadline: Duration,
    },
}

/// Reads any page by a plan.
///
/// ```
/// use crawler_extract::{Budget, CompiledPlan, Field, Plan, PlanLimits, Take, extract};
///
/// let title = Field {
///     name: "title".to_owned(),
///     group: None,
///     selector: "h1".to_owned(),
///     take: Take::Text,
///     first: true,
///     keep: true,
/// };
/// let plan = Plan {
///     name: "article".to_owned(),
///     groups: vec![],
///     fields: vec![title],
/// };
/// let plan = CompiledPlan::new(&plan, &PlanLimits::default())?;
/// let captures = extract(&plan, "<h1>Salt &amp; <b>pepper</b></h1>", &Budget::default())?;
/// assert_eq!(captures.values(0).map(|(_, value)| value).next(), Some("Salt & pepper"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn extract(plan: &CompiledPlan, page: &str, budget: &Budget) -> Result<Captures, ExtractError> {
    let mut meter = Meter::new(budget.deadline);
    meter.look();
    let limit = budget.page_bytes.min(u32::MAX as usize);
    if !meter.is_over() && page.len() > limit {
        return Err(ExtractError::TooLarge {
            n_bytes: page.len(),
            limit,
        });
    }
    let mut reader = Reader {
        plan,
        matcher: Matcher::new(plan.program()),
        reading: Reading::new(plan, budget),
        meter,
        memory: budget.memory.max(LEAST_MEMORY),
        is_too_deep: false,
        n_started: 0,
        begun: Vec::new(),
        open: Vec::new(),
    };
    let walked = walk(page, &mut reader);
    reader.meter.look();
    let of_each = reader.n_bytes_of_each();
    reader.meter.into_result()?;
    if reader.is_too_deep || walked.is_err() {
        return Err(ExtractError::TooDeep {
            memory: reader.memory.min(MOST_OPEN * of_each),
            of_each,
        });
    }
    Ok(reader.reading.finish(plan, page))
}

/// Visitor of the walk, which matches elements with the plan.
struct Reader<'a> {
    plan: &'a CompiledPlan,
    matcher: Matcher<'a>,
    reading: Reading,
    meter: Meter,
    memory: usize,
    is_too_deep: bool,
    /// Number of elements that began so far.
    n_started: usize,
    /// Rows and captures that began with open elements, and have to be told when these end.
    begun: Vec<Begun>,
    /// Length of `begun` before each open element, and the number of the element.
    open: Vec<(usize, usize)>,
}

/// Part of the reading that ends with an element.
#[derive(Clone, Copy)]
enum Begun {
    Row(usize),
    Captures(usize),
    Template,
}

const BASE: u64 = names::hash(b"base");
const BREAK: u64 = names::hash(b"br");
const TEMPLATE: u64 = names::hash(b"template");

impl<'a> Visitor<'a> for Reader<'a> {
    fn start(&mut self, element: &Start<'a>) {
        let n_begun = self.begun.len();
        self.n_started += 1;
        let is_selected = self.matcher.begin(element, &mut self.meter);
        match element.hash() {
            BASE if element.is_html() => self.base(element),
            BREAK => self.reading.line_break(),
            _ => {}
        }
        if is_selected {
            self.selected(element);
        }
        if element.has_content() {
            // The template comes after all others: it is in the page itself, and only its content is not. A
            // template inside of an image is an element like any other.
            if element.hash() == TEMPLATE && element.is_html() {
                self.reading.enter_template();
                self.begun.push(Begun::Template);
            }
            self.open.push((n_begun, self.n_started));
            self.matcher.enter();
            let of_open = self.matcher.n_open() * self.n_bytes_of_each();
            let n_bytes = of_open + self.matcher.n_bytes_of_types();
            self.is_too_deep |= n_bytes > self.memory;
        }
    }

    fn end(&mut self, at: usize) {
        self.matcher.leave();
        let Some((n_begun, element)) = self.open.pop() else {
            return;
        };
        for begun in self.begun.drain(n_begun..) {
            match begun {
                Begun::Row(group) => self.reading.end_row(group, element),
                Begun::Captures(watch) => self.reading.end_captures(watch, element, at),
                Begun::Template => self.reading.leave_template(),
            }
        }
    }

    fn text(&mut self, text: &'a str, kind: TextKind) {
        if kind != TextKind::Raw {
            let is_encoded = kind == TextKind::Encoded;
            self.reading.text(text, is_encoded, &mut self.meter);
        }
    }

    fn reached(&mut self, at: usize) -> ControlFlow<()> {
        self.meter.reach(at);
        if self.meter.is_over() || self.is_too_deep {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl<'a> Reader<'a> {
    fn n_bytes_of_each(&self) -> usize {
        ELEMENT + self.matcher.n_bytes_of_each()
    }

    /// Begins rows before the captures that lie in them.
    fn selected(&mut self, element: &Start<'a>) {
        let plan = self.plan;
        for (group, row) in plan.rows().iter().enumerate() {
            if self.matcher.is_selected(row.selector) {
                let begins = &mut self.reading;
                if begins.begin_row(plan, group, element, self.n_started) {
                    self.begun.push(Begun::Row(group));
                }
            }
        }
        for (watch, declared) in plan.watches().iter().enumerate() {
            if !self.matcher.is_selected(declared.selector) {
                continue;
            }
            let (matcher, meter) = (&mut self.matcher, &mut self.meter);
            // Reading a value costs its length for each field that takes it.
            let value = |attribute| {
                let value = matcher.value(element, attribute, meter)?;
                meter.add(value.len());
                (!meter.is_over()).then_some(value)
            };
            let begins = &mut self.reading;
            if begins.begin_captures(plan, watch, element, self.n_started, value) {
                self.begun.push(Begun::Captures(watch));
            }
        }
    }

    fn base(&mut self, element: &Start<'a>) {
        let href = element
            .attributes()
            .find(|(name, _)| name.eq_ignore_ascii_case("href"));
        if let Some((_, href)) = href {
            self.reading.base(href);
        }
    }
}

#[cfg(test)]
mod tests;
