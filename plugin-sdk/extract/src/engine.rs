//! Reads one page by one plan: repair, then one pass of lol_html that fills the captures.
//!
//! The page is not trusted. Time and memory grow with its length and with the plan, never with a product of
//! both that the page could choose, and what still is too much ends at a budget.

mod clock;
mod read;
mod rows;
mod text;

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

use lol_html::errors::RewritingError;
use lol_html::html_content::{Element, EndTag, TextChunk};
use lol_html::{ElementContentHandlers, HtmlRewriter, MemorySettings, Selector, Settings};

use crate::captures::Captures;
use crate::plan::{CompiledPlan, Watch};
use crate::repair::repair;
use clock::Clock;
pub use clock::processor_time;
use read::Reading;

/// Bytes between two looks at the clock. Smaller pieces cost nothing down to this.
const PIECE: usize = 4 << 10;
/// What lol_html takes at once for what is unfinished at the end of a piece.
const BUFFER: usize = 1 << 10;
/// Bytes of one tag times conditions of a plan, at the most: less than a tenth of a second.
const TAG_WORK: usize = 64 << 20;
/// Every plan may read pages with tags and nesting that fit in here.
const SHORTEST: usize = 64 << 10;

/// What reading one page may use up.
///
/// Captures and captured bytes are cut: what was captured before stays, and the captures are marked as
/// truncated. Size, memory and time are errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of the page, also after omitted end tags were written. Below 4 GiB, whatever is set.
    pub page_bytes: usize,
    /// Rows of all groups and captures of all fields together.
    pub n_captures: usize,
    /// Bytes of text, decoded. Captures that nest in each other share them.
    pub captured_bytes: usize,
    /// Bytes that lol_html may hold: 128 for each open element, doubling, and any tag that is not finished
    /// at the end of a piece, with 64 for each of its attributes. At least 1 KiB. Plans with more than 32
    /// conditions have less of it, and all have 64 KiB.
    pub memory: usize,
    /// Time on the processor for the whole page. Looked at every 4 KiB of it, and every 64 KiB of text that is
    /// handed to captures.
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
        "reading the page takes more than {memory} bytes: too many elements are open in each other, or a tag is too long; raise the memory of the budget, use fewer selectors, or skip the page"
    )]
    TooDeep {
        /// The budget.
        memory: usize,
    },
    /// The page is too long.
    #[error(
        "the page has {n_bytes} bytes with its end tags written out, and {limit} is the limit; raise the page bytes of the budget, or fetch less of the page"
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
    /// The parser refuses the page for another reason. None is known.
    #[error("the page cannot be read: {reason}; skip it")]
    Unreadable {
        /// As the parser says it.
        reason: String,
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
    extract_in(PIECE, plan, page, budget)
}

fn extract_in(
    piece: usize,
    plan: &CompiledPlan,
    page: &str,
    budget: &Budget,
) -> Result<Captures, ExtractError> {
    let clock = Clock::new(budget.deadline);
    clock.check()?;
    check_length(page, budget)?;
    let page = repair(page);
    check_length(&page, budget)?;
    pass(piece, plan, &page, budget, &clock)
}

/// The one pass over a page as it is.
fn pass(
    piece: usize,
    plan: &CompiledPlan,
    page: &str,
    budget: &Budget,
    clock: &Clock,
) -> Result<Captures, ExtractError> {
    // End-tag handlers of lol_html outlive every borrow, so what they change is shared.
    let reading = Rc::new(RefCell::new(Reading::new(plan, budget)));
    let mut rewriter = HtmlRewriter::new(
        settings(plan, page, &reading, budget, *clock),
        |_: &[u8]| {},
    );
    let failed = |error| failure(error, plan, budget);
    for bytes in page.as_bytes().chunks(piece) {
        clock.check()?;
        rewriter.write(bytes).map_err(failed)?;
    }
    rewriter.end().map_err(failed)?;
    // A tag is looked at where it ends, which may be here.
    clock.check()?;
    let reading = reading.take();
    Ok(reading.finish(plan, page))
}

fn check_length(page: &str, budget: &Budget) -> Result<(), ExtractError> {
    let limit = budget.page_bytes.min(u32::MAX as usize);
    if page.len() > limit {
        return Err(ExtractError::TooLarge {
            n_bytes: page.len(),
            limit,
        });
    }
    Ok(())
}

/// What lol_html may hold. A tag that is held is looked at in one go, by every condition of the plan and with
/// no look at the clock: the more conditions, the shorter the longest tag.
fn memory(plan: &CompiledPlan, budget: &Budget) -> usize {
    let longest = (TAG_WORK / plan.n_conditions().max(1)).max(SHORTEST);
    budget.memory.min(longest).max(BUFFER)
}

