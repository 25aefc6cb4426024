//! Why a fetch brought no answer, and what that means for another attempt.

use std::io;
use std::time::Duration;

use rustix::io::Errno;

use super::robots::RuleLine;

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FetchError {
    /// Not http or https.
    #[error("{url}: only http and https are fetched")]
    Scheme {
        /// What was asked for.
        url: String,
    },
    /// The address is not one that may be reached.
    #[error(
        "{host} is at {address}, which is not a public address; the operator can allow it with --allow-networks"
    )]
    Address {
        /// As the URL has it.
        host: String,
        /// As resolved.
        address: String,
    },
    /// The port is not one that may be fetched from.
    #[error(
        "port {port} is not fetched from; the resource can name {host}:{port} in setting scope, or the operator allow the port with --allow-ports"
    )]
    Port {
        /// As the URL has it.
        host: String,
        /// As the URL has it.
        port: u16,
    },
    /// One of the cluster's own nodes.
    #[error("{host} is a node of this cluster")]
    OwnNode {
        /// As the URL has it.
        host: String,
    },
    /// The request cannot be sent as it is.
    #[error("the request cannot be sent: {why}")]
    Request {
        /// What is wrong with it.
        why: String,
    },
    /// No address for the name.
    #[error("{host} cannot be resolved: {why}")]
    Resolve {
        /// As the URL has it.
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// No connection, or it broke.
    #[error("the connection failed: {why}")]
    Connection {
        /// The whole chain.
        why: String,
    },
    /// Too slow.
    #[error("it took longer than {limit:?}, as set by {setting} of [fetch] in the config file")]
    Timeout {
        /// Its value.
        limit: Duration,
        /// Of `[fetch]`.
        setting: &'static str,
    },
    /// The body comes too slowly.
    #[error(
        "only {n} bytes of the body came in {time:?}; setting min-rate of [fetch] in the config file asks for {least} in a second"
    )]
    TooSlow {
        /// Bytes, as they come.
        n: u64,
        /// In which they came.
        time: Duration,
        /// Setting `min-rate` of `[fetch]`: bytes in a second.
        least: u64,
    },
    /// It is of another kind than the resource wants; its body was not read.
    #[error("it is {content_type:?}, which setting content-types leaves out")]
    ContentType {
        /// As the answer has it.
        content_type: String,
    },
    /// Its head is too large.
    #[error(
        "the head of the answer is too large: it has more than {max} headers, as set by max-headers of [fetch] in the config file, more than 400 KiB of them, or tells of a body beyond all numbers"
    )]
    Headers {
        /// Setting `max-headers` of `[fetch]`. The bound of bytes is the client's own.
        max: usize,
    },
    /// Its host is in trouble, or its rate is used up: it is left alone until the moment that the failure
    /// tells, and nothing was asked.
    #[error(
        "{host} is left alone for another {pause:?}: it failed, asked for it, or had as many requests as host-rate lets it"
    )]
    Paused {
        /// Name and port.
        host: String,
        /// At most setting `max-host-pause` of `[fetch]`, or the time of a rate.
        pause: Duration,
    },
    /// Other hosts at its address had the turn: it is left alone until the moment that the failure tells, and
    /// nothing was asked.
    #[error(
        "{host} waits another {pause:?} for its turn at {address}, an address that hosts share; address-rate of [fetch] in the config file sets how often it is asked"
    )]
    AddressPaused {
        /// Name and port.
        host: String,
        /// An IPv4 address, or the network /64 of an IPv6 address.
        address: String,
        /// Until the moment that its host was promised.
        pause: Duration,
    },
    /// The proxy does not pass it on.
    #[error(
        "proxy {proxy} answers with status 407, so it does not accept user and password, or the site says that itself"
    )]
    Proxy {
        /// Of the table `[proxies]`: its name and place.
        proxy: String,
    },
    /// Every proxy that it may go through is out of order; nothing was asked.
    #[error("all proxies called {name} rest for another {pause:?}; the worker's log tells why")]
    NoProxy {
        /// Of the table `[proxies]`.
        name: String,
        /// Until the first may be tried again.
        pause: Duration,
    },
    /// This process has as many connections and files open as it may; nothing was asked.
    #[error(
        "no connection can be opened: this process has as many files open as the system lets it; raise its limit (ulimit -n)"
    )]
    OpenFiles,
    /// A redirect has to wait, and cannot be a page of its own: all of it is to be done again.
    #[error("the redirects were not followed to their end: {why}")]
    Interrupted {
        /// Of the last one.
        why: String,
    },
    /// The resource names what this process does not have.
    #[error(
        "setting {setting} names {name:?}, which is not in [{table}] of this worker's config file; add it there and restart the worker, or change the setting"
    )]
    NotSetUp {
        /// Of the resource.
        setting: &'static str,
        /// What it names.
        name: String,
        /// Of the config file.
        table: &'static str,
    },
    /// The site wants it left alone.
    #[error("{url} forbids it: {rule}")]
    Robots {
        /// Of the robots.txt.
        url: String,
        /// Which says so.
        rule: RuleLine,
    },
    /// The site does not tell what it wants left alone, so all of it is.
    #[error("{url} cannot be had, and nothing of the site is fetched without it: {why}")]
    RobotsUnavailable {
        /// Of the robots.txt.
        url: String,
        /// What the site answers.
        why: String,
    },
    /// A redirect leads to a URL that is too long.
    #[error("a redirect leads to a URL of {length} bytes, and setting max-url-length allows {max}")]
    UrlLength {
        /// Without the fragment.
        length: usize,
        /// As set.
        max: u32,
    },
    /// The body is in no form that can be read.
    #[error("the body cannot be decoded, its content-encoding is {encoding:?}: {why}")]
    Encoding {
        /// As the answer has it.
        encoding: String,
        /// What is wrong with it.
        why: String,
    },
    /// Too many redirects, or a loop.
    #[error("more than {n} redirects")]
    Redirects {
        /// How many were followed.
        n: usize,
    },
}

/// Bytes of what is kept of an error with each page that is given up for it.
const DETAIL_MAX: usize = 512;

/// Another attempt may go better.
const AGAIN: bool = true;
/// However often it is tried, it goes no better.
const NEVER: bool = false;

impl FetchError {
    /// What it is counted as, and whether another attempt may go better.
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
            FetchError::Encoding { .. } => ("content-encoding", NEVER),
            FetchError::Redirects { .. } => ("redirects", NEVER),
        }
    }

    /// The word that counts and dead letters are kept by.
    pub fn reason(&self) -> &'static str {
        self.kind().0
    }

    /// Whether another attempt may go better.
    pub fn is_transient(&self) -> bool {
        self.kind().1
    }

    /// Whether nothing was asked, and the page comes again as it is, at a moment that is known.
    pub fn is_held(&self) -> bool {
        matches!(
            self,
            FetchError::Paused { .. }
                | FetchError::AddressPaused { .. }
                | FetchError::NoProxy { .. }
                | FetchError::OpenFiles
        )
    }

    /// What whoever asks for the page later is to know beyond the reason, in at most 512 bytes.
    pub fn detail(&self) -> String {
        let mut detail = self.to_string();
        if detail.len() > DETAIL_MAX {
            // Servers have a say in it: what they call the type of a page may be long.
            detail.truncate(detail.floor_char_boundary(DETAIL_MAX - "…".len()));
            detail.push('…');
        }
        detail
    }
}

/// True if the system lets this process, or all of them, open no more files.
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
