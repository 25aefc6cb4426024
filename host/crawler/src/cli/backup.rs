//! `crawler backup …` and `crawler restore`: their arguments, and what they tell a person.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::place::{ClusterPlace, PlaceArgs};
use super::table::{self, size};
use crawler_backup::Manifest;
use crawler_model::number;

/// Options of the commands about backups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupOptions {
    /// Takes a backup into a folder.
    Create(PathBuf, Box<ClusterPlace>),
    /// Checks the backup in a folder.
    Verify(PathBuf),
    /// Restores the backup in a folder.
    Restore(PathBuf, Box<ClusterPlace>),
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "All masters and workers have to be stopped. The folder has secrets, and only its owner may read it.\n\nExamples:\n  crawler backup /backup/monday\n  crawler backup /backup/monday --etcd http://10.0.0.1:2379 --data s3://bucket/crawler\n  crawler backup verify /backup/monday"
)]
pub(super) struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    /// Folder of the backup, which is empty or does not exist
    #[arg(value_name = "DEST", required = true)]
    dest: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, Subcommand)]
enum BackupCommand {
    /// Check that a backup is whole and undamaged
    #[command(after_help = "Example:\n  crawler backup verify /backup/monday")]
    Verify {
        /// Folder of the backup
        #[arg(value_name = "SOURCE")]
        source: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "The whole backup is checked first. A restore that was cut off can be repeated.\n\nExamples:\n  crawler restore /backup/monday --data new-data\n  crawler restore /backup/monday --etcd http://10.0.0.1:2379 --data s3://bucket/crawler-2"
)]
pub(super) struct RestoreArgs {
    /// Folder of the backup
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    #[command(flatten)]
    place: PlaceArgs,
}

impl BackupArgs {
    pub(super) fn into_options(self) -> anyhow::Result<BackupOptions> {
        if let Some(BackupCommand::Verify { source }) = self.command {
            return Ok(BackupOptions::Verify(source));
        }
        let dest = self.dest.unwrap_or_default();
        Ok(BackupOptions::Create(
            dest,
            Box::new(self.place.into_place()?),
        ))
    }
}

impl RestoreArgs {
    pub(super) fn into_options(self) -> anyhow::Result<BackupOptions> {
        let place = self.place.into_place()?;
        Ok(BackupOptions::Restore(self.source, Box::new(place)))
    }
}

/// Prints what was done with a backup, and what it has.
pub fn print_done(done: &str, manifest: &Manifest) -> anyhow::Result<()> {
    let described = described(manifest);
    Ok(table::print_line(&format!("{done}: {described}"))?)
}

fn described(manifest: &Manifest) -> String {
    let Manifest {
        cluster,
        version,
        revision,
        records,
        objects,
        ..
    } = manifest;
    format!(
        "cluster {cluster} of {}, version {version}: {} at revision {revision}, {} of {}",
        table::time(manifest.taken_at),
        number(records.n, "record"),
        number(objects.n, "object"),
        size(objects.n_bytes)
    )
}

/// Returns the numbers of a copy that is under way.
pub fn progress(n_objects: u64, n_bytes: u64) -> String {
    format!("{}, {}", number(n_objects, "object"), size(n_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_backup::{Listed, RootKind};
    use crawler_model::id::Digest;

    #[test]
    fn a_backup_is_described_in_a_line() {
        let listed = |n, n_bytes| Listed {
            n,
            n_bytes,
            sha256: Digest::of(b""),
        };
        let manifest = Manifest {
            format: 1,
            cluster: "abc".to_owned(),
            version: "0.1.0".to_owned(),
            taken_at: 1_700_000_000_000,
            root: RootKind::Folder,
            revision: 7,
            records: listed(1, 9),
            objects: listed(2, 512),
        };
        let size = size(512);
        assert_eq!(
            described(&manifest),
            format!(
                "cluster abc of 2023-11-14T22:13:20Z, version 0.1.0: 1 record at revision 7, 2 objects of {size}"
            )
        );
    }
}
