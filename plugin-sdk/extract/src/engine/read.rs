//! State of reading one page: rows, captures and text so far.

mod finish;

use std::borrow::Cow;
use std::ops::Range;

use super::Budget;
use super::meter::Meter;
use super::rows::{Rows, Seen};
use super::text::Segment;
use crate::captures::NONE;
use crate::plan::{CompiledPlan, Take, Watch};
use crate::steps;
use crate::walk::Start;

/// Largest length of a `<base href>`, in bytes; addresses are bounded by the same length elsewhere.
const MAX_BASE: usize = 8 << 10;

/// State that a page changes.
#[derive(Debug, Default)]
pub(super) struct Reading {
    rows: Vec<Rows>,
    fields: Vec<Values>,
    watches: Vec<Watched>,
    segments: Vec<Segment>,
    base: Option<String>,
    n_templates: usize,
    n_captures_left: usize,
    n_bytes_left: usize,
    /// Number of open captures that take text.
    n_taking: usize,
    /// True if a budget is used up. Nothing new begins then, since it could be taken for a part of the wrong row;
    /// open captures go on.
    is_truncated: bool,
}

/// Captures of a field.
#[derive(Debug, Default)]
struct Values {
    rows: Vec<u32>,
    /// Ranges in the segment; for inner HTML, ranges in the page.
    ranges: Vec<Range<usize>>,
    seen: Seen,
}

/// Open captures of a watch.
#[derive(Debug, Default)]
struct Watched {
    /// Open captures; the innermost is last.
    open: Vec<Open>,
    folded: Flow,
    raw: Flow,
}

/// Segment that text goes to, if any open capture takes it.
#[derive(Debug, Default)]
struct Flow {
    segment: Option<usize>,
    n_open: usize,
}

#[derive(Debug)]
struct Open {
    /// Number of the element in the page.
    element: usize,
    field: usize,
    capture: usize,
    of: Content,
}

#[derive(Debug, Clone, Copy)]
enum Content {
    Folded,
    Raw,
    Inner,
}

impl Reading {
    pub(super) fn new(plan: &CompiledPlan, budget: &Budget) -> Self {
        let watched = |watch: &Watch| Watched {
            folded: Flow::of(watch.folded),
            raw: Flow::of(watch.raw),
            ..Watched::default()
        };
        Self {
            rows: plan.rows().iter().map(|_| Rows::default()).collect(),
            fields: plan
                .plan()
                .fields
                .iter()
                .map(|_| Values::default())
                .collect(),
            watches: plan.watches().iter().map(watched).collect(),
            segments: plan.is_kept().iter().map(|_| Segment::default()).collect(),
            // Both are counted in 32 bits at the boundary.
            n_captures_left: budget.n_captures.min(NONE as usize),
            n_bytes_left: budget.captured_bytes.min(u32::MAX as usize),
            ..Self::default()
        }
    }

    pub(super) fn enter_template(&mut self) {
        self.n_templates += 1;
    }

    pub(super) fn leave_template(&mut self) {
        self.n_templates = self.n_templates.saturating_sub(1);
    }

    /// Keeps the base of the page. It counts towards no budget, since even a rule that reads one link needs it.
    pub(super) fn base(&mut self, written: &str) {
        if self.base.is_none() && self.n_templates == 0 {
            // A base that is too long for any address counts as none.
            let href = Some(written).filter(|href| href.len() <= MAX_BASE);
            let href = href.unwrap_or_default();
            self.base = Some(htmlize::unescape_attribute(href).into_owned());
        }
    }

    /// Begins a row. Returns true if its end has to be reported.
    pub(super) fn begin_row(
        &mut self,
        plan: &CompiledPlan,
        group: usize,
        element: &Start<'_>,
        number: usize,
    ) -> bool {
        if !self.is_reading() {
            return false;
        }
        let parent = plan.plan().groups[group].parent.map(|p| p as usize);
        let Some(parent) = self.around(parent, number) else {
            return false;
        };
        if !self.count_capture() {
            return false;
        }
        let is_open = plan.rows()[group].is_asked_for && element.has_content();
        self.rows[group].begin(parent, number, !is_open);
        is_open
    }

    pub(super) fn end_row(&mut self, group: usize, number: usize) {
        self.rows[group].end(number);
    }

