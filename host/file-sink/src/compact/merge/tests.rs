//! Tests of merged files, read by the library that has written them, and of files that cannot be merged.

use std::io::Write as _;

use parquet::file::reader::{FileReader as _, SerializedFileReader};

use super::*;
use crate::encode::Contents;
use crate::encode::tests::contents;
use crate::table::tests::table;

/// Returns a file of this machine.
fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

/// Returns a file of these items with these fields.
fn of_items(format: Format, fields: &str, items: &[&str]) -> Vec<u8> {
    let contents = Contents {
        table: table(&format!("{{\"properties\":{{{fields}}}}}")),
        ..contents(items)
    };
    contents.encode(format).unwrap()
}

/// Merges files, whose columns are united.
fn merge(format: Format, files: &[Vec<u8>]) -> Result<Vec<u8>, MergeError> {
    let mut table = Table::default();
    for bytes in files {
        table = table.united(&head(format, file(bytes))?.table)?;
    }
    let mut merge = Merge::new(format, &table, tempfile::tempfile()?)?;
    for bytes in files {
        let appended = merge.append(file(bytes));
        appended.map_err(|error| match error {
            AppendError::Input(error) => error,
            AppendError::Output(error) => panic!("{error}"),
        })?;
    }
    let mut bytes = Vec::new();
    merge.finish()?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

const A: &str = r#""a":{"type":"integer"}"#;
const B: &str = r#""b":{"type":"boolean"},"c":{"type":"number"},"d":{"type":"string"}"#;

#[test]
fn a_head_tells_the_kind_and_the_columns() {
    for format in [Format::Lines, Format::Csv, Format::Parquet] {
        let found = head(format, file(&of_items(format, A, &["{}"]))).unwrap();
        assert_eq!(found.kind, "thing", "{format}");
        let shape = match format {
            Format::Lines => None,
            Format::Csv => Some(Shape::Text),
            Format::Parquet => Some(Shape::Integer),
        };
        let fields: Vec<_> = shape
            .map(|shape| ("a".to_owned(), shape))
            .into_iter()
            .collect();
        assert_eq!(found.table.fields, fields, "{format}");
    }
}

#[test]
fn lines_follow_one_another() {
    let files = [["{}", "[1]"], ["{\"a\":1}", "2"]].map(|items| of_items(Format::Lines, A, &items));
    let merged = merge(Format::Lines, &files).unwrap();
    assert_eq!(merged, files.concat());
    let mut cut = files;
    cut[1].pop();
    let error = merge(Format::Lines, &cut).unwrap_err();
    assert_eq!(error.to_string(), "its last line has no end");
}

#[test]
fn texts_get_the_columns_of_all_files() {
    let d = r#""d":{"type":"string"}"#;
    let one = of_items(Format::Csv, A, &[r#"{"a":1,"d":"x, \"y\"\r\nz"}"#]);
    let other = of_items(Format::Csv, d, &[r#"{"a":2,"d":"x, \"y\"\r\nz"}"#]);
    let merged = merge(Format::Csv, &[one.clone(), other, one]).unwrap();
    let own = "key-1,team/books,thing,http://a.test/1,1,2026-11-28T16:00:00.123Z";
    let first = format!("{own},1,,\"{{\"\"d\"\":\"\"x, \\\"\"y\\\"\"\\r\\nz\"\"}}\"\r\n");
    let second = format!("{own},,\"x, \"\"y\"\"\r\nz\",\"{{\"\"a\"\":2}}\"\r\n");
    let head = "_key,_resource,_kind,_url,_run,_at,a,d,_rest\r\n";
    let expected = format!("{head}{first}{second}{first}");
    assert_eq!(String::from_utf8(merged).unwrap(), expected);
}

/// Returns each row as text, and the number of rows of each group.
fn rows(bytes: Vec<u8>) -> (Vec<String>, Vec<i64>) {
    let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let rows = file.get_row_iter(None).unwrap();
    let rows = rows.map(|row| row.unwrap().to_string()).collect();
    let groups = file.metadata().row_groups().iter();
    (rows, groups.map(|group| group.num_rows()).collect())
}

#[test]
fn tables_of_columns_are_one_group_with_the_columns_of_all() {
    let items = [
        r#"{"a":-1,"b":true,"c":1.5,"d":"x"}"#,
        "{}",
        r#"{"a":"no","d":"\u00e9"}"#,
    ];
    let both = format!("{A},{B}");
    let files = [A, B, &both].map(|fields| of_items(Format::Parquet, fields, &items));
    let (merged, groups) = rows(merge(Format::Parquet, &files).unwrap());
    assert_eq!(groups, [9]);
    // The third file has all columns: its rows are there as they were.
    assert_eq!(merged[6..], rows(files[2].clone()).0);
    let values = |row: &str, column: &str| row.contains(&format!("{column}: null"));
    for (n, row) in merged.iter().enumerate() {
        let lacks = |column: &str| assert!(values(row, column), "{n}: {row}");
        match n {
            0..3 => ["b", "c", "d"].into_iter().for_each(lacks),
            3..6 => lacks("a"),
            _ => {}
        }
    }
    assert!(
        merged[3].contains("b: true") && merged[3].contains("c: 1.5"),
        "{merged:?}"
    );
}

#[test]
fn groups_keep_their_bound() {
    let fields: Vec<String> = (0..999).map(|n| format!("\"f{n}\":{{}}")).collect();
    let wide = of_items(Format::Parquet, &fields.join(","), &[r#"{"f9":1}"#; 700]);
    let narrow = of_items(Format::Parquet, "", &[r#"{"f9":1}"#; 700]);
    let (merged, groups) = rows(merge(Format::Parquet, &[wide, narrow]).unwrap());
    assert_eq!(groups, [1_042, 358]);
    assert_eq!(merged.len(), 1_400);
    let long = format!(r#"{{"d":"{}"}}"#, "x".repeat(9 << 20));
    let d = r#""d":{"type":"string"}"#;
    let long = of_items(Format::Parquet, d, &[&long, "{}"]);
    let (merged, groups) = rows(merge(Format::Parquet, &vec![long; 9]).unwrap());
    assert!(groups.len() > 1, "{groups:?}");
    assert_eq!(merged.len(), 18);
}

#[test]
fn what_is_damaged_or_of_others_is_told() {
    let whole = of_items(Format::Parquet, A, &[r#"{"a":1}"#; 50]);
    for format in [Format::Lines, Format::Csv, Format::Parquet] {
        assert!(head(format, file(b"")).is_err(), "{format}");
        assert!(head(format, file(b"x,y\r\n1,2\r\n")).is_err(), "{format}");
    }
    let error = head(Format::Csv, file(b"x,y\r\n1,2\r\n")).unwrap_err();
    assert_eq!(error.to_string(), "its columns are not those of the sink");
    let cut = whole[..whole.len() / 2].to_vec();
    assert!(head(Format::Parquet, file(&cut)).is_err());
    // The head does not read the first column; its bytes begin after the mark of the format.
    let mut damaged = whole;
    damaged[4..40].fill(0xff);
    assert!(head(Format::Parquet, file(&damaged)).is_ok());
    assert!(merge(Format::Parquet, &[damaged]).is_err());
}

#[test]
fn an_output_that_cannot_be_written_is_no_damaged_input() {
    // Larger than all buffers on the way.
    let text = "x".repeat(64 << 10);
    let item = format!("{{\"a\":\"{text}\"}}");
    for format in [Format::Lines, Format::Csv] {
        let bytes = of_items(format, A, &[&item, &item]);
        let table = head(format, file(&bytes)).unwrap().table;
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut merge = Merge::new(format, &table, full).unwrap();
        let error = merge.append(file(&bytes)).unwrap_err();
        assert!(matches!(error, AppendError::Output(_)), "{error:?}");
        let mut merge = Merge::new(format, &table, tempfile::tempfile().unwrap()).unwrap();
        let error = merge.append(file(b"\"")).unwrap_err();
        assert!(matches!(error, AppendError::Input(_)), "{error:?}");
    }
}
