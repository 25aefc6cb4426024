//! `crawler sink …`: the sinks that the config file of this machine declares.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::args::OutputArgs;
use super::{Failure, table};
use crate::config::{self, FileConfig, SinkConfig};
use crawler_file_sink::CompactSettings;
use crawler_model::settings::SinkName;
use crawler_model::suggest;
use crawler_sink::feed::Feed;

pub mod compact;

use compact::CompactArgs;

/// Options of `crawler sink`.
#[derive(Debug)]
pub struct SinkOptions {
    /// File that declares sinks.
    pub file: Box<FileConfig>,
    /// Part that the command has.
    pub action: SinkAction,
    /// True if the answer is printed as JSON.
    pub is_json: bool,
}

/// Part of `crawler sink`.
#[derive(Debug)]
pub enum SinkAction {
    /// Lists all sinks.
    List,
    /// Checks one sink.
    Check(Box<SinkConfig>),
    /// Makes few files of the many small ones of a sink.
    Compact(Box<SinkConfig>, CompactSettings),
}

#[derive(Debug, Subcommand)]
pub(super) enum SinkCommand {
    /// List the sinks that resources can name
    #[command(
        after_help = "It reads the config file of this machine and calls no master.\n\nExamples:\n  crawler sink list\n  crawler sink list --config worker.toml -o json"
    )]
    List(ListArgs),
    /// Reach a sink, try whether it takes items, and say what would be created
    #[command(
        after_help = "It leaves nothing behind. Run it on the machine of a worker, as the user of the worker.\n\nExamples:\n  crawler sink check books-only\n  crawler sink check books-only --config worker.toml"
    )]
    Check(CheckArgs),
    /// Make few large files of the many small ones of a sink in partitions
    #[command(
        after_help = "Each row stays there once; while files are replaced, readers may see rows twice. Workers may go on. A run that was killed is ended by the next one. Temporary files are in the folder that TMPDIR names, or /tmp.\n\nExamples:\n  crawler sink compact lake --dry-run\n  crawler sink compact lake\n  crawler sink compact lake --target 512MiB --min-age 1day"
    )]
    Compact(CompactArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// File that declares sinks [default: crawler.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Name of the sink
    #[arg(value_name = "NAME")]
    name: SinkName,
    #[command(flatten)]
    output: OutputArgs,
    /// File that declares sinks [default: crawler.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl SinkCommand {
    pub(super) fn into_options(self) -> anyhow::Result<SinkOptions> {
        let (config, output, name, settings) = match self {
            SinkCommand::List(args) => (args.config, args.output, None, None),
            SinkCommand::Check(args) => (args.config, args.output, Some(args.name), None),
            SinkCommand::Compact(args) => {
                let settings = args.settings()?;
                (args.config, args.output, Some(args.name), Some(settings))
            }
        };
        let config: Option<&Path> = config.as_deref();
        let file = Box::new(config::load(config)?);
        let sink = name.map(|name| find(&name, &file.sinks).cloned().map(Box::new));
        let action = match (sink.transpose()?, settings) {
            (None, _) => SinkAction::List,
            (Some(sink), None) => SinkAction::Check(sink),
            (Some(sink), Some(settings)) => SinkAction::Compact(sink, settings),
        };
        Ok(SinkOptions {
            file,
            action,
            is_json: output.is_json(),
        })
    }
}

/// Returns the declared sink of this name.
fn find<'a>(name: &SinkName, sinks: &'a [SinkConfig]) -> Result<&'a SinkConfig, Failure> {
    if name.is_lines() {
        return Err(Failure::new(
            "sink lines is the data root, which is not declared",
            "`crawler doctor` checks the data root",
        ));
    }
    let found = sinks.iter().find(|sink| sink.name == *name);
    found.ok_or_else(|| {
        let names: Vec<&str> = sinks.iter().map(|sink| sink.name.as_str()).collect();
        let hint = match names.is_empty() {
            true => format!("add [sink.{name}] to the config file"),
            false => suggest::hint(name.as_str(), &names),
        };
        Failure::new(format!("sink {name} is not declared"), hint)
    })
}

/// A sink as it is listed.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Row {
    name: String,
    kind: &'static str,
    place: String,
    what: &'static str,
    only: Vec<String>,
    fields: Vec<String>,
}

