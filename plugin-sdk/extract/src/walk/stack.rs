//! Stack of the open elements, with answers about them that need no walk through them.
//!
//! Every open element knows which of the kinds that matter are open around it (`around`) and which table part it
//! stands in (`owner`), so most questions are answered by the innermost one. Only end tags look up the stack, and
//! never further than `LOOK_UP`.

use super::names::{self, Element, Kind, SPECIAL};
use crate::steps;

/// Number of elements in which an end tag looks for its start tag. Real pages came out the same with 64 and with
/// 256.
pub(super) const LOOK_UP: usize = 64;

/// Number of elements that may be open in each other: 1 MB of memory.
pub const MOST_OPEN: usize = 32_768;

/// `p`, up to a button or an element that bars the default scope.
pub(super) const P: u16 = 1;
/// `li`, up to a special element.
pub(super) const LI: u16 = 1 << 1;
/// `dd` or `dt`, up to a special element.
pub(super) const DD: u16 = 1 << 2;
/// `button`, in the default scope, as the next three.
pub(super) const BUTTON: u16 = 1 << 3;
pub(super) const SELECT: u16 = 1 << 4;
pub(super) const RUBY: u16 = 1 << 5;
pub(super) const NOBR: u16 = 1 << 6;
/// `a`, up to a marker.
pub(super) const ANCHOR: u16 = 1 << 7;
/// `form`, up to a template.
pub(super) const FORM: u16 = 1 << 8;
/// `template`, anywhere.
pub(super) const TEMPLATE: u16 = 1 << 9;
/// The page's body, written or not, in the default scope.
pub(super) const BODY: u16 = 1 << 10;

/// Insertion mode of the standard: the rules for the next tag or text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Rules of the body, also before the body.
    Body,
    Head,
    Table,
    Caption,
    ColumnGroup,
    Rows,
    Row,
    Cell,
    /// Rules of a template, before the first tag that tells what it holds.
    Template,
}

/// The namespace of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Html,
    Svg,
    Math,
}

/// State that a browser gives to an element that the page wrote and did not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// A browser ignores its start tag. It stays as written, but nothing sees it.
    Stray,
    /// Its end tag crossed a block that is still open: it ends with that block, and nothing sees it.
    Ended,
}

/// An open element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) element: &'static Element,
    pub(super) hash: u64,
    /// Place in the stack of the nearest element that decides `mode`, perhaps this one.
    pub(super) owner: u32,
    /// Place of the nearest element that counts, perhaps this one: the "current node" of the standard.
    pub(super) current: u32,
    /// Kinds that are open from here up, including this element.
    pub(super) around: u16,
    pub(super) mode: Mode,
    pub(super) space: Space,
    pub(super) state: State,
}

impl Open {
    pub(super) fn kind(&self) -> Kind {
        self.element.kind
    }

    /// Returns true if the rules see the element.
    pub(super) fn counts(&self) -> bool {
        self.state == State::Open
    }

    pub(super) fn is_foreign(&self) -> bool {
        self.space != Space::Html
    }

    pub(super) fn is_formatting(&self) -> bool {
        matches!(self.kind(), Kind::Formatting | Kind::Anchor | Kind::Nobr)
    }

    /// Returns true if HTML inside svg or math begins here.
    pub(super) fn is_integration(&self) -> bool {
        std::ptr::eq(self.element, &names::INTEGRATION)
    }
}

pub(super) struct Stack {
    /// Open elements. The first stands for the page and is never closed.
    open: Vec<Open>,
}

impl Stack {
    pub(super) fn new() -> Self {
        let mut open = Vec::with_capacity(64);
        open.push(Open {
            element: &names::UNKNOWN,
            hash: 0,
            owner: 0,
            current: 0,
            around: BODY,
            mode: Mode::Body,
            space: Space::Html,
            state: State::Open,
        });
        Self { open }
    }

