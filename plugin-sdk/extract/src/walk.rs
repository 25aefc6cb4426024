//! Walk over a page: one pass tells its elements and its text as a browser would have them, without a document
//! tree.
//!
//! The tags are read by the rules of the standard's tokenizer. A stack of open elements, by those of its tree
//! builder, says what each tag opens and closes:
//!
//! - Elements end where they end by themselves (`li`, `p`, `td`, `option`, `head`, …), where one around them ends,
//!   and at the end of the page. `tbody`, `tr` and `colgroup` begin where the standard implies them.
//! - End tags that close nothing are passed over. One that crosses a block, as in `<b><p></b></p>`, counts at the
//!   first place where it can. Those of `body` and `html` count at the end of the content that follows them.
//! - A `select` in a `select` only ends the one around it, a `form` right in a table is empty, `image` and `frame`
//!   hold nothing, and a self-closing element in svg and math holds nothing either.
//!
//! Some rules are left out. Formatting elements are not opened again, nothing is moved out of a table, and `html`,
//! `head` and `body` are not implied, nor are `p` and `br` for an end tag alone. Start tags that a browser ignores
//! (`td` outside a table, `form` in `form`) begin an element, and the rules do not see it.
//!
//! Some cases differ from a browser: `math` right in `svg` and the reverse; HTML elements named `title` and `desc`
//! in a `foreignObject`; CDATA in a `foreignObject`; `script` and `style` in a template that begins with `col`.
//!
//! The work is linear in the page. The walk ends if more than [`MOST_OPEN`] elements are open.

mod ends;
mod foreign;
pub(crate) mod names;
mod quirks;
mod stack;
mod start;
mod starts;
mod tables;
pub(crate) mod tokens;

use std::ops::ControlFlow;

use memchr::memchr;

use crate::steps;
use names::{Element, Kind};
pub use stack::MOST_OPEN;
use stack::{Mode, Open, Space, Stack, State};
pub use start::Start;
use tokens::{Markup, Tag, Tail};

/// Receiver of the elements and the text of a page, in the order of the page.
pub trait Visitor<'p> {
    /// Begins an element.
    fn start(&mut self, element: &Start<'p>);

    /// Ends the innermost open element. Its content ends before the byte `at` of the page. Not called for elements
    /// that have no content.
    fn end(&mut self, at: usize);

    /// Receives text of the innermost open element, up to the next tag.
    fn text(&mut self, text: &'p str, kind: TextKind);

    /// Called often: the page is read up to the byte `at`. A break ends the walk there, without calls of `end` for
    /// open elements.
    fn reached(&mut self, at: usize) -> ControlFlow<()>;
}

/// Kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Text as written, with entities.
    Encoded,
    /// Literal text: a CDATA section, or the text that follows `plaintext`.
    Literal,
    /// Text that is not shown: of a script, of a style sheet, or shown only where scripts do not run.
    Raw,
}

/// Error of a page in which more than [`MOST_OPEN`] elements are open in each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyOpen;

/// Tells a visitor the elements and the text of a page.
pub fn walk<'p>(page: &'p str, visitor: &mut impl Visitor<'p>) -> Result<(), TooManyOpen> {
    let mut pass = Pass {
        page,
        visitor,
        at: 0,
        open: Stack::new(),
        quirks: None,
        html_seen: false,
        head_seen: false,
        body_seen: false,
        after_body: None,
        is_over: false,
    };
    if pass.run().is_break() {
        return Ok(());
    }
    if pass.is_over {
        return Err(TooManyOpen);
    }
    pass.finish();
    Ok(())
}

struct Pass<'p, 'v, V> {
    page: &'p str,
    visitor: &'v mut V,
    /// Position up to which the page is read.
    at: usize,
    open: Stack,
    /// True if a table may stand in a `p`. `None` until the first start tag, text or document type.
    quirks: Option<bool>,
    /// True if the page's own element of this name was seen.
    html_seen: bool,
    head_seen: bool,
    body_seen: bool,
    after_body: Option<AfterBody>,
    /// True if there was no room for one more open element.
    is_over: bool,
}

/// Positions of the end tags of `body` and `html`, while nothing but white space and comments has followed.
/// Anything else still belongs to the body.
#[derive(Debug, Default)]
struct AfterBody {
    body: Option<usize>,
    html: Option<usize>,
}

