//! The result of a query on a page.

use std::time::{Duration, Instant};

use crawler_extract::{
    Budget, Captures, CompiledPlan, ExtractError, PlanLimits, Take, extract, fuel,
};

use super::line::Query;

/// Rows that are shown at once.
const ROWS_SHOWN: usize = 20;
/// Number of characters of a value that are shown.
const SHOWN_MAX: usize = 100;
/// Number of characters of a value that are shown if there are several columns.
const CELL_SHOWN_MAX: usize = 40;
/// Separator of the values of a field that has several in one row.
const BETWEEN: &str = " | ";

/// Result of a query on a page.
#[derive(Debug)]
pub struct QueryResult {
    query: Query,
    captures: Captures,
    /// Values of each field in each row.
    rows: Vec<Vec<Vec<String>>>,
    /// Time that reading took.
    pub took: Duration,
    /// Fuel that a call is charged for it.
    pub fuel: u64,
}

/// A table, to be printed.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns.
    pub head: Vec<String>,
    /// Rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
    /// Number of rows that are left out.
    pub n_more: usize,
    /// True if a value is cut.
    pub is_cut: bool,
}

impl QueryResult {
    /// Reads a page. The error names the selector or the budget, and the way out.
    pub fn read(query: &Query, page: &str, budget: &Budget) -> Result<Self, String> {
        let plan = CompiledPlan::new(&query.plan(), &PlanLimits::default());
        let plan = plan.map_err(|error| match query.rows {
            // The user gave no name to the group.
            None => error
                .to_string()
                .replace("plan \"shell\", field \"value\", ", ""),
            Some(_) => error.to_string().replace("plan \"shell\", ", ""),
        })?;
        let began = Instant::now();
        let captures = extract(&plan, page, budget).map_err(|error| match error {
            ExtractError::TooSlow { deadline } => format!(
                "reading the page takes longer than {deadline:?}, which is limit cpu of a call: use fewer selectors, and begin them with a tag name"
            ),
            other => other.to_string(),
        })?;
        Ok(Self {
            took: began.elapsed(),
            fuel: fuel(page.len(), &captures),
            rows: rows(query, &captures),
            query: query.clone(),
            captures,
        })
    }

    /// Returns the query.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Returns the number of rows or, in a query without rows, of values.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if the page has more than may be read at once.
    pub fn is_truncated(&self) -> bool {
        self.captures.truncated
    }

    /// Returns the smallest and the largest number of values that a field has in a row.
    pub fn counts(&self, field: usize) -> (usize, usize) {
        let counts = || self.rows.iter().map(|row| row[field].len());
        (counts().min().unwrap_or(0), counts().max().unwrap_or(0))
    }

