//! Settings of a data root in a bucket: the table `[data]` of the config file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::fetch::values::{some_bytes, some_time, time};
use super::secret::SecretRef;
use crawler_data::{AccessKey, RemoteSettings, Secret};
use crawler_frontier::durable::DurableSettings;
use crawler_model::plugin::format_bytes;
use crawler_sink::parts::PartSettings;

/// The largest part of items: no more of them are in memory at once.
const MAX_PART_BYTES: usize = 8 << 20;

/// How a bucket is reached, and how often it is written to. A folder needs none of it. Secrets are named by their
/// place, so that the config file can be shown to others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataConfig {
    remote: RemoteSettings,
    access_key: Option<String>,
    secret_key: Option<SecretRef>,
    account: Option<String>,
    account_key: Option<SecretRef>,
    flush_interval: Option<Duration>,
    parts: PartSettings,
    /// Keys that the file has, with the texts of their values.
    written: Vec<(&'static str, String)>,
}

/// Table in the form of the file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct DataTable {
    endpoint: Option<String>,
    region: Option<String>,
    profile: Option<String>,
    access_key: Option<String>,
    secret_key_file: Option<PathBuf>,
    secret_key_env: Option<String>,
    service_account_file: Option<PathBuf>,
    account: Option<String>,
    account_key_file: Option<PathBuf>,
    account_key_env: Option<String>,
    request_timeout: Option<String>,
    retry_timeout: Option<String>,
    max_clock_skew: Option<String>,
    flush_interval: Option<String>,
    part_size: Option<String>,
    part_interval: Option<String>,
}

/// Keys of the table, in the order in which they are documented.
pub(super) const KEYS: [&str; 16] = [
    "endpoint",
    "region",
    "profile",
    "access-key",
    "secret-key-file",
    "secret-key-env",
    "service-account-file",
    "account",
    "account-key-file",
    "account-key-env",
    "request-timeout",
    "retry-timeout",
    "max-clock-skew",
    "flush-interval",
    "part-size",
    "part-interval",
];

impl DataTable {
    /// Parses the table; an error is a sentence for the user.
    pub(super) fn into_config(self, folder: &Path) -> Result<DataConfig, String> {
        let written = self.written();
        if let Some(endpoint) = &self.endpoint {
            let is_meant = endpoint.parse::<url::Url>().is_ok_and(|url| {
                matches!(url.scheme(), "http" | "https")
                    && url.has_host()
                    && url.username().is_empty()
                    && url.query().is_none()
            });
            if !is_meant {
                return Err(format!(
                    "endpoint is an http:// or https:// URL of an object store, not {endpoint:?}"
                ));
            }
        }
        let (file, variable) = (self.secret_key_file, self.secret_key_env);
        let secret_key = SecretRef::of("secret-key", file, variable, folder)?;
        let (file, variable) = (self.account_key_file, self.account_key_env);
        let account_key = SecretRef::of("account-key", file, variable, folder)?;
        let mut remote = RemoteSettings {
            endpoint: self.endpoint,
            region: self.region,
            profile: self.profile,
            service_account_file: self.service_account_file.map(|file| folder.join(file)),
            ..RemoteSettings::default()
        };
        let some = |name, text: Option<String>, default: Duration| match text {
            Some(text) => some_time(name, &text),
            None => Ok(default),
        };
        let default = &RemoteSettings::default();
        remote.request_timeout = some(
            "request-timeout",
            self.request_timeout,
            default.request_timeout,
        )?;
        remote.retry_timeout = some("retry-timeout", self.retry_timeout, default.retry_timeout)?;
        remote.max_clock_skew = some(
            "max-clock-skew",
            self.max_clock_skew,
            default.max_clock_skew,
        )?;
        let flush_interval = self.flush_interval;
        let flush_interval = flush_interval.map(|text| some_time("flush-interval", &text));
        let mut parts = PartSettings::default();
        if let Some(text) = &self.part_size {
            let n_bytes = some_bytes("part-size", text)?;
            if n_bytes > MAX_PART_BYTES {
                let max = format_bytes(MAX_PART_BYTES as u64);
                return Err(format!("part-size is at most {max}, not {text:?}"));
            }
            parts.part_bytes = n_bytes as u64;
        }
        if let Some(text) = &self.part_interval {
            parts.max_wait = time("part-interval", text)?;
        }
        Ok(DataConfig {
            remote,
            access_key: self.access_key,
            secret_key,
            account: self.account,
            account_key,
            flush_interval: flush_interval.transpose()?,
            parts,
            written,
        })
    }

