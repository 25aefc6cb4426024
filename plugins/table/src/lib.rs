//! The rows of a table, as typed items. Cells of the table span rows and columns, and its columns are found by their
//! names.
//!
//! The cells are read by a plan, outside of the sandbox. The rule puts a cell into each place that it covers, as a
//! browser does. A name is looked up in the rows of the head, so a column that is added or moved does no
//! harm, and one that is renamed or gone is an error that tells its name.
//!
//! Nothing is left out in silence. A page without the table, a table that a limit cuts, and a row with a cell that is
//! missing or no number end the call with an error that tells row and column. Rows are counted from 1.

use std::collections::BTreeMap;

use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Table<'p> {
    #[rows("table#peaks > thead > tr")]
    head: Vec<Row<'p>>,
    #[rows("table#peaks > tbody > tr")]
    body: Vec<Row<'p>>,
}

#[derive(Extract)]
struct Row<'p> {
    #[rows("> th, > td")]
    cells: Vec<Cell<'p>>,
}

#[derive(Extract)]
struct Cell<'p> {
    #[css("")]
    text: &'p str,
    #[css("", attr = "rowspan")]
    n_rows: Option<u16>,
    #[css("", attr = "colspan")]
    n_columns: Option<u32>,
}

#[derive(Item, serde::Serialize)]
struct Peak<'p> {
    range: &'p str,
    name: &'p str,
    metres: u32,
    feet: u32,
    /// Year of the first ascent. `None` if there was none.
    first_ascent: Option<u32>,
}

/// Number of columns that one cell may span, as in browsers.
const MAX_COLUMNS: u32 = 1_000;

/// The plugin.
pub struct Tables;

#[plugin(
    items(Peak<'_>),
    reads(Table<'_>),
    params(start(about = "Address of the page with the table"))
)]
impl Tables {
    /// The page with the table.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow(start, Self::PEAKS)
    }

    /// One item for each row of the body.
    #[rule]
    pub fn peaks(page: &Page, crawl: &mut Crawl) -> Result {
        let Table { head, body } = page.extract()?;
        if page.truncated() || page.truncated_by::<Table<'_>>()? {
            let why = "the page exceeds limit body, captures or capture-bytes";
            return Err(RuleError::unexpected(why));
        }
        let columns = columns(&grid(&head));
        if columns.is_empty() {
            return Err(RuleError::unexpected(
                "the page lacks a table#peaks with a head",
            ));
        }
        for (n, row) in (1..).zip(grid(&body)) {
            let cell = |column: &str| {
                let number = columns.get(column);
                let number = number.require(&format!("a column {column:?}"))?;
                let cell = row.get(number).copied();
                cell.require(&format!("a cell in row {n}, column {column:?}"))
            };
            let number = |column: &str| {
                let text = cell(column)?;
                let what = format!("a number in row {n}, column {column:?}, which has {text:?}");
                number(text).require(&what)
            };
            crawl.emit(&Peak {
                range: cell("Range")?,
                name: cell("Peak")?,
                metres: number("Height m")?,
                feet: number("Height ft")?,
                first_ascent: match cell("First ascent")? {
                    "–" => None,
                    _ => Some(number("First ascent")?),
                },
            })?;
        }
        Ok(())
    }
}

/// The texts of a row by the numbers of their columns.
type Places<'p> = BTreeMap<u32, &'p str>;

/// Returns the rows with the text of each cell in all places that it covers. A cell begins at the first place that no
/// cell from above covers; `rowspan="0"` reaches to the last row.
fn grid<'p>(rows: &[Row<'p>]) -> Vec<Places<'p>> {
    let mut grid = vec![Places::new(); rows.len()];
    for (nth, row) in rows.iter().enumerate() {
        let mut left = 0;
        for cell in &row.cells {
            while grid[nth].contains_key(&left) {
                left += 1;
            }
            let n_rows = match cell.n_rows {
                Some(0) => rows.len(),
                n_rows => n_rows.unwrap_or(1).into(),
            };
            let right = left + cell.n_columns.unwrap_or(1).clamp(1, MAX_COLUMNS);
            for places in grid[nth..].iter_mut().take(n_rows) {
                places.extend((left..right).map(|column| (column, cell.text)));
            }
            left = right;
        }
    }
    grid
}

/// Returns the columns by their names: the texts of the head from top to bottom, each once, like `Height m`.
fn columns(head: &[Places<'_>]) -> BTreeMap<String, u32> {
    let numbers = head.first().into_iter().flat_map(|row| row.keys());
    let name = |number: &u32| {
        let texts = head.iter().filter_map(|row| row.get(number));
        let mut texts: Vec<&str> = texts.copied().collect();
        texts.dedup();
        texts.join(" ")
    };
    numbers.map(|number| (name(number), *number)).collect()
}

/// Reads `8,611` or `8,611[2]` as 8611: thousands are separated, and a note may follow.
fn number(text: &str) -> Option<u32> {
    let digits = text.split('[').next().unwrap_or_default().trim_end();
    digits.replace(',', "").parse().ok()
}