    /// Returns a table: the first rows and the beginnings of long values, or everything.
    pub fn shown(&self, is_whole: bool) -> Table {
        let mut is_cut = false;
        let max = match self.query.fields.len() {
            1 => SHOWN_MAX,
            _ => CELL_SHOWN_MAX,
        };
        let mut cell = |values: &Vec<String>, take: &Take| {
            let whole = match (take, values.is_empty()) {
                (Take::Present, true) => "no".to_owned(),
                (Take::Present, false) => "yes".to_owned(),
                (_, true) => "-".to_owned(),
                (_, false) => values.join(BETWEEN),
            };
            let end = whole.char_indices().nth(max);
            match end {
                Some((end, _)) if !is_whole => {
                    is_cut = true;
                    format!("{}…", &whole[..end])
                }
                _ => whole,
            }
        };
        let n_shown = if is_whole { usize::MAX } else { ROWS_SHOWN };
        let rows = self.rows.iter().take(n_shown).enumerate();
        let rows = rows.map(|(n, row)| {
            let fields = row.iter().zip(&self.query.fields);
            let cells = fields.map(|(values, field)| cell(values, &field.take));
            let cells = cells.map(|text| text.replace(['\n', '\r', '\t'], " "));
            std::iter::once(n.to_string()).chain(cells).collect()
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let names = self
            .query
            .fields
            .iter()
            .map(|field| field.name.to_uppercase());
        Table {
            head: std::iter::once("ROW".to_owned()).chain(names).collect(),
            n_more: self.rows.len() - rows.len(),
            rows,
            is_cut,
        }
    }
}

/// Returns the values of each field in each row. Without rows, each value is a row of its own; a query for
/// presence is one row.
fn rows(query: &Query, captures: &Captures) -> Vec<Vec<Vec<String>>> {
    let is_present = query.fields[0].take == Take::Present;
    if query.rows.is_none() && is_present {
        let values = captures.values(0).map(|(_, value)| value.to_owned());
        return vec![vec![values.collect()]];
    }
    if query.rows.is_none() {
        let values = captures.values(0).map(|(_, value)| value.to_owned());
        return values.map(|value| vec![vec![value]]).collect();
    }
    let n_rows = captures.groups.first().map_or(0, Vec::len);
    let mut rows = vec![vec![Vec::new(); query.fields.len()]; n_rows];
    let fields = query.fields.iter().enumerate();
    let values =
        fields.flat_map(|(n, _)| captures.values(n).map(move |(row, value)| (n, row, value)));
    for (n, row, value) in values {
        rows[row as usize][n].push(value.to_owned());
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::line::Line;
    use super::*;

    const PAGE: &str =
        "<ul><li id=1><a href=/7>Seven</a><b>x</b><li id=2>none<b>y</b><b>z\n\nz</b></ul>";

    #[track_caller]
    fn found(line: &str, page: &str) -> QueryResult {
        let Ok(Line::Query(query)) = Line::read(line) else {
            panic!("{line} is no query");
        };
        QueryResult::read(&query, page, &Budget::default()).unwrap()
    }

    #[track_caller]
    fn check(line: &str, expected: &[&[&str]]) {
        let shown = found(line, PAGE).shown(false);
        let mut all = vec![shown.head];
        all.extend(shown.rows);
        assert_eq!(all, expected, "{line}");
    }

    #[test]
    fn values_are_rows_of_their_own() {
        check(
            "b",
            &[&["ROW", "VALUE"], &["0", "x"], &["1", "y"], &["2", "z z"]],
        );
        check("a -> @href", &[&["ROW", "VALUE"], &["0", "/7"]]);
        check(
            "b -> raw",
            &[&["ROW", "VALUE"], &["0", "x"], &["1", "y"], &["2", "z  z"]],
        );
        check("h1", &[&["ROW", "VALUE"]]);
        check("b -> present", &[&["ROW", "VALUE"], &["0", "yes"]]);
        check("h1 -> present", &[&["ROW", "VALUE"], &["0", "no"]]);
    }

    #[test]
    fn rows_have_a_line_each() {
        check(
            "li { id: -> @id; link: a -> @href; is_link: a -> present; bold: b }",
            &[
                &["ROW", "ID", "LINK", "IS_LINK", "BOLD"],
                &["0", "1", "/7", "yes", "x"],
                &["1", "2", "-", "no", "y | z z"],
            ],
        );
    }

    #[test]
    fn a_long_table_is_cut_unless_all_of_it_is_wanted() {
        let page = format!("<p>{}</p>", "é".repeat(101)).repeat(21);
        let found = found("p", &page);
        let shown = found.shown(false);
        assert_eq!(
            (shown.rows.len(), shown.n_more, shown.is_cut),
            (20, 1, true)
        );
        assert_eq!(shown.rows[0][1], format!("{}…", "é".repeat(100)));
        let whole = found.shown(true);
        assert_eq!(
            (whole.rows.len(), whole.n_more, whole.is_cut),
            (21, 0, false)
        );
        assert_eq!(whole.rows[20][1], "é".repeat(101));
    }

    #[test]
    fn a_selector_that_cannot_be_read_tells_which() {
        let read = |line: &str| {
            let Ok(Line::Query(query)) = Line::read(line) else {
                panic!("{line} is no query");
            };
            QueryResult::read(&query, PAGE, &Budget::default()).unwrap_err()
        };
        let why = read("a:has(b)");
        assert!(
            why.starts_with("selector \"a:has(b)\": `:has()` is not known"),
            "{why}"
        );
        let why = read("li { a: b; c: d! }");
        assert!(why.starts_with("field \"c\", selector \"d!"), "{why}");
    }
}