    /// Number of open elements, including the page.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn top(&self) -> &Open {
        &self.open[self.open.len() - 1]
    }

    pub(super) fn get(&self, at: usize) -> &Open {
        &self.open[at]
    }

    pub(super) fn mode(&self) -> Mode {
        self.top().mode
    }

    /// Returns true if any of these is open from the innermost element up.
    pub(super) fn around(&self, what: u16) -> bool {
        self.top().around & what != 0
    }

    pub(super) fn owner(&self) -> usize {
        self.top().owner as usize
    }

    pub(super) fn current_at(&self) -> usize {
        self.top().current as usize
    }

    pub(super) fn current(&self) -> &Open {
        self.get(self.current_at())
    }

    /// Returns the nearest element that is `wanted`, unless one that `bars` is nearer or it is too far away.
    pub(super) fn find(
        &self,
        wanted: impl Fn(&Open) -> bool,
        bars: impl Fn(&Open) -> bool,
    ) -> Option<usize> {
        let furthest = self.open.len().saturating_sub(LOOK_UP).max(1);
        for at in (furthest..self.open.len()).rev() {
            steps::add(1);
            let open = &self.open[at];
            if !open.counts() {
                continue;
            }
            if wanted(open) {
                return Some(at);
            }
            if bars(open) {
                return None;
            }
        }
        None
    }

    /// Returns the nearest formatting element of a kind, even one that has ended but is still written.
    pub(super) fn nearest_written(&self, kind: Kind) -> Option<usize> {
        let furthest = self.open.len().saturating_sub(LOOK_UP).max(1);
        steps::add(self.open.len() - furthest);
        (furthest..self.open.len()).rev().find(|&at| {
            let open = &self.open[at];
            open.kind() == kind && open.state != State::Stray
        })
    }

    /// Returns the nearest element of a kind, however far away. It is called only if `around` says that there is
    /// one, and the element found is closed: each element is walked over once.
    pub(super) fn nearest(&self, kind: Kind) -> Option<usize> {
        let found = self
            .open
            .iter()
            .rposition(|open| open.counts() && open.kind() == kind)?;
        steps::add(self.open.len() - found);
        Some(found)
    }

    /// Returns the table part of this name around the innermost element, within its table.
    pub(super) fn table_part(&self, hash: u64) -> Option<usize> {
        let mut at = self.owner();
        loop {
            steps::add(1);
            let part = &self.open[at];
            if part.hash == hash {
                return Some(at);
            }
            match part.kind() {
                Kind::Caption | Kind::ColumnGroup | Kind::Rows | Kind::Row | Kind::Cell => {
                    at = self.open[at - 1].owner as usize;
                }
                _ => return None,
            }
        }
    }

    /// Returns the outermost element that is `wanted`, of those that are open inside the one at `outside`.
    pub(super) fn first_inside(
        &self,
        outside: usize,
        wanted: impl Fn(&Open) -> bool,
    ) -> Option<usize> {
        steps::add(self.open.len() - outside);
        let found = self.open[outside + 1..]
            .iter()
            .position(|open| open.counts() && wanted(open))?;
        Some(outside + 1 + found)
    }

    /// Returns the outermost and the innermost of the special elements open inside the one at `outside`.
    pub(super) fn blocks_inside(&self, outside: usize) -> Option<(usize, usize)> {
        let special = |open: &Open| open.element.has(SPECIAL);
        let outer = self.first_inside(outside, special)?;
        steps::add(self.open.len() - outer);
        let inside = &self.open[outer + 1..];
        let inner = inside
            .iter()
            .rposition(|open| open.counts() && special(open));
        Some((outer, inner.map_or(outer, |n| outer + 1 + n)))
    }

    /// Adds an element. Its `around` and its mode follow from its parent and its kind.
    pub(super) fn push(&mut self, mut open: Open) {
        let parent = self.top();
        open.around = parent.around;
        open.mode = parent.mode;
        open.owner = parent.owner;
        open.current = parent.current;
        if open.counts() {
            // The pass gives up at `MOST_OPEN`, which is far below the end of u32.
            let at = self.open.len() as u32;
            open.current = at;
            open.around = around_inside(parent.around, open.element);
            if let Some(mode) = mode_inside(open.kind()) {
                open.mode = mode;
                open.owner = at;
            }
        }
        self.open.push(open);
    }

    pub(super) fn pop(&mut self) -> Option<Open> {
        if self.open.len() == 1 {
            return None;
        }
        self.open.pop()
    }

    /// Hides the element at `at` from the rules without closing it.
    pub(super) fn end(&mut self, at: usize) {
        self.end_where(at, |place, _| place == at);
    }

    /// Hides the element at `at`, and those that end with a formatting element that crosses the blocks from
    /// `outer` to `inner`: the elements without rules between them, and formatting elements around them.
    pub(super) fn end_crossing(&mut self, at: usize, outer: usize, inner: usize) {
        self.end_where(at, |place, open| {
            let crossed = place < outer || place < inner && !open.is_formatting();
            place == at || crossed && !open.element.has(SPECIAL)
        });
    }

    fn end_where(&mut self, from: usize, ends: impl Fn(usize, &Open) -> bool) {
        let Open {
            mut around,
            mut current,
            ..
        } = self.open[from - 1];
        for at in from..self.open.len() {
            steps::add(1);
            let open = &mut self.open[at];
            if open.counts() && ends(at, open) {
                open.state = State::Ended;
            }
            match open.state {
                State::Open => {
                    current = at as u32;
                    around = around_inside(around, open.element);
                }
                State::Ended | State::Stray => {}
            }
            open.current = current;
            open.around = around;
        }
    }

    /// Settles what the template around the innermost element holds.
    pub(super) fn settle_template(&mut self, mode: Mode) {
        let owner = self.owner();
        for open in &mut self.open[owner..] {
            open.mode = mode;
        }
    }

    /// Returns the place of the page's own `html` or `body`.
    pub(super) fn root(&self, kind: Kind) -> Option<usize> {
        let few = self.open.len().min(3);
        self.open[..few]
            .iter()
            .position(|open| open.counts() && open.kind() == kind)
    }
}

