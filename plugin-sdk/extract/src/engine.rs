//! Reads one page by one plan: one walk over the page that fills the captures.
//!
//! The page is not trusted. Time and memory grow with its length and with the plan, never with a product of
//! both that the page could choose, and what still is too much ends at a budget.

mod clock;
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
pub use clock::processor_time;
use matching::Matcher;
use meter::Meter;
use read::Reading;

/// Bytes for each open element: what the walk and the reading keep of it. Matching has its own.
const ELEMENT: usize = 112;
/// Every budget of memory is at least this.
const LEAST_MEMORY: usize = 1 << 10;

/// What reading one page may use up.
///
/// Captures and captured bytes are cut: what was captured before stays, and the captures are marked as
/// truncated. Size, memory and time are errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of the page. Below 4 GiB, whatever is set.
    pub page_bytes: usize,
    /// Rows of all groups and captures of all fields together.
    pub n_captures: usize,
    /// Bytes of text, decoded. Captures that nest in each other share them.
    pub captured_bytes: usize,
    /// Bytes for what is open: for each open element 112, and 16 more for each 64 steps of the plan, 32 where it has
    /// `+` or `~`; and 64 for each name whose elements `:nth-of-type()` counts. At least 1 KiB. No more than 32 768 elements are open in each other, whatever is set.
    pub memory: usize,
    /// Time on the processor for the whole page. Looked at every 4 KiB of it, and every 64 KiB of text that is
    /// gone through for a plan.
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
        /// The budget.
        memory: usize,
        /// Bytes for each open element, by this plan.
        of_each: usize,
    },
    /// The page is too long.
    #[error(
        "the page has {n_bytes} bytes, and {limit} is the limit; raise the page bytes of the budget, or fetch less of the page"
    )]
    TooLarge {
        /// Bytes it has.
        n_bytes: usize,
        /// The budget.
        limit: usize,
    },
    /// Time is used up.
    #[error(
        "reading the page takes longer than {deadline:?}; use fewer selectors and begin them with a tag name, raise the deadline of the budget, or skip the page"
    )]
    TooSlow {
        /// The budget.
        deadline: Duration,
    },
}

/// Reads a page, whatever it is, by a plan.
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

/// What the walk tells, matched with the plan.
struct Reader<'a> {
    plan: &'a CompiledPlan,
    matcher: Matcher<'a>,
    reading: Reading,
    meter: Meter,
    memory: usize,
    is_too_deep: bool,
    /// How many elements began so far.
    n_started: usize,
    /// What began with elements that are open, and has to be told when they end.
    begun: Vec<Begun>,
    /// For each open element how many of these there were before it, and which it is.
    open: Vec<(usize, usize)>,
}

/// What ends with an element.
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
            // After all others: a template is there, and only what is inside of it is not. One inside of an image is
            // an element as any other.
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

    /// Rows begin before what lies in them.
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
            // Whoever takes a value goes through it.
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
