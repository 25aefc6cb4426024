//! Reading of one struct: its parts in order, each from the captures of its row, with errors that say where.

use std::fmt::Display;
use std::rc::Rc;
use std::str::FromStr;

use super::pattern::Pattern;
use super::reading::{PAGE, Reading};
use super::shape::{Kind, Part, Shape, Take};
use super::{Capture, Extract, Links};
use crate::{Page, Result, RuleError};

/// Length of the part of a text that a message quotes, in bytes.
const SHOWN: usize = 80;

/// A row of a page, or the page itself, from which a struct is read. Each call reads the next part of the shape.
#[derive(Debug)]
pub struct Row<'r> {
    page: &'r Page,
    reading: &'r Rc<Reading>,
    shape: &'static Shape,
    row: u32,
    /// Selector of these rows.
    selector: Option<&'static str>,
    /// Number of the next part; then those of the next field and of the next group.
    part: usize,
    field: u32,
    group: u32,
    /// Pattern that the next part has to match.
    pattern: Option<Pattern>,
}

/// A part with the number of its field.
struct Place {
    part: &'static Part,
    take: Take,
    field: u32,
    pattern: Option<Pattern>,
}

impl<'r> Row<'r> {
    pub(super) fn page(page: &'r Page, reading: &'r Rc<Reading>, shape: &'static Shape) -> Self {
        Self {
            page,
            reading,
            shape,
            row: PAGE,
            selector: None,
            part: 0,
            field: 0,
            group: 0,
            pattern: None,
        }
    }

    /// Reads of the next part only what this pattern chooses.
    pub fn matching(&mut self, pattern: Pattern) -> &mut Self {
        self.pattern = Some(pattern);
        self
    }

    /// Reads the address of the page.
    pub fn page_url<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T> {
        self.of_page(name, "url", self.page.url())
    }

