//! Settings of a process for fetching, whatever resources ask for.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::Certificate;
use url::Url;

use crate::NameSettings;
use crate::credentials::Credentials;
use crawler_model::settings::{AccessName, USUAL_AGENT};

/// Settings of this process for fetching.
#[derive(Debug, Clone)]
pub struct FetchSettings {
    /// User agent that is sent unless a request has another.
    pub user_agent: String,
    /// Time from sending a request to the last byte of its answer: setting `timeout` of `[fetch]`.
    pub timeout: Duration,
    /// Time for a connection, within `timeout`; lookup and TLS included.
    pub connect_timeout: Duration,
    /// Time from sending a request to the headers of its answer, within `timeout`; a connection included.
    pub first_byte_timeout: Duration,
    /// Certificate authorities that are trusted in addition to those of the system.
    pub ca: Vec<Certificate>,
    /// True if TLS certificates are verified. If false, any server can impersonate a site.
    pub check_certificates: bool,
    /// Minimum rate of a body in bytes per second, before decoding: an average below it over 10 seconds ends
    /// the fetch. 0 sets no minimum.
    pub min_rate: u64,
    /// Maximum number of redirects that are followed within one host.
    pub max_redirects: usize,
    /// Maximum number of headers of an answer; an answer with more fails.
    pub max_headers: usize,
    /// Maximum size in bytes of the headers that a page keeps, names and values together.
    pub max_header_bytes: usize,
    /// Fixed addresses of names, which take precedence over the resolver: table `[hosts]`.
    pub hosts: BTreeMap<String, Vec<IpAddr>>,
    /// Number of hosts that are prepared at once, over all crawls: their names are looked up, and their
    /// robots.txt is read. Setting `preparing` of `[fetch]`.
    pub preparing: usize,
    /// Lookup of all other names.
    pub names: NameSettings,
    /// Proxies by the names that resources use: table `[proxies]`.
    pub proxies: BTreeMap<AccessName, Vec<ProxySettings>>,
    /// True if names behind a proxy are looked up by the proxy alone, so that their addresses are not judged.
    pub proxy_resolves: bool,
    /// Credentials of the table `[credentials]`.
    pub credentials: Credentials,
}

impl Default for FetchSettings {
    fn default() -> Self {
        Self {
            user_agent: USUAL_AGENT.to_owned(),
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(20),
            ca: Vec::new(),
            check_certificates: true,
            min_rate: 100,
            max_redirects: 10,
            max_headers: 256,
            max_header_bytes: 64 << 10,
            hosts: BTreeMap::new(),
            preparing: 1_024,
            names: NameSettings::default(),
            proxies: BTreeMap::new(),
            proxy_resolves: false,
            credentials: BTreeMap::new(),
        }
    }
}

/// A proxy, as set up by the operator.
#[derive(Clone)]
pub struct ProxySettings {
    /// URL with scheme `http`, `https`, `socks5` or `socks5h`, without user.
    pub url: Url,
    /// User and password.
    pub login: Option<(String, String)>,
}

impl std::fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.url)
    }
}