/// Returns the kinds that are open inside an element.
fn around_inside(outside: u16, element: &Element) -> u16 {
    let mut hidden = 0;
    if element.has(names::BARRIER) {
        hidden |= P | BUTTON | SELECT | RUBY | NOBR | BODY;
    }
    if element.has(SPECIAL) && !element.has(names::LOOSE) {
        hidden |= LI | DD;
    }
    if element.has(names::MARKER) {
        hidden |= ANCHOR;
    }
    match element.kind {
        Kind::Button => hidden |= P,
        Kind::Template => hidden |= FORM,
        _ => {}
    }
    outside & !hidden | own(element)
}

/// Returns the kinds that an element itself adds to those that are open.
fn own(element: &Element) -> u16 {
    match element.kind {
        Kind::Paragraph => P,
        Kind::ListItem => LI,
        Kind::Definition => DD,
        Kind::Button => BUTTON,
        Kind::Select => SELECT,
        Kind::Ruby => RUBY,
        Kind::Nobr => NOBR,
        Kind::Anchor => ANCHOR,
        Kind::Form => FORM,
        Kind::Template => TEMPLATE,
        Kind::Html | Kind::Body => BODY,
        _ => 0,
    }
}

/// Returns the mode inside an element that decides it.
fn mode_inside(kind: Kind) -> Option<Mode> {
    Some(match kind {
        Kind::Html | Kind::Body => Mode::Body,
        Kind::Head => Mode::Head,
        Kind::Table => Mode::Table,
        Kind::Caption => Mode::Caption,
        Kind::ColumnGroup => Mode::ColumnGroup,
        Kind::Rows => Mode::Rows,
        Kind::Row => Mode::Row,
        Kind::Cell => Mode::Cell,
        Kind::Template => Mode::Template,
        _ => return None,
    })
}
