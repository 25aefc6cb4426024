//! Keys of the table `[fetch]`: the one place where a key is declared.
//!
//! The type and the default of a setting are those of its field in [`FetchSettings`] or [`ThrottleSettings`],
//! which the module that obeys it owns. From the rows here come [`FetchValues`], the form of the file, the known
//! keys for hints, the checks of values, and the rows of `docs/src/reference/settings.md` and of
//! `config/example.toml`.
//!
//! # The form of a row
//!
//! `field: kind { … }`, and `field: kind(range) { … }` for a number. The kinds, with what they give:
//!
//! | kind | value | in the file |
//! |---|---|---|
//! | `u32(RANGE)`, `u64(RANGE)`, `usize(RANGE)` | a number | a number |
//! | `bytes` | a `usize` above zero | a text like `64KiB` |
//! | `time` | a `Duration` | a text like `30s` |
//! | `some_time` | a `Duration` above zero | a text like `30s` |
//! | `switch` | a `bool` | `true` or `false` |
//! | `rate` | an `Option<Rate>` | a text like `4/s`, or `off` |
//! | `resolver` | a [`Resolver`] | `dns` or `system` |
//! | `text`, `path` | a `String`, a `PathBuf` | a text |
//!
//! The entries of a row stand in this order; those in brackets may be left out:
//!
//! - `name`: the key.
//! - `[into]`: the field of [`FetcherSettings`] that the value is for. Without it, `FetchConfig` or `parts.rs` reads the value.
//! - `[default]`: how the default is shown, if there is no such field.
//! - `[line]`: the line of the example, if it does not show the default.
//! - `book`: the meaning, in Markdown.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::values;
use crawler_fetch::Resolver;
use crawler_fetch::http::FetchSettings;
use crawler_fetch::throttle::ThrottleSettings;
use crawler_model::plugin::format_bytes;
use crawler_model::settings::Rate;

/// A key of the table.
#[derive(Debug)]
pub struct FetchKey {
    /// Name of the key.
    pub name: &'static str,
    /// Returns the default, as the book shows it.
    pub default: fn() -> String,
    /// Returns the line of `config/example.toml`.
    pub line: fn() -> String,
    /// Meaning, in Markdown.
    pub book: &'static str,
    /// Returns the text of its value, if the file has it.
    pub value: fn(&FetchValues) -> Option<String>,
}

/// Settings that the table changes.
#[derive(Debug, Default)]
pub(crate) struct FetcherSettings {
    pub(crate) fetch: FetchSettings,
    pub(crate) throttle: ThrottleSettings,
}

/// Type of a value.
macro_rules! value {
    (text) => { String };
    (path) => { PathBuf };
    (time) => { Duration };
    (some_time) => { Duration };
    (bytes) => { usize };
    (switch) => { bool };
    (rate) => { Option<Rate> };
    (resolver) => { Resolver };
    ($number:ident) => { $number };
}

/// Type of a value in the file.
macro_rules! written {
    (path) => {
        PathBuf
    };
    (switch) => {
        bool
    };
    (u32) => {
        u32
    };
    (u64) => {
        u64
    };
    (usize) => {
        u32
    };
    ($text:ident) => {
        String
    };
}

/// Result of parsing a value of the file.
macro_rules! parse {
    (text $name:literal $written:ident) => {
        Ok::<_, String>($written)
    };
    (path $name:literal $written:ident) => {
        Ok::<_, String>($written)
    };
    (switch $name:literal $written:ident) => {
        Ok::<_, String>($written)
    };
    (time $name:literal $written:ident) => {
        values::time($name, &$written)
    };
    (some_time $name:literal $written:ident) => {
        values::some_time($name, &$written)
    };
    (bytes $name:literal $written:ident) => {
        values::some_bytes($name, &$written)
    };
    (rate $name:literal $written:ident) => {
        values::rate($name, &$written)
    };
    (resolver $name:literal $written:ident) => {
        values::resolver($name, &$written)
    };
    (usize $name:literal $written:ident $range:expr) => {
        values::in_range($name, $written, $range).map(|n| n as usize)
    };
    ($number:ident $name:literal $written:ident $range:expr) => {
        values::in_range($name, $written, $range)
    };
}

/// Text of a value, without quotes.
macro_rules! shown {
    (time $value:expr) => {
        humantime::format_duration($value).to_string()
    };
    (some_time $value:expr) => {
        humantime::format_duration($value).to_string()
    };
    (bytes $value:expr) => {
        format_bytes($value as u64)
    };
    (rate $value:expr) => {
        values::rate_text($value)
    };
    (resolver $value:expr) => {
        values::resolver_text($value).to_owned()
    };
    (path $value:expr) => {
        $value.display().to_string()
    };
    ($kind:ident $value:expr) => {
        $value.to_string()
    };
}

/// True if a value is a text in the file.
macro_rules! is_text {
    (u32) => {
        false
    };
    (u64) => {
        false
    };
    (usize) => {
        false
    };
    (switch) => {
        false
    };
    ($kind:ident) => {
        true
    };
}

/// Returns the first of some entries of a row that is there.
macro_rules! first {
    ($given:expr, $($otherwise:tt)*) => {
        $given
    };
}

