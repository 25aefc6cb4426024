//! The file for the items of `crawler run`: its ending tells the format.

use std::path::PathBuf;

/// Formats that `-o` of other commands takes. A user who writes one of them here does not want a file of this name.
const FORMATS: [&str; 5] = ["json", "jsonl", "ndjson", "csv", "table"];

/// File that items are written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemsFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Format of what is written.
    pub format: ItemsFormat,
}

/// Format of items in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemsFormat {
    /// JSON object on each line: `.jsonl`, `.ndjson`, or no ending.
    Lines,
    /// JSON array: `.json`.
    Array,
    /// Table: `.csv`.
    Table,
}

impl ItemsFile {
    /// Returns the file with the format that its ending tells.
    ///
    /// # Errors
    ///
    /// There is no format for the ending, or the path is the name of a format.
    pub fn new(path: PathBuf) -> Result<Self, String> {
        // `./json` is another text for the same path.
        if let Some(format) = FORMATS.iter().find(|format| path.as_os_str() == **format) {
            return Err(format!(
                "{format} is a format, and -o of this command names a file; write -o items.json for an array, -o items.jsonl for an object a line, or -o items.csv for a table, and -o ./{format} for a file of that name; --stats FILE writes the statistics of the run as JSON"
            ));
        }
        let format = match path.extension() {
            None => ItemsFormat::Lines,
            Some(ending) => by_ending(&ending.to_string_lossy())?,
        };
        Ok(Self { path, format })
    }
}

fn by_ending(ending: &str) -> Result<ItemsFormat, String> {
    match ending.to_ascii_lowercase().as_str() {
        "jsonl" | "ndjson" => Ok(ItemsFormat::Lines),
        "json" => Ok(ItemsFormat::Array),
        "csv" => Ok(ItemsFormat::Table),
        _ => Err(format!(
            "no items are written as .{ending}; end it in .jsonl for an object a line, .json for an array, or .csv for a table, or give a path without an ending"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, format: ItemsFormat) {
        assert_eq!(
            ItemsFile::new(path.into()).unwrap().format,
            format,
            "{path}"
        );
    }

    #[test]
    fn the_ending_tells_the_format() {
        check("a.b/items.jsonl", ItemsFormat::Lines);
        check("items.json", ItemsFormat::Array);
        check("items.csv", ItemsFormat::Table);
        check("items.ndjson", ItemsFormat::Lines);
        check("ITEMS.JSON", ItemsFormat::Array);
        check("/dev/stdout", ItemsFormat::Lines);
        check("./json", ItemsFormat::Lines);
        check("csv/table", ItemsFormat::Lines);
        let error = ItemsFile::new("items.xml".into()).unwrap_err();
        assert!(
            error.starts_with("no items are written as .xml; "),
            "{error}"
        );
        assert!(
            error.ends_with(", or give a path without an ending"),
            "{error}"
        );
    }

    #[test]
    fn the_name_of_a_format_is_no_file() {
        for format in FORMATS {
            let error = ItemsFile::new(format.into()).unwrap_err();
            let start = format!("{format} is a format, and -o of this command names a file; ");
            assert!(error.starts_with(&start), "{error}");
            assert!(error.contains(&format!("-o ./{format} ")), "{error}");
        }
    }
}
