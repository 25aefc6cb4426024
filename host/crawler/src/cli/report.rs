//! Messages on stderr: why a command failed, with the way out, and notes.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use super::{Failure, Unmet};
use crate::config::ConfigError;
use crawler_api::client::ClientError;
use crawler_api::tls::TlsError;
use crawler_backup::BackupError;
use crawler_master::ControlError;
use crawler_process::telemetry::chain;

/// Returns true if a command failed because nobody reads its output any more.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints why arguments were not accepted, or the help that was asked for. Returns the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<clap::Error>() {
        Some(usage) => {
            // Printing fails only if nobody reads.
            let _unread = usage.print();
            ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2))
        }
        None => {
            print_error(error);
            ExitCode::from(2)
        }
    }
}

/// Prints to stderr why a command failed, and a way out.
pub fn print_error(error: &anyhow::Error) {
    eprintln!("error: {}", chain(error.as_ref()));
    let hint = hint(error);
    if !hint.is_empty() {
        eprintln!("hint: {hint}");
    }
}

/// Prints to stderr something that does not change the result of a command.
pub fn print_note(note: &str) {
    eprintln!("{note}");
}

/// Prints to stderr that a command goes on when a plugin changes.
pub fn print_waiting(plugin: &Path) {
    eprintln!(
        "\nwaiting for a change of {}; Ctrl-C ends it",
        plugin.display()
    );
}

/// Returns the way out, if one of the causes knows it.
pub(super) fn hint(error: &anyhow::Error) -> String {
    let hints = error.chain().filter_map(|cause| {
        if let Some(error) = cause.downcast_ref::<Failure>() {
            Some(error.hint.clone())
        } else if let Some(error) = cause.downcast_ref::<Unmet>() {
            Some(error.hint.clone())
        } else if let Some(error) = cause.downcast_ref::<ClientError>() {
            Some(error.hint().to_owned())
        } else if let Some(error) = cause.downcast_ref::<TlsError>() {
            Some(error.hint().to_owned())
        } else if let Some(error) = cause.downcast_ref::<BackupError>() {
            Some(error.hint().to_owned())
        } else if let Some(error) = cause.downcast_ref::<ConfigError>() {
            Some(error.hint().to_owned())
        } else {
            cause.downcast_ref::<ControlError>().map(ControlError::hint)
        }
    });
    let mut hints = hints.filter(|hint| !hint.is_empty());
    hints.next().unwrap_or_default()
}
