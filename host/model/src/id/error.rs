//! Reasons why a text is not an id, and the bounds on the length of one.

/// Largest number of bytes in the name of a plugin, resource or node.
pub const NAME_MAX: usize = 128;

/// Largest number of bytes in the id of a call.
pub const REQUEST_ID_MAX: usize = 128;

/// Reason why a text is not a name, digest or version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("{what} is empty")]
    Empty {
        /// Kind of id, such as "plugin name".
        what: &'static str,
    },
    /// The text has more than [`NAME_MAX`] bytes.
    #[error("{what} is {n_bytes} bytes long; at most {NAME_MAX} are allowed")]
    TooLong {
        /// Kind of id, such as "plugin name".
        what: &'static str,
        /// Length of the text in bytes.
        n_bytes: usize,
    },
    /// The text has a character that is not allowed in a name.
    #[error(
        "{what} {text:?} has {found:?}; use letters, digits, '-', '_' and '.', and start with a letter or digit"
    )]
    Character {
        /// Kind of id, such as "plugin name".
        what: &'static str,
        /// The text, as received.
        text: String,
        /// First character that is not allowed at its place.
        found: char,
    },
    /// A part of a name in a namespace has a character that is not allowed there.
    #[error(
        "{what} {text:?} has {found:?}; each part between slashes has letters, digits, '-', '_' and '.', and starts with a letter or digit"
    )]
    Segment {
        /// Kind of id, such as "plugin name".
        what: &'static str,
        /// The text, as received.
        text: String,
        /// First character that is not allowed at its place.
        found: char,
    },
    /// A name has nothing before, after or between its slashes.
    #[error("{what} {text:?} has an empty part; leave out the '/' beside it")]
    EmptySegment {
        /// Kind of id, such as "plugin name".
        what: &'static str,
        /// The text, as received.
        text: String,
    },
    /// The text is not of the form `MAJOR.MINOR.PATCH`.
    #[error("version {text:?} is not of the form 1.2.3: {why}")]
    Version {
        /// The text, as received.
        text: String,
        /// Message of the version parser.
        why: String,
    },
    /// The request id is empty, too long, or has characters that are not visible ASCII.
    #[error(
        "a request id of {n_bytes} bytes; it has 1 to {REQUEST_ID_MAX} visible ASCII characters and no blanks"
    )]
    Request {
        /// Length of the text in bytes.
        n_bytes: usize,
    },
    /// The text is not a token's id. It is not quoted: it may be the token itself.
    #[error("a token id is 16 hexadecimal digits, which a list of tokens shows")]
    TokenId,
    /// The text is not 64 hexadecimal digits.
    #[error("digest {text:?} is not 64 hexadecimal digits")]
    Digest {
        /// The text, as received.
        text: String,
    },
}
