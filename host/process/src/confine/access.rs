//! Access of a process after it is confined, and the parts of the confinement that a system lacks.

use std::fmt;
use std::path::PathBuf;

/// Files and folders that a process reaches, in addition to those that every program needs: libraries, the
/// resolver's files, certificates, and its own entries in `/proc`.
///
/// A folder stands for everything below it. Paths that do not exist are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathAccess {
    /// Paths that the process reads.
    pub read: Vec<PathBuf>,
    /// Paths that the process reads, writes, makes and removes.
    pub write: Vec<PathBuf>,
    /// Programs that the process reads and starts.
    pub execute: Vec<PathBuf>,
}

/// A part of the confinement that this system does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPart {
    /// Name of the part, such as "seccomp".
    pub part: &'static str,
    /// Reason, as far as the system gave one, and what is not confined because of it.
    pub why: String,
}

impl fmt::Display for MissingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.why)
    }
}
