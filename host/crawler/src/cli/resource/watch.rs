//! `crawler resource list --watch`: the table again whenever it changes, until Ctrl-C.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use tokio::time::sleep;

use super::{all, rows};
use crate::cli::table;
use crawler_api::client::Client;

/// Interval between two looks at the resources.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Moves to the top left of a terminal and clears it.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows all resources until the command is ended. It is an error if nobody answers the first time.
pub(super) async fn run(client: &Client) -> anyhow::Result<()> {
    let is_terminal = io::stdout().is_terminal();
    let mut listed: Option<String> = None;
    let (mut shown, mut told) = (String::new(), String::new());
    loop {
        let trouble = match (all(client).await, &listed) {
            (Ok(resources), _) => {
                listed = Some(table::text(super::HEAD, &rows(resources)));
                String::new()
            }
            // A master that restarts is back in a moment.
            (Err(error), Some(_)) if error.is_transient() => format!("{error}; trying again\n"),
            (Err(error), _) => return Err(error.into()),
        };
        let table = listed.as_deref().unwrap_or_default();
        let (text, aside) = parts(is_terminal, table, trouble);
        if text != shown {
            table::print_text(frame(is_terminal, shown.is_empty(), &text).as_bytes())?;
            shown = text;
        }
        if aside != told {
            eprint!("{aside}");
            told = aside;
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Returns what goes to stdout and what goes to stderr. Programs that read the table get nothing else.
fn parts(is_terminal: bool, table: &str, trouble: String) -> (String, String) {
    match is_terminal && !trouble.is_empty() {
        true => (format!("{table}\n{trouble}"), String::new()),
        false => (table.to_owned(), trouble),
    }
}

/// Returns what replaces the table before: on a terminal all of it, elsewhere one more behind an empty line.
fn frame(is_terminal: bool, is_first: bool, text: &str) -> String {
    match (is_terminal, is_first) {
        (true, _) => format!("{CLEAR}{text}"),
        (false, true) => text.to_owned(),
        (false, false) => format!("\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_beside_a_table_that_a_program_reads() {
        let parts = |is_terminal, trouble: &str| parts(is_terminal, "a\n", trouble.to_owned());
        let found = |text: &str, aside: &str| (text.to_owned(), aside.to_owned());
        assert_eq!(parts(true, ""), found("a\n", ""));
        assert_eq!(parts(true, "b\n"), found("a\n\nb\n", ""));
        assert_eq!(parts(false, ""), found("a\n", ""));
        assert_eq!(parts(false, "b\n"), found("a\n", "b\n"));
    }

    #[test]
    fn a_table_takes_the_place_of_the_last_one_or_follows_it() {
        assert_eq!(frame(true, false, "a\n"), "\x1b[H\x1b[2Ja\n");
        assert_eq!(frame(false, true, "a\n"), "a\n");
        assert_eq!(frame(false, false, "a\n"), "\na\n");
    }
}
