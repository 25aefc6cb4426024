//! Items as they are printed: lines of JSON and CSV for programs, or a table for people.

use std::io::{self, IsTerminal as _};

use clap::ValueEnum;
use crawler_proto as proto;

use crate::cli::{Failure, table};
use crawler_sink::document::{Columns, Line};

/// Largest number of characters of an item, or of the address of its page, in a table.
const WIDEST: usize = 80;

/// Form of the items that are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// Lines of JSON
    Json,
    /// Lines of CSV, with a column for each field
    Csv,
    /// For people: the beginning of each item
    Table,
}

/// Output of a command that prints items as they come.
#[derive(Debug)]
pub(super) enum Output {
    /// Each item on a line, with what is known of it or without.
    Json { envelope: bool },
    /// Each item on a line of CSV.
    Csv(Columns),
    /// A row for each item.
    Table(table::Growing<4>),
}

impl Output {
    pub(super) fn json(envelope: bool) -> Self {
        Self::Json { envelope }
    }

    /// Returns a table of CSV, whose head is printed.
    pub(super) fn csv(columns: Columns) -> anyhow::Result<Self> {
        let mut head = Vec::new();
        columns.push_head(&mut head);
        print_csv(&head)?;
        Ok(Self::Csv(columns))
    }

    pub(super) fn table() -> Self {
        Self::Table(table::Growing::new(["FETCHED", "KIND", "PAGE", "ITEM"]))
    }

    pub(super) fn print(&mut self, items: &[proto::Item]) -> anyhow::Result<()> {
        match self {
            Self::Table(table) => {
                let rows: Vec<[String; 4]> = items.iter().map(row).collect();
                table.print(&rows)?;
            }
            Self::Csv(columns) => {
                let lines = items.iter().map(|item| Line {
                    kind: &item.schema,
                    url: &item.url,
                    json: &item.json,
                });
                let mut bytes = Vec::new();
                let pushed = columns.push_lines(&mut bytes, lines);
                print_csv(&bytes)?;
                pushed.map_err(|e| Failure::new(e.to_string(), "print lines with -o json"))?;
            }
            Self::Json { envelope } => {
                let mut lines = Vec::new();
                for item in items {
                    match envelope {
                        true => serde_json::to_writer(&mut lines, item)?,
                        false => lines.extend_from_slice(item.json.as_bytes()),
                    }
                    lines.push(b'\n');
                }
                table::print_text(&lines)?;
            }
        }
        Ok(())
    }

    /// Ends the output: a table without rows has its head.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.print(&[])
    }
}

/// Prints lines of CSV as they are, unless they go to a terminal: it would act on what a site has put into them.
fn print_csv(lines: &[u8]) -> io::Result<()> {
    match io::stdout().is_terminal() {
        true => table::print_text(table::plain(&String::from_utf8_lossy(lines)).as_bytes()),
        false => table::print_text(lines),
    }
}

fn row(item: &proto::Item) -> [String; 4] {
    [
        table::time(item.fetched_at),
        item.schema.clone(),
        shortened(&item.url),
        shortened(&item.json),
    ]
    .map(|cell| table::plain(&cell))
}

/// Returns the beginning of a text that is too long for a cell.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(WIDEST) {
        None => text.to_owned(),
        Some(_) => text.chars().take(WIDEST - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_when_and_where_an_item_was_found() {
        let item = proto::Item {
            url: "http://a.test/".into(),
            schema: "book".into(),
            fetched_at: 1_700_000_000_123,
            json: format!(r#"{{"title":"{}"}}"#, "é".repeat(100)),
            ..Default::default()
        };
        let [fetched, kind, page, json] = row(&item);
        assert_eq!(
            [fetched, kind, page],
            ["2023-11-14T22:13:20Z", "book", "http://a.test/"]
        );
        assert_eq!(json.chars().count(), WIDEST);
        assert!(
            json.starts_with(r#"{"title":"éé"#) && json.ends_with("é…"),
            "{json}"
        );
    }
}
