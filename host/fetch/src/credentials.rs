//! Credentials for hosts: basic and bearer, each for the hosts that the operator named and no other.
//!
//! A resource names the credentials that it uses. It never sees them and cannot have them sent to other hosts.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderValue, InvalidHeaderValue};
use url::Url;

use crawler_model::settings::AccessName;
use crawler_model::settings::HostPattern;

/// Credentials by the names that resources use.
pub type Credentials = BTreeMap<AccessName, Credential>;

/// An `authorization` header for some hosts.
#[derive(Clone)]
pub struct Credential {
    hosts: Vec<HostPattern>,
    authorization: HeaderValue,
    /// True if the header is sent over plain http, too.
    plain_http: bool,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        write!(f, "for {}", hosts.join(", "))
    }
}

impl Credential {
    /// Creates a credential from user and password (RFC 7617).
    pub fn basic(
        hosts: Vec<HostPattern>,
        user: &str,
        password: &str,
        plain_http: bool,
    ) -> Result<Self, InvalidHeaderValue> {
        let pair = STANDARD.encode(format!("{user}:{password}"));
        Self::new(hosts, format!("Basic {pair}"), plain_http)
    }

    /// Creates a credential from a token (RFC 6750).
    pub fn bearer(
        hosts: Vec<HostPattern>,
        token: &str,
        plain_http: bool,
    ) -> Result<Self, InvalidHeaderValue> {
        Self::new(hosts, format!("Bearer {token}"), plain_http)
    }

    fn new(
        hosts: Vec<HostPattern>,
        authorization: String,
        plain_http: bool,
    ) -> Result<Self, InvalidHeaderValue> {
        let mut authorization = HeaderValue::try_from(authorization)?;
        // A sensitive value is neither logged nor kept in the header table of HTTP/2.
        authorization.set_sensitive(true);
        Ok(Self {
            hosts,
            authorization,
            plain_http,
        })
    }

    /// Returns the header if it may be sent to this URL's host.
    pub(super) fn for_url(&self, url: &Url) -> Option<&HeaderValue> {
        let host = url.host_str()?;
        let is_shown = |pattern: &HostPattern| pattern.admits(host, url.port_or_known_default());
        let is_safe = url.scheme() == "https" || self.plain_http;
        (is_safe && self.hosts.iter().any(is_shown)).then_some(&self.authorization)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_goes_to_its_hosts_and_without_encryption_only_where_that_is_said() {
        let hosts = ["shop.example", "*.api.example"];
        let hosts = hosts.map(|host| host.parse().unwrap()).to_vec();
        let safe = Credential::basic(hosts.clone(), "ann", "q: &", false).unwrap();
        let plain = Credential::bearer(hosts, "t0k", true).unwrap();
        let sent = |credential: &Credential, url: &str| {
            let header = credential.for_url(&url.parse().unwrap());
            header.map(|value| value.to_str().unwrap().to_owned())
        };
        let basic = Some("Basic YW5uOnE6ICY=".to_owned());
        assert_eq!(sent(&safe, "https://shop.example/x"), basic);
        assert_eq!(sent(&safe, "https://shop.example:8443/"), basic);
        assert_eq!(sent(&safe, "https://v1.api.example/"), basic);
        assert_eq!(sent(&safe, "https://api.example/"), basic);
        for elsewhere in [
            "http://shop.example/",
            "https://xapi.example/",
            "https://shop.example.evil.test/",
            "https://evilshop.example/",
        ] {
            assert_eq!(sent(&safe, elsewhere), None, "{elsewhere}");
        }
        let bearer = Some("Bearer t0k".to_owned());
        assert_eq!(sent(&plain, "http://shop.example/"), bearer);
        assert_eq!(format!("{plain:?}"), "for shop.example, *.api.example");
    }
}
