//! Reasons for which a rule gives up, and short ways to state them.

use std::fmt;
use std::time::Duration;

/// Result of a rule: nothing, or the reason why it gave up.
pub type Result<T = (), E = RuleError> = std::result::Result<T, E>;

/// Reason why a rule gave up on its page. Nothing of the call is kept.
///
/// `?` turns every error into [`Other`](RuleError::Other), with its causes.
///
/// ```
/// use crawler_plugin_sdk::{Result, RuleError};
///
/// fn stars(text: &str) -> Result<u8> {
///     Ok(text.parse()?)
/// }
/// assert_eq!(stars("four").unwrap_err().to_string(), "error: invalid digit found in string");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleError {
    /// The page is tried again later.
    Retry {
        /// Shortest time from now to the next attempt; the crawl's setting `max-retry-wait` caps it. If `None`,
        /// the crawler's back-off decides.
        after: Option<Duration>,
        /// Reason, shown to whoever runs the crawl.
        why: String,
    },
    /// The page has nothing to take; it counts as done.
    Skip(String),
    /// The site refuses us: the page is tried again after up to 30 seconds, then after up to twice as long.
    Blocked(String),
    /// The crawl makes no sense any more: it fails with this reason.
    Fatal(String),
    /// The page is not as the rule expects.
    Other {
        /// Code of the error: 0 unless a later version says otherwise.
        code: u32,
        /// Reason, shown to whoever runs the crawl.
        why: String,
    },
}

impl RuleError {
    /// Reports that the page should be tried again; the crawler's back-off decides when.
    pub fn retry(why: impl Into<String>) -> Self {
        RuleError::Retry {
            after: None,
            why: why.into(),
        }
    }

    /// Reports that the page should be tried again, at least this long from now. The crawl's setting
    /// `max-retry-wait` caps the wait, and `max-attempts` the number of attempts.
    pub fn retry_after(after: Duration, why: impl Into<String>) -> Self {
        RuleError::Retry {
            after: Some(after),
            why: why.into(),
        }
    }

    /// Reports that the page has nothing to take; it counts as done.
    pub fn skip(why: impl Into<String>) -> Self {
        RuleError::Skip(why.into())
    }

    /// Reports that the site refuses us: a login form, a captcha, "too many requests" with status 200.
    pub fn blocked(why: impl Into<String>) -> Self {
        RuleError::Blocked(why.into())
    }

    /// Reports that the crawl makes no sense any more; it fails with this reason.
    pub fn fatal(why: impl Into<String>) -> Self {
        RuleError::Fatal(why.into())
    }

    /// Reports that the page is not as the rule expects. `?` turns other errors into this one.
    pub fn unexpected(why: impl Into<String>) -> Self {
        RuleError::Other {
            code: 0,
            why: why.into(),
        }
    }
}

/// Writes kind and reason; the alternate form, `{:#}`, has the reason alone.
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
            RuleError::Other { code: 0, why } => write!(f, "error: {why}"),
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

/// Method `require`, which turns a missing value into an error that names it.
pub trait Require<T> {
    /// Returns the value, or an error that says what is missing.
    ///
    /// ```
    /// use crawler_plugin_sdk::Require as _;
    ///
    /// let price = "12.34".strip_prefix('£').require("a price in pounds");
    /// assert_eq!(price.unwrap_err().to_string(), "error: the page lacks a price in pounds");
    /// ```
    fn require(self, what: &str) -> Result<T>;
}

impl<T> Require<T> for Option<T> {
    fn require(self, what: &str) -> Result<T> {
        self.ok_or_else(|| RuleError::unexpected(format!("the page lacks {what}")))
    }
}
