//! Reasons why a fetch brought no answer, and their meaning for another attempt.

use std::io;
use std::time::Duration;

use rustix::io::Errno;

use super::robots::RuleLine;
use crawler_model::number;

/// Reason why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FetchError {
    /// The scheme is neither http nor https.
    #[error("{url}: only http and https are fetched")]
    Scheme {
        /// URL that was requested.
        url: String,
    },
    /// The address may not be reached.
    #[error(
        "{host} is at {address}, which is not a public address; the operator can allow it with --allow-networks"
    )]
    Address {
        /// Host as written in the URL.
        host: String,
        /// Address that the host resolved to.
        address: String,
    },
    /// The port may not be fetched from.
    #[error(
        "port {port} is not fetched from; the resource can name {host}:{port} in setting scope, or the operator allow the port with --allow-ports"
    )]
    Port {
        /// Host as written in the URL.
        host: String,
        /// Port as written in the URL.
        port: u16,
    },
    /// The host is one of the cluster's own nodes.
    #[error("{host} is a node of this cluster")]
    OwnNode {
        /// Host as written in the URL.
        host: String,
    },
    /// The request cannot be sent.
    #[error("the request cannot be sent: {why}")]
    Request {
        /// Reason why it cannot be sent.
        why: String,
    },
    /// The name has no address.
    #[error("{host} cannot be resolved: {why}")]
    Resolve {
        /// Host as written in the URL.
        host: String,
        /// Message of the resolver.
        why: String,
    },
    /// The connection could not be made, or it broke.
    #[error("the connection failed: {why}")]
    Connection {
        /// Messages of the whole chain of causes.
        why: String,
    },
    /// The request took too long.
    #[error("it took longer than {limit:?}, as set by {setting} of [fetch] in the config file")]
    Timeout {
        /// Value of the setting.
        limit: Duration,
        /// Name of the setting in `[fetch]`.
        setting: &'static str,
    },
    /// The body arrives too slowly.
    #[error(
        "only {n} bytes of the body came in {time:?}; setting min-rate of [fetch] in the config file asks for {least} in a second"
    )]
    TooSlow {
        /// Number of bytes that arrived, before decoding.
        n: u64,
        /// Time in which they arrived.
        time: Duration,
        /// Setting `min-rate` of `[fetch]`, in bytes per second.
        least: u64,
    },
    /// The page has a content type that the resource does not want; its body was not read.
    #[error("it is {content_type:?}, which setting content-types leaves out")]
    ContentType {
        /// Content type of the answer.
        content_type: String,
    },
    /// The head of the answer is too large.
    #[error(
        "the head of the answer is too large: it has more than {max} headers, as set by max-headers of [fetch] in the config file, more than 400 KiB of them, or tells of a body beyond all numbers"
    )]
    Headers {
        /// Setting `max-headers` of `[fetch]`. The bound in bytes is the client's own.
        max: usize,
    },
    /// The host is in trouble, or its rate is used up. It is left alone until the moment that the failure
    /// tells, and nothing was asked.
    #[error(
        "{host} is left alone for another {pause:?}: it failed, asked for it, or had as many requests as host-rate lets it"
    )]
    Paused {
        /// Name and port of the host.
        host: String,
        /// Remaining pause; at most setting `max-host-pause` of `[fetch]`, or the period of a rate.
        pause: Duration,
    },
    /// Other hosts at the same address had the turn. The host is left alone until the moment that the failure
    /// tells, and nothing was asked.
    #[error(
        "{host} waits another {pause:?} for its turn at {address}, an address that hosts share; address-rate of [fetch] in the config file sets how often it is asked"
    )]
    AddressPaused {
        /// Name and port of the host.
        host: String,
        /// An IPv4 address, or the network /64 of an IPv6 address.
        address: String,
        /// Time until the moment that the host was promised.
        pause: Duration,
    },
    /// The proxy refuses to forward the request.
    #[error(
        "proxy {proxy} answers with status 407, so it does not accept user and password, or the site says that itself"
    )]
    Proxy {
        /// Proxy in the table `[proxies]`: its name and place.
        proxy: String,
    },
    /// The proxies that the request may go through are all out of order; nothing was asked.
    #[error("all proxies called {name} rest for another {pause:?}; the worker's log tells why")]
    NoProxy {
        /// Name in the table `[proxies]`.
        name: String,
        /// Time until the first of them may be tried again.
        pause: Duration,
    },
    /// This process has as many connections and files open as the system allows; nothing was asked.
    #[error(
        "no connection can be opened: this process has as many files open as the system lets it; raise its limit (ulimit -n)"
    )]
    OpenFiles,
    /// A redirect has to wait and cannot become a page of its own, so the whole chain is to be repeated.
    #[error("the redirects were not followed to their end: {why}")]
    Interrupted {
        /// Message of the last error.
        why: String,
    },
    /// The resource names something that this process has not set up.
    #[error(
        "setting {setting} names {name:?}, which is not in [{table}] of this worker's config file; add it there and restart the worker, or change the setting"
    )]
    NotSetUp {
        /// Setting of the resource.
        setting: &'static str,
        /// Name that the resource uses.
        name: String,
        /// Table of the config file.
        table: &'static str,
    },
    /// The site's robots.txt forbids the page.
    #[error("{url} forbids it: {rule}")]
    Robots {
        /// URL of the robots.txt.
        url: String,
        /// Rule of the robots.txt that forbids it.
        rule: RuleLine,
    },
    /// The robots.txt cannot be fetched, so the whole site is left alone.
    #[error("{url} cannot be had, and nothing of the site is fetched without it: {why}")]
    RobotsUnavailable {
        /// URL of the robots.txt.
        url: String,
        /// Answer of the site, or the error.
        why: String,
    },
    /// A redirect leads to a URL that is too long.
    #[error("a redirect leads to a URL of {length} bytes, and setting max-url-length allows {max}")]
    UrlLength {
        /// Length in bytes without the fragment.
        length: usize,
        /// Setting `max-url-length`.
        max: u32,
    },
    /// The body was to be kept whole, and is too long for that.
    #[error("the body is longer than the {max} bytes that setting max-file allows for a kept file")]
    FileSize {
        /// Setting `max-file`, in bytes.
        max: u64,
    },
    /// The body cannot be decoded.
    #[error("the body cannot be decoded, its content-encoding is {encoding:?}: {why}")]
    Encoding {
        /// Content encoding of the answer.
        encoding: String,
        /// Reason why it cannot be decoded.
        why: String,
    },
    /// The archive that answers in the place of sites does not have the page.
    #[error("it is not in the archive that --from-archive names, and no site is asked")]
    NotInArchive,
    /// The record of the page in the archive cannot be read.
    #[error("its record in the archive cannot be read: {why}")]
    Archive {
        /// Reason why it cannot be read.
        why: String,
    },
    /// The page has too many redirects, or they form a loop.
    #[error(
        "more than {}, which max-redirects of [fetch] allows; the last one is to {last}",
        number(*.n as u64, "redirect")
    )]
    Redirects {
        /// Number of redirects that were followed.
        n: usize,
        /// URL of the redirect that was not followed.
        last: String,
    },
}

