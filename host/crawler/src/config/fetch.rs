//! Settings of this process for fetching, whatever resources ask for: the table `[fetch]` of the config file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::access::{CredentialConfig, ProxyConfig};
use super::secret::SecretRef;
use crawler_fetch::Resolver;
use crawler_model::plugin::parse_bytes;
use crawler_model::settings::{AccessName, Rate, USUAL_AGENT};

/// Settings that differ from the defaults. If a setting is `None`, its default holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchConfig {
    /// User agent of the client, which includes the contact if there is one.
    pub user_agent: Option<String>,
    /// Time from sending a request to the last byte of its answer.
    pub timeout: Option<Duration>,
    /// Time for opening a connection, as a part of that time.
    pub connect_timeout: Option<Duration>,
    /// Time from sending a request to the headers of its answer, as a part of that time.
    pub first_byte_timeout: Option<Duration>,
    /// Smallest rate of a body, in bytes per second.
    pub min_rate: Option<u64>,
    /// Largest number of redirects that are followed within one host.
    pub max_redirects: Option<u32>,
    /// Largest number of headers of an answer.
    pub max_headers: Option<u32>,
    /// Bytes of the names and values of headers that a page keeps.
    pub max_header_bytes: Option<u64>,
    /// Number of requests to one host at once if no delay is asked for.
    pub parallel: Option<u32>,
    /// Number of failures in a row after which a host is left alone.
    pub host_failures: Option<u32>,
    /// Longest time that a host in trouble is left alone.
    pub max_host_pause: Option<Duration>,
    /// Largest delay that follows from the time that answers take; with zero, the delay does not grow.
    pub max_adaptive_delay: Option<Duration>,
    /// Rate of requests to one address, over all hosts there. `Some(None)` means no rate: an address gets as many
    /// requests as its hosts.
    pub address_rate: Option<Option<Rate>>,
    /// Number of hosts that are prepared at once.
    pub preparing: Option<u32>,
    /// Resolver that looks names up.
    pub resolver: Option<Resolver>,
    /// Shortest time for which the addresses of a name are valid.
    pub dns_min_ttl: Option<Duration>,
    /// Longest time for which the addresses of a name are valid; with zero, each connection looks them up.
    pub dns_ttl: Option<Duration>,
    /// File with CA certificates, in PEM, by which servers are verified in addition to those of the system.
    pub ca: Option<PathBuf>,
    /// True if TLS certificates are verified.
    pub check_certificates: Option<bool>,
    /// True if only the proxy looks up the names behind it.
    pub proxy_resolves: Option<bool>,
    /// Proxies of the table `[proxies]`.
    pub proxies: BTreeMap<AccessName, Vec<ProxyConfig>>,
    /// Credentials of the table `[credentials]`.
    pub credentials: Vec<CredentialConfig>,
}

impl FetchConfig {
    /// Returns the files that the config names: certificates and secrets.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let logins = self.proxies.values().flatten();
        let logins = logins.filter_map(|proxy| Some(&proxy.login.as_ref()?.1));
        let credentials = self.credentials.iter().map(|credential| &credential.secret);
        let secrets = logins.chain(credentials).filter_map(SecretRef::file);
        self.ca.as_deref().into_iter().chain(secrets)
    }
}

const MOST_HEADERS: u32 = 10_000;

/// Keys of the table.
pub(super) const FETCH: [&str; 21] = [
    "user-agent",
    "contact",
    "timeout",
    "connect-timeout",
    "first-byte-timeout",
    "min-rate",
    "max-redirects",
    "max-headers",
    "max-header-bytes",
    "parallel",
    "host-failures",
    "max-host-pause",
    "max-adaptive-delay",
    "address-rate",
    "preparing",
    "resolver",
    "dns-min-ttl",
    "dns-ttl",
    "proxy-resolves",
    "ca",
    "check-certificates",
];

