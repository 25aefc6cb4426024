//! Settings of the connection to etcd: the table `[etcd]` of the config file.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Member that is asked unless the user names others.
const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:2379";

/// Addresses of etcd, and the identity of this process there. Passwords and keys are in files of their own,
/// so that the config file can be shown to others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EtcdConfig {
    /// URLs of the members: `http://HOST:PORT` or `https://HOST:PORT`.
    #[serde(default)]
    pub endpoints: Vec<String>,
    /// User name of this process in etcd.
    pub user: Option<String>,
    /// File with the password of that user.
    pub password_file: Option<PathBuf>,
    /// File with the CA certificates, in PEM, by which servers are verified.
    pub ca: Option<PathBuf>,
    /// File with the client certificate of this process, in PEM.
    pub certificate: Option<PathBuf>,
    /// File with the key of that certificate, in PEM.
    pub key: Option<PathBuf>,
}

/// Reason why such a table is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EtcdConfigError {
    /// The endpoint is not the URL of a member.
    #[error(
        "etcd endpoint {url:?} is no http:// or https:// URL with a host and nothing behind it"
    )]
    Endpoint {
        /// URL as given.
        url: String,
    },
    /// A key needs another one that is absent.
    #[error("[etcd] has {present} without {missing}")]
    Half {
        /// Key that is there.
        present: &'static str,
        /// Key that it needs.
        missing: &'static str,
    },
    /// The connection is encrypted, and no CA certificate verifies the servers.
    #[error("endpoint {url} is https://, and [etcd] names no ca that vouches for it")]
    NobodyVouches {
        /// URL of the endpoint.
        url: String,
    },
    /// The table has certificates, and the connection is not encrypted.
    #[error("[etcd] has {present}, and endpoint {url} is not https://")]
    NotEncrypted {
        /// Key that is there.
        present: &'static str,
        /// URL of the endpoint.
        url: String,
    },
}

impl EtcdConfig {
    /// Replaces the endpoints, unless the given list is empty.
    pub fn with_endpoints(mut self, endpoints: Vec<String>) -> Result<Self, EtcdConfigError> {
        if !endpoints.is_empty() {
            self.endpoints = endpoints;
        }
        if self.endpoints.is_empty() {
            self.endpoints = vec![DEFAULT_ENDPOINT.to_owned()];
        }
        self.check()?;
        Ok(self)
    }

    /// Returns the members as `HOST:PORT`.
    pub fn members(&self) -> impl Iterator<Item = String> {
        let urls = self
            .endpoints
            .iter()
            .filter_map(|url| url.parse::<url::Url>().ok());
        urls.filter_map(|url| {
            let port = url.port_or_known_default()?;
            Some(format!("{}:{port}", url.host_str()?))
        })
    }

    /// Returns the keys beside `endpoints` that are set, with their values. Secrets are named by their files.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&'static str, String)> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let keys = [
            ("user", self.user.clone()),
            ("password-file", path(&self.password_file)),
            ("ca", path(&self.ca)),
            ("certificate", path(&self.certificate)),
            ("key", path(&self.key)),
        ];
        keys.into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
    }

    /// Returns the files that the table names: certificates and secrets.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let files = [&self.password_file, &self.ca, &self.certificate, &self.key];
        files.into_iter().filter_map(Option::as_deref)
    }

    /// Refuses a table that contradicts itself.
    pub(super) fn check(&self) -> Result<(), EtcdConfigError> {
        let pairs = [
            (
                self.user.is_some(),
                "user",
                self.password_file.is_some(),
                "password-file",
            ),
            (
                self.certificate.is_some(),
                "certificate",
                self.key.is_some(),
                "key",
            ),
        ];
        for (has_first, first, has_second, second) in pairs {
            let (present, missing) = match (has_first, has_second) {
                (true, false) => (first, second),
                (false, true) => (second, first),
                _ => continue,
            };
            return Err(EtcdConfigError::Half { present, missing });
        }
        for text in &self.endpoints {
            let url = text.parse::<url::Url>().ok();
            let is_meant = |url: &url::Url| {
                matches!(url.scheme(), "http" | "https")
                    && url.host().is_some()
                    && url.path() == "/"
                    && url.query().is_none()
                    && url.username().is_empty()
            };
            let url = url.filter(is_meant);
            let Some(url) = url else {
                return Err(EtcdConfigError::Endpoint { url: text.clone() });
            };
            if url.scheme() == "https" && self.ca.is_none() {
                let url = text.clone();
                return Err(EtcdConfigError::NobodyVouches { url });
            }
            let present = match (&self.ca, &self.certificate) {
                (Some(_), _) => "ca",
                (None, Some(_)) => "certificate",
                (None, None) => continue,
            };
            if url.scheme() != "https" {
                let url = text.clone();
                return Err(EtcdConfigError::NotEncrypted { present, url });
            }
        }
        Ok(())
    }

    /// Resolves relative paths against this folder.
    pub(super) fn below(mut self, folder: &Path) -> Self {
        let paths = [
            &mut self.password_file,
            &mut self.ca,
            &mut self.certificate,
            &mut self.key,
        ];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&*path);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, wrong: &str) {
        let config: EtcdConfig = toml::from_str(text).unwrap();
        let error = config.with_endpoints(Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), wrong);
    }

    #[test]
    fn nothing_at_all_is_the_member_on_this_machine() {
        let config = EtcdConfig::default().with_endpoints(Vec::new()).unwrap();
        assert_eq!(config.endpoints, ["http://127.0.0.1:2379"]);
        let given = vec!["http://a:1".to_owned()];
        let config = config.with_endpoints(given.clone()).unwrap();
        assert_eq!(config.endpoints, given);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        check("user = 'a'", "[etcd] has user without password-file");
        check(
            "endpoints = ['https://a:1']",
            "endpoint https://a:1 is https://, and [etcd] names no ca that vouches for it",
        );
        check("key = 'a'", "[etcd] has key without certificate");
        check(
            "ca = 'a'",
            "[etcd] has ca, and endpoint http://127.0.0.1:2379 is not https://",
        );
        for endpoint in [
            "a:1",
            "ftp://a:1",
            "http://",
            "http://a:1/x",
            "http://u@a:1",
            "",
        ] {
            check(
                &format!("endpoints = ['{endpoint}']"),
                &format!(
                    "etcd endpoint {endpoint:?} is no http:// or https:// URL with a host and nothing behind it"
                ),
            );
        }
    }

    #[test]
    fn paths_start_where_the_config_file_is() {
        let config: EtcdConfig = toml::from_str("ca = 'a.pem'\nkey = '/k.pem'").unwrap();
        let config = config.below(Path::new("/etc/crawler"));
        assert_eq!(config.ca.unwrap(), Path::new("/etc/crawler/a.pem"));
        assert_eq!(config.key.unwrap(), Path::new("/k.pem"));
    }
}
