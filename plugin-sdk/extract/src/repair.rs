//! Writes the end tags that HTML lets an author leave out, so that lol_html, which knows only the tags that
//! are there, sees the elements that a browser sees.
//!
//! One scan over the page with a stack of what is open, by the rules of the standard's tree builder:
//!
//! - End tags are written where an element ends by itself (`li`, `p`, `td`, `option`, `head`, …), where it ends
//!   because one around it does, and at the end of the page. `tbody`, `tr` and `colgroup` are written where the
//!   standard makes them up.
//! - End tags that close nothing are left out. One that crosses a block, as in `<b><p></b></p>`, moves to the
//!   first place where it can stand. Those of `body` and `html` move to the end of what follows them.
//! - Where lol_html takes an element as open and the standard does not (`<svg/>`, `image`, a `form` right in a
//!   table), the end tag is written at once. A `select` in a `select` only ends the one around it, as to a
//!   browser.
//!
//! So every end tag of a repaired page closes the innermost open element, and another repair changes nothing.
//!
//! Not done: formatting elements are not opened again, nothing is moved out of a table, `html`, `head` and
//! `body` are not made up, nor `p` and `br` for an end tag alone. Start tags that a browser ignores (`td`
//! outside a table, `form` in `form`) stay as written, and the rules do not see them.
//!
//! Not as in a browser, because lol_html reads the page in another way: `math` right in `svg` and the reverse;
//! HTML elements named `title` and `desc` in a `foreignObject`; CDATA in a `foreignObject`; `script` and `style`
//! in a template that begins with `col`.
//!
//! The work is linear in the page. Where more than 32 768 elements are open, the rest of the page is passed
//! on as it is: lol_html gives up long before.

mod ends;
mod foreign;
mod names;
mod output;
mod quirks;
mod stack;
mod starts;
mod steps;
mod tables;
mod tokens;

use std::borrow::Cow;

use memchr::memchr;

use names::{Element, Kind};
use output::Output;
use stack::{Mode, Open, Space, Stack, State};
use tokens::{Markup, Tag, Tail};

/// The page with the end tags that it leaves out. Borrowed if nothing is missing and nothing is too much.
///
/// The result of a repair is not changed by another one.
///
/// ```
/// use crawler_extract::repair::repair;
///
/// assert_eq!(repair("<ul><li>a<li>b</ul>"), "<ul><li>a</li><li>b</li></ul>");
/// assert_eq!(
///     repair("<table><td>a</table>"),
///     "<table><tbody><tr><td>a</td></tr></tbody></table>",
/// );
/// assert_eq!(repair("<p>a</i></p>"), "<p>a</p>");
/// ```
#[must_use]
pub fn repair(page: &str) -> Cow<'_, str> {
    let mut pass = Pass::new(page);
    pass.run();
    pass.finish()
}

struct Pass<'p> {
    page: &'p str,
    /// Up to where the page is read.
    at: usize,
    open: Stack,
    out: Output<'p>,
    /// Whether a table may stand in a `p`. None until the first start tag, text or document type. An end tag
    /// there is left out, so it must not decide: what is written has to be read in the same way.
    quirks: Option<bool>,
    /// The page's own of these was seen.
    html_seen: bool,
    head_seen: bool,
    body_seen: bool,
    after_body: Option<AfterBody>,
    rest: Rest,
}

/// The end tags of `body` and `html`, while nothing but white space and comments has followed. Anything else
/// still belongs to the body, and then they have to go.
#[derive(Debug, Default)]
struct AfterBody {
    body: Option<(usize, usize)>,
    html: Option<(usize, usize)>,
}

/// What the page ends in, which decides how end tags can be written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// In content.
    Content,
    /// In something unfinished that begins here.
    Tail(Tail, usize),
    /// In the text of an element that can end there.
    Text,
    /// In a script, where `</script>` would not be its end.
    Script,
    /// In text that cannot end, or among more open elements than are kept.
    Endless,
}

impl<'p> Pass<'p> {
    fn new(page: &'p str) -> Self {
        Self {
            page,
            at: 0,
            open: Stack::new(),
            out: Output::new(page),
            quirks: None,
            html_seen: false,
            head_seen: false,
            body_seen: false,
            after_body: None,
            rest: Rest::Content,
        }
    }

    fn run(&mut self) {
        let bytes = self.page.as_bytes();
        if self.page.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        while let Some(found) = memchr(b'<', &bytes[self.at..]) {
            let before = self.at;
            let less = before + found;
            self.text(before, less);
            let current = self.open.current();
            let cdata = current.is_foreign() && !current.is_integration();
            match tokens::read(bytes, less, cdata) {
                Markup::Start(tag) => self.start(&tag),
                Markup::End(tag) => self.end(&tag),
                Markup::Comment(end) => self.at = end,
                Markup::Text(end) => {
                    self.text(less, end);
                    self.at = end;
                }
                Markup::Doctype(end) => {
                    self.quirks
                        .get_or_insert_with(|| quirks::asks_for(&self.page[less..end]));
                    self.at = end;
                }
                Markup::Unfinished(tail) => {
                    if tail != Tail::Markup {
                        self.text(less, bytes.len());
                    }
                    self.rest = Rest::Tail(tail, less);
                    self.at = bytes.len();
                }
            }
            steps::add(self.at - before);
            if self.rest != Rest::Content {
                return;
            }
        }
        self.text(self.at, bytes.len());
        steps::add(bytes.len() - self.at);
        self.at = bytes.len();
    }

