//! Svg and math: what stays in them, what ends them, and where HTML begins inside them.
//!
//! Where lol_html and the standard differ about what is svg and what is math (`math` right inside `svg` and
//! the reverse), this goes with lol_html, so that both read the same tags.

use super::Pass;
use super::names::{self, ANNOTATION, BREAKOUT, Element, FONT, GLYPH, Kind, MATH_TEXT, SVG_HTML};
use super::stack::{Open, Space, State};
use super::tokens::{self, Tag};

impl Pass<'_> {
    /// Whether a start tag inside svg or math is dealt with. If not, the rules of HTML hold for it.
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
        if tag.self_closing && !current.is_integration() && !is_root(tag) {
            return true;
        }
        self.push_foreign(tag, space, element);
        true
    }

    /// Opens an element of svg or math. One that closes itself is written as a pair, since lol_html takes
    /// `svg` and `math` as open, and whatever starts where it expects HTML.
    pub(super) fn push_foreign(&mut self, tag: &Tag, space: Space, element: &'static Element) {
        if tag.self_closing {
            self.out.leave_out(tag.end - 2, tag.end - 1);
            self.out.insert(tag.end - 1, " ");
            let name = &self.page[tag.name_start..tag.name_end];
            self.out.insert_end_tag(tag.end, name);
            return;
        }
        self.push_as(tag, element, space, State::Open);
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

    /// Whether HTML is expected in an element of svg or math.
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
            Space::Math if element.has(ANNOTATION) => tokens::attributes(self.page.as_bytes(), tag)
                .any(|(name, value)| {
                    name.eq_ignore_ascii_case(b"encoding")
                        && (value.eq_ignore_ascii_case(b"text/html")
                            || value.eq_ignore_ascii_case(b"application/xhtml+xml"))
                }),
            Space::Math => element.has(MATH_TEXT),
            Space::Html => false,
        }
    }

    fn has_font_attributes(&self, tag: &Tag) -> bool {
        tokens::attributes(self.page.as_bytes(), tag).any(|(name, _)| {
            [&b"color"[..], b"face", b"size"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
        })
    }
}

const ANNOTATION_XML: u64 = names::hash(b"annotation-xml");
const SVG: u64 = names::hash(b"svg");
const MATH: u64 = names::hash(b"math");

fn is_root(tag: &Tag) -> bool {
    tag.hash == SVG || tag.hash == MATH
}
