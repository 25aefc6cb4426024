//! Reasons why rows are not in the database, and what a user can do.

use std::fmt;

use crawler_sink::SinkError;

/// Beginnings of the words of MySQL about a row that would have taken the place of another one. A key of the sink itself is
/// never too long.
const TAKEN: [&str; 2] = [
    "Data too long for column '_key'",
    "Data too long for column '_version'",
];

/// Cause of an error, as far as it decides what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The database cannot be reached, or the connection is lost.
    Away,
    /// Another transaction was quicker.
    Conflict,
    /// The server did not answer in time, or another transaction keeps a lock.
    Slow,
    /// The database takes no writes.
    ReadOnly,
    /// The database has no room left.
    Full,
    /// The user may not do this.
    Denied,
    /// The password would be sent without protection.
    Unprotected,
    /// The table is another one than when it was looked at.
    Changed,
    /// A row has no value for a column that demands one: the table is another one than when it was looked at, or the row
    /// does not fit.
    NoValue,
    /// A row does not fit its table.
    Unfit,
    /// A row is too large for the server.
    TooLarge,
    /// The table is not one that items can be written to.
    Refused,
    /// Any other error of the server.
    Other,
}

impl Cause {
    /// Returns the state of the database, and the way out.
    fn advice(self) -> &'static str {
        match self {
            Self::Away => "the database cannot be reached or closed the connection",
            Self::Conflict => "other transactions write the same rows all the time",
            Self::Slow => {
                "the server does not answer in time; look for locks and load there, or give it a longer timeout"
            }
            Self::ReadOnly => "the database is read-only; items wait until it takes writes",
            Self::Full => "the database has no room left; items wait until there is some",
            Self::Denied => "the server refuses the user; check name, password and rights",
            Self::Unprotected => {
                "the user logs in with caching_sha2_password or sha256_password, which needs TLS; leave out socket and name the host"
            }
            Self::Changed => "the table is being changed",
            Self::NoValue => "a column demands a value that items do not have",
            Self::Unfit => "the table for rejected items takes them neither",
            Self::TooLarge => {
                "an item is larger than a statement may be; raise max_allowed_packet of the server"
            }
            Self::Refused => "the table does not fit the items",
            Self::Other => "the database reports an error",
        }
    }
}

/// Error of an operation on a database.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) cause: Cause,
    /// Further words about the cause.
    detail: Option<String>,
    source: Option<sqlx::Error>,
}

impl Trouble {
    /// Returns the trouble with this cause that an error tells of.
    pub(crate) fn of(cause: Cause, source: sqlx::Error) -> Self {
        Self {
            cause,
            detail: None,
            source: Some(source),
        }
    }

    /// Returns the trouble with this cause that is described in words.
    pub(crate) fn told(cause: Cause, detail: String) -> Self {
        Self {
            cause,
            detail: Some(detail),
            source: None,
        }
    }

    /// Returns the words of the server about a row that does not fit.
    pub(crate) fn reason(&self) -> String {
        let database = self.source.as_ref().and_then(|e| e.as_database_error());
        let said = database.map(|error| match error.message() {
            message if TAKEN.iter().any(|taken| message.starts_with(taken)) => {
                "another row has the same value in a unique index of this table".to_owned()
            }
            message => message.to_owned(),
        });
        let said = said.or_else(|| self.detail.clone());
        said.unwrap_or_else(|| self.to_string())
    }

    /// Returns the error of a write to a database. All troubles pass when their cause does, so the items are kept.
    pub(crate) fn into_sink_error(self, database: &str) -> SinkError {
        SinkError::Retry {
            message: format!("cannot write items to {database}: {self}"),
            source: self.source.map(Into::into),
        }
    }
}

/// Writes the state of the database, without the words of the server.
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            Some(detail) => f.write_str(detail),
            None => f.write_str(self.cause.advice()),
        }
    }
}
