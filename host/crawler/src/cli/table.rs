//! Formats of answers in a terminal: aligned columns, sizes and times for people, JSON for programs.

use std::io::{self, Write};

use serde::Serialize;

use crawler_model::guest_text::steers;

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

/// A table whose rows come bit by bit. A column grows with its widest cell so far.
#[derive(Debug)]
pub(super) struct Growing<const N: usize> {
    widths: Vec<usize>,
    /// Head that is still to be printed.
    head: Option<[String; N]>,
}

impl<const N: usize> Growing<N> {
    pub(super) fn new(head: [&str; N]) -> Self {
        Self {
            widths: vec![0; N],
            head: Some(head.map(str::to_owned)),
        }
    }

    /// Gives a column room for its longest cell, which may come late.
    pub(super) fn with_room(mut self, column: usize, width: usize) -> Self {
        self.widths[column] = width;
        self
    }

    /// Prints further rows, the first time under the head.
    pub(super) fn print(&mut self, rows: &[[String; N]]) -> io::Result<()> {
        print_text(self.text(rows).as_bytes())
    }

    fn text(&mut self, rows: &[[String; N]]) -> String {
        let head = self.head.take();
        let all = || head.iter().chain(rows).map(<[String; N]>::as_slice);
        widen(&mut self.widths, all());
        lines(&self.widths, all())
    }
}

fn render(head: &[String], rows: &[impl AsRef<[String]>]) -> String {
    let all = || std::iter::once(head).chain(rows.iter().map(AsRef::as_ref));
    let mut widths = vec![0; head.len()];
    widen(&mut widths, all());
    lines(&widths, all())
}

fn widen<'r>(widths: &mut [usize], rows: impl Iterator<Item = &'r [String]>) {
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().min(WIDEST).max(*width);
        }
    }
}

fn lines<'r>(widths: &[usize], rows: impl Iterator<Item = &'r [String]>) -> String {
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            line += cell;
            let missing = width.saturating_sub(cell.chars().count());
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
        match c {
            '\n' => plain.push(c),
            _ if steers(c) => plain.extend(c.escape_default()),
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
    fn columns_of_a_growing_table_never_shrink() {
        let mut table = Growing::new(["KIND", "N"]);
        let row = |kind: &str| [[kind.to_owned(), "1".to_owned()]];
        assert_eq!(table.text(&row("author")), "KIND    N\nauthor  1\n");
        assert_eq!(table.text(&row("book")), "book    1\n");
        assert_eq!(table.text(&row("publisher")), "publisher  1\n");
        assert_eq!(table.text(&[]), "");
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