    /// Begins captures. Returns true if the end of the element has to be reported.
    pub(super) fn begin_captures<'p>(
        &mut self,
        plan: &CompiledPlan,
        watch: usize,
        element: &Start<'p>,
        number: usize,
        mut value: impl FnMut(usize) -> Option<&'p str>,
    ) -> bool {
        if !self.is_reading() {
            return false;
        }
        let declared = &plan.watches()[watch];
        let row = match declared.group {
            Some(group) if declared.is_row => self.rows[group].of(number),
            group => self.around(group, number),
        };
        let Some(row) = row else {
            return false;
        };
        let mut is_open = false;
        for &field in &declared.fields {
            steps::add(1);
            if self.is_truncated {
                break;
            }
            if plan.plan().fields[field].first && self.fields[field].seen.has(row) {
                continue;
            }
            let Some(attribute) = plan.attribute(field) else {
                is_open |= self.capture(plan, watch, field, row, (element, number));
                continue;
            };
            if let Some(written) = value(attribute) {
                self.whole(plan, field, row, &htmlize::unescape_attribute(written));
            }
        }
        is_open
    }

    /// Begins a capture. Returns true if it stays open.
    fn capture(
        &mut self,
        plan: &CompiledPlan,
        watch: usize,
        field: usize,
        row: u32,
        (element, number): (&Start<'_>, usize),
    ) -> bool {
        let declared = &plan.plan().fields[field];
        let end_of = |segment: Option<usize>| segment.map_or(0, |s| self.segments[s].text.len());
        let (start, of) = match &declared.take {
            // Attributes are read elsewhere.
            Take::Present | Take::Attr(_) => (0, None),
            Take::Tag => {
                self.whole(plan, field, row, &element.name().to_ascii_lowercase());
                return false;
            }
            Take::Text => (end_of(plan.segment(field)), Some(Content::Folded)),
            Take::TextRaw => (end_of(plan.segment(field)), Some(Content::Raw)),
            Take::Inner => (element.span().end, Some(Content::Inner)),
        };
        if self.is_truncated || !self.count_capture() {
            return false;
        }
        let capture = self.fields[field].push(row, start..start);
        let Some(of) = of.filter(|_| element.has_content()) else {
            return false;
        };
        let watched = &mut self.watches[watch];
        watched.open.push(Open {
            element: number,
            field,
            capture,
            of,
        });
        if let Some(flow) = watched.flow(of) {
            flow.n_open += 1;
            self.n_taking += 1;
        }
        true
    }

    /// Adds a value. One that does not fit is left out, because half of it would be another value.
    fn whole(&mut self, plan: &CompiledPlan, field: usize, row: u32, value: &str) {
        let Some(segment) = plan.segment(field).filter(|_| !self.is_truncated) else {
            return;
        };
        if value.len() > self.n_bytes_left {
            self.is_truncated = true;
        }
        if self.is_truncated || !self.count_capture() {
            return;
        }
        let segment = &mut self.segments[segment];
        let start = segment.text.len();
        segment.push(value, &mut self.n_bytes_left);
        let range = start..segment.text.len();
        self.fields[field].push(row, range);
    }

    pub(super) fn end_captures(&mut self, watch: usize, element: usize, end: usize) {
        let watched = &mut self.watches[watch];
        while let Some(open) = watched.open.pop_if(|open| open.element == element) {
            steps::add(1);
            let range = &mut self.fields[open.field].ranges[open.capture];
            let Some(flow) = watched.flow(open.of) else {
                range.end = end.max(range.start);
                continue;
            };
            flow.n_open -= 1;
            self.n_taking -= 1;
            if let Some(segment) = flow.segment.map(|s| &self.segments[s]) {
                range.end = segment.text.len();
                if let Content::Folded = open.of {
                    *range = segment.trimmed(range.clone());
                }
            }
        }
    }

    pub(super) fn text(&mut self, written: &str, is_encoded: bool, meter: &mut Meter) {
        if self.n_templates > 0
            || self.n_taking == 0
            || (self.is_truncated && self.n_bytes_left == 0)
        {
            return;
        }
        let text = if is_encoded {
            htmlize::unescape(written)
        } else {
            Cow::Borrowed(written)
        };
        for watched in &self.watches {
            steps::add(1);
            let mut is_all = true;
            if let Some(segment) = watched.folded.taken_by() {
                meter.add(written.len());
                is_all &= self.segments[segment].push_folded(&text, &mut self.n_bytes_left);
            }
            if let Some(segment) = watched.raw.taken_by() {
                meter.add(written.len());
                is_all &= self.segments[segment].push(&text, &mut self.n_bytes_left);
            }
            self.is_truncated |= !is_all;
            if meter.is_over() {
                return;
            }
        }
    }

    pub(super) fn line_break(&mut self) {
        if self.n_templates > 0 || self.n_taking == 0 {
            return;
        }
        for segment in self.watches.iter().filter_map(|w| w.folded.taken_by()) {
            let is_all = self.segments[segment].push_folded(" ", &mut self.n_bytes_left);
            self.is_truncated |= !is_all;
        }
    }

    fn is_reading(&self) -> bool {
        self.n_templates == 0 && !self.is_truncated
    }

    /// Returns the row that an element lies in; `None` if it should lie in one and does not.
    fn around(&mut self, group: Option<usize>, element: usize) -> Option<u32> {
        match group {
            None => Some(NONE),
            Some(group) => self.rows[group].around(element),
        }
    }

    /// Counts a capture. Returns true if there is room for it.
    fn count_capture(&mut self) -> bool {
        let is_room = self.n_captures_left > 0;
        self.n_captures_left -= usize::from(is_room);
        self.is_truncated |= !is_room;
        is_room
    }
}

impl Watched {
    fn flow(&mut self, of: Content) -> Option<&mut Flow> {
        match of {
            Content::Folded => Some(&mut self.folded),
            Content::Raw => Some(&mut self.raw),
            Content::Inner => None,
        }
    }
}

impl Flow {
    fn of(segment: Option<usize>) -> Self {
        Self { segment, n_open: 0 }
    }

    fn taken_by(&self) -> Option<usize> {
        self.segment.filter(|_| self.n_open > 0)
    }
}

impl Values {
    /// Adds a capture and returns its index.
    fn push(&mut self, row: u32, range: Range<usize>) -> usize {
        self.seen.insert(row);
        self.rows.push(row);
        self.ranges.push(range);
        self.ranges.len() - 1
    }
}
