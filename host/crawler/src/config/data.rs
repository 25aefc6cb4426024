//! Settings of a data root in a bucket: the table `[data]` of the config file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::environment::Variables;
use super::fetch::values::{some_bytes, time};
use super::profile;
use super::secret::SecretRef;
use crawler_data::{AccessKey, DataPlace, Provider, RemoteSettings, Secret};
use crawler_frontier::durable::DurableSettings;
use crawler_model::plugin::{format_bytes, parse_bytes};
use crawler_sink::parts::PartSettings;

/// The largest part of items. While one is written, the next ones gather: a frontier keeps twice this in memory.
const MAX_PART_BYTES: usize = 4 << 20;
/// Size of the cache of blocks in bytes, unless the file sets another one.
const CACHE_BYTES: u64 = 1 << 30;
/// The smallest cache in bytes; a smaller one would save hardly a request.
const MIN_CACHE_BYTES: u64 = 1 << 20;
/// The largest cache of blocks: a few bytes of memory go with each piece of it.
const MAX_CACHE_BYTES: u64 = 1 << 40;

/// Access to a bucket, and the pace of writes to it. A folder needs none of these settings. The file names the places
/// of secrets rather than the secrets, so that it can be shown to others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataConfig {
    remote: RemoteSettings,
    profile: Option<String>,
    access_key: Option<String>,
    secret_key: Option<SecretRef>,
    account: Option<String>,
    account_key: Option<SecretRef>,
    flush_interval: Option<Duration>,
    parts: PartSettings,
    cache_bytes: Option<u64>,
    /// Keys that are in the file, with the texts of their values.
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
    cache_size: Option<String>,
}

/// Keys of the table, in the order in which they are documented.
pub(super) const KEYS: [&str; 17] = [
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
    "cache-size",
];

/// Keys that are about the access to a bucket, which buckets of sinks have as well.
pub(super) const ACCESS_KEYS: [&str; 12] = [
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
];

/// Parses a time that is at least `least` and at most `most`.
fn time_within(key: &str, text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let parsed = time(key, text)?;
    match (least..=most).contains(&parsed) {
        true => Ok(parsed),
        false => {
            let [least, most] = [least, most].map(humantime::format_duration);
            Err(format!("{key} is from {least} to {most}, not {text:?}"))
        }
    }
}

/// Parses the size of the cache of blocks; 0 means that there is none.
fn cache_bytes(text: &str) -> Result<u64, String> {
    let is_meant = |n: &u64| *n == 0 || (MIN_CACHE_BYTES..=MAX_CACHE_BYTES).contains(n);
    parse_bytes(text).filter(is_meant).ok_or_else(|| {
        let [min, max] = [MIN_CACHE_BYTES, MAX_CACHE_BYTES].map(format_bytes);
        format!("cache-size is \"0\" for no cache, or a size from {min} to {max}, not {text:?}")
    })
}

impl DataTable {
    /// Parses the table; an error is a sentence for the user.
    pub(super) fn into_config(self, folder: &Path) -> Result<DataConfig, String> {
        let written = self.written();
        if let Some(endpoint) = &self.endpoint {
            let is_meant = endpoint.parse::<url::Url>().is_ok_and(|url| {
                matches!(url.scheme(), "http" | "https")
                    && url.has_host()
                    && url.username().is_empty()
                    && url.password().is_none()
                    && url.query().is_none()
            });
            // The message does not quote the URL, which may contain a password.
            if !is_meant {
                let why =
                    "endpoint is the http:// or https:// URL of an object store, without a user";
                return Err(why.to_owned());
            }
        }
        let (file, variable) = (self.secret_key_file, self.secret_key_env);
        let secret_key = SecretRef::of("secret-key", file, variable, folder)?;
        let (file, variable) = (self.account_key_file, self.account_key_env);
        let account_key = SecretRef::of("account-key", file, variable, folder)?;
        let mut remote = RemoteSettings {
            endpoint: self.endpoint,
            region: self.region,
            service_account_file: self.service_account_file.map(|file| folder.join(file)),
            ..RemoteSettings::default()
        };
        let default = &RemoteSettings::default();
        let within = |name, text: &Option<String>, default: Duration, (least, most)| match text {
            Some(text) => time_within(name, text, least, most),
            None => Ok(default),
        };
        let (one, hour) = (Duration::from_secs(1), Duration::from_secs(3_600));
        let minutes = |n: u64| Duration::from_secs(n * 60);
        remote.request_timeout = within(
            "request-timeout",
            &self.request_timeout,
            default.request_timeout,
            (one, minutes(10)),
        )?;
        remote.retry_timeout = within(
            "retry-timeout",
            &self.retry_timeout,
            default.retry_timeout,
            (one, minutes(10)),
        )?;
        // Files are swept when they are an hour old; the difference must be much smaller.
        remote.max_clock_skew = within(
            "max-clock-skew",
            &self.max_clock_skew,
            default.max_clock_skew,
            (one, minutes(10)),
        )?;
        let flush_interval = self
            .flush_interval
            .as_deref()
            .map(|text| time_within("flush-interval", text, Duration::from_millis(10), 2 * one));
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
            parts.max_wait = time_within("part-interval", text, Duration::ZERO, hour)?;
        }
        let cache_bytes = self.cache_size.as_deref().map(cache_bytes);
        Ok(DataConfig {
            remote,
            profile: self.profile,
            access_key: self.access_key,
            secret_key,
            account: self.account,
            account_key,
            flush_interval: flush_interval.transpose()?,
            parts,
            cache_bytes: cache_bytes.transpose()?,
            written,
        })
    }

    /// Returns the keys that are in the file, with their values. The value of a secret is its place.
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
            self.cache_size.clone(),
        ];
        let all = KEYS.into_iter().zip(values);
        all.filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

