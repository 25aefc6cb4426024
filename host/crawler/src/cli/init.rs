//! `crawler init`: writes a config file that says nothing but shows every key.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::{Failure, table};
use crate::config::{DEFAULT_FILE, initial_file};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler init\n  crawler init shop.toml && crawler config check shop.toml"
)]
pub(super) struct InitArgs {
    /// The file
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &InitArgs) -> anyhow::Result<()> {
    let path = args.file.display();
    let file = match args.force {
        true => File::create(&args.file),
        false => File::create_new(&args.file),
    };
    let mut file = match file {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let what = format!("{path} is there already");
            return Err(
                Failure::new(what, "name another file, or write over it with --force").into(),
            );
        }
        file => file.with_context(|| format!("cannot create {path}"))?,
    };
    let written = file.write_all(initial_file().as_bytes());
    written.with_context(|| format!("cannot write {path}"))?;
    table::print_line(&format!(
        "{path} written; every key is there, with its default or an example, behind a #"
    ))?;
    Ok(())
}
