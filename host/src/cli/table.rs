//! How answers look in a terminal: aligned columns, sizes and times for people, JSON for programs.

use std::io::{self, Write as _};

use serde::Serialize;

/// Prints an answer as JSON that a person can read too.
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

/// Prints rows under a head, each column as wide as its widest cell.
pub(super) fn print<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> io::Result<()> {
    let text = render(head, rows);
    io::stdout().lock().write_all(text.as_bytes())
}

fn render<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let head = head.map(str::to_owned);
    let all = || std::iter::once(&head).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for row in all() {
        let cells = row.iter().zip(widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Text from elsewhere, in which nothing moves a cursor, rings a bell or turns text around; lines stay.
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

/// `754.2 kB`.
pub(super) fn size(n_bytes: u64) -> String {
    let steps = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match steps.into_iter().find(|(step, _)| n_bytes >= *step) {
        Some((step, unit)) => format!("{:.1} {unit}", n_bytes as f64 / step as f64),
        None => format!("{n_bytes} B"),
    }
}

/// `2026-05-04T03:02:01Z`.
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
        let rows = [["books", "1"], ["a", "20000"]].map(|row| row.map(str::to_owned));
        let text = render(["NAME", "PAGES"], &rows);
        assert_eq!(text, "NAME   PAGES\nbooks  1\na      20000\n");
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
