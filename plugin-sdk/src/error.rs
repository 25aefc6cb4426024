//! Why a rule gives up, and the ways to say so in few words.

use std::fmt;
use std::time::Duration;

/// What a rule returns: nothing, or why it gave up.
pub type Result<T = (), E = RuleError> = std::result::Result<T, E>;

/// Why a rule gave up on its page. Nothing of the call is kept.
///
/// `?` turns every error into [`Other`](RuleError::Other), with its causes.
///
/// ```
/// use crawler_plugin_sdk::{Result, RuleError};
///
/// fn stars(text: &str) -> Result<u8> {
///     Ok(text.parse()?)
/// }
/// assert_eq!(stars("four").unwrap_err().to_string(), "error 0: invalid digit found in string");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleError {
    /// Try this page again later.
    Retry {
        /// At least this long from now, but no longer than the crawl's setting `max-retry-wait`; none
        /// leaves it to the crawler's back-off.
        after: Option<Duration>,
        /// Shown to whoever runs the crawl.
        why: String,
    },
    /// Nothing to take from this page; it counts as done.
    Skip(String),
    /// The site refuses us: the page is tried again, and the host is slowed down.
    Blocked(String),
    /// The crawl makes no sense any more: it fails with this reason.
    Fatal(String),
    /// The page is not as the rule expects.
    Other {
        /// 0 unless a later version says otherwise.
        code: u32,
        /// Shown to whoever runs the crawl.
        why: String,
    },
}

impl RuleError {
    /// Try this page again, when the crawler's back-off says so.
    pub fn retry(why: impl Into<String>) -> Self {
        RuleError::Retry {
            after: None,
            why: why.into(),
        }
    }

    /// Try this page again, at least this long from now. The crawl's setting `max-retry-wait` cuts
    /// what is longer, and `max-attempts` ends it.
    pub fn retry_after(after: Duration, why: impl Into<String>) -> Self {
        RuleError::Retry {
            after: Some(after),
            why: why.into(),
        }
    }

    /// Nothing to take from this page; it counts as done.
    pub fn skip(why: impl Into<String>) -> Self {
        RuleError::Skip(why.into())
    }

    /// The site refuses us: a login form, a captcha, "too many requests" with status 200.
    pub fn blocked(why: impl Into<String>) -> Self {
        RuleError::Blocked(why.into())
    }

    /// The crawl makes no sense any more.
    pub fn fatal(why: impl Into<String>) -> Self {
        RuleError::Fatal(why.into())
    }

    /// The page is not as the rule expects: what `?` makes of other errors.
    pub fn unexpected(why: impl Into<String>) -> Self {
        RuleError::Other {
            code: 0,
            why: why.into(),
        }
    }
}

/// Kind and reason; in the alternate form, `{:#}`, the reason alone.
impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::Retry { why, .. }
            | RuleError::Skip(why)
            | RuleError::Blocked(why)
            | RuleError::Fatal(why)
            | RuleError::Other { why, .. }
                if f.alternate() =>
            {
                f.write_str(why)
            }
            RuleError::Retry { why, .. } => write!(f, "retry: {why}"),
            RuleError::Skip(why) => write!(f, "skip: {why}"),
            RuleError::Blocked(why) => write!(f, "blocked: {why}"),
            RuleError::Fatal(why) => write!(f, "fatal: {why}"),
            RuleError::Other { code, why } => write!(f, "error {code}: {why}"),
        }
    }
}

// `RuleError` itself is no `std::error::Error`, or this would overlap with `From<T> for T`.
impl<E: std::error::Error> From<E> for RuleError {
    fn from(error: E) -> Self {
        let mut why = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            why.push_str(": ");
            why.push_str(&cause.to_string());
            source = cause.source();
        }
        RuleError::unexpected(why)
    }
}

/// `require`: from something that may be missing to an error that names it.
pub trait Require<T> {
    /// The value, or an error that says what is missing.
    ///
    /// ```
    /// use crawler_plugin_sdk::Require as _;
    ///
    /// let price = "12.34".strip_prefix('£').require("a price in pounds");
    /// assert_eq!(price.unwrap_err().to_string(), "error 0: the page lacks a price in pounds");
    /// ```
    fn require(self, what: &str) -> Result<T>;
}

impl<T> Require<T> for Option<T> {
    fn require(self, what: &str) -> Result<T> {
        self.ok_or_else(|| RuleError::unexpected(format!("the page lacks {what}")))
    }
}