/// Defines `FetchValues`, `FetchTable` and `FETCH_KEYS` from the rows of the table.
macro_rules! define {
    ($($field:ident: $kind:ident $(($range:expr))? {
        name: $name:literal,
        $(into: $into:ident$(.$path:ident)+,)?
        $(default: $default:literal,)?
        $(line: $line:literal,)?
        book: $book:literal,
    })*) => {
        /// Values of the keys, each `None` if the file does not have it.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct FetchValues {
            $(
                #[doc = concat!("Key `", $name, "`.")]
                pub $field: Option<value!($kind)>,
            )*
        }

        /// Table in the form of the file.
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub(in crate::config) struct FetchTable {
            $($field: Option<written!($kind)>,)*
        }

        /// All keys of the table, in the order in which they are documented.
        pub static FETCH_KEYS: &[FetchKey] = &[$(FetchKey {
            name: $name,
            default: || first!(
                $($default.to_owned(),)?
                $(shown!($kind FetcherSettings::default().$into$(.$path)+),)?
            ),
            line: || first!(
                $($line.to_owned(),)?
                $(values::line(
                    $name,
                    shown!($kind FetcherSettings::default().$into$(.$path)+),
                    is_text!($kind),
                ),)?
            ),
            book: $book,
            value: |values| values.$field.clone().map(|value| shown!($kind value)),
        },)*];

        impl FetchTable {
            /// Parses the values one by one; an error is a sentence for the user.
            pub(super) fn into_values(self) -> Result<FetchValues, String> {
                Ok(FetchValues {
                    $($field: match self.$field {
                        Some(written) => Some(parse!($kind $name written $($range)?)?),
                        None => None,
                    },)*
                })
            }
        }

        impl FetchValues {
            /// Replaces the settings that the file has.
            pub(crate) fn apply(&self, settings: &mut FetcherSettings) {
                $($(
                    if let Some(value) = self.$field {
                        settings.$into$(.$path)+ = value;
                    }
                )?)*
            }
        }
    };
}

define! {
    user_agent: text {
        name: "user-agent",
        default: "`crawler/VERSION`",
        line: "# user-agent = \"shop-crawler/1.0 (+https://shop.example/crawler)\"",
        book: "what the worker calls itself; a robots.txt addresses it by the first word",
    }
    contact: text {
        name: "contact",
        default: "none",
        line: "contact = \"https://shop.example/crawler\"",
        book: "address where sites can reach you, a web or mail address; it is put behind `crawler/VERSION`; not together with `user-agent`",
    }
    timeout: some_time {
        name: "timeout",
        into: fetch.timeout,
        book: "time from a request to the last byte of its answer",
    }
    connect_timeout: some_time {
        name: "connect-timeout",
        into: fetch.connect_timeout,
        book: "time for a connection, within `timeout`; lookup and TLS are included",
    }
    first_byte_timeout: some_time {
        name: "first-byte-timeout",
        into: fetch.first_byte_timeout,
        book: "time from a request to the headers of its answer, within `timeout`",
    }
    min_rate: u64(0..=u64::MAX) {
        name: "min-rate",
        into: fetch.min_rate,
        book: "bytes of a body in one second, as they come, averaged over 10 s; 0: no bound",
    }
    max_redirects: usize(0..=u32::MAX) {
        name: "max-redirects",
        into: fetch.max_redirects,
        book: "redirects followed within one host, scheme and port; a redirect to another one is a request of its own, without secrets of the first",
    }
    // The client reserves room for this many with each answer.
    max_headers: usize(1..=10_000) {
        name: "max-headers",
        into: fetch.max_headers,
        book: "headers of an answer; an answer with more is no page",
    }
    max_header_bytes: bytes {
        name: "max-header-bytes",
        into: fetch.max_header_bytes,
        book: "bytes of names and values that are kept with a page",
    }
    ca: path {
        name: "ca",
        default: "none",
        line: "ca = \"more.pem\"",
        book: "a file of certificates; they vouch for servers in addition to those that the system trusts",
    }
    check_certificates: switch {
        name: "check-certificates",
        into: fetch.check_certificates,
        book: "`false`: TLS certificates are not verified, so any server can impersonate a site; the log says so",
    }
    preparing: usize(1..=u32::MAX) {
        name: "preparing",
        into: fetch.preparing,
        book: "hosts at once, over all crawls, whose names are looked up and whose robots.txt is read",
    }
    resolver: resolver {
        name: "resolver",
        into: fetch.names.resolver,
        default: "`dns`",
        book: "`dns`: names are looked up at the name servers of `/etc/resolv.conf`, after `/etc/hosts`; changes of both files count within 5 s. `system`: as `/etc/nsswitch.conf` says, 32 names at once, and each answer counts for one minute",
    }
    dns_min_ttl: time {
        name: "dns-min-ttl",
        into: fetch.names.min_ttl,
        book: "the addresses of a name count for as long as DNS says, but no shorter than this",
    }
    dns_ttl: time {
        name: "dns-ttl",
        into: fetch.names.max_ttl,
        book: "the addresses of a name count no longer than this; 0s: each connection asks",
    }
    proxy_resolves: switch {
        name: "proxy-resolves",
        into: fetch.proxy_resolves,
        book: "`true`: names behind proxies are not looked up here, so their addresses are not checked",
    }
    parallel: u32(1..=u32::MAX) {
        name: "parallel",
        into: throttle.parallel,
        book: "requests to one host at once, where no delay is kept",
    }
    host_failures: u32(1..=u32::MAX) {
        name: "host-failures",
        into: throttle.host_failures,
        book: "failures in a row of a host that can be reached, after which it is left alone ([Waits](fetch.md#waits))",
    }
    max_host_pause: time {
        name: "max-host-pause",
        into: throttle.max_host_pause,
        book: "the longest such pause, and the longest `Retry-After` that a host gets",
    }
    max_adaptive_delay: time {
        name: "max-adaptive-delay",
        into: throttle.max_adaptive_delay,
        book: "where a delay is kept, it grows with the time that answers take, up to this; only pages shorten it again; 0s: never",
    }
    address_rate: rate {
        name: "address-rate",
        into: throttle.address_rate,
        book: "requests to one address, over all hosts there, evenly spaced; an IPv6 network /64 is one address; `off`: no bound",
    }
}
