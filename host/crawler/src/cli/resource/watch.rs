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
    let mut shown = String::new();
    loop {
        let text = match (all(client).await, &listed) {
            (Ok(resources), _) => {
                let text = table::text(super::HEAD, &rows(resources));
                listed = Some(text.clone());
                text
            }
            // A master that restarts is back in a moment.
            (Err(error), Some(listed)) if error.is_transient() => {
                format!("{listed}\n{error}; trying again\n")
            }
            (Err(error), _) => return Err(error.into()),
        };
        if text != shown {
            table::print_text(frame(is_terminal, shown.is_empty(), &text).as_bytes())?;
            shown = text;
        }
        sleep(LOOK_EVERY).await;
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
    fn a_table_takes_the_place_of_the_last_one_or_follows_it() {
        assert_eq!(frame(true, false, "a\n"), "\x1b[H\x1b[2Ja\n");
        assert_eq!(frame(false, true, "a\n"), "a\n");
        assert_eq!(frame(false, false, "a\n"), "\na\n");
    }
}
