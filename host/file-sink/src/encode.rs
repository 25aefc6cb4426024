//! Items as the bytes of a file. The same items give the same bytes, as long as the schema is the same.

use parquet::errors::ParquetError;

use crawler_model::crawl::ItemRecord;
use crawler_sink::{SinkError, fields, push_line};

use crate::columns;
use crate::settings::Format;
use crate::table::{Cell, OWN, REST, Table};

/// Items of one kind on their way into a file.
pub(crate) struct Contents {
    /// Name of the resource.
    pub(crate) resource: String,
    pub(crate) table: Table,
    pub(crate) records: Vec<ItemRecord>,
}

impl Contents {
    /// Returns the bytes of the file.
    ///
    /// # Errors
    ///
    /// The items cannot be encoded, and no later try would do better.
    pub(crate) fn encode(&self, format: Format) -> Result<Vec<u8>, SinkError> {
        match format {
            Format::Lines => self.lines(),
            Format::Csv => Ok(self.csv()),
            Format::Parquet => columns::encode(self).map_err(no_file),
        }
    }

    fn lines(&self) -> Result<Vec<u8>, SinkError> {
        let mut lines = Vec::new();
        for record in &self.records {
            push_line(&mut lines, record)?;
        }
        Ok(lines)
    }

    fn csv(&self) -> Vec<u8> {
        let mut lines = csv::WriterBuilder::new()
            .terminator(csv::Terminator::CRLF)
            .from_writer(Vec::new());
        let mut write = |cells: &[String]| {
            let written = lines.write_record(cells);
            written.expect("memory takes all lines, and each has a cell for each column");
        };
        let names = self.table.fields.iter().map(|(name, _)| name.as_str());
        let names = OWN.into_iter().chain(names).chain([REST]);
        let names: Vec<String> = names.map(str::to_owned).collect();
        write(&names);
        for record in &self.records {
            let row = self.table.row(record);
            let mut cells = vec![
                record.key.0.clone(),
                self.resource.clone(),
                record.schema.clone(),
                record.url.clone(),
                record.run.to_string(),
                fields::time(record.fetched_at),
            ];
            let of_fields = row.cells.into_iter();
            cells.extend(of_fields.map(|cell| cell.map_or_else(String::new, text)));
            cells.push(row.rest.unwrap_or_default());
            write(&cells);
        }
        let bytes = lines.into_inner();
        bytes.expect("memory takes all lines")
    }
}

/// Returns the text of a value.
fn text(cell: Cell<'_>) -> String {
    match cell {
        Cell::Boolean(is_true) => is_true.to_string(),
        Cell::Integer(number) => number.to_string(),
        Cell::Text(text) => text,
        Cell::Number(_, json) | Cell::Json(json) => json.to_owned(),
    }
}

fn no_file(source: ParquetError) -> SinkError {
    SinkError::Permanent {
        message: "cannot write items as Parquet".to_owned(),
        source: Some(source.into()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::table::tests::{THING, table};
    use crate::tests::record;

    pub(crate) fn contents(items: &[&str]) -> Contents {
        let items = items.iter().zip(1..);
        Contents {
            resource: "team/books".to_owned(),
            table: table(THING),
            records: items.map(|(json, n)| record(n, json)).collect(),
        }
    }

    const HEAD: &str = "_key,_resource,_kind,_url,_run,_at,a,b,c,d,e,_rest\r\n";
    const OWN_1: &str = "key-1,team/books,thing,http://a.test/1,1,2026-11-28T16:00:00.123Z";

    fn csv_of(items: &[&str]) -> String {
        let bytes = contents(items).encode(Format::Csv).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_table_of_text_has_its_head_and_a_line_for_each_item() {
        let text = csv_of(&[r#"{"a":false,"b":-3,"c":1.50,"d":"plain","e":[1]}"#]);
        assert_eq!(text, format!("{HEAD}{OWN_1},false,-3,1.50,plain,[1],\r\n"));
    }

    #[test]
    fn quotes_commas_and_line_breaks_are_quoted() {
        let text = csv_of(&[r#"{"d":"a \"b\",\r\nc","q":"x"}"#]);
        let cells = ",,,\"a \"\"b\"\",\r\nc\",,\"{\"\"q\"\":\"\"x\"\"}\"\r\n";
        assert_eq!(text, format!("{HEAD}{OWN_1},{cells}"));
        let text = csv_of(&[r#"{"d":"=HYPERLINK(\"x\")"}"#]);
        assert!(
            text.contains(",\"=HYPERLINK(\"\"x\"\")\","),
            "a formula stays as it is: {text}"
        );
    }

    #[test]
    fn lines_are_those_of_other_sinks() {
        let bytes = contents(&["{\n\"a\": 1}", "{}"]).encode(Format::Lines);
        let text = String::from_utf8(bytes.unwrap()).unwrap();
        let keys = text.lines().map(|line| {
            let record: ItemRecord = serde_json::from_str(line).unwrap();
            record.key.0
        });
        assert_eq!(keys.collect::<Vec<_>>(), ["key-1", "key-2"]);
    }

    #[test]
    fn the_same_items_give_the_same_bytes() {
        for format in [Format::Lines, Format::Csv, Format::Parquet] {
            let items = [r#"{"a":true,"z":[1]}"#, "{}", "[]"];
            let bytes = || contents(&items).encode(format).unwrap();
            assert_eq!(bytes(), bytes());
        }
    }
}
