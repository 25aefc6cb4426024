//! Svg and math: elements that stay in them, that end them, and places where HTML begins inside them.
//!
//! `math` right inside `svg` begins math, and the reverse; the standard does not have this.

use super::names::{self, ANNOTATION, BREAKOUT, Element, FONT, GLYPH, Kind, MATH_TEXT, SVG_HTML};
use super::stack::{Open, Space, State};
use super::tokens::{self, Tag};
use super::{Pass, Visitor};

impl<'p, V: Visitor<'p>> Pass<'p, '_, V> {
    /// Handles a start tag inside svg or math. Returns false if the rules of HTML hold for it.
    pub(super) fn start_foreign(&mut self, tag: &Tag, element: &'static Element) -> bool {
        let current = *self.open.current();
        if self.starts_html(&current, element) {
            return false;
        }
        if element.has(BREAKOUT) || element.has(FONT) && self.has_font_attributes(tag) {
            self.break_out(tag.start);
            return false;
        }
        let space = match element.kind {
            Kind::Svg => Space::Svg,
            Kind::Math => Space::Math,
            _ => current.space,
        };
        let element = if self.is_integration(tag, element, space) {
            &names::INTEGRATION
        } else {
            &names::FOREIGN
        };
        self.push_foreign(tag, space, element);
        true
    }

    /// Opens an element of svg or math, unless it closes itself.
    pub(super) fn push_foreign(&mut self, tag: &Tag, space: Space, element: &'static Element) {
        if tag.self_closing {
            self.begin(tag, space, false);
        } else {
            self.push_as(tag, element, space, State::Open);
        }
    }

    /// Closes svg and math up to the HTML around them.
    pub(super) fn break_out(&mut self, at: usize) {
        loop {
            let current = self.open.current();
            if !current.is_foreign() || current.is_integration() {
                return;
            }
            self.close(self.open.current_at(), at);
        }
    }

    /// Returns true if HTML is expected in an element of svg or math.
    fn starts_html(&self, current: &Open, element: &Element) -> bool {
        match current.space {
            _ if current.is_integration() => current.space == Space::Svg || !element.has(GLYPH),
            Space::Math => element.kind == Kind::Svg && current.hash == ANNOTATION_XML,
            _ => false,
        }
    }

    fn is_integration(&self, tag: &Tag, element: &Element, space: Space) -> bool {
        match space {
            Space::Svg => element.has(SVG_HTML),
            Space::Math if element.has(ANNOTATION) => {
                tokens::attributes(self.page, tag).any(|(name, value)| {
                    name.eq_ignore_ascii_case("encoding")
                        && (value.eq_ignore_ascii_case("text/html")
                            || value.eq_ignore_ascii_case("application/xhtml+xml"))
                })
            }
            Space::Math => element.has(MATH_TEXT),
            Space::Html => false,
        }
    }

    fn has_font_attributes(&self, tag: &Tag) -> bool {
        tokens::attributes(self.page, tag).any(|(name, _)| {
            ["color", "face", "size"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
        })
    }
}

const ANNOTATION_XML: u64 = names::hash(b"annotation-xml");