impl<'p, V: Visitor<'p>> Pass<'p, '_, V> {
    fn run(&mut self) -> ControlFlow<()> {
        let bytes = self.page.as_bytes();
        if self.page.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        while let Some(found) = memchr(b'<', &bytes[self.at..]) {
            self.visitor.reached(self.at)?;
            let before = self.at;
            let less = before + found;
            self.text(before, less, TextKind::Encoded);
            let current = self.open.current();
            let cdata = current.is_foreign() && !current.is_integration();
            match tokens::read(bytes, less, cdata) {
                Markup::Start(tag) => self.start(&tag),
                Markup::End(tag) => self.end(&tag),
                Markup::Comment(end) => self.at = end,
                Markup::Text(end) => {
                    self.text(less, end, TextKind::Encoded);
                    self.at = end;
                }
                Markup::Cdata(end) => {
                    self.text(
                        less + tokens::CDATA.len(),
                        end - tokens::CDATA_END.len(),
                        TextKind::Literal,
                    );
                    self.at = end;
                }
                Markup::Doctype(end) => {
                    self.quirks
                        .get_or_insert_with(|| quirks::asks_for(&self.page[less..end]));
                    self.at = end;
                }
                Markup::Unfinished(tail) => {
                    let end = bytes.len();
                    match tail {
                        Tail::Markup => {}
                        Tail::Slash => self.text(less, end, TextKind::Literal),
                        Tail::Cdata => {
                            self.text(less + tokens::CDATA.len(), end, TextKind::Literal);
                        }
                    }
                    self.at = end;
                }
            }
            steps::add(self.at - before);
            if self.is_over {
                return ControlFlow::Continue(());
            }
        }
        self.visitor.reached(self.at)?;
        self.text(self.at, bytes.len(), TextKind::Encoded);
        steps::add(bytes.len() - self.at);
        self.at = bytes.len();
        self.visitor.reached(self.at)
    }

    /// Tells the text between tags. White space and other text differ only in a few places.
    #[inline]
    fn text(&mut self, from: usize, to: usize, kind: TextKind) {
        let differs = self.quirks.is_none()
            || self.after_body.is_some()
            || matches!(self.open.mode(), Mode::Head | Mode::ColumnGroup);
        let rest = if differs {
            self.text_that_matters(from, to, kind)
        } else {
            from
        };
        self.tell(rest, to, kind);
    }

    /// Ends elements in which white space is allowed and other text is not. Returns the start of the text that is
    /// left.
    fn text_that_matters(&mut self, from: usize, to: usize, kind: TextKind) -> usize {
        let text = &self.page.as_bytes()[from..to];
        let Some(first) = text.iter().position(|&byte| !tokens::is_space(byte)) else {
            return from;
        };
        self.quirks.get_or_insert(true);
        self.after_body = None;
        let current = self.open.current();
        if !matches!(current.kind(), Kind::Head | Kind::ColumnGroup) {
            return from;
        }
        self.tell(from, from + first, kind);
        self.close(self.open.current_at(), from + first);
        from + first
    }

    fn tell(&mut self, from: usize, to: usize, kind: TextKind) {
        if from < to {
            self.visitor.text(&self.page[from..to], kind);
        }
    }

    /// Opens the element that a start tag of HTML names.
    fn push(&mut self, tag: &Tag, element: &'static Element) {
        self.push_as(tag, element, Space::Html, State::Open);
    }

    fn push_as(&mut self, tag: &Tag, element: &'static Element, space: Space, state: State) {
        if self.open.len() > MOST_OPEN {
            self.is_over = true;
            return;
        }
        self.open.push(Open {
            element,
            hash: tag.hash,
            owner: 0,
            current: 0,
            around: 0,
            mode: Mode::Body,
            space,
            state,
        });
        self.begin(tag, space, true);
    }

    /// Tells the visitor that an element begins.
    fn begin(&mut self, tag: &Tag, space: Space, has_content: bool) {
        let start = Start::new(self.page, tag, space == Space::Html, has_content);
        self.visitor.start(&start);
    }

    /// Closes the element at `place` and all elements in it: their content ends at `at`.
    fn close(&mut self, place: usize, at: usize) {
        self.close_above(place, at);
        self.close_top(at);
        self.close_ended(at);
    }

    /// Closes all elements inside the element at `place`.
    fn close_above(&mut self, place: usize, at: usize) {
        while self.open.len() > place + 1 {
            self.close_top(at);
        }
    }

    /// Closes the element at `place` with an end tag of the page, which may have another name.
    fn close_with(&mut self, place: usize, tag: &Tag) {
        self.close_above(place, tag.start);
        self.close_top(tag.start);
        self.close_ended(tag.end);
    }

    /// Closes elements whose end tags came too early, unless something is still open in them.
    fn close_ended(&mut self, at: usize) {
        while self.open.top().state == State::Ended {
            self.close_top(at);
        }
    }

    fn close_top(&mut self, at: usize) {
        steps::add(1);
        if self.open.pop().is_some() {
            self.visitor.end(at);
        }
    }

    /// Closes the elements that are still open at the end of the page.
    fn finish(mut self) {
        if let Some(after) = self.after_body.take() {
            for (kind, at) in [(Kind::Body, after.body), (Kind::Html, after.html)] {
                if let (Some(place), Some(at)) = (self.open.root(kind), at) {
                    self.close_above(place, at);
                    self.close_top(at);
                }
            }
        }
        self.close_above(0, self.page.len());
    }
}

#[cfg(test)]
mod tests;
