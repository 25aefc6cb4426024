//! `crawler items --changes`: the changes of a run's items, as lines of JSON.

use crate::cli::table;
use crawler_api::client::Client;
use crawler_model::id::ResourceName;

/// Prints the changes of a run; without one, of the present run.
pub(super) async fn print(
    client: &Client,
    name: &ResourceName,
    run: Option<u64>,
) -> anyhow::Result<()> {
    let (run, mut token) = (run.unwrap_or_default(), String::new());
    loop {
        // Another run may begin before the next page is read; the token holds this one.
        let page = client.changes(name, run, token).await?;
        let mut lines = Vec::new();
        for change in &page.changes {
            serde_json::to_writer(&mut lines, change)?;
            lines.push(b'\n');
        }
        table::print_text(&lines)?;
        token = page.next_page_token;
        if token.is_empty() {
            if !page.totals.unwrap_or_default().complete {
                eprintln!(
                    "hint: the run is not complete: not all that it has not seen is told as removed"
                );
            }
            return Ok(());
        }
    }
}
