//! `crawler resource list --watch`: the table again whenever it changes, until Ctrl-C.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::list::{FilterArgs, HEAD, filtered, pace, row};
use crate::cli::pace::RecentPages;
use crate::cli::table;
use crawler_api::client::{Client, ClientError};
use crawler_api::totals;

/// Interval between two looks at the resources.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Moves to the top left of a terminal and clears it.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows all resources until the command is ended. It is an error if nobody answers the first time.
pub(super) async fn run(client: &Client, filter: &FilterArgs) -> anyhow::Result<()> {
    let mut screen = Screen::new(io::stdout().is_terminal());
    let mut recent = Recent::default();
    let mut table = listed(client, filter, &mut recent).await?;
    let mut trouble = String::new();
    loop {
        let (text, aside) = screen.next(&table, &trouble);
        table::print_text(text.as_bytes())?;
        eprint!("{aside}");
        sleep(LOOK_EVERY).await;
        trouble = match listed(client, filter, &mut recent).await {
            Ok(changed) => {
                table = changed;
                String::new()
            }
            // A master that restarts is back in a moment.
            Err(error) if error.is_transient() => format!("{error}; trying again\n"),
            Err(error) => return Err(error.into()),
        };
    }
}

/// Pages of the last seconds, by id of the resource.
type Recent = HashMap<String, RecentPages>;

async fn listed(
    client: &Client,
    filter: &FilterArgs,
    recent: &mut Recent,
) -> Result<String, ClientError> {
    let resources = filtered(client, filter).await?;
    let now = Instant::now();
    // Those of resources that are gone stay behind.
    let mut before = std::mem::take(recent);
    let rows: Vec<_> = resources
        .into_iter()
        .map(|resource| {
            let id = resource.spec().id;
            let mut pages = before.remove(&id).unwrap_or_default();
            let rate = pages.rate(now, totals(resource.counts()).due_pages());
            recent.insert(id, pages);
            let pace = pace(&resource, rate);
            row(resource, &pace)
        })
        .collect();
    Ok(table::text(HEAD, &rows))
}

/// State of what is shown.
#[derive(Debug)]
struct Screen {
    is_terminal: bool,
    table: String,
    trouble: String,
}

impl Screen {
    fn new(is_terminal: bool) -> Self {
        Self {
            is_terminal,
            table: String::new(),
            trouble: String::new(),
        }
    }

    /// Returns what goes to stdout and to stderr now. On a terminal, all is shown anew after any change. Elsewhere a
    /// table that has changed follows the last one behind an empty line, and trouble goes to stderr, because
    /// programs read the tables.
    fn next(&mut self, table: &str, trouble: &str) -> (String, String) {
        let is_first = self.table.is_empty();
        let (has_changed, is_new_trouble) = (self.table != table, self.trouble != trouble);
        self.table = table.to_owned();
        self.trouble = trouble.to_owned();
        if self.is_terminal {
            let gap = if trouble.is_empty() { "" } else { "\n" };
            let text = match has_changed || is_new_trouble {
                true => format!("{CLEAR}{table}{gap}{trouble}"),
                false => String::new(),
            };
            return (text, String::new());
        }
        let text = match (has_changed, is_first) {
            (false, _) => String::new(),
            (true, true) => table.to_owned(),
            (true, false) => format!("\n{table}"),
        };
        let aside = if is_new_trouble { trouble } else { "" };
        (text, aside.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(is_terminal: bool, steps: &[(&str, &str, &str, &str)]) {
        let mut screen = Screen::new(is_terminal);
        for (table, trouble, text, aside) in steps {
            let shown = screen.next(table, trouble);
            assert_eq!(shown, ((*text).to_owned(), (*aside).to_owned()));
        }
    }

    #[test]
    fn a_terminal_shows_each_change_in_place_of_the_last() {
        check(
            true,
            &[
                ("a\n", "", "\x1b[H\x1b[2Ja\n", ""),
                ("a\n", "", "", ""),
                ("b\n", "", "\x1b[H\x1b[2Jb\n", ""),
                ("b\n", "gone\n", "\x1b[H\x1b[2Jb\n\ngone\n", ""),
                ("b\n", "gone\n", "", ""),
                ("b\n", "", "\x1b[H\x1b[2Jb\n", ""),
            ],
        );
    }

    #[test]
    fn a_pipe_gets_tables_that_changed_and_stderr_the_trouble() {
        check(
            false,
            &[
                ("a\n", "", "a\n", ""),
                ("a\n", "", "", ""),
                ("b\n", "", "\nb\n", ""),
                ("b\n", "gone\n", "", "gone\n"),
                ("b\n", "gone\n", "", ""),
                ("b\n", "", "", ""),
                ("b\n", "gone\n", "", "gone\n"),
            ],
        );
    }
}
