//! `crawler config check`: every fault of config files, with its place.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::{Failure, print_error, table};
use crate::config::{DEFAULT_FILE, Declared};
use crawler_model::number;

#[derive(Debug, Args)]
pub(in crate::cli) struct CheckArgs {
    /// A file, a folder for its .toml and .json files, or - for stdin
    #[arg(value_name = "PATH", default_value = DEFAULT_FILE)]
    paths: Vec<PathBuf>,
}

pub(super) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let declared = Declared::read(&args.paths);
    let mut n_faults = declared.faults.len();
    for fault in declared.faults {
        print_error(&fault.into());
    }
    for plugin in &declared.plugins {
        let path: &Path = &plugin.value.path;
        if !path.exists() {
            n_faults += 1;
            let what = format!("{}: there is no plugin at {}", plugin.place, path.display());
            print_error(&Failure::new(what, "name a folder of source, or a .wasm file").into());
        }
    }
    if n_faults > 0 {
        let what = number(n_faults as u64, "fault");
        return Err(Failure::new(what, "").into());
    }
    table::print_line(&format!(
        "no fault in {}: {}, {}",
        number(declared.files.len() as u64, "file"),
        number(declared.plugins.len() as u64, "plugin"),
        number(declared.resources.len() as u64, "resource"),
    ))?;
    Ok(())
}