/// Table in the form of the file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct FetchTable {
    user_agent: Option<String>,
    contact: Option<String>,
    timeout: Option<String>,
    connect_timeout: Option<String>,
    first_byte_timeout: Option<String>,
    min_rate: Option<u64>,
    max_redirects: Option<u32>,
    max_headers: Option<u32>,
    max_header_bytes: Option<String>,
    parallel: Option<u32>,
    host_failures: Option<u32>,
    max_host_pause: Option<String>,
    max_adaptive_delay: Option<String>,
    address_rate: Option<String>,
    preparing: Option<u32>,
    resolver: Option<String>,
    dns_min_ttl: Option<String>,
    dns_ttl: Option<String>,
    proxy_resolves: Option<bool>,
    ca: Option<PathBuf>,
    check_certificates: Option<bool>,
}

impl FetchTable {
    /// Parses the table; an error is a sentence for the user.
    pub(super) fn into_config(self, folder: &Path) -> Result<FetchConfig, String> {
        for (key, number) in [
            ("parallel", self.parallel),
            ("preparing", self.preparing),
            ("host-failures", self.host_failures),
        ] {
            if number == Some(0) {
                return Err(format!("{key} is at least 1"));
            }
        }
        // The client reserves room for this many with each answer.
        if let Some(n) = self.max_headers
            && !(1..=MOST_HEADERS).contains(&n)
        {
            return Err(format!("max-headers is from 1 to {MOST_HEADERS}, not {n}"));
        }
        let is_visible = |c: char| c.is_ascii_graphic() || c == ' ';
        if let Some(contact) = &self.contact {
            let is_one =
                contact.contains([':', '@']) && contact.chars().all(|c| c.is_ascii_graphic());
            if !is_one || contact.contains(['(', ')']) {
                return Err(format!(
                    "contact is an address of the web or of mail, as in https://shop.example/crawler or crawler@shop.example, not {contact:?}"
                ));
            }
            if self.user_agent.is_some() {
                return Err(
                    "contact is for the usual user-agent; write it into your own".to_owned(),
                );
            }
        }
        if let Some(agent) = &self.user_agent {
            // Its first word is the name that a robots.txt knows this crawler by.
            let has_name = agent.starts_with(|c: char| c.is_ascii_alphabetic());
            if !has_name || !agent.chars().all(is_visible) {
                return Err(format!(
                    "user-agent starts with a name and is printable ASCII, as in shop-crawler/1.0 (+https://shop.example/crawler), not {agent:?}"
                ));
            }
        }
        Ok(FetchConfig {
            user_agent: match self.contact {
                Some(contact) => Some(format!("{USUAL_AGENT} (+{contact})")),
                None => self.user_agent,
            },
            timeout: some_time("timeout", self.timeout)?,
            connect_timeout: some_time("connect-timeout", self.connect_timeout)?,
            first_byte_timeout: some_time("first-byte-timeout", self.first_byte_timeout)?,
            min_rate: self.min_rate,
            max_redirects: self.max_redirects,
            max_headers: self.max_headers,
            max_header_bytes: some_bytes("max-header-bytes", self.max_header_bytes)?,
            parallel: self.parallel,
            host_failures: self.host_failures,
            max_host_pause: time("max-host-pause", self.max_host_pause)?,
            max_adaptive_delay: time("max-adaptive-delay", self.max_adaptive_delay)?,
            address_rate: self.address_rate.map(address_rate).transpose()?,
            preparing: self.preparing,
            resolver: self.resolver.as_deref().map(resolver).transpose()?,
            dns_min_ttl: time("dns-min-ttl", self.dns_min_ttl)?,
            dns_ttl: time("dns-ttl", self.dns_ttl)?,
            proxy_resolves: self.proxy_resolves,
            ca: self.ca.map(|ca| folder.join(ca)),
            check_certificates: self.check_certificates,
            ..FetchConfig::default()
        })
    }
}

/// Parses a rate; `None` means that there is none.
fn address_rate(text: String) -> Result<Option<Rate>, String> {
    match text.as_str() {
        "off" => Ok(None),
        _ => text.parse().map(Some).map_err(|()| {
            format!("address-rate takes a rate like 4/s or 30/m, or \"off\", not {text:?}")
        }),
    }
}

fn resolver(text: &str) -> Result<Resolver, String> {
    match text {
        "dns" => Ok(Resolver::Dns),
        "system" => Ok(Resolver::System),
        _ => Err(format!("resolver is \"dns\" or \"system\", not {text:?}")),
    }
}

