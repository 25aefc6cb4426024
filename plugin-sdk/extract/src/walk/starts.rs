//! Effects of start tags outside of svg, math and the structure of tables.

use super::names::{self, BARRIER, Element, IMPLIED, Kind};
use super::stack::{self, Space, State};
use super::tokens::{self, Tag};
use super::{Pass, TextKind, Visitor};

impl<'p, V: Visitor<'p>> Pass<'p, '_, V> {
    pub(super) fn start(&mut self, tag: &Tag) {
        self.quirks.get_or_insert(true);
        self.after_body = None;
        self.at = tag.end;
        let element = tag.element(self.page.as_bytes());
        if self.open.current().is_foreign() && self.start_foreign(tag, element) {
            return;
        }
        if self.start_in_structure(tag, element) {
            return;
        }
        self.start_in_body(tag, element);
    }

    fn start_in_body(&mut self, tag: &Tag, element: &'static Element) {
        match element.kind {
            Kind::Plain | Kind::Formatting | Kind::Object | Kind::Ruby => self.push(tag, element),
            Kind::Block | Kind::Paragraph => {
                self.close_p(tag);
                self.push(tag, element);
            }
            Kind::Heading => {
                self.close_p(tag);
                self.close_current(Kind::Heading, tag);
                self.push(tag, element);
            }
            Kind::ListItem => self.start_item(tag, element, stack::LI),
            Kind::Definition => self.start_item(tag, element, stack::DD),
            Kind::Anchor => {
                self.end_formatting(Kind::Anchor, stack::ANCHOR, tag);
                self.push(tag, element);
            }
            Kind::Nobr => {
                self.end_formatting(Kind::Nobr, stack::NOBR, tag);
                self.push(tag, element);
            }
            Kind::Button => {
                self.close_nearest(Kind::Button, stack::BUTTON, tag);
                self.push(tag, element);
            }
            Kind::Select => self.start_select(tag, element),
            Kind::Option | Kind::Optgroup => self.start_option(tag, element),
            Kind::RubyBase | Kind::RubyText => {
                if self.open.around(stack::RUBY) {
                    let stays = if element.kind == Kind::RubyText {
                        "rtc"
                    } else {
                        ""
                    };
                    self.close_implied(stays, tag.start);
                }
                self.push(tag, element);
            }
            Kind::Table => {
                if self.quirks != Some(true) {
                    self.close_p(tag);
                }
                self.push(tag, element);
            }
            Kind::Template => self.push(tag, element),
            Kind::Svg => self.push_foreign(tag, Space::Svg, &names::FOREIGN),
            Kind::Math => self.push_foreign(tag, Space::Math, &names::FOREIGN),
            Kind::Raw | Kind::Script | Kind::Plaintext => self.start_text(tag, element),
            Kind::Form if self.open.around(stack::FORM) => self.push_stray(tag, element),
            Kind::Form => {
                self.close_p(tag);
                self.push(tag, element);
            }
            Kind::Html | Kind::Head | Kind::Body => self.start_root(tag, element),
            Kind::Caption | Kind::ColumnGroup | Kind::Rows | Kind::Row | Kind::Cell => {
                self.push_stray(tag, element);
            }
            Kind::Column | Kind::Void | Kind::Empty => self.begin(tag, Space::Html, false),
            Kind::Input => {
                self.close_nearest(Kind::Select, stack::SELECT, tag);
                self.begin(tag, Space::Html, false);
            }
            Kind::Rule => {
                self.close_p(tag);
                if self.open.around(stack::SELECT) {
                    self.close_implied("", tag.start);
                }
                self.begin(tag, Space::Html, false);
            }
        }
    }

    /// Opens the page's own `html`, `head` and `body`; a browser ignores further ones.
    fn start_root(&mut self, tag: &Tag, element: &'static Element) {
        let at_root = match self.open.len() {
            1 => true,
            2 => self.open.current().kind() == Kind::Html,
            _ => false,
        };
        let (seen, fits) = match element.kind {
            Kind::Html => (&mut self.html_seen, self.open.len() == 1),
            Kind::Head => (&mut self.head_seen, at_root && !self.body_seen),
            _ => (&mut self.body_seen, at_root),
        };
        if fits && !*seen {
            *seen = true;
            self.push(tag, element);
        } else {
            self.push_stray(tag, element);
        }
    }

    fn start_item(&mut self, tag: &Tag, element: &'static Element, what: u16) {
        self.close_nearest(element.kind, what, tag);
        self.close_p(tag);
        self.push(tag, element);
    }

    fn start_select(&mut self, tag: &Tag, element: &'static Element) {
        if !self.open.around(stack::SELECT) {
            self.push(tag, element);
            return;
        }
        self.close_nearest(Kind::Select, stack::SELECT, tag);
    }

    fn start_option(&mut self, tag: &Tag, element: &'static Element) {
        if self.open.around(stack::SELECT) {
            let stays = if element.kind == Kind::Option {
                "optgroup"
            } else {
                ""
            };
            self.close_implied(stays, tag.start);
        } else {
            self.close_current(Kind::Option, tag);
        }
        self.push(tag, element);
    }

    /// Opens an element that holds text and no tags, and skips to its end tag.
    fn start_text(&mut self, tag: &Tag, element: &'static Element) {
        if element.has(names::CLOSES_P) {
            self.close_p(tag);
        }
        self.push(tag, element);
        if self.is_over {
            return;
        }
        let end = tokens::text_end(self.page.as_bytes(), tag, element);
        let kind = match element.kind {
            Kind::Plaintext => TextKind::Literal,
            _ if element.has(names::ENCODED) => TextKind::Encoded,
            _ => TextKind::Raw,
        };
        self.at = end.unwrap_or(tag.end);
        self.tell(tag.end, self.at, kind);
    }

    /// Opens an element that a browser ignores. It stays as written, since a page may be a part of a table.
    pub(super) fn push_stray(&mut self, tag: &Tag, element: &'static Element) {
        self.push_as(tag, element, Space::Html, State::Stray);
    }

    fn close_p(&mut self, tag: &Tag) {
        self.close_nearest(Kind::Paragraph, stack::P, tag);
    }

    /// Closes the nearest element of a kind, if there is one in its scope.
    fn close_nearest(&mut self, kind: Kind, what: u16, tag: &Tag) {
        if self.open.around(what)
            && let Some(place) = self.open.nearest(kind)
        {
            self.close(place, tag.start);
        }
    }

    fn close_current(&mut self, kind: Kind, tag: &Tag) {
        if self.open.current().kind() == kind {
            self.close(self.open.current_at(), tag.start);
        }
    }

    /// Closes elements that end by themselves, up to an element of the name that `stays`.
    pub(super) fn close_implied(&mut self, stays: &str, at: usize) {
        loop {
            let current = self.open.current();
            if !current.element.has(IMPLIED) || current.element.name == stays {
                return;
            }
            self.close(self.open.current_at(), at);
        }
    }

    /// Ends a formatting element that may not contain its own kind, where the next one starts.
    fn end_formatting(&mut self, kind: Kind, what: u16, tag: &Tag) {
        if !self.open.around(what) {
            return;
        }
        let Some(place) = self.open.nearest_written(kind) else {
            return;
        };
        if self
            .open
            .first_inside(place, |open| open.element.has(BARRIER))
            .is_some()
        {
            self.open.end(place);
        } else if let Some((outer, inner)) = self.open.blocks_inside(place) {
            self.open.end_crossing(place, outer, inner);
        } else {
            self.close(place, tag.start);
        }
    }
}
