//! Settings of this process for fetching, whatever resources ask for: the table `[fetch]` of the config file.

use std::collections::BTreeMap;
use std::path::Path;

use super::access::{CredentialConfig, ProxyConfig};
use super::secret::SecretRef;
use crawler_model::settings::{AccessName, USUAL_AGENT};
pub(super) use table::FetchTable;
pub(crate) use table::FetcherSettings;
pub use table::{FETCH_KEYS, FetchKey, FetchValues};

mod table;
pub(super) mod values;

/// Settings that differ from the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchConfig {
    /// Values of the table `[fetch]`.
    pub values: FetchValues,
    /// Proxies of the table `[proxies]`.
    pub proxies: BTreeMap<AccessName, Vec<ProxyConfig>>,
    /// Credentials of the table `[credentials]`.
    pub credentials: Vec<CredentialConfig>,
}

impl FetchConfig {
    /// Returns the user agent of the client, which includes the contact if there is one.
    pub fn agent(&self) -> Option<String> {
        match &self.values.contact {
            Some(contact) => Some(format!("{USUAL_AGENT} (+{contact})")),
            None => self.values.user_agent.clone(),
        }
    }

    /// Returns the files that the config names: certificates and secrets.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let logins = self.proxies.values().flatten();
        let logins = logins.filter_map(|proxy| Some(&proxy.login.as_ref()?.1));
        let credentials = self.credentials.iter().map(|credential| &credential.secret);
        let secrets = logins.chain(credentials).filter_map(SecretRef::file);
        self.values.ca.as_deref().into_iter().chain(secrets)
    }
}

/// Returns the keys of the table.
pub(super) fn keys() -> Vec<&'static str> {
    FETCH_KEYS.iter().map(|key| key.name).collect()
}

impl FetchTable {
    /// Parses the table; an error is a sentence for the user.
    pub(super) fn into_config(self, folder: &Path) -> Result<FetchConfig, String> {
        let mut values = self.into_values()?;
        let is_visible = |c: char| c.is_ascii_graphic() || c == ' ';
        if let Some(contact) = &values.contact {
            let is_one =
                contact.contains([':', '@']) && contact.chars().all(|c| c.is_ascii_graphic());
            if !is_one || contact.contains(['(', ')']) {
                return Err(format!(
                    "contact is an address of the web or of mail, as in https://shop.example/crawler or crawler@shop.example, not {contact:?}"
                ));
            }
            if values.user_agent.is_some() {
                return Err(
                    "contact is for the usual user-agent; write it into your own".to_owned(),
                );
            }
        }
        if let Some(agent) = &values.user_agent {
            // Its first word is the name that a robots.txt knows this crawler by.
            let has_name = agent.starts_with(|c: char| c.is_ascii_alphabetic());
            if !has_name || !agent.chars().all(is_visible) {
                return Err(format!(
                    "user-agent starts with a name and is printable ASCII, as in shop-crawler/1.0 (+https://shop.example/crawler), not {agent:?}"
                ));
            }
        }
        values.ca = values.ca.map(|ca| folder.join(ca));
        Ok(FetchConfig {
            values,
            ..FetchConfig::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crawler_model::settings::Rate;

    fn parse(text: &str) -> Result<FetchConfig, String> {
        toml::from_str::<FetchTable>(text)
            .unwrap()
            .into_config(Path::new("/etc"))
    }

    #[test]
    fn what_is_not_said_is_as_usual_and_what_makes_no_sense_is_named() {
        assert_eq!(parse(""), Ok(FetchConfig::default()));
        let parsed = |text: &str| parse(text).unwrap().values;
        let values = parsed("timeout = '5s'\nmax-host-pause = '0s'\nparallel = 3");
        assert_eq!(values.timeout, Some(Duration::from_secs(5)));
        assert_eq!(values.max_host_pause, Some(Duration::ZERO));
        assert_eq!(values.parallel, Some(3));
        let config = parse("contact = 'https://shop.example/bot'").unwrap();
        let agent = format!("{USUAL_AGENT} (+https://shop.example/bot)");
        assert_eq!(config.agent(), Some(agent));
        let values = parsed("max-headers = 7\nmax-header-bytes = '2KiB'");
        assert_eq!(
            (values.max_headers, values.max_header_bytes),
            (Some(7), Some(2_048))
        );
        let values = parsed("ca = 'more.pem'\ncheck-certificates = false");
        assert_eq!(values.ca, Some("/etc/more.pem".into()));
        assert_eq!(values.check_certificates, Some(false));
        let per = Duration::from_secs(60);
        for (text, rate) in [("30/m", Some(Rate { n: 30, per })), ("off", None)] {
            let values = parsed(&format!("address-rate = '{text}'"));
            assert_eq!(values.address_rate, Some(rate));
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

    #[test]
    fn a_value_reaches_the_setting_of_its_key() {
        let mut settings = FetcherSettings::default();
        let config = parse("first-byte-timeout = '1s'\ndns-ttl = '2s'\nhost-failures = 3");
        config.unwrap().values.apply(&mut settings);
        let FetcherSettings { fetch, throttle } = settings;
        let second = Duration::from_secs(1);
        assert_eq!(fetch.first_byte_timeout, second);
        assert_eq!(fetch.names.max_ttl, 2 * second);
        assert_eq!(throttle.host_failures, 3);
        assert_eq!(fetch.timeout, FetcherSettings::default().fetch.timeout);
    }
}