/// Maximum length in bytes of the error text that is stored with each page that is given up.
const DETAIL_MAX: usize = 512;

/// Marks errors for which another attempt may succeed.
const AGAIN: bool = true;
/// Marks errors for which no further attempt can succeed.
const NEVER: bool = false;

impl FetchError {
    /// Returns the word that the error is counted by, and true if another attempt may succeed.
    fn kind(&self) -> (&'static str, bool) {
        match self {
            FetchError::Scheme { .. } => ("scheme", NEVER),
            FetchError::Address { .. } => ("address-denied", NEVER),
            FetchError::OwnNode { .. } => ("own-node", NEVER),
            FetchError::Port { .. } => ("port-denied", NEVER),
            FetchError::Request { .. } => ("bad-request", NEVER),
            FetchError::Resolve { .. } => ("resolve", AGAIN),
            FetchError::Connection { .. } => ("connection", AGAIN),
            FetchError::Timeout { .. } => ("timeout", AGAIN),
            FetchError::TooSlow { .. } => ("min-rate", AGAIN),
            FetchError::ContentType { .. } => ("content-type", NEVER),
            FetchError::Headers { .. } => ("headers", NEVER),
            FetchError::Paused { .. } | FetchError::AddressPaused { .. } => ("paused", AGAIN),
            FetchError::Proxy { .. } => ("proxy", AGAIN),
            FetchError::NoProxy { .. } => ("no-proxy", AGAIN),
            FetchError::OpenFiles => ("open-files", AGAIN),
            FetchError::Interrupted { .. } => ("interrupted", AGAIN),
            FetchError::NotSetUp { .. } => ("not-set-up", AGAIN),
            FetchError::Robots { .. } => ("robots", NEVER),
            FetchError::RobotsUnavailable { .. } => ("robots-unavailable", AGAIN),
            FetchError::UrlLength { .. } => ("max-url-length", NEVER),
            FetchError::FileSize { .. } => ("max-file", NEVER),
            FetchError::Encoding { .. } => ("content-encoding", NEVER),
            FetchError::NotInArchive => ("not-in-archive", NEVER),
            FetchError::Archive { .. } => ("archive", NEVER),
            FetchError::Redirects { .. } => ("redirects", NEVER),
        }
    }

    /// Returns the word that counters and dead letters are kept by.
    pub fn reason(&self) -> &'static str {
        self.kind().0
    }

    /// Returns true if another attempt may succeed.
    pub fn is_transient(&self) -> bool {
        self.kind().1
    }

    /// Returns true if nothing was asked and the page comes again unchanged at a moment that is known.
    pub fn is_held(&self) -> bool {
        matches!(
            self,
            FetchError::Paused { .. }
                | FetchError::AddressPaused { .. }
                | FetchError::NoProxy { .. }
                | FetchError::OpenFiles
        )
    }

    /// Returns a text of at most 512 bytes for dead letters, with details beyond the reason.
    pub fn detail(&self) -> String {
        let mut detail = self.to_string();
        if detail.len() > DETAIL_MAX {
            // Servers influence this text: the content type of a page may be long.
            detail.truncate(detail.floor_char_boundary(DETAIL_MAX - "…".len()));
            detail.push('…');
        }
        detail
    }
}

/// Returns true if the process, or the whole system, cannot open any more files.
pub(super) fn is_out_of_files(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_an_error_tells_why_and_is_bounded() {
        let of = |content_type: String| FetchError::ContentType { content_type }.detail();
        let short = "it is \"image/png\", which setting content-types leaves out";
        assert_eq!(of("image/png".into()), short);
        let long = of("ü".repeat(30_000));
        assert!(
            long.starts_with("it is \"ü") && long.ends_with("ü…"),
            "{long}"
        );
        assert!(
            (DETAIL_MAX - 3..=DETAIL_MAX).contains(&long.len()),
            "{}",
            long.len()
        );
    }
}
