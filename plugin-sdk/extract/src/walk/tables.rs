//! Effects of start tags on the structure of tables, of templates and of `head`: the insertion modes of the
//! standard other than that of the body.

use super::names::{self, Element, IN_HEAD, Kind};
use super::stack::{self, Mode, Space};
use super::tokens::Tag;
use super::{Pass, Visitor};

impl<'p, V: Visitor<'p>> Pass<'p, '_, V> {
    /// Handles a start tag. Returns false if the rules of the body hold for it. Every turn either ends the
    /// function or closes, adds or settles something, after which other rules hold.
    pub(super) fn start_in_structure(&mut self, tag: &Tag, element: &'static Element) -> bool {
        use Kind::{Caption, Cell, Column, ColumnGroup, Form, Row, Rows, Table};
        let kind = element.kind;
        while !self.is_over {
            let owner = self.open.owner();
            match (self.open.mode(), kind) {
                (Mode::Body, _) => return false,

                (Mode::Caption | Mode::Cell, _) if is_part(kind) => self.close(owner, tag.start),
                (Mode::Caption | Mode::Cell, _) => return false,

                (Mode::Table, Caption | ColumnGroup | Rows)
                | (Mode::Rows, Row)
                | (Mode::Row, Cell) => {
                    self.close_above(owner, tag.start);
                    self.push(tag, element);
                    return true;
                }
                (Mode::Table, Column) => self.make_up(owner, "colgroup", tag),
                (Mode::Table, Row | Cell) => self.make_up(owner, "tbody", tag),
                (Mode::Rows, Cell) => self.make_up(owner, "tr", tag),
                (Mode::Rows | Mode::Row, _) if is_part(kind) => {
                    if self.open.get(owner).kind() == Kind::Template {
                        return self.start_ignored(tag, element);
                    }
                    self.close(owner, tag.start);
                }
                (Mode::Table | Mode::Rows | Mode::Row, Table) => {
                    match self.open.table_part(tag.hash) {
                        Some(table) => self.close(table, tag.start),
                        None => return self.start_ignored(tag, element),
                    }
                }
                (Mode::Table | Mode::Rows | Mode::Row, Form) => {
                    if self.open.around(stack::FORM) {
                        return self.start_ignored(tag, element);
                    }
                    // The element ends at once.
                    self.begin(tag, Space::Html, false);
                    return true;
                }
                (Mode::Table | Mode::Rows | Mode::Row, _) => return false,

                (Mode::ColumnGroup, Column) => {
                    self.begin(tag, Space::Html, false);
                    return true;
                }
                (Mode::ColumnGroup, Kind::Template | Kind::Html) => return false,
                (Mode::ColumnGroup, _) => {
                    if self.open.current().kind() != ColumnGroup {
                        return self.start_ignored(tag, element);
                    }
                    self.close(self.open.current_at(), tag.start);
                }

                (Mode::Template | Mode::Head, _) if element.has(IN_HEAD) => return false,
                (Mode::Template, _) => self.open.settle_template(mode_for(kind)),
                (Mode::Head, Kind::Html | Kind::Head) => return false,
                (Mode::Head, _) => self.close(owner, tag.start),
            }
        }
        true
    }

    /// Opens an element that the page leaves out.
    fn make_up(&mut self, owner: usize, name: &'static str, tag: &Tag) {
        self.close_above(owner, tag.start);
        let element = names::known(name);
        let made_up = Tag::made_up(tag.start, names::hash(name.as_bytes()), element);
        self.push(&made_up, element);
    }

    fn start_ignored(&mut self, tag: &Tag, element: &'static Element) -> bool {
        match element.kind {
            // Their content would be read as tags.
            Kind::Raw | Kind::Script | Kind::Plaintext | Kind::Svg | Kind::Math => return false,
            Kind::Column | Kind::Void | Kind::Input | Kind::Rule | Kind::Empty => {
                self.begin(tag, Space::Html, false);
            }
            _ => self.push_stray(tag, element),
        }
        true
    }
}

fn is_part(kind: Kind) -> bool {
    use Kind::{Caption, Cell, Column, ColumnGroup, Row, Rows};
    matches!(kind, Caption | ColumnGroup | Column | Rows | Row | Cell)
}

/// Returns the mode in a template whose first tag is of this kind.
fn mode_for(kind: Kind) -> Mode {
    match kind {
        Kind::Caption | Kind::ColumnGroup | Kind::Rows => Mode::Table,
        Kind::Column => Mode::ColumnGroup,
        Kind::Row => Mode::Rows,
        Kind::Cell => Mode::Row,
        _ => Mode::Body,
    }
}
