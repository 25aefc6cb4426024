//! Effects of end tags. An end tag that closes nothing is left out.

use super::names::{self, BARRIER, Kind, LIST, SPECIAL};
use super::stack::{self, Mode, Open};
use super::tokens::Tag;
use super::{AfterBody, Pass, Visitor};

const BR: u64 = names::hash(b"br");

impl<'p, V: Visitor<'p>> Pass<'p, '_, V> {
    pub(super) fn end(&mut self, tag: &Tag) {
        self.at = tag.end;
        if self.closes_top(tag) {
            self.close_with(self.open.len() - 1, tag);
            return;
        }
        let kind = tag.element(self.page.as_bytes()).kind;
        if let Some(after) = &mut self.after_body
            && after.html.is_none()
            && kind == Kind::Html
        {
            after.html = Some(tag.start);
            return;
        }
        self.after_body = None;
        let mut place = self.place_in_foreign(tag, kind);
        if place.is_none() {
            self.leave_what_ends_by_itself(tag, kind);
            if matches!(kind, Kind::Html | Kind::Body) && self.open.around(stack::BODY) {
                self.end_root(tag, kind);
                return;
            }
            place = self.place_in_html(tag, kind);
        }
        if let Some(place) = place {
            self.close_with(place, tag);
        }
    }

    /// Returns true if an end tag closes the innermost element, as nearly all do on a good page. This includes an
    /// element that a browser ignores, which thus ends where its end tag stands.
    fn closes_top(&self, tag: &Tag) -> bool {
        let top = self.open.top();
        let is_root = top.counts() && matches!(top.kind(), Kind::Html | Kind::Body);
        top.hash == tag.hash && !is_root && self.open.len() > 1 && self.after_body.is_none()
    }

    /// Keeps the end tags of `html` and `body` until it is known what follows them.
    fn end_root(&mut self, tag: &Tag, kind: Kind) {
        let tag = Some(tag.start);
        self.after_body = Some(match kind {
            Kind::Body => AfterBody {
                body: tag,
                html: None,
            },
            _ => AfterBody {
                body: None,
                html: tag,
            },
        });
    }

    /// Ends `head` or `colgroup` before an end tag of something else.
    fn leave_what_ends_by_itself(&mut self, tag: &Tag, kind: Kind) {
        let ends = match self.open.current().kind() {
            Kind::Head => matches!(kind, Kind::Html | Kind::Body) || tag.hash == BR,
            Kind::ColumnGroup => !matches!(kind, Kind::ColumnGroup | Kind::Column | Kind::Template),
            _ => false,
        };
        if ends {
            self.close(self.open.current_at(), tag.start);
        }
    }

    /// Returns the place of the element that an end tag closes, by the rules of HTML. `None` if it closes nothing
    /// now.
    fn place_in_html(&mut self, tag: &Tag, kind: Kind) -> Option<usize> {
        let named = |open: &Open| open.hash == tag.hash && !open.is_foreign();
        let of_kind = |open: &Open| open.kind() == kind;
        let bars = |open: &Open| open.element.has(BARRIER);
        match kind {
            Kind::Template => self.nearest_around(kind, stack::TEMPLATE),
            // A template that holds nothing yet, and `head`, take no other end tags.
            _ if self.open.mode() == Mode::Template => None,
            Kind::Head => (self.open.current().kind() == kind).then(|| self.open.current_at()),
            _ if self.open.mode() == Mode::Head => None,
            Kind::Caption
            | Kind::ColumnGroup
            | Kind::Rows
            | Kind::Row
            | Kind::Cell
            | Kind::Table => self.open.table_part(tag.hash),
            Kind::Paragraph => self.nearest_around(kind, stack::P),
            Kind::ListItem => self
                .open
                .find(of_kind, |open| open.element.has(BARRIER | LIST)),
            Kind::Heading => self.open.find(of_kind, bars),
            Kind::Block | Kind::Button | Kind::Select | Kind::Object | Kind::Definition => {
                self.open.find(named, bars)
            }
            Kind::Form => {
                let place = self.open.find(of_kind, bars)?;
                self.close_implied("", tag.start);
                let closes = self.open.current_at() == place || self.open.around(stack::TEMPLATE);
                if !closes {
                    self.open.end(place);
                }
                closes.then_some(place)
            }
            Kind::Formatting | Kind::Anchor | Kind::Nobr => {
                let place = self.open.find(named, bars)?;
                let Some((outer, inner)) = self.open.blocks_inside(place) else {
                    return Some(place);
                };
                self.cross_blocks(place, outer, inner, tag);
                None
            }
            Kind::Html | Kind::Body | Kind::Column => None,
            Kind::Void | Kind::Input | Kind::Rule | Kind::Empty => None,
            _ => self.open.find(named, |open| open.element.has(SPECIAL)),
        }
    }

    fn nearest_around(&self, kind: Kind, what: u16) -> Option<usize> {
        if self.open.around(what) {
            self.open.nearest(kind)
        } else {
            None
        }
    }

    /// Ends a formatting element in which the blocks from `outer` to `inner` are open. They stay open, and the
    /// formatting element is closed with the outer one. A browser moves the blocks out of it instead, and out of
    /// the elements without rules around them, which therefore end as well.
    fn cross_blocks(&mut self, place: usize, outer: usize, inner: usize, tag: &Tag) {
        if let Some(plain) = self.open.first_inside(inner, |open| !open.is_formatting()) {
            self.close(plain, tag.start);
        }
        self.open.end_crossing(place, outer, inner);
    }

    /// Returns the place of the element that an end tag inside svg or math closes there.
    fn place_in_foreign(&mut self, tag: &Tag, kind: Kind) -> Option<usize> {
        if !self.open.current().is_foreign() {
            return None;
        }
        if kind == Kind::Paragraph || tag.hash == BR {
            self.break_out(tag.start);
            return None;
        }
        self.open.find(
            |open| open.hash == tag.hash && open.is_foreign(),
            |open| !open.is_foreign(),
        )
    }
}