    /// Returns the keys that are there, with their values. Secrets are named by their places.
    fn written(&self) -> Vec<(&'static str, String)> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let values = [
            self.endpoint.clone(),
            self.region.clone(),
            self.profile.clone(),
            self.access_key.clone(),
            path(&self.secret_key_file),
            self.secret_key_env.clone(),
            path(&self.service_account_file),
            self.account.clone(),
            path(&self.account_key_file),
            self.account_key_env.clone(),
            self.request_timeout.clone(),
            self.retry_timeout.clone(),
            self.max_clock_skew.clone(),
            self.flush_interval.clone(),
            self.part_size.clone(),
            self.part_interval.clone(),
        ];
        let all = KEYS.into_iter().zip(values);
        all.filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

impl DataConfig {
    /// Refuses a table that has a half of what belongs together; an error is a sentence for the user.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.access_key.is_some() != self.secret_key.is_some() {
            let why = "access-key and secret-key-file or secret-key-env come together";
            return Err(why.to_owned());
        }
        if self.account.is_none() && self.account_key.is_some() {
            return Err("an account-key is that of an account".to_owned());
        }
        Ok(())
    }

    /// Returns the settings of the connection, with the secrets that the table names; an error is a sentence for the
    /// user.
    pub fn remote(&self) -> Result<RemoteSettings, String> {
        let mut remote = self.remote.clone();
        if let Some((id, secret)) = self.access_key.as_ref().zip(self.secret_key.as_ref()) {
            remote.access_key = Some(AccessKey {
                id: id.clone(),
                secret: Secret::new(secret.read()?),
            });
        }
        if let Some(account) = &self.account {
            let key = self.account_key.as_ref().map(SecretRef::read).transpose()?;
            remote.account = Some((account.clone(), key.map(Secret::new)));
        }
        Ok(remote)
    }

    /// Returns the settings of frontiers, for a data root in a bucket or in a folder.
    pub fn frontiers(&self, is_bucket: bool) -> DurableSettings {
        let mut settings = match is_bucket {
            true => DurableSettings::remote(),
            false => DurableSettings::default(),
        };
        if let Some(interval) = self.flush_interval {
            settings.flush_interval = interval;
        }
        settings
    }

    /// Returns the bounds of part objects.
    pub fn parts(&self) -> PartSettings {
        self.parts
    }

    /// Returns the keys that are set, with their values. Secrets are named by their places.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.written.iter().cloned()
    }

    /// Returns the endpoint of the object store as `HOST:PORT`, if the table names one.
    pub fn endpoint(&self) -> Option<String> {
        let url: url::Url = self.remote.endpoint.as_ref()?.parse().ok()?;
        let port = url.port_or_known_default()?;
        Some(format!("{}:{port}", url.host_str()?))
    }

    /// Returns the files from which credentials are read.
    pub fn files(&self) -> Vec<PathBuf> {
        let secrets = self.secret_key.iter().chain(&self.account_key);
        let secrets = secrets.filter_map(SecretRef::file);
        let secrets = secrets.map(Path::to_owned);
        secrets.chain(self.remote.files()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DataConfig, String> {
        let table: DataTable = toml::from_str(text).unwrap();
        let config = table.into_config(Path::new("/etc"))?;
        config.check().map(|()| config)
    }

    #[test]
    fn what_is_not_said_is_as_usual() {
        let config = parse("").unwrap();
        assert_eq!(config, DataConfig::default());
        assert_eq!(config.remote(), Ok(RemoteSettings::default()));
    }

    #[test]
    fn values_come_to_those_who_obey_them() {
        let config = parse(
            "endpoint = 'http://127.0.0.1:9000'\nrequest-timeout = '3s'\nmax-clock-skew = '5m'\nflush-interval = '1s'\npart-size = '1MiB'\npart-interval = '1m'",
        );
        let config = config.unwrap();
        let remote = config.remote().unwrap();
        assert_eq!(remote.endpoint.as_deref(), Some("http://127.0.0.1:9000"));
        assert_eq!(remote.request_timeout, Duration::from_secs(3));
        assert_eq!(remote.max_clock_skew, Duration::from_secs(300));
        assert_eq!(config.frontiers(true).flush_interval.as_secs(), 1);
        let parts = PartSettings {
            part_bytes: 1 << 20,
            max_wait: Duration::from_secs(60),
        };
        assert_eq!(config.parts(), parts);
        let keys: Vec<&str> = config.keys().map(|(key, _)| key).collect();
        assert!(keys.contains(&"part-size") && keys.len() == 6, "{keys:?}");
    }

    #[test]
    fn secrets_are_read_from_their_places_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "hush\n").unwrap();
        let table: DataTable =
            toml::from_str("access-key = 'ID'\nsecret-key-file = 'key'").unwrap();
        let config = table.into_config(folder.path()).unwrap();
        let remote = config.remote().unwrap();
        let expected = AccessKey {
            id: "ID".to_owned(),
            secret: Secret::new("hush".to_owned()),
        };
        assert_eq!(remote.access_key, Some(expected));
        assert!(!format!("{remote:?}{config:?}").contains("hush"));
        assert_eq!(config.files().first(), Some(&folder.path().join("key")));
        std::fs::remove_file(folder.path().join("key")).unwrap();
        let error = config.remote().unwrap_err();
        assert!(error.starts_with("cannot read "), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (text, why) in [
            (
                "endpoint = 'shop.example'",
                "endpoint is an http:// or https:// URL of an object store, not \"shop.example\"",
            ),
            (
                "access-key = 'ID'",
                "access-key and secret-key-file or secret-key-env come together",
            ),
            (
                "account-key-env = 'K'",
                "an account-key is that of an account",
            ),
            (
                "request-timeout = '0s'",
                "request-timeout is longer than 0s",
            ),
            (
                "part-size = '1GiB'",
                "part-size is at most 8MiB, not \"1GiB\"",
            ),
            (
                "part-interval = 'long'",
                "part-interval takes a time like 30s or 5m, not \"long\"",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), why, "{text}");
        }
    }
}
