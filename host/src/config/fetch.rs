//! How this process fetches, whatever resources ask for: the table `[fetch]` of the config file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::access::{CredentialConfig, ProxyConfig};
use crate::model::settings::AccessName;

/// What differs from the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchConfig {
    /// What the client calls itself.
    pub user_agent: Option<String>,
    /// From a request being sent to the last byte of its answer.
    pub timeout: Option<Duration>,
    /// For a connection, within that.
    pub connect_timeout: Option<Duration>,
    /// From a request being sent to the headers of its answer, within that.
    pub first_byte_timeout: Option<Duration>,
    /// Bytes of a body in a second.
    pub min_rate: Option<u64>,
    /// Followed within one host.
    pub max_redirects: Option<u32>,
    /// Requests to one host at once where no delay is asked for.
    pub parallel: Option<u32>,
    /// Failures on end after which a host is left alone.
    pub host_failures: Option<u32>,
    /// The longest that a host in trouble is left alone.
    pub max_host_pause: Option<Duration>,
    /// How far the delay grows with the time that answers take; none: not at all.
    pub max_adaptive_delay: Option<Duration>,
    /// How long the addresses of a name count; none: each connection asks.
    pub dns_ttl: Option<Duration>,
    /// A file with certificates, in PEM, of those who vouch for servers beside those of the system.
    pub ca: Option<PathBuf>,
    /// Whether anybody has to vouch for servers.
    pub check_certificates: Option<bool>,
    /// Nobody but a proxy looks up the names behind it.
    pub proxy_resolves: Option<bool>,
    /// Of the table `[proxies]`.
    pub proxies: BTreeMap<AccessName, Vec<ProxyConfig>>,
    /// Of the table `[credentials]`.
    pub credentials: Vec<CredentialConfig>,
}

/// The keys of the table.
pub(super) const FETCH: [&str; 14] = [
    "user-agent",
    "timeout",
    "connect-timeout",
    "first-byte-timeout",
    "min-rate",
    "max-redirects",
    "parallel",
    "host-failures",
    "max-host-pause",
    "max-adaptive-delay",
    "dns-ttl",
    "proxy-resolves",
    "ca",
    "check-certificates",
];

/// As a person writes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct FetchTable {
    user_agent: Option<String>,
    timeout: Option<String>,
    connect_timeout: Option<String>,
    first_byte_timeout: Option<String>,
    min_rate: Option<u64>,
    max_redirects: Option<u32>,
    parallel: Option<u32>,
    host_failures: Option<u32>,
    max_host_pause: Option<String>,
    max_adaptive_delay: Option<String>,
    dns_ttl: Option<String>,
    proxy_resolves: Option<bool>,
    ca: Option<PathBuf>,
    check_certificates: Option<bool>,
}

impl FetchTable {
    /// What it says; an error in a person's words where it says nothing.
    pub(super) fn into_config(self, folder: &Path) -> Result<FetchConfig, String> {
        for (key, number) in [
            ("parallel", self.parallel),
            ("host-failures", self.host_failures),
        ] {
            if number == Some(0) {
                return Err(format!("{key} is at least 1"));
            }
        }
        if let Some(agent) = &self.user_agent {
            let is_visible = |c: char| c.is_ascii_graphic() || c == ' ';
            // Its first word is what a robots.txt knows us by.
            let has_name = agent.starts_with(|c: char| c.is_ascii_alphabetic());
            if !has_name || !agent.chars().all(is_visible) {
                return Err(format!(
                    "user-agent starts with a name and is printable ASCII, as in shop-crawler/1.0 (+https://shop.example/crawler), not {agent:?}"
                ));
            }
        }
        Ok(FetchConfig {
            user_agent: self.user_agent,
            timeout: some_time("timeout", self.timeout)?,
            connect_timeout: some_time("connect-timeout", self.connect_timeout)?,
            first_byte_timeout: some_time("first-byte-timeout", self.first_byte_timeout)?,
            min_rate: self.min_rate,
            max_redirects: self.max_redirects,
            parallel: self.parallel,
            host_failures: self.host_failures,
            max_host_pause: time("max-host-pause", self.max_host_pause)?,
            max_adaptive_delay: time("max-adaptive-delay", self.max_adaptive_delay)?,
            dns_ttl: time("dns-ttl", self.dns_ttl)?,
            proxy_resolves: self.proxy_resolves,
            ca: self.ca.map(|ca| folder.join(ca)),
            check_certificates: self.check_certificates,
            ..FetchConfig::default()
        })
    }
}

/// One in which something can be done.
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
        let config = parse("ca = 'more.pem'\ncheck-certificates = false").unwrap();
        assert_eq!(config.ca, Some("/etc/more.pem".into()));
        assert_eq!(config.check_certificates, Some(false));
        for (text, why) in [
            ("timeout = '0s'", "timeout is longer than 0s"),
            (
                "max-host-pause = 'long'",
                "max-host-pause takes a time like 30s or 5m, not \"long\"",
            ),
            ("parallel = 0", "parallel is at least 1"),
            ("host-failures = 0", "host-failures is at least 1"),
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