    /// Returns the address of the page, borrowed.
    pub fn page_url_text(&self) -> &'r str {
        self.page.url()
    }

    /// Returns the state of the page's request, borrowed.
    pub fn page_state_text(&self) -> Result<&'r str> {
        Ok(std::str::from_utf8(self.page.state())?)
    }

    /// Reads the state of the page's request.
    pub fn page_state<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T> {
        self.of_page(name, "state", self.page_state_text()?)
    }

    fn of_page<T: FromStr<Err: Display>>(&self, name: &str, what: &str, text: &str) -> Result<T> {
        text.parse().map_err(|why| {
            let (found, whose) = (shown(text), self.shape.name);
            RuleError::unexpected(format!(
                "{found} is no value for `{whose}.{name}`, read from the page's {what}: {why}"
            ))
        })
    }

    /// Reads a value that has to be there.
    pub fn one<T>(&mut self, read: impl Fn(&Capture<'r>) -> Result<T, String>) -> Result<T> {
        let place = self.next_field();
        match self.found(&place).next() {
            Some(capture) => self.value(&place, &capture, read),
            None => Err(self.missing(place.part, &what(&place))),
        }
    }

    /// Reads a value that may be missing.
    pub fn maybe<T>(
        &mut self,
        read: impl Fn(&Capture<'r>) -> Result<T, String>,
    ) -> Result<Option<T>> {
        let place = self.next_field();
        let first = self.found(&place).next();
        first
            .map(|capture| self.value(&place, &capture, read))
            .transpose()
    }

    /// Reads all values.
    pub fn all<T>(&mut self, read: impl Fn(&Capture<'r>) -> Result<T, String>) -> Result<Vec<T>> {
        let place = self.next_field();
        let all = self.found(&place);
        all.map(|capture| self.value(&place, &capture, &read))
            .collect()
    }

    /// Returns true if there is at least one capture.
    pub fn present(&mut self) -> bool {
        let place = self.next_field();
        self.reading
            .captures(place.field, self.row)
            .next()
            .is_some()
    }

    /// Returns addresses to follow.
    pub fn links(&mut self) -> Links {
        let field = self.next_field().field;
        let is_page = self.row == PAGE;
        let chosen = || self.reading.captures(field, self.row).collect();
        Links {
            reading: Rc::clone(self.reading),
            field,
            chosen: (!is_page).then(chosen),
        }
    }

    /// Reads all rows.
    pub fn rows<T: Extract<'r>>(&mut self) -> Result<Vec<T>> {
        let (group, inner) = self.next_rows();
        let rows = self.reading.rows(group, self.row);
        rows.map(|row| T::read(&mut inner.at(row))).collect()
    }

    /// Reads the first row, if there is one.
    pub fn maybe_row<T: Extract<'r>>(&mut self) -> Result<Option<T>> {
        let (group, inner) = self.next_rows();
        let first = self.reading.rows(group, self.row).next();
        first.map(|row| T::read(&mut inner.at(row))).transpose()
    }

    /// Reads the first row, which has to be there.
    pub fn one_row<T: Extract<'r>>(&mut self) -> Result<T> {
        let part = &self.shape.parts[self.part];
        match self.maybe_row()? {
            Some(row) => Ok(row),
            None => Err(self.missing(part, &element(part))),
        }
    }

    fn at(&self, row: u32) -> Self {
        Self { row, ..*self }
    }

    fn next_field(&mut self) -> Place {
        let part = &self.shape.parts[self.part];
        let (Kind::Value { take, .. } | Kind::Links { take }) = part.kind else {
            unreachable!("the derive reads the parts in the order of the shape");
        };
        let field = self.field;
        self.part += 1;
        self.field += 1;
        Place {
            part,
            take,
            field,
            pattern: self.pattern.take(),
        }
    }

    /// Returns the captures of a field, in the order of the page.
    fn found(&self, place: &Place) -> impl Iterator<Item = Capture<'r>> + use<'r> {
        let (reading, field, pattern) = (self.reading, place.field, place.pattern);
        let all = reading.captures(field, self.row);
        all.filter_map(move |position| {
            let part = match pattern {
                Some(pattern) => Some((pattern.find)(reading.text(field, position))?),
                None => None,
            };
            Some(Capture {
                reading,
                field,
                position,
                part,
            })
        })
    }

    /// Returns the number of the next group, and a template for its rows.
    fn next_rows(&mut self) -> (u32, Row<'r>) {
        let part = &self.shape.parts[self.part];
        let Kind::Rows(shape) = part.kind else {
            unreachable!("the derive reads the parts in the order of the shape");
        };
        let group = self.group;
        let inner = Row {
            page: self.page,
            reading: self.reading,
            shape,
            row: PAGE,
            selector: Some(part.selector),
            part: 0,
            field: self.field,
            group: group + 1,
            pattern: None,
        };
        self.part += 1;
        self.field += shape.n_fields;
        self.group += 1 + shape.n_groups;
        (group, inner)
    }

    fn value<T>(
        &self,
        place: &Place,
        capture: &Capture<'r>,
        read: impl Fn(&Capture<'r>) -> Result<T, String>,
    ) -> Result<T> {
        read(capture).map_err(|why| {
            let found = shown(capture.text());
            let (at, whose) = (what(place), self.whose(place.part));
            RuleError::unexpected(format!(
                "{found} is no value for {whose}, read from {at}: {why}"
            ))
        })
    }

    /// Returns an error such as "row 3 of `article` lacks an element `h3` for `Card.title`".
    fn missing(&self, part: &Part, what: &str) -> RuleError {
        let place = match self.selector {
            Some(selector) => format!("row {} of `{selector}`", u64::from(self.row) + 1),
            None => "the page".to_owned(),
        };
        let mut why = format!("{place} lacks {what} for {}", self.whose(part));
        if self.reading.truncated {
            why.push_str("; what was read is cut by limit captures or capture-bytes");
        }
        RuleError::unexpected(why)
    }

    fn whose(&self, part: &Part) -> String {
        format!("`{}.{}`", self.shape.name, part.name)
    }
}

/// Reads a text that is borrowed from the captures of the page.
pub fn borrowed<'r, T: From<&'r str>>(capture: &Capture<'r>) -> Result<T, String> {
    Ok(capture.text().into())
}

/// Reads a text by a function of the author, which may borrow from it.
pub fn by<'r, T, E: Display, F: Fn(&'r str) -> Result<T, E>>(
    read: F,
) -> impl Fn(&Capture<'r>) -> Result<T, String> {
    // The alternate form of a rule's error is its reason alone.
    move |capture| read(capture.text()).map_err(|why| format!("{why:#}"))
}

/// Describes the place of a part for messages.
fn what(place: &Place) -> String {
    let selector = place.part.selector;
    let mut what = match place.take {
        Take::Attr(name) if selector.trim().is_empty() => format!("its attribute `{name}`"),
        Take::Attr(name) => format!("an attribute `{name}` of `{selector}`"),
        _ => element(place.part),
    };
    if let Some(pattern) = place.pattern {
        what += &format!(" that matches `{}`", pattern.text);
    }
    what
}

fn element(part: &Part) -> String {
    match part.selector.trim().is_empty() {
        true => "its own element".to_owned(),
        false => format!("an element `{}`", part.selector),
    }
}

/// Quotes a text, cut so that a message stays readable.
fn shown(text: &str) -> String {
    match text.len() {
        0..=SHOWN => format!("{text:?}"),
        _ => format!("{:?}…", &text[..text.floor_char_boundary(SHOWN)]),
    }
}