fn failure(error: RewritingError, plan: &CompiledPlan, budget: &Budget) -> ExtractError {
    match error {
        RewritingError::MemoryLimitExceeded(_) => ExtractError::TooDeep {
            memory: memory(plan, budget),
        },
        RewritingError::ContentHandlerError(error) => match error.downcast() {
            Ok(own) => *own,
            Err(other) => unreadable(&other),
        },
        other => unreadable(&other),
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> ExtractError {
    let reason = error.to_string();
    ExtractError::Unreadable { reason }
}

type Shared = Rc<RefCell<Reading>>;
type Handlers<'h> = ElementContentHandlers<'h>;

/// What the engine itself looks for.
static TEMPLATE: LazyLock<Selector> = LazyLock::new(|| own_selector("template"));
static BASE: LazyLock<Selector> = LazyLock::new(|| own_selector("base[href]"));
static BREAK: LazyLock<Selector> = LazyLock::new(|| own_selector("br"));

fn own_selector(text: &str) -> Selector {
    text.parse()
        .expect("it is a constant, and tests read pages with it")
}

/// For one element, handlers are called in the order in which they stand here: rows before what lies in them.
fn settings<'h>(
    plan: &'h CompiledPlan,
    page: &'h str,
    shared: &Shared,
    budget: &Budget,
    clock: Clock,
) -> Settings<'h, 'h> {
    let memory = MemorySettings::new()
        .with_preallocated_parsing_buffer_size(BUFFER)
        .with_max_allowed_memory_usage(memory(plan, budget));
    let settings = Settings::new()
        // Strict would refuse pages where a text could be read in two ways.
        .with_strict(false)
        // The page is text already.
        .with_adjust_charset_on_meta_tag(false)
        .with_memory_settings(memory);
    // Without a selector lol_html would not count open elements, and the memory limit would not bound them.
    let mut all: Vec<(&'h Selector, Handlers<'h>)> = vec![(&BASE, bases(shared))];
    if plan.watches().iter().any(|w| w.folded.is_some()) {
        all.push((&BREAK, breaks(shared)));
    }
    for (group, row) in plan.rows().iter().enumerate() {
        all.push((&plan.selectors()[row.selector], rows(plan, group, shared)));
    }
    for (i, watch) in plan.watches().iter().enumerate() {
        all.push((
            &plan.selectors()[watch.selector],
            fields(plan, page, i, shared, clock),
        ));
    }
    // After all others, since a template is there and only what is inside of it is not.
    all.push((&TEMPLATE, templates(shared)));
    let add = |settings: Settings<'h, 'h>, (selector, handlers)| {
        settings.append_element_content_handler((Cow::Borrowed(selector), handlers))
    };
    all.into_iter().fold(settings, add)
}

fn templates<'h>(shared: &Shared) -> Handlers<'h> {
    let shared = Rc::clone(shared);
    Handlers::default().element(move |element: &mut Element<'_, '_>| {
        // One inside of an image is an element as any other.
        if is_html(element) {
            shared.borrow_mut().enter_template();
            at_end(element, &shared, |reading, _| reading.leave_template());
        }
        Ok(())
    })
}

fn bases<'h>(shared: &Shared) -> Handlers<'h> {
    let shared = Rc::clone(shared);
    Handlers::default().element(move |element: &mut Element<'_, '_>| {
        if is_html(element) {
            shared.borrow_mut().base(element);
        }
        Ok(())
    })
}

fn breaks<'h>(shared: &Shared) -> Handlers<'h> {
    let shared = Rc::clone(shared);
    Handlers::default().element(move |_: &mut Element<'_, '_>| {
        shared.borrow_mut().line_break();
        Ok(())
    })
}

fn rows<'h>(plan: &'h CompiledPlan, group: usize, shared: &Shared) -> Handlers<'h> {
    let shared = Rc::clone(shared);
    Handlers::default().element(move |element: &mut Element<'_, '_>| {
        let at = element.source_location().bytes().start;
        let is_open = shared.borrow_mut().begin_row(plan, group, element);
        if is_open {
            at_end(element, &shared, move |reading, _| {
                reading.end_row(group, at)
            });
        }
        Ok(())
    })
}

fn fields<'h>(
    plan: &'h CompiledPlan,
    page: &'h str,
    watch: usize,
    shared: &Shared,
    clock: Clock,
) -> Handlers<'h> {
    let of_elements = Rc::clone(shared);
    let handlers = Handlers::default().element(move |element: &mut Element<'_, '_>| {
        let at = element.source_location().bytes().start;
        let is_open = of_elements
            .borrow_mut()
            .begin_captures(plan, watch, element);
        if is_open {
            at_end(element, &of_elements, move |reading, end| {
                reading.end_captures(watch, at, end);
            });
        }
        Ok(())
    });
    let Watch { folded, raw, .. } = &plan.watches()[watch];
    if folded.is_none() && raw.is_none() {
        return handlers;
    }
    let of_texts = Rc::clone(shared);
    handlers.text(move |chunk: &mut TextChunk<'_>| {
        // One text may be as long as the page, and belong to every field of the plan.
        if of_texts.borrow_mut().text(watch, chunk, page) {
            clock.check()?;
        }
        Ok(())
    })
}

/// Calls back where the element ends, with the offset of the end tag that ends it: its own or that of an
/// element around it. Not at the end of the page.
fn at_end(
    element: &mut Element<'_, '_>,
    shared: &Shared,
    end: impl FnOnce(&mut Reading, usize) + 'static,
) {
    if let Some(handlers) = element.end_tag_handlers() {
        let shared = Rc::clone(shared);
        handlers.push(Box::new(move |tag: &mut EndTag<'_>| {
            end(
                &mut shared.borrow_mut(),
                tag.source_location().bytes().start,
            );
            Ok(())
        }));
    }
}

fn is_html(element: &Element<'_, '_>) -> bool {
    element.namespace_uri() == "http://www.w3.org/1999/xhtml"
}

#[cfg(test)]
mod tests;