    /// Text between tags matters only where white space and other text differ.
    #[inline]
    fn text(&mut self, from: usize, to: usize) {
        let differs = self.quirks.is_none()
            || self.after_body.is_some()
            || matches!(self.open.mode(), Mode::Head | Mode::ColumnGroup);
        if differs {
            self.text_that_matters(from, to);
        }
    }

    fn text_that_matters(&mut self, from: usize, to: usize) {
        let text = &self.page.as_bytes()[from..to];
        let Some(first) = text.iter().position(|&byte| !tokens::is_space(byte)) else {
            return;
        };
        self.quirks.get_or_insert(true);
        self.back_to_body();
        let current = self.open.current();
        if matches!(current.kind(), Kind::Head | Kind::ColumnGroup) {
            self.close(self.open.current_at(), from + first);
        }
    }

    /// What follows the end tags of `body` and `html` belongs to the body all the same.
    fn back_to_body(&mut self) {
        if let Some(after) = self.after_body.take() {
            for (from, to) in [after.body, after.html].into_iter().flatten() {
                self.out.leave_out(from, to);
            }
        }
    }

    /// Opens what a start tag of HTML names.
    fn push(&mut self, tag: &Tag, element: &'static Element) {
        self.push_as(tag, element, Space::Html, State::Open);
    }

    fn push_as(&mut self, tag: &Tag, element: &'static Element, space: Space, state: State) {
        if self.open.len() >= stack::MOST_OPEN {
            self.rest = Rest::Endless;
            return;
        }
        self.open.push(Open {
            element,
            hash: tag.hash,
            name_start: tag.name_start,
            owner: 0,
            current: 0,
            around: 0,
            mode: Mode::Body,
            space,
            state,
        });
    }

    /// Closes the element at `place` and all in it, with end tags written at `at`.
    fn close(&mut self, place: usize, at: usize) {
        self.close_above(place, at);
        self.close_top(at);
        self.close_ended(at);
    }

    /// Closes all that is in the element at `place`.
    fn close_above(&mut self, place: usize, at: usize) {
        while self.open.len() > place + 1 {
            self.close_top(at);
        }
    }

    /// Closes the element at `place` with an end tag of the page, which may have another name.
    fn close_with(&mut self, place: usize, tag: &Tag) {
        if self.open.get(place).hash != tag.hash {
            self.close(place, tag.start);
            self.leave_out(tag);
            return;
        }
        self.close_above(place, tag.start);
        self.open.pop();
        // Their end tags may stand right here, as they do where the pass itself has written them.
        while self.open.top().state == State::Ended && self.skip_end_tag(self.open.top().hash) {
            self.open.pop();
        }
        self.close_ended(self.at);
    }

    /// Goes behind an end tag of this name, if one is next.
    fn skip_end_tag(&mut self, hash: u64) -> bool {
        let page = self.page.as_bytes();
        if page[self.at..].starts_with(b"</")
            && let Markup::End(tag) = tokens::read(page, self.at, false)
        {
            steps::add(tag.end - tag.start);
            if tag.hash == hash {
                self.at = tag.end;
                return true;
            }
        }
        false
    }

    /// Elements whose end tags came too early end now, unless something is still open in them.
    fn close_ended(&mut self, at: usize) {
        while self.open.top().state == State::Ended {
            self.close_top(at);
        }
    }

    fn close_top(&mut self, at: usize) {
        steps::add(1);
        if let Some(open) = self.open.pop() {
            let name = match open.element.name {
                "" => tokens::name_at(self.page, open.name_start),
                name => name,
            };
            self.out.insert_end_tag(at, name);
        }
    }

    fn leave_out(&mut self, tag: &Tag) {
        self.out.leave_out(tag.start, tag.end);
    }

    /// Closes at the end of the page what is still open.
    fn finish(mut self) -> Cow<'p, str> {
        if self.rest == Rest::Endless {
            return self.out.finish();
        }
        if let Some(after) = self.after_body.take() {
            for (kind, tag) in [(Kind::Body, after.body), (Kind::Html, after.html)] {
                match (self.open.root(kind), tag) {
                    (_, None) => {}
                    (None, Some((from, to))) => self.out.leave_out(from, to),
                    (Some(place), Some((from, _))) => {
                        self.close_above(place, from);
                        self.open.pop();
                    }
                }
            }
        }
        if self.open.len() > 1 {
            self.make_room();
            self.close_above(0, self.page.len());
        }
        self.out.finish()
    }

    /// Makes the end of the page a place where end tags can be written.
    fn make_room(&mut self) {
        let end = self.page.len();
        match self.rest {
            Rest::Content | Rest::Text | Rest::Endless => {}
            Rest::Script => self.out.insert(end, "-->"),
            Rest::Tail(Tail::Cdata, _) => self.out.insert(end, "]]>"),
            Rest::Tail(Tail::Markup, from) => self.out.leave_out(from, end),
            Rest::Tail(Tail::Slash, from) => {
                self.out.leave_out(from, end);
                self.out.insert(end, "&lt;/");
            }
        }
    }
}

#[cfg(test)]
mod tests;
