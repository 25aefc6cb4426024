//! Table of the elements that have rules of their own, and the lookup of a name in it.
//!
//! The rules follow the tree builder of the HTML standard. A name that is not here is `Kind::Plain` without
//! traits, like `span`.

use Kind::*;

/// Rules of an element for its start and its end. They are written in `starts`, `ends`, `tables`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Starts anywhere. Its end tag closes it through anything that is not special.
    Plain,
    Html,
    Head,
    Body,
    /// Closes an open `p`. Its end tag closes it through anything in scope.
    Block,
    Paragraph,
    Heading,
    ListItem,
    Definition,
    Form,
    /// `b` and its like. Its end tag may cross blocks.
    Formatting,
    Anchor,
    Nobr,
    Button,
    Object,
    Select,
    Option,
    Optgroup,
    Ruby,
    /// `rb` and `rtc`.
    RubyBase,
    /// `rt` and `rp`.
    RubyText,
    Table,
    Caption,
    ColumnGroup,
    Column,
    /// `tbody`, `thead` and `tfoot`.
    Rows,
    Row,
    Cell,
    Template,
    Svg,
    Math,
    /// An element that is never open.
    Void,
    Input,
    /// `hr`.
    Rule,
    /// An element that is never open: `image`, which a browser takes for `img`, and `frame`.
    Empty,
    /// An element with text up to its own end tag, with entities or without.
    Raw,
    Script,
    /// An element with text up to the end of the page.
    Plaintext,
}

/// Stops the search of an end tag without rules, and a crossing formatting element.
pub(super) const SPECIAL: u16 = 1;
/// Special, but a list item is closed through it.
pub(super) const LOOSE: u16 = 1 << 1;
/// Ends by itself wherever the standard generates implied end tags.
pub(super) const IMPLIED: u16 = 1 << 2;
/// Bars the default scope.
pub(super) const BARRIER: u16 = 1 << 3;
/// Formatting elements outside are not seen from inside.
pub(super) const MARKER: u16 = 1 << 4;
/// Ends svg and math where it starts in them.
pub(super) const BREAKOUT: u16 = 1 << 5;
/// May stand in `head`.
pub(super) const IN_HEAD: u16 = 1 << 6;
/// Bars `</li>`.
pub(super) const LIST: u16 = 1 << 7;
/// Content of the element is HTML if it stands in svg.
pub(super) const SVG_HTML: u16 = 1 << 8;
/// Content of the element is HTML if it stands in math.
pub(super) const MATH_TEXT: u16 = 1 << 9;
/// `annotation-xml`, whose content is HTML when an attribute says so.
pub(super) const ANNOTATION: u16 = 1 << 10;
/// Stays math where HTML is expected inside math.
pub(super) const GLYPH: u16 = 1 << 11;
/// `font`, which ends svg and math when it has certain attributes.
pub(super) const FONT: u16 = 1 << 12;
/// Closes an open `p`, though its kind does not say so.
pub(super) const CLOSES_P: u16 = 1 << 13;
/// Its text has entities, though no tags.
pub(super) const ENCODED: u16 = 1 << 14;

/// A line of the table.
#[derive(Debug)]
pub(super) struct Element {
    /// Name in lower case. Empty if the name has to be read from the page.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) traits: u16,
}

impl Element {
    pub(super) fn has(&self, traits: u16) -> bool {
        self.traits & traits != 0
    }
}

/// Any name that is not in the table.
pub(super) static UNKNOWN: Element = row("", Plain, 0);
/// Any element of svg or math whose content is not HTML.
pub(super) static FOREIGN: Element = row("", Plain, 0);
/// An element of svg or math whose content is HTML.
pub(super) static INTEGRATION: Element = row("", Plain, SPECIAL | BARRIER);

const fn row(name: &'static str, kind: Kind, traits: u16) -> Element {
    Element { name, kind, traits }
}

