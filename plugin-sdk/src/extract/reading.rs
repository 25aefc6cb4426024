//! Captures of a page by a plan, looked up by rows. Numbers of rows and captures are resolved here.

use std::cell::OnceCell;

use url::{ParseError, Url};

/// Number that stands for the whole page where a row is expected.
pub(crate) const PAGE: u32 = u32::MAX;

/// Captures as the host hands them over.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    pub(crate) text: String,
    /// The row around each row of each group.
    pub(crate) groups: Vec<Vec<u32>>,
    /// The row of each capture of each field, and its start and end in the text.
    pub(crate) columns: Vec<(Vec<u32>, Vec<u32>)>,
    pub(crate) base: Option<String>,
    pub(crate) truncated: bool,
}

/// Captures of a page by the plan of this number.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) plan: u32,
    pub(crate) truncated: bool,
    text: String,
    groups: Vec<ByRow>,
    columns: Vec<(ByRow, Vec<u32>)>,
    base: String,
    parsed_base: OnceCell<Url>,
}

impl Reading {
    /// Makes a reading. `url` is that of the page.
    pub(crate) fn new(plan: u32, captures: Captures, url: &str) -> Self {
        let columns = captures.columns.into_iter();
        Self {
            plan,
            truncated: captures.truncated,
            text: captures.text,
            groups: captures.groups.into_iter().map(ByRow::new).collect(),
            columns: columns
                .map(|(rows, spans)| (ByRow::new(rows), spans))
                .collect(),
            base: captures.base.unwrap_or_else(|| url.to_owned()),
            parsed_base: OnceCell::new(),
        }
    }

    /// Returns the rows of a group that lie in this row.
    pub(crate) fn rows(&self, group: u32, row: u32) -> impl Iterator<Item = u32> + '_ {
        let group = self.groups.get(group as usize);
        group.into_iter().flat_map(move |group| group.of(row))
    }

    /// Returns the captures of a field that lie in this row, by their positions.
    pub(crate) fn captures(&self, field: u32, row: u32) -> impl Iterator<Item = u32> + '_ {
        let column = self.columns.get(field as usize);
        column.into_iter().flat_map(move |(rows, _)| rows.of(row))
    }

    /// Number of captures of a field, whatever rows they lie in.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn n_captures(&self, field: u32) -> u32 {
        let column = self.columns.get(field as usize);
        // Positions are 32-bit numbers.
        column.map_or(0, |(rows, _)| rows.rows.len() as u32)
    }

    /// Text of one capture.
    pub(crate) fn text(&self, field: u32, position: u32) -> &str {
        let column = self.columns.get(field as usize);
        let (spans, _) = column.map_or(&[][..], |(_, spans)| spans).as_chunks::<2>();
        let span = spans.get(position as usize);
        let text = span.and_then(|&[start, end]| self.text.get(start as usize..end as usize));
        text.unwrap_or_default()
    }

    /// Resolves an address of the page against its base.
    pub(crate) fn join(&self, href: &str) -> Result<Url, ParseError> {
        let base = match self.parsed_base.get() {
            Some(base) => base,
            None => {
                let base = Url::parse(&self.base)?;
                self.parsed_base.get_or_init(|| base)
            }
        };
        base.join(href)
    }
}

/// Positions, looked up by the row that each lies in.
#[derive(Debug)]
struct ByRow {
    /// Rows, in rising order.
    rows: Vec<u32>,
    /// Position of each row. Empty if rows came in rising order, as they do unless rows of one group are nested.
    order: Vec<u32>,
}

impl ByRow {
    fn new(mut rows: Vec<u32>) -> Self {
        let mut order = Vec::new();
        if !rows.is_sorted() {
            order.extend(0..rows.len() as u32);
            order.sort_by_key(|&position| rows[position as usize]);
            rows.sort_unstable();
        }
        Self { rows, order }
    }

    fn of(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        let start = self.rows.partition_point(|&other| other < row);
        let n = self.rows[start..].partition_point(|&other| other == row);
        let position = |n: usize| self.order.get(n).copied().unwrap_or(n as u32);
        (start..start + n).map(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rows: &[u32], row: u32, expected: &[u32]) {
        let positions: Vec<u32> = ByRow::new(rows.to_vec()).of(row).collect();
        assert_eq!(positions, expected);
    }

    #[test]
    fn positions_are_found_by_rows_in_any_order() {
        check(&[0, 0, 2, 2, 2], 2, &[2, 3, 4]);
        check(&[0, 0, 2, 2, 2], 1, &[]);
        check(&[0, 1, 0, 1, 0], 0, &[0, 2, 4]);
        check(&[0, 1, 0, 1, 0], 1, &[1, 3]);
        check(&[PAGE, PAGE], PAGE, &[0, 1]);
        check(&[], PAGE, &[]);
    }

    #[test]
    fn numbers_that_point_nowhere_are_empty_and_no_panic() {
        let captures = Captures {
            text: "ä".to_owned(),
            columns: vec![(vec![PAGE; 3], vec![0, 1, 7, 9])],
            ..Captures::default()
        };
        let reading = Reading::new(0, captures, "http://a.test/");
        let texts = (0..3).map(|n| reading.text(0, n)).collect::<String>();
        assert_eq!(texts, "");
        assert_eq!((reading.text(1, 0), reading.rows(0, PAGE).count()), ("", 0));
    }
}
