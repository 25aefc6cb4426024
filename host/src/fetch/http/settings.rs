//! How a process fetches, whatever resources ask for.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::Certificate;

use super::ProxySettings;
use crate::fetch::NameSettings;
use crate::fetch::credentials::Credentials;
use crate::model::settings::{AccessName, USUAL_AGENT};

/// How this process fetches.
#[derive(Debug, Clone)]
pub struct FetchSettings {
    /// What the client calls itself, where a request does not say otherwise.
    pub user_agent: String,
    /// From a request being sent to the last byte of its answer: setting `timeout` of `[fetch]`.
    pub timeout: Duration,
    /// For a connection, within that: lookup and TLS included.
    pub connect_timeout: Duration,
    /// From a request being sent to the headers of its answer, within that; a connection included.
    pub first_byte_timeout: Duration,
    /// Who vouches for servers beside those that the system trusts.
    pub ca: Vec<Certificate>,
    /// Whether anybody has to.
    pub check_certificates: bool,
    /// Bytes of a body, as they come, in a second: 10 seconds with fewer on the average end the fetch.
    /// 0: there may be none.
    pub min_rate: u64,
    /// Followed within one host.
    pub max_redirects: usize,
    /// Headers of an answer. With more it is no page.
    pub max_headers: usize,
    /// Bytes of those that a page keeps, names and values.
    pub max_header_bytes: usize,
    /// Where these names are, whatever the system's resolver says: table `[hosts]`.
    pub hosts: BTreeMap<String, Vec<IpAddr>>,
    /// Hosts that are made ready at once, over all crawls: their names are looked up, and their robots.txt is
    /// read. Setting `preparing` of `[fetch]`.
    pub preparing: usize,
    /// Lookup of all other names.
    pub names: NameSettings,
    /// By the names that resources use: table `[proxies]`.
    pub proxies: BTreeMap<AccessName, Vec<ProxySettings>>,
    /// Names behind a proxy are looked up by it alone, so that nobody judges their addresses.
    pub proxy_resolves: bool,
    /// Table `[credentials]`.
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