static TABLE: [Element; 122] = [
    row("html", Html, SPECIAL | BARRIER),
    row("head", Head, SPECIAL | BREAKOUT),
    row("body", Body, SPECIAL | BREAKOUT),
    // What may stand in `head`.
    row("base", Void, IN_HEAD),
    row("basefont", Void, IN_HEAD),
    row("bgsound", Void, IN_HEAD),
    row("link", Void, IN_HEAD),
    row("meta", Void, IN_HEAD | BREAKOUT),
    row("title", Raw, SPECIAL | IN_HEAD | SVG_HTML | ENCODED),
    row("style", Raw, SPECIAL | IN_HEAD),
    row("script", Script, SPECIAL | IN_HEAD),
    row("noscript", Raw, SPECIAL | IN_HEAD),
    row("noframes", Raw, SPECIAL | IN_HEAD),
    row("template", Template, SPECIAL | BARRIER | MARKER | IN_HEAD),
    // Text up to the end tag.
    row("textarea", Raw, SPECIAL | ENCODED),
    row("iframe", Raw, SPECIAL),
    row("noembed", Raw, SPECIAL),
    row("xmp", Raw, SPECIAL | CLOSES_P),
    row("plaintext", Plaintext, SPECIAL | CLOSES_P),
    // Blocks.
    row("address", Block, SPECIAL | LOOSE),
    row("article", Block, SPECIAL),
    row("aside", Block, SPECIAL),
    row("blockquote", Block, SPECIAL | BREAKOUT),
    row("center", Block, SPECIAL | BREAKOUT),
    row("details", Block, SPECIAL),
    row("dialog", Block, 0),
    row("dir", Block, SPECIAL),
    row("div", Block, SPECIAL | LOOSE | BREAKOUT),
    row("dl", Block, SPECIAL | BREAKOUT),
    row("fieldset", Block, SPECIAL),
    row("figcaption", Block, SPECIAL),
    row("figure", Block, SPECIAL),
    row("footer", Block, SPECIAL),
    row("header", Block, SPECIAL),
    row("hgroup", Block, SPECIAL),
    row("listing", Block, SPECIAL | BREAKOUT),
    row("main", Block, SPECIAL),
    row("menu", Block, SPECIAL | BREAKOUT),
    row("nav", Block, SPECIAL),
    row("ol", Block, SPECIAL | LIST | BREAKOUT),
    row("pre", Block, SPECIAL | BREAKOUT),
    row("search", Block, SPECIAL),
    row("section", Block, SPECIAL),
    row("summary", Block, SPECIAL),
    row("ul", Block, SPECIAL | LIST | BREAKOUT),
    row("p", Paragraph, SPECIAL | LOOSE | IMPLIED | BREAKOUT),
    row("h1", Heading, SPECIAL | BREAKOUT),
    row("h2", Heading, SPECIAL | BREAKOUT),
    row("h3", Heading, SPECIAL | BREAKOUT),
    row("h4", Heading, SPECIAL | BREAKOUT),
    row("h5", Heading, SPECIAL | BREAKOUT),
    row("h6", Heading, SPECIAL | BREAKOUT),
    row("li", ListItem, SPECIAL | IMPLIED | BREAKOUT),
    row("dd", Definition, SPECIAL | IMPLIED | BREAKOUT),
    row("dt", Definition, SPECIAL | IMPLIED | BREAKOUT),
    row("form", Form, SPECIAL),
    row("button", Button, SPECIAL),
    row("applet", Object, SPECIAL | BARRIER | MARKER),
    row("marquee", Object, SPECIAL | BARRIER | MARKER),
    row("object", Object, SPECIAL | BARRIER | MARKER),
    row("select", Select, SPECIAL | BARRIER),
    row("option", Option, IMPLIED),
    row("optgroup", Optgroup, IMPLIED),
    row("ruby", Ruby, BREAKOUT),
    row("rb", RubyBase, IMPLIED),
    row("rtc", RubyBase, IMPLIED),
    row("rt", RubyText, IMPLIED),
    row("rp", RubyText, IMPLIED),
    // Formatting.
    row("a", Anchor, 0),
    row("nobr", Nobr, BREAKOUT),
    row("b", Formatting, BREAKOUT),
    row("big", Formatting, BREAKOUT),
    row("code", Formatting, BREAKOUT),
    row("em", Formatting, BREAKOUT),
    row("font", Formatting, FONT),
    row("i", Formatting, BREAKOUT),
    row("s", Formatting, BREAKOUT),
    row("small", Formatting, BREAKOUT),
    row("strike", Formatting, BREAKOUT),
    row("strong", Formatting, BREAKOUT),
    row("tt", Formatting, BREAKOUT),
    row("u", Formatting, BREAKOUT),
    row("span", Plain, BREAKOUT),
    row("sub", Plain, BREAKOUT),
    row("sup", Plain, BREAKOUT),
    row("var", Plain, BREAKOUT),
    // Tables.
    row("table", Table, SPECIAL | BARRIER | BREAKOUT),
    row("caption", Caption, SPECIAL | BARRIER | MARKER),
    row("colgroup", ColumnGroup, SPECIAL),
    row("col", Column, 0),
    row("tbody", Rows, SPECIAL),
    row("thead", Rows, SPECIAL),
    row("tfoot", Rows, SPECIAL),
    row("tr", Row, SPECIAL),
    row("td", Cell, SPECIAL | BARRIER | MARKER),
    row("th", Cell, SPECIAL | BARRIER | MARKER),
    // Without content.
    row("area", Void, 0),
    row("br", Void, BREAKOUT),
    row("embed", Void, BREAKOUT),
    row("img", Void, BREAKOUT),
    row("keygen", Void, 0),
    row("param", Void, 0),
    row("source", Void, 0),
    row("track", Void, 0),
    row("wbr", Void, 0),
    row("input", Input, 0),
    row("hr", Rule, BREAKOUT),
    row("image", Empty, 0),
    row("frame", Empty, 0),
    // Svg and math.
    row("svg", Svg, 0),
    row("math", Math, 0),
    row("desc", Plain, SVG_HTML),
    row("foreignobject", Plain, SVG_HTML),
    row("mi", Plain, MATH_TEXT),
    row("mo", Plain, MATH_TEXT),
    row("mn", Plain, MATH_TEXT),
    row("ms", Plain, MATH_TEXT),
    row("mtext", Plain, MATH_TEXT),
    row("annotation-xml", Plain, ANNOTATION),
    row("mglyph", Plain, GLYPH),
    row("malignmark", Plain, GLYPH),
    row("frameset", Plain, SPECIAL),
];

