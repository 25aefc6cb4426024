//! `crawler sink compact`: its arguments, and what it tells a person.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::cli::args::{OutputArgs, size};
use crate::cli::table::{self, size as size_of};
use crate::cli::{Failure, print_note};
use crawler_file_sink::{CompactSettings, Compacted, Made};
use crawler_model::number;
use crawler_model::settings::SinkName;

#[derive(Debug, Args)]
pub(in crate::cli) struct CompactArgs {
    /// Name of the sink
    #[arg(value_name = "NAME")]
    pub(super) name: SinkName,
    /// Size up to which files become one, from 1MiB to 1GiB; files of half of it stay as they are [default: 128MiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    target: Option<u64>,
    /// Smallest number of files that become one, from 2 to 4000; fewer do if they reach the target [default: 8]
    #[arg(long, value_name = "N")]
    min_files: Option<usize>,
    /// Age that files have at least, by the clocks of this machine and of the place, from 0s to 30days [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    min_age: Option<Duration>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// File that declares sinks [default: crawler.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

impl CompactArgs {
    /// Returns the settings; an option out of its range is named.
    pub(super) fn settings(&self) -> Result<CompactSettings, Failure> {
        let default = CompactSettings::default();
        let settings = CompactSettings {
            target_bytes: self.target.unwrap_or(default.target_bytes),
            min_files: self.min_files.unwrap_or(default.min_files),
            min_age: self.min_age.unwrap_or(default.min_age),
            is_dry: self.dry_run,
        };
        let hint = "`crawler sink compact --help` shows the ranges";
        let checked = settings.check();
        checked.map_err(|error| Failure::new(error.to_string(), hint))?;
        Ok(settings)
    }
}

/// Prints a sentence about something that was done, or would be. The work goes on if nobody reads it.
pub fn print_step(text: &str, is_json: bool) {
    if !is_json {
        let _unread = table::print_line(&table::plain(text));
    }
}

/// Prints to stderr a sentence about something that is left as it is.
pub fn print_left(text: &str) {
    print_note(&table::plain(text));
}

/// Returns the sentence about files that have become one, or would.
pub fn made(made: &Made) -> String {
    let (files, bytes) = (number(made.n_inputs, "file"), size_of(made.input_bytes));
    match &made.output {
        Some(output) => format!("{}: {files} of {bytes} are now {output}", made.folder),
        None => format!("{}: {files} of {bytes} would become one", made.folder),
    }
}

/// Returns the numbers of a compaction that is under way.
pub fn progress(compacted: &Compacted) -> String {
    let Compacted {
        n_folders,
        n_inputs,
        n_outputs,
        ..
    } = *compacted;
    let (folders, inputs) = (number(n_folders, "folder"), number(n_inputs, "file"));
    format!("{folders}, {inputs} made into {n_outputs}")
}

/// Prints the numbers of a compaction.
pub fn print_summary(
    name: &SinkName,
    compacted: &Compacted,
    is_dry: bool,
    is_json: bool,
) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Summary {
        sink: String,
        dry_run: bool,
        folders: u64,
        inputs: u64,
        input_bytes: u64,
        outputs: u64,
        undone: u64,
        removed: u64,
        young: u64,
        few: u64,
        failed: u64,
    }
    if is_json {
        return table::print_json(&Summary {
            sink: name.to_string(),
            dry_run: is_dry,
            folders: compacted.n_folders,
            inputs: compacted.n_inputs,
            input_bytes: compacted.input_bytes,
            outputs: compacted.n_outputs,
            undone: compacted.n_undone,
            removed: compacted.n_removed,
            young: compacted.n_young,
            few: compacted.n_few,
            failed: compacted.n_failed,
        });
    }
    Ok(table::print_line(&summary(name, compacted, is_dry))?)
}

/// Returns the sentences about what was done, and about small files that are left.
fn summary(name: &SinkName, compacted: &Compacted, is_dry: bool) -> String {
    let verb = match is_dry {
        true => "would become",
        false => "became",
    };
    let mut text = format!(
        "sink {name}: {} of {} {verb} {}; {} looked at",
        number(compacted.n_inputs, "file"),
        size_of(compacted.input_bytes),
        compacted.n_outputs,
        number(compacted.n_folders, "folder")
    );
    for (n, why) in [
        (compacted.n_young, "younger than --min-age"),
        (compacted.n_few, "fewer than --min-files in their folder"),
    ] {
        if n > 0 {
            text += &format!("; {} left, {why}", number(n, "small file"));
        }
    }
    text
}

/// Returns the error of a compaction in which something has failed, after that was told.
pub fn failure(compacted: &Compacted) -> Option<Failure> {
    (compacted.n_failed > 0).then(|| {
        let what = match compacted.n_failed {
            1 => "1 file or folder could not be compacted".to_owned(),
            n => format!("{n} files or folders could not be compacted"),
        };
        let hint = "no row is lost; mend the cause that is told above, and run the command again";
        Failure::new(what, hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_told_in_lines() {
        let mut of_files = Made {
            folder: "books/book".to_owned(),
            n_inputs: 12,
            input_bytes: 4_096,
            output: Some("7-c000001-5f0c.csv".to_owned()),
        };
        let text = made(&of_files);
        assert_eq!(
            text,
            "books/book: 12 files of 4.1 kB are now 7-c000001-5f0c.csv"
        );
        of_files.output = None;
        let text = made(&of_files);
        assert_eq!(text, "books/book: 12 files of 4.1 kB would become one");
        let compacted = Compacted {
            n_folders: 3,
            n_inputs: 12,
            input_bytes: 4_096,
            n_outputs: 1,
            ..Compacted::default()
        };
        let name = "lake".parse().unwrap();
        let text = summary(&name, &compacted, false);
        assert_eq!(
            text,
            "sink lake: 12 files of 4.1 kB became 1; 3 folders looked at"
        );
        let text = summary(&name, &compacted, true);
        assert_eq!(
            text,
            "sink lake: 12 files of 4.1 kB would become 1; 3 folders looked at"
        );
        let left = Compacted {
            n_folders: 1,
            n_young: 29,
            n_few: 1,
            ..Compacted::default()
        };
        assert_eq!(
            summary(&name, &left, false),
            "sink lake: 0 files of 0 B became 0; 1 folder looked at; 29 small files left, younger than --min-age; 1 small file left, fewer than --min-files in their folder"
        );
        assert_eq!(progress(&compacted), "3 folders, 12 files made into 1");
    }

    #[test]
    fn what_has_failed_is_an_error() {
        let of = |n_failed| Compacted {
            n_failed,
            ..Compacted::default()
        };
        assert!(failure(&of(0)).is_none());
        let one = failure(&of(1)).unwrap();
        assert_eq!(one.what, "1 file or folder could not be compacted");
        let two = failure(&of(2)).unwrap();
        assert_eq!(two.what, "2 files or folders could not be compacted");
    }
}
