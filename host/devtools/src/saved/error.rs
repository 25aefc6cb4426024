//! Reasons why a saved call cannot be read or kept.

use std::io;
use std::path::PathBuf;

/// Reason why a saved call cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// A folder or a file cannot be read or written.
    #[error("cannot {doing} {path}")]
    Io {
        /// Operation: `read`, `write` or `remove`.
        doing: &'static str,
        /// Path of the folder or file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The file is not a saved call.
    #[error("{path}: {why}")]
    Form {
        /// Path of the file.
        path: PathBuf,
        /// Description of the fault.
        why: String,
    },
    /// A file exists that is not to be replaced.
    #[error("{path} is there already: give another name with --as, or --replace it")]
    Present {
        /// Path of the file.
        path: PathBuf,
    },
}
