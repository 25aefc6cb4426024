//! The error of a command, with a way out.

/// Error of a command that cannot be carried out, with a way out.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Failure {
    /// Description of the fault and of the thing that it concerns.
    pub what: String,
    /// Way out.
    pub hint: String,
}

impl Failure {
    /// Creates a failure from a description and a way out.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            hint: hint.into(),
        }
    }
}
