//! Reasons why an archive cannot be written or read.

use std::io;
use std::path::Path;

/// Reason why records were not written. The caller keeps the page, and may try again.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// An operation on a file failed.
    #[error("cannot {doing} {path}")]
    File {
        /// Operation, such as "write".
        doing: &'static str,
        /// File or folder.
        path: String,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// A file that an earlier life of the frontier has left cannot be read.
    #[error("cannot complete a file of the archive")]
    Adopt(#[source] ReadError),
    /// An archive that is to be packed cannot be read, or is damaged.
    #[error("cannot make a WACZ file")]
    Pack(#[source] ReadError),
    /// Nothing that was named is packed: a WACZ file in a folder is left out, and so is a file without a whole record.
    #[error("there is no WARC file in what was named")]
    NothingToPack,
    /// The thread that writes has panicked; the log has the reason.
    #[error("the archive was not written: its thread has panicked")]
    Panicked,
}

impl ArchiveError {
    /// Returns the error of an operation on a file, such as "write".
    pub(crate) fn of(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.display().to_string();
        move |source| Self::File {
            doing,
            path,
            source,
        }
    }
}

/// Reason why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    File {
        /// Path of the file.
        path: String,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// The file is cut, or is none of these files.
    #[error("{path} is damaged at byte {offset}: {why}")]
    Damaged {
        /// Path of the file.
        path: String,
        /// Offset of the record that cannot be read.
        offset: u64,
        /// Description of the fault.
        why: String,
    },
    /// The files have more records than may be indexed.
    #[error("the archive has more than {max} answers, the bound set by {setting}; raise it")]
    TooMany {
        /// Largest number of answers.
        max: u64,
        /// Option that sets it.
        setting: &'static str,
    },
}

impl ReadError {
    /// Description of the fault that the end of a file comes too early.
    pub(crate) const CUT: &'static str = "the file ends within a record";

    /// Returns the error of reading a record at this offset: damage, or a failure of the file system.
    pub(crate) fn at(path: &str, offset: u64, error: io::Error) -> Self {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        let path = path.to_owned();
        let why = match error.kind() {
            UnexpectedEof => Self::CUT.to_owned(),
            InvalidData | InvalidInput => error.to_string(),
            _ => {
                let source = error;
                return Self::File { path, source };
            }
        };
        Self::Damaged { path, offset, why }
    }
}

/// Returns the error of bytes that are not of the form that was expected.
pub(crate) fn damaged(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}
