//! `crawler archive …`: checks archives, and makes one file of several.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::args::size;
use super::{Failure, table};
use crawler_archive::{ArchiveError, Checked, check, pack_files};
use crawler_model::number;
use crawler_model::plugin::format_bytes;
use crawler_process::clock::{Clock as _, SystemClock};
use crawler_process::task::blocking;

/// Head of the table of files.
const HEAD: [&str; 4] = ["FILE", "RECORDS", "DIGESTS", "FAULTS"];

#[derive(Debug, Subcommand)]
pub(super) enum ArchiveCommand {
    /// Check that archives are whole and undamaged: records are parsed, and digests compared
    #[command(
        after_help = "WARC files of other programs are checked too. DIGESTS is the number of digests that were compared.\nA file that ends in .open is still written, or was left by a crash.\n\nExamples:\n  crawler archive check crawler-data/archives/7/1\n  crawler archive check pages/*.warc.gz"
    )]
    Check(CheckArgs),
    /// Make one WACZ file of archives, which stay as they are
    #[command(
        after_help = "A file that ends in .open is packed as far as its records are whole. Archives hold cookies.\n\nExamples:\n  crawler archive wacz crawler-data/archives/7/1 -o books.wacz\n  crawler archive wacz 1-1.warc.gz 1-2.warc.gz --title Books -o books.wacz"
    )]
    Wacz(WaczArgs),
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// WARC and WACZ files, and folders with some
    #[arg(value_name = "FILE_OR_DIR", required = true)]
    paths: Vec<PathBuf>,
    /// Bytes of a record; a longer one is a fault
    #[arg(long, value_name = "SIZE", default_value_t = Size::default())]
    max_record: Size,
}

#[derive(Debug, Args)]
pub(super) struct WaczArgs {
    /// WARC and WACZ files, and folders with some
    #[arg(value_name = "FILE_OR_DIR", required = true)]
    paths: Vec<PathBuf>,
    /// The WACZ file; there must be none with this name
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,
    /// Title in the file [default: the name of the file]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
}

/// Size in bytes, as people write it.
#[derive(Debug, Clone, Copy)]
struct Size(u64);

impl Default for Size {
    fn default() -> Self {
        Self(crawler_archive::DEFAULT_MAX_RECORD)
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&format_bytes(self.0))
    }
}

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        size(text).map(Self)
    }
}

pub(super) async fn run(command: ArchiveCommand) -> anyhow::Result<()> {
    match command {
        ArchiveCommand::Check(args) => blocking(move || check_all(&args)).await?,
        ArchiveCommand::Wacz(args) => blocking(move || pack(args)).await?,
    }
}

fn check_all(args: &CheckArgs) -> anyhow::Result<()> {
    let files = named_archives(&args.paths)?;
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    let (mut n_faults, mut n_files) = (0, 0);
    for file in files {
        let checked = check(&file, args.max_record.0)?;
        rows.push(row(&file.display().to_string(), &checked));
        n_faults += checked.n_faults;
        n_files += u64::from(checked.n_faults > 0);
        faults.push(checked);
    }
    table::print(HEAD, &rows)?;
    for line in faults.iter().flat_map(fault_lines) {
        table::print_line(&line)?;
    }
    if n_faults == 0 {
        return Ok(());
    }
    let (faults, files) = (number(n_faults, "fault"), number(n_files, "file"));
    let hint = "what comes before a damaged record can be read; take a file that is cut or forged from where it came";
    Err(Failure::new(format!("{faults} in {files}"), hint).into())
}

fn row(file: &str, checked: &Checked) -> [String; 4] {
    [
        table::plain(file),
        checked.n_records().to_string(),
        checked.n_digests.to_string(),
        checked.n_faults.to_string(),
    ]
}

/// Returns a line for each fault that is told.
fn fault_lines(checked: &Checked) -> Vec<String> {
    let told = checked.faults.iter();
    let lines = told.map(|fault| {
        let line = format!("{} at byte {}: {}", fault.path, fault.offset, fault.why);
        table::plain(&line)
    });
    let mut lines: Vec<String> = lines.collect();
    let n_more = checked.n_faults - checked.faults.len() as u64;
    if n_more > 0 {
        lines.push(format!("and {} more", number(n_more, "fault")));
    }
    lines
}

fn pack(args: WaczArgs) -> anyhow::Result<()> {
    if args.output.exists() {
        let what = format!("{} is there already", args.output.display());
        return Err(Failure::new(what, "name another file for -o, or move this one away").into());
    }
    let name = args.output.file_stem().unwrap_or_default();
    let title = args
        .title
        .unwrap_or_else(|| name.to_string_lossy().into_owned());
    let now = SystemClock.unix_millis();
    let packed = pack_files(&args.paths, &args.output, &title, now).map_err(pack_error)?;
    let (files, answers) = (
        number(packed.n_files, "WARC file"),
        number(packed.n_answers, "answer"),
    );
    let (output, pages) = (args.output.display(), number(packed.n_pages, "page"));
    let mut line = format!("{output}: {files} with {answers}, {pages} of HTML");
    if packed.n_open > 0 {
        let open = number(packed.n_open, "file");
        line.push_str(&format!(
            "; {open} that ends in .open as far as it is whole"
        ));
    }
    Ok(table::print_line(&line)?)
}

fn pack_error(error: ArchiveError) -> anyhow::Error {
    match error {
        ArchiveError::NothingToPack => {
            let hint = "name files that end in .warc or .warc.gz, or a folder with some; a WACZ file is packed if it is named itself";
            Failure::new(error.to_string(), hint).into()
        }
        error => error.into(),
    }
}

/// Returns the archives that these paths name. There has to be one.
pub fn named_archives(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let files = crawler_archive::files(paths)?;
    if files.is_empty() {
        let hint = "name files that end in .warc, .warc.gz or .wacz, or a folder with some";
        return Err(Failure::new("there is no archive in what was named", hint).into());
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_archive::Fault;

    #[test]
    fn faults_are_told_with_their_place_and_the_rest_is_counted() {
        let fault = Fault {
            path: "a.warc\u{1b}".to_owned(),
            offset: 7,
            why: "it is cut".to_owned(),
        };
        let checked = Checked {
            faults: vec![fault],
            n_faults: 3,
            n_digests: 5,
            ..Checked::default()
        };
        let lines = ["a.warc\\u{1b} at byte 7: it is cut", "and 2 faults more"];
        assert_eq!(fault_lines(&checked), lines);
        assert_eq!(row("x", &checked), ["x", "0", "5", "3"]);
    }

    #[test]
    fn the_default_of_a_record_is_read_as_it_is_shown() {
        let shown = Size::default().to_string();
        assert_eq!(shown.parse::<Size>().unwrap().0, Size::default().0);
        assert_eq!(shown, "2GiB");
    }
}