/// Parses a number of bytes that is at least 1.
fn some_bytes(key: &str, text: Option<String>) -> Result<Option<u64>, String> {
    let Some(text) = text else { return Ok(None) };
    match parse_bytes(&text) {
        Some(n) if n > 0 => Ok(Some(n)),
        _ => Err(format!(
            "{key} takes a size like 64KiB or 4096, not {text:?}"
        )),
    }
}

/// Parses a time that is longer than zero.
fn some_time(key: &str, text: Option<String>) -> Result<Option<Duration>, String> {
    match time(key, text)? {
        Some(Duration::ZERO) => Err(format!("{key} is longer than 0s")),
        time => Ok(time),
    }
}

fn time(key: &str, text: Option<String>) -> Result<Option<Duration>, String> {
    let Some(text) = text else { return Ok(None) };
    match humantime::parse_duration(&text) {
        Ok(time) => Ok(Some(time)),
        Err(_) => Err(format!("{key} takes a time like 30s or 5m, not {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<FetchConfig, String> {
        toml::from_str::<FetchTable>(text)
            .unwrap()
            .into_config(Path::new("/etc"))
    }

    #[test]
    fn what_is_not_said_is_as_usual_and_what_makes_no_sense_is_named() {
        assert_eq!(parse(""), Ok(FetchConfig::default()));
        let config = parse("timeout = '5s'\nmax-host-pause = '0s'\nparallel = 3").unwrap();
        assert_eq!(config.timeout, Some(Duration::from_secs(5)));
        assert_eq!(config.max_host_pause, Some(Duration::ZERO));
        assert_eq!(config.parallel, Some(3));
        let config = parse("contact = 'https://shop.example/bot'").unwrap();
        let agent = format!("{USUAL_AGENT} (+https://shop.example/bot)");
        assert_eq!(config.user_agent, Some(agent));
        let config = parse("max-headers = 7\nmax-header-bytes = '2KiB'").unwrap();
        assert_eq!(
            (config.max_headers, config.max_header_bytes),
            (Some(7), Some(2_048))
        );
        let config = parse("ca = 'more.pem'\ncheck-certificates = false").unwrap();
        assert_eq!(config.ca, Some("/etc/more.pem".into()));
        assert_eq!(config.check_certificates, Some(false));
        let per = Duration::from_secs(60);
        for (text, rate) in [("30/m", Some(Rate { n: 30, per })), ("off", None)] {
            let config = parse(&format!("address-rate = '{text}'")).unwrap();
            assert_eq!(config.address_rate, Some(rate));
        }
        for (text, why) in [
            (
                "address-rate = '4'",
                "address-rate takes a rate like 4/s or 30/m, or \"off\", not \"4\"",
            ),
            ("timeout = '0s'", "timeout is longer than 0s"),
            (
                "max-host-pause = 'long'",
                "max-host-pause takes a time like 30s or 5m, not \"long\"",
            ),
            (
                "resolver = 'mdns'",
                "resolver is \"dns\" or \"system\", not \"mdns\"",
            ),
            ("parallel = 0", "parallel is at least 1"),
            ("preparing = 0", "preparing is at least 1"),
            ("host-failures = 0", "host-failures is at least 1"),
            ("max-headers = 0", "max-headers is from 1 to 10000, not 0"),
            (
                "max-headers = 10001",
                "max-headers is from 1 to 10000, not 10001",
            ),
            (
                "max-header-bytes = '0'",
                "max-header-bytes takes a size like 64KiB or 4096, not \"0\"",
            ),
            (
                "contact = 'me (at home)'",
                "contact is an address of the web or of mail, as in https://shop.example/crawler or crawler@shop.example, not \"me (at home)\"",
            ),
            (
                "contact = 'a@b.c'\nuser-agent = 'shop'",
                "contact is for the usual user-agent; write it into your own",
            ),
            (
                "user-agent = ' '",
                "user-agent starts with a name and is printable ASCII, as in shop-crawler/1.0 (+https://shop.example/crawler), not \" \"",
            ),
            (
                "user-agent = '1.0 bot'",
                "user-agent starts with a name and is printable ASCII, as in shop-crawler/1.0 (+https://shop.example/crawler), not \"1.0 bot\"",
            ),
        ] {
            assert_eq!(parse(text), Err(why.to_owned()), "{text}");
        }
    }
}