impl Row {
    /// Returns the row of the sink in the data root, which is always there.
    fn of_lines() -> Self {
        Self {
            name: SinkName::lines().to_string(),
            kind: "lines",
            place: "the data root".to_owned(),
            what: shown(Feed::Items),
            only: Vec::new(),
            fields: Vec::new(),
        }
    }

    fn of(sink: &SinkConfig) -> Self {
        let (only, fields) = (sink.selection.only(), sink.selection.fields());
        Self {
            name: sink.name.to_string(),
            kind: sink.place.kind(),
            place: sink.place.shown(),
            what: shown(sink.feed),
            only: only.iter().map(ToString::to_string).collect(),
            fields: fields.iter().map(ToString::to_string).collect(),
        }
    }

    fn cells(self) -> [String; 6] {
        let all = |texts: Vec<String>| match texts.is_empty() {
            true => "all".to_owned(),
            false => table::plain(&texts.join(",")),
        };
        [
            self.name,
            self.kind.to_owned(),
            table::plain(&self.place),
            self.what.to_owned(),
            all(self.only),
            all(self.fields),
        ]
    }
}

/// Returns what a sink gets, in a word.
fn shown(feed: Feed) -> &'static str {
    match feed {
        Feed::Items => "items",
        Feed::History => "history",
        Feed::Changes => "changes",
    }
}

/// Prints the sinks that resources can name.
pub fn print_list(sinks: &[SinkConfig], is_json: bool) -> anyhow::Result<()> {
    let rows = std::iter::once(Row::of_lines()).chain(sinks.iter().map(Row::of));
    if is_json {
        return table::print_json(&rows.collect::<Vec<Row>>());
    }
    let rows: Vec<[String; 6]> = rows.map(Row::cells).collect();
    table::print(["NAME", "KIND", "PLACE", "WHAT", "ONLY", "FIELDS"], &rows)?;
    Ok(())
}

/// Prints that a sink takes items, and what would be created.
pub fn print_check(
    sink: &SinkConfig,
    would_create: &[String],
    is_json: bool,
) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Checked<'a> {
        #[serde(flatten)]
        sink: Row,
        would_create: &'a [String],
    }
    if is_json {
        return table::print_json(&Checked {
            sink: Row::of(sink),
            would_create,
        });
    }
    let (name, kind) = (&sink.name, sink.place.kind());
    let place = table::plain(&sink.place.shown());
    table::print_line(&format!("sink {name} takes items: {kind} in {place}"))?;
    for created in would_create {
        let created = table::plain(created);
        table::print_line(&format!("a crawl would create {created}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SinkPlace;
    use crawler_sink::selection::Selection;

    fn sink() -> SinkConfig {
        let only = vec!["kind=book".parse().unwrap()];
        let fields = vec!["title".parse().unwrap(), "price=preis".parse().unwrap()];
        SinkConfig {
            name: "books-only".parse().unwrap(),
            place: SinkPlace::Folder {
                folder: "/srv/items".into(),
                max_file_bytes: 1 << 20,
            },
            feed: Feed::Changes,
            selection: Selection::new(only, fields).unwrap(),
        }
    }

    #[test]
    fn a_sink_is_listed_with_what_it_gets() {
        let row = Row::of(&sink()).cells();
        let expected = [
            "books-only",
            "lines",
            "/srv/items",
            "changes",
            "kind=book",
            "title,price=preis",
        ];
        assert_eq!(row, expected);
        let row = Row::of_lines().cells();
        assert_eq!(
            row,
            ["lines", "lines", "the data root", "items", "all", "all"]
        );
    }

    #[test]
    fn a_sink_that_is_not_declared_is_named_with_a_way_out() {
        let sinks = [sink()];
        let error = find(&"out".parse().unwrap(), &[]).unwrap_err();
        assert_eq!(error.hint, "add [sink.out] to the config file");
        let find = |name: &str| find(&name.parse().unwrap(), &sinks).map(|_| ());
        find("books-only").unwrap();
        let error = find("book-only").unwrap_err();
        assert_eq!(error.what, "sink book-only is not declared");
        assert_eq!(error.hint, "did you mean \"books-only\"?");
        let error = find("warehouse").unwrap_err();
        assert_eq!(error.hint, "there are books-only");
        let error = find("lines").unwrap_err();
        assert!(error.what.contains("data root"), "{}", error.what);
    }
}
