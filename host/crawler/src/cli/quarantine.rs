//! `crawler quarantine …`: items that are held because they are not like those of the last good run.

use clap::Subcommand;
use crawler_proto as proto;

use super::args::{Format, OutputArgs};
use super::table;
use crawler_api::client::Client;
use crawler_master::control::quarantine::HoldId;
use crawler_model::drift::Action;
use crawler_model::id::ResourceName;
use crawler_model::number;

const HEAD: [&str; 8] = [
    "HOLD", "RUN", "KIND", "HOST", "ITEMS", "SIZE", "SINCE", "WHY",
];

/// Number of items that one call asks for.
const PAGE: u32 = 1_000;

#[derive(Debug, Subcommand)]
pub(super) enum QuarantineCommand {
    /// List what is held and why: a hold for each kind and host of a run
    #[command(
        after_help = "Examples:\n  crawler quarantine list books\n  crawler quarantine list books -o json"
    )]
    List {
        /// The resource
        name: ResourceName,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print the items of one hold, one JSON object a line
    #[command(after_help = "Example:\n  crawler quarantine show books 0.1 --limit 3")]
    Show {
        /// The resource
        name: ResourceName,
        /// The hold, as `crawler quarantine list` names it
        hold: HoldId,
        /// Number of items at most
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
        limit: u64,
    },
    /// Give held items to the sinks; their kind and host are not judged until a run has learned them anew
    #[command(
        after_help = "Items that are held after the command has looked stay. A crawl that is over, or has failed, goes on in the same run.\n\nExamples:\n  crawler quarantine release books\n  crawler quarantine release books 0.1"
    )]
    Release(DecisionArgs),
    /// Remove held items; their pages are not fetched again in the same run
    #[command(
        after_help = "Items that are held after the command has looked stay. A crawl that is over, or has failed, goes on in the same run.\n\nExamples:\n  crawler quarantine drop books\n  crawler quarantine drop books 0.1"
    )]
    Drop(DecisionArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct DecisionArgs {
    /// The resource
    name: ResourceName,
    /// The hold, as `crawler quarantine list` names it [default: all]
    hold: Option<HoldId>,
}

pub(super) async fn run(command: QuarantineCommand, client: Client) -> anyhow::Result<()> {
    match command {
        QuarantineCommand::List { name, output } => list(&client, &name, output.format).await,
        QuarantineCommand::Show { name, hold, limit } => show(&client, &name, hold, limit).await,
        QuarantineCommand::Release(args) => decide(&client, Action::Release, args).await,
        QuarantineCommand::Drop(args) => decide(&client, Action::Drop, args).await,
    }
}

async fn list(client: &Client, name: &ResourceName, format: Format) -> anyhow::Result<()> {
    let holds = client.quarantine(name).await?;
    if format == Format::Json {
        return table::print_json(&proto::ListQuarantineResponse { holds });
    }
    let rows: Vec<_> = holds.iter().map(row).collect();
    table::print(HEAD, &rows)?;
    Ok(())
}

fn row(hold: &proto::Hold) -> [String; 8] {
    let proto::Hold {
        field, before, now, ..
    } = hold;
    [
        hold.id.clone(),
        hold.run.to_string(),
        table::plain(&hold.kind),
        match hold.host.as_str() {
            "" => "others".to_owned(),
            host => table::plain(host),
        },
        hold.items.to_string(),
        table::size(hold.bytes),
        table::time(hold.since),
        table::plain(&format!("{field}: {now}, before {before}")),
    ]
}

async fn show(
    client: &Client,
    name: &ResourceName,
    hold: HoldId,
    limit: u64,
) -> anyhow::Result<()> {
    let (mut n_left, mut token) = (limit, String::new());
    loop {
        let n = u32::try_from(n_left).unwrap_or(PAGE).min(PAGE);
        let page = client.held_items(name, hold, n, token).await?;
        n_left = n_left.saturating_sub(page.items.len() as u64);
        for item in &page.items {
            table::print_line(&item.json)?;
        }
        token = page.next_page_token;
        if token.is_empty() || n_left == 0 {
            break;
        }
    }
    if !token.is_empty() {
        let more = limit.saturating_mul(10);
        eprintln!("hint: there are more; show them with --limit {more}");
    }
    Ok(())
}

async fn decide(client: &Client, action: Action, args: DecisionArgs) -> anyhow::Result<()> {
    let decided = client
        .decide_quarantine(&args.name, action, args.hold)
        .await?;
    let items = match decided.holds {
        // The answer to the first try was lost, and with it the numbers.
        0 => "the held items".to_owned(),
        _ => number(decided.items, "item"),
    };
    let verb = match action {
        Action::Release => "released",
        Action::Drop => "dropped",
    };
    table::print_line(&format!("{items} of {} will be {verb}", args.name))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_what_was_and_what_is() {
        let hold = proto::Hold {
            id: "0.1".into(),
            run: 2,
            kind: "book".into(),
            field: "title".into(),
            before: "missing in 0 of 300 items".into(),
            now: "missing in 40 of 40 items".into(),
            items: 61,
            ..proto::Hold::default()
        };
        let row = row(&hold);
        assert_eq!(row[..5], ["0.1", "2", "book", "others", "61"]);
        assert_eq!(
            row[7],
            "title: missing in 40 of 40 items, before missing in 0 of 300 items"
        );
    }
}
