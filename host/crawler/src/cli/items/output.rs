//! Items as they are printed: lines of JSON for programs, or a table for people.

use crawler_proto as proto;

use crate::cli::args::Format;
use crate::cli::{Failure, table};

/// Largest number of characters of an item, or of the address of its page, in a table.
const WIDEST: usize = 80;

/// Output of a command that prints items as they come.
#[derive(Debug)]
pub(super) enum Output {
    /// Each item on a line, with what is known of it or without.
    Json { envelope: bool },
    /// A row for each item.
    Table(table::Growing<4>),
}

impl Output {
    pub(super) fn new(format: Format, envelope: bool) -> Result<Self, Failure> {
        match format {
            Format::Json => Ok(Self::Json { envelope }),
            Format::Table if envelope => Err(Failure::new(
                "a table has no room for --envelope",
                "leave it out, or print lines with -o json",
            )),
            Format::Table => Ok(Self::Table(table::Growing::new([
                "FETCHED", "KIND", "PAGE", "ITEM",
            ]))),
        }
    }

    pub(super) fn print(&mut self, items: &[proto::Item]) -> anyhow::Result<()> {
        match self {
            Self::Table(table) => {
                let rows: Vec<[String; 4]> = items.iter().map(row).collect();
                table.print(&rows)?;
            }
            Self::Json { envelope } => {
                for item in items {
                    match envelope {
                        true => table::print_line(&serde_json::to_string(item)?)?,
                        false => table::print_line(&item.json)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends the output: a table without rows has its head.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.print(&[])
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

    #[test]
    fn an_envelope_is_for_programs() {
        assert!(Output::new(Format::Json, true).is_ok());
        let error = Output::new(Format::Table, true).unwrap_err();
        assert_eq!(error.what, "a table has no room for --envelope");
    }
}