impl DataConfig {
    /// Refuses a table in which a key lacks the one that it needs; an error is a sentence for the user.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.access_key.is_some() != self.secret_key.is_some() {
            let why = "access-key and secret-key-file or secret-key-env come together";
            return Err(why.to_owned());
        }
        if self.account.is_none() && self.account_key.is_some() {
            let why = "account-key-file and account-key-env belong to account; add account with the name of the storage account";
            return Err(why.to_owned());
        }
        Ok(())
    }

    /// Returns the settings of the connection to this data root, with the secrets that the table names and the
    /// variables of the environment; an error is a sentence for the user.
    pub fn remote(&self, place: &DataPlace) -> Result<RemoteSettings, String> {
        self.remote_with(place, Variables::read())
    }

    fn remote_with(
        &self,
        place: &DataPlace,
        variables: Variables,
    ) -> Result<RemoteSettings, String> {
        let DataPlace::Bucket(bucket) = place else {
            return Ok(self.remote.clone());
        };
        let mut remote = self.remote.clone();
        if let Some((id, secret)) = self.access_key.as_ref().zip(self.secret_key.as_ref()) {
            remote.access_key = Some(AccessKey {
                id: id.clone(),
                secret: Secret::new(secret.read()?),
                token: None,
            });
        }
        if bucket.provider == Provider::S3 {
            let named = self.profile.as_deref();
            let is_set = |name: &str| variables.get(name).is_some();
            // A profile that the table names precedes the environment.
            let has_key = named.is_none() && is_set("AWS_ACCESS_KEY_ID");
            if remote.access_key.is_none() && !has_key {
                remote.access_key = profile::access_key(named, &variables)?;
            }
            let has_region = is_set("AWS_REGION") || is_set("AWS_DEFAULT_REGION");
            if remote.region.is_none() && !has_region {
                remote.region = match profile::region(named, &variables) {
                    // The key is from elsewhere, so nobody has asked for a profile.
                    Err(_) if named.is_none() && (has_key || self.access_key.is_some()) => None,
                    region => region?,
                };
            }
        }
        if let Some(account) = &self.account {
            let key = self.account_key.as_ref().map(SecretRef::read).transpose()?;
            remote.account = Some((account.clone(), key.map(Secret::new)));
        }
        remote.environment = variables.of_providers;
        Ok(remote)
    }

    /// Returns the settings of frontiers, for a data root in a bucket or in a folder.
    pub fn frontiers(&self, is_bucket: bool) -> DurableSettings {
        if !is_bucket {
            return DurableSettings::default();
        }
        let remote = DurableSettings::remote();
        let spare = Duration::from_secs(10);
        DurableSettings {
            flush_interval: self.flush_interval.unwrap_or(remote.flush_interval),
            // A heartbeat of a compaction is a request, which may take its whole time, and so may the next one.
            compaction_timeout: remote
                .compaction_timeout
                .max(2 * self.remote.request_timeout),
            // The store's answer is reported only if the request gives up before the frontier does.
            deadline: self.remote.request_timeout + self.remote.retry_timeout + spare,
            ..remote
        }
    }

    /// Returns the bounds of part objects.
    pub fn parts(&self) -> PartSettings {
        self.parts
    }

    /// Returns the size in bytes of the cache of blocks on the disk of this machine, for a data root in a bucket; 0 if
    /// there is none.
    pub fn cache_bytes(&self) -> u64 {
        self.cache_bytes.unwrap_or(CACHE_BYTES)
    }

    /// Returns the keys that are in the file, with their values. The value of a secret is its place.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.written.iter().cloned()
    }

    /// Returns the endpoint of the object store as `HOST:PORT`, if the table or the environment names one.
    pub fn endpoint(&self) -> Option<String> {
        const VARIABLES: [&str; 4] = [
            "AWS_ENDPOINT_URL_S3",
            "AWS_ENDPOINT_URL",
            "AWS_ENDPOINT",
            "AZURE_STORAGE_ENDPOINT",
        ];
        let variables = Variables::read();
        let mut named = VARIABLES.iter().filter_map(|name| variables.get(name));
        let endpoint = self.remote.endpoint.as_deref().or_else(|| named.next())?;
        let url: url::Url = endpoint.parse().ok()?;
        let port = url.port_or_known_default()?;
        Some(format!("{}:{port}", url.host_str()?))
    }

    /// Returns the files and folders from which credentials are read, now or when they are renewed. A token that is
    /// renewed is replaced by another file, so its folder is named.
    pub fn files(&self) -> Vec<PathBuf> {
        const FILES: [&str; 2] = ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"];
        const TOKENS: [&str; 3] = [
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            "AZURE_FEDERATED_TOKEN_FILE",
        ];
        let variables = Variables::read();
        let named = |names: &[&str]| {
            let paths = names.iter().filter_map(|name| variables.get(name));
            paths.map(PathBuf::from).collect::<Vec<_>>()
        };
        let tokens = named(&TOKENS).into_iter();
        let tokens = tokens.filter_map(|token| token.parent().map(Path::to_owned));
        let google = variables.home().map(|home| home.join(".config/gcloud"));
        let secrets = self.secret_key.iter().chain(&self.account_key);
        let secrets = secrets.filter_map(SecretRef::file).map(Path::to_owned);
        let service_account = self.remote.service_account_file.clone();
        let all = secrets.chain(service_account).chain(named(&FILES));
        let all = all
            .chain(tokens)
            .chain(profile::files(&variables))
            .chain(google);
        all.filter(|path| path.exists()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket() -> DataPlace {
        "s3://bucket/prefix".parse().unwrap()
    }

    fn parse(text: &str) -> Result<DataConfig, String> {
        let table: DataTable = toml::from_str(text).unwrap();
        let config = table.into_config(Path::new("/etc"))?;
        config.check().map(|()| config)
    }

    #[test]
    fn absent_keys_have_their_defaults() {
        let config = parse("").unwrap();
        assert_eq!(config, DataConfig::default());
        assert_eq!(config.cache_bytes(), 1 << 30);
        let remote = config.remote_with(&bucket(), Variables::default());
        assert_eq!(remote, Ok(RemoteSettings::default()));
    }

    #[test]
    fn values_of_the_table_replace_defaults() {
        let config = parse(
            "endpoint = 'http://127.0.0.1:9000'\nrequest-timeout = '3s'\nmax-clock-skew = '5m'\nflush-interval = '1s'\npart-size = '1MiB'\npart-interval = '1m'\ncache-size = '2GiB'",
        );
        let config = config.unwrap();
        let remote = config.remote_with(&bucket(), Variables::default()).unwrap();
        assert_eq!(remote.endpoint.as_deref(), Some("http://127.0.0.1:9000"));
        assert_eq!(remote.request_timeout, Duration::from_secs(3));
        assert_eq!(remote.max_clock_skew, Duration::from_secs(300));
        assert_eq!(config.frontiers(true).flush_interval.as_secs(), 1);
        let parts = PartSettings {
            part_bytes: 1 << 20,
            max_wait: Duration::from_secs(60),
        };
        assert_eq!(config.parts(), parts);
        assert_eq!(config.cache_bytes(), 2 << 30);
        assert_eq!(parse("cache-size = '0'").unwrap().cache_bytes(), 0);
        let keys: Vec<&str> = config.keys().map(|(key, _)| key).collect();
        assert!(keys.contains(&"part-size") && keys.len() == 7, "{keys:?}");
    }

    #[test]
    fn a_profile_tells_the_region_whatever_tells_the_key() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "hush").unwrap();
        let profiles = folder.path().join("config");
        let text = "[default]\nregion = r1\n[profile work]\nregion = r2\nsso_session = it\n";
        std::fs::write(&profiles, text).unwrap();
        let own = "access-key = 'ID'\nsecret-key-file = 'key'\n";
        let of_environment = ("AWS_ACCESS_KEY_ID", "ID");
        for (text, variable, expected) in [
            (own.to_owned(), None, Some("r1")),
            (format!("{own}profile = 'work'"), None, Some("r2")),
            (format!("{own}region = 'r3'"), None, Some("r3")),
            (own.to_owned(), Some(("AWS_REGION", "r4")), None),
            (String::new(), Some(of_environment), Some("r1")),
            (String::new(), None, Some("r1")),
        ] {
            let mut variables = Variables::default();
            let profiles = ("AWS_CONFIG_FILE", profiles.to_str().unwrap());
            for (name, value) in variable.into_iter().chain([profiles]) {
                let values = &mut variables.of_providers;
                values.insert(name.to_owned(), value.to_owned());
            }
            let table: DataTable = toml::from_str(&text).unwrap();
            let config = table.into_config(folder.path()).unwrap();
            let remote = config.remote_with(&bucket(), variables).unwrap();
            assert_eq!(remote.region.as_deref(), expected, "{text} {variable:?}");
        }
    }

    #[test]
    fn a_slow_request_does_not_end_a_compaction() {
        for (text, seconds) in [
            ("", 60),
            ("request-timeout = '3s'", 15),
            ("request-timeout = '10m'", 1_200),
        ] {
            let config = parse(text).unwrap();
            let timeout = config.frontiers(true).compaction_timeout;
            assert_eq!(timeout, Duration::from_secs(seconds), "{text}");
        }
    }

    #[test]
    fn every_key_is_in_the_example_and_in_the_book() {
        let example = crate::config::initial::EXAMPLE;
        let (_, table) = example.split_once("\n[data]\n").unwrap();
        let (table, _) = table.split_once("\n\n").unwrap();
        let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/operate/bucket.md");
        let book = std::fs::read_to_string(book).unwrap();
        for key in KEYS {
            assert!(table.contains(key), "{key}");
            assert!(book.contains(&format!("`{key}`")), "{key}");
        }
    }

    #[test]
    fn secrets_are_read_from_their_places_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "hush\n").unwrap();
        let table: DataTable =
            toml::from_str("access-key = 'ID'\nsecret-key-file = 'key'").unwrap();
        let config = table.into_config(folder.path()).unwrap();
        let remote = config.remote_with(&bucket(), Variables::default()).unwrap();
        let expected = AccessKey {
            id: "ID".to_owned(),
            secret: Secret::new("hush".to_owned()),
            token: None,
        };
        assert_eq!(remote.access_key, Some(expected));
        assert!(!format!("{remote:?}{config:?}").contains("hush"));
        assert_eq!(config.files().first(), Some(&folder.path().join("key")));
        std::fs::remove_file(folder.path().join("key")).unwrap();
        let error = config
            .remote_with(&bucket(), Variables::default())
            .unwrap_err();
        assert!(error.starts_with("cannot read "), "{error}");
    }

    #[test]
    fn wrong_values_are_refused_with_the_reason() {
        for (text, why) in [
            (
                "endpoint = 'shop.example'",
                "endpoint is the http:// or https:// URL of an object store, without a user",
            ),
            (
                "access-key = 'ID'",
                "access-key and secret-key-file or secret-key-env come together",
            ),
            (
                "account-key-env = 'K'",
                "account-key-file and account-key-env belong to account; add account with the name of the storage account",
            ),
            (
                "request-timeout = '0s'",
                "request-timeout is from 1s to 10m, not \"0s\"",
            ),
            (
                "flush-interval = '1m'",
                "flush-interval is from 10ms to 2s, not \"1m\"",
            ),
            (
                "part-size = '1GiB'",
                "part-size is at most 4MiB, not \"1GiB\"",
            ),
            (
                "part-interval = 'long'",
                "part-interval takes a time like 30s or 5m, not \"long\"",
            ),
            (
                "cache-size = '1KiB'",
                "cache-size is \"0\" for no cache, or a size from 1MiB to 1TiB, not \"1KiB\"",
            ),
            (
                "cache-size = '2TiB'",
                "cache-size is \"0\" for no cache, or a size from 1MiB to 1TiB, not \"2TiB\"",
            ),
            (
                "cache-size = 'much'",
                "cache-size is \"0\" for no cache, or a size from 1MiB to 1TiB, not \"much\"",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), why, "{text}");
        }
    }
}
