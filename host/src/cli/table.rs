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
    fn sizes_and_times_are_for_people() {
        assert_eq!(size(999), "999 B");
        assert_eq!(size(754_200), "754.2 kB");
        assert_eq!(time(1_700_000_000_000), "2023-11-14T22:13:20Z");
    }
}
