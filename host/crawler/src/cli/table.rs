//! Formats of answers in a terminal: aligned columns, sizes and times for people, JSON for programs.

use std::io::{self, Write};

use serde::Serialize;

/// Largest width of a column: a longer cell moves the rest of its row.
const WIDEST: usize = 120;
/// Number of blanks between two columns.
const BETWEEN: usize = 2;

/// Prints an answer as indented JSON.
pub(super) fn print_json(answer: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(answer)?;
    print_line(&text)?;
    Ok(())
}

/// Prints one line. The error may be that nobody reads any more.
pub(super) fn print_line(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.write_all(b"\n")
}

/// Prints text as it stands.
pub(super) fn print_text(text: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text)?;
    stdout.flush()
}

/// Returns rows under a head, as [`print`] prints them.
pub(super) fn text<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    render(&head.map(str::to_owned), rows)
}

/// Prints rows under a head, each column as wide as its widest cell.
pub(super) fn print<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> io::Result<()> {
    print_columns(&head.map(str::to_owned), rows)
}

/// Prints rows under a head if the number of columns is known only at run time. Each row has as many cells as
/// the head.
pub(super) fn print_columns(head: &[String], rows: &[impl AsRef<[String]>]) -> io::Result<()> {
    print_text(render(head, rows).as_bytes())
}

fn render(head: &[String], rows: &[impl AsRef<[String]>]) -> String {
    let all = || std::iter::once(head).chain(rows.iter().map(AsRef::as_ref));
    let n_chars = |row: &[String], column: usize| row[column].chars().count();
    let width = |column: usize| all().map(|row| n_chars(row, column).min(WIDEST)).max();
    let widths: Vec<usize> = (0..head.len()).map(|n| width(n).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in all() {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line += cell;
            let missing = widths[column].saturating_sub(n_chars(row, column));
            line.extend(std::iter::repeat_n(' ', missing + BETWEEN));
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Returns text from elsewhere without characters that move a cursor, ring a bell or turn text around; line
/// breaks stay.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let is_mark = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        match c {
            '\n' => plain.push(c),
            _ if c.is_control() || is_mark => plain.extend(c.escape_default()),
            _ => plain.push(c),
        }
    }
    plain
}

/// Formats a size, such as `754.2 kB`.
pub(super) fn size(n_bytes: u64) -> String {
    let steps = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match steps.into_iter().find(|(step, _)| n_bytes >= *step) {
        Some((step, unit)) => format!("{:.1} {unit}", n_bytes as f64 / step as f64),
        None => format!("{n_bytes} B"),
    }
}

/// Formats a time, such as `2026-05-04T03:02:01Z`.
pub(super) fn time(unix_millis: u64) -> String {
    let since = std::time::Duration::from_millis(unix_millis);
    let time = std::time::UNIX_EPOCH + since;
    humantime::format_rfc3339_seconds(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rendered = |rows: &[[String; 2]]| text(["NAME", "PAGES"], rows);
        let rows = [["books", "1"], ["a", "20000"]].map(|row| row.map(str::to_owned));
        assert_eq!(rendered(&rows), "NAME   PAGES\nbooks  1\na      20000\n");
        // A page may have anything in a cell.
        let long = "x".repeat(70_000);
        let text = rendered(&[
            [long.clone(), "1".to_owned()],
            ["a".to_owned(), "2".to_owned()],
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], format!("{long}  1"));
        assert_eq!(lines[2], format!("a{}2", " ".repeat(WIDEST + BETWEEN - 1)));
    }

    #[test]
    fn text_from_elsewhere_moves_nothing() {
        let text = "a\u{1b}[2Jb\n\u{9b}c\u{202e}d é";
        assert_eq!(plain(text), "a\\u{1b}[2Jb\n\\u{9b}c\\u{202e}d é");
    }

    #[test]
    fn sizes_and_times_are_for_people() {
        assert_eq!(size(999), "999 B");
        assert_eq!(size(754_200), "754.2 kB");
        assert_eq!(time(1_700_000_000_000), "2023-11-14T22:13:20Z");
    }
}
