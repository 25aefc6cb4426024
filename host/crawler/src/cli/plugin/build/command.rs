//! The command of a build, and the processes that it starts.

use std::io;
use std::path::Path;
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;

use crate::cli::Failure;

/// Selects the part of the messages of a failed build that the user is shown.
pub(super) type Shown<'a> = &'a (dyn Fn(&str) -> String + Sync);

/// Ways out of a build that fails, and its messages.
#[derive(Clone, Copy)]
pub(super) struct Hints<'a> {
    /// Way out if its program cannot be started.
    pub(super) missing: &'a str,
    /// Way out if it fails. If `None`, its own messages suffice.
    pub(super) failed: Option<&'a str>,
    /// Selection of its messages, which are then held back until it ends. If `None`, all are shown as they come.
    pub(super) shown: Option<Shown<'a>>,
}

/// Runs a build in a folder; its messages on stderr are for the user. `-v` shows those that are left out.
pub(super) async fn run(
    mut command: Command,
    folder: &Path,
    stdout: Stdio,
    hints: Hints<'_>,
) -> anyhow::Result<Output> {
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(match hints.shown {
            Some(_) => Stdio::piped(),
            None => Stdio::inherit(),
        });
    let program = command.as_std().get_program().display().to_string();
    let output = output_of_group(command).await;
    let output = output.map_err(|error| {
        let what = format!(
            "cannot start {program}, which builds {}: {error}",
            folder.display()
        );
        Failure::new(what, hints.missing)
    })?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        eprint!("{messages}");
        return Ok(output);
    }
    if let Some(shown) = hints.shown {
        tracing::info!(all = %messages, "the build has failed");
        eprintln!("{}", shown(&messages).trim_end());
    }
    Err(Failure::new(
        format!("plugin {} does not build", folder.display()),
        match hints.failed {
            Some(hint) => hint.to_owned(),
            None => format!("the messages above are those of {program}"),
        },
    )
    .into())
}

/// Runs a command in a process group of its own, which is ended when the future is dropped: cargo
/// starts compilers that would go on after it.
async fn output_of_group(mut command: Command) -> io::Result<Output> {
    let child = command.process_group(0).kill_on_drop(true).spawn()?;
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let group = id.map(Group);
    let output = child.wait_with_output().await;
    // The child is reaped: its id may be another's from here on.
    std::mem::forget(group);
    output
}

/// Process group that is killed on drop.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = kill_process_group(self.0, Signal::KILL) {
            tracing::warn!(%error, "cannot end the build");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_build_that_is_dropped_ends_with_those_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("id");
        let mut shell = Command::new("sh");
        let script = format!("sleep 3600 & echo $! > {} ; wait", file.display());
        shell.args(["-c", &script]);
        let started = async {
            loop {
                match std::fs::read_to_string(&file) {
                    Ok(id) if id.ends_with('\n') => break id.trim().to_owned(),
                    _ => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let id = tokio::select! {
            output = output_of_group(shell) => panic!("it ended: {output:?}"),
            id = started => id,
        };
        let stat = PathBuf::from(format!("/proc/{id}/stat"));
        let is_gone = || match std::fs::read_to_string(&stat) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => true,
        };
        let ended = async {
            while !is_gone() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
        assert!(ended.is_ok(), "process {id} goes on");
    }
}