const N_SLOTS: usize = 512;

/// Number of a line plus one, for each slot. Lines that want the same slot stand in the slots after it.
static SLOTS: [u8; N_SLOTS] = slots();

const fn slots() -> [u8; N_SLOTS] {
    let mut slots = [0; N_SLOTS];
    let mut n = 0;
    while n < TABLE.len() {
        let mut slot = slot(hash(TABLE[n].name.as_bytes()));
        while slots[slot] != 0 {
            slot = (slot + 1) % N_SLOTS;
        }
        slots[slot] = n as u8 + 1;
        n += 1;
    }
    slots
}

const fn slot(hash: u64) -> usize {
    (hash >> 55) as usize
}

/// Start value of a hash; `hash_byte` is applied once for each byte of a name.
pub(super) const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

#[inline]
pub(super) const fn hash_byte(hash: u64, byte: u8) -> u64 {
    (hash ^ byte.to_ascii_lowercase() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the hash of a name in any case. Open elements are told apart by it: names that share it count as one
/// name, which only a page made for it can bring about, to its own harm.
pub(crate) const fn hash(name: &[u8]) -> u64 {
    let mut hash = HASH_START;
    let mut at = 0;
    while at < name.len() {
        hash = hash_byte(hash, name[at]);
        at += 1;
    }
    hash
}

/// Returns the line of a name, whatever its case.
#[inline]
pub(super) fn find(name: &[u8], hash: u64) -> &'static Element {
    let mut slot = slot(hash);
    while let Some(n) = SLOTS[slot].checked_sub(1) {
        let element = &TABLE[usize::from(n)];
        if element.name.as_bytes().eq_ignore_ascii_case(name) {
            return element;
        }
        slot = (slot + 1) % N_SLOTS;
    }
    &UNKNOWN
}

/// Returns the line of a name that the pass itself writes.
pub(super) fn known(name: &'static str) -> &'static Element {
    find(name.as_bytes(), hash(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_own_line_in_any_case() {
        for element in &TABLE {
            let name = element.name;
            assert!(std::ptr::eq(known(name), element), "{name}");
            let upper = name.to_ascii_uppercase();
            assert_eq!(find(upper.as_bytes(), hash(upper.as_bytes())).name, name);
        }
    }

    #[test]
    fn a_name_outside_the_table_has_no_rules() {
        for name in [
            "",
            "x-row",
            "divv",
            "di",
            "h7",
            "abbr",
            "figure-caption",
            "ſection",
        ] {
            let element = find(name.as_bytes(), hash(name.as_bytes()));
            assert!(std::ptr::eq(element, &UNKNOWN), "{name}");
        }
    }

    #[test]
    fn no_two_lines_share_a_hash() {
        let mut hashes: Vec<u64> = TABLE.iter().map(|e| hash(e.name.as_bytes())).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), TABLE.len());
    }

    #[test]
    fn a_name_is_found_within_a_few_slots() {
        for element in &TABLE {
            let at = SLOTS
                .iter()
                .position(|&n| n > 0 && TABLE[usize::from(n) - 1].name == element.name)
                .expect("every line has a slot");
            let wanted = slot(hash(element.name.as_bytes()));
            assert!((at + N_SLOTS - wanted) % N_SLOTS < 6, "{}", element.name);
        }
    }
}
