//! Receiver of the traces of this process: the table `[traces]` of the config file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use url::{Host, Url};

use super::fetch::values::{some_bytes, some_time};
use super::secret::SecretRef;
use crawler_api::client::traces::DEFAULT_TIMEOUT;
use crawler_model::plugin::format_bytes;
use crawler_process::traces::{SampleRatio, TraceSettings};

/// Keys of the table, in the order in which they are documented.
pub(super) const KEYS: [&str; 6] = [
    "endpoint",
    "sample",
    "headers",
    "ca",
    "timeout",
    "max-queued",
];
/// The longest time for an answer that may be set.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
/// The smallest queue that may be set: a few spans have to fit.
const MIN_QUEUED: usize = 64 << 10;
/// The largest number of headers.
const MAX_HEADERS: usize = 16;

/// Receiver of traces, and what it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracesConfig {
    /// URL of the receiver, with `http://` or `https://`. If `None`, nothing is recorded.
    pub endpoint: Option<Url>,
    /// Part of traces that is recorded, and the bound on spans that wait.
    pub settings: TraceSettings,
    /// Headers of each call, by their names. Their values are secrets.
    pub headers: Vec<(String, SecretRef)>,
    /// File with CA certificates, in PEM, by which the receiver is verified. If `None`, those that the system trusts do.
    pub ca: Option<PathBuf>,
    /// Longest time for an answer.
    pub timeout: Duration,
}

impl Default for TracesConfig {
    fn default() -> Self {
        Self {
            endpoint: None,
            settings: TraceSettings::default(),
            headers: Vec::new(),
            ca: None,
            timeout: DEFAULT_TIMEOUT,
        }
    }
}

impl TracesConfig {
    /// Returns the place of the receiver as `HOST:PORT`.
    pub(super) fn address(&self) -> Option<String> {
        let url = self.endpoint.as_ref()?;
        Some(format!(
            "{}:{}",
            url.host_str()?,
            url.port_or_known_default()?
        ))
    }

    /// Returns the files that are read for it.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let secrets = self.headers.iter().filter_map(|(_, secret)| secret.file());
        secrets.chain(self.ca.as_deref())
    }

    /// Returns the keys with their values, without secrets.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (String, String)> {
        let endpoint = self.endpoint.as_ref().map(Url::to_string);
        let time = humantime::format_duration(self.timeout);
        let max_queued = format_bytes(self.settings.max_queued as u64);
        let ca = self.ca.as_ref().map(|path| path.display().to_string());
        let known = [
            ("endpoint", endpoint),
            ("sample", Some(self.settings.sample.to_string())),
            ("ca", ca),
            ("timeout", Some(time.to_string())),
            ("max-queued", Some(max_queued)),
        ];
        let known = known
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let headers = self.headers.iter();
        let headers = headers.map(|(name, secret)| (format!("headers.{name}"), secret.place()));
        known.chain(headers)
    }
}

/// The table in the form of the file.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct TracesTable {
    endpoint: Option<String>,
    sample: Option<f64>,
    #[serde(default)]
    headers: BTreeMap<String, HeaderTable>,
    ca: Option<PathBuf>,
    timeout: Option<String>,
    max_queued: Option<String>,
}

/// Place of the value of a header.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct HeaderTable {
    secret_file: Option<PathBuf>,
    secret_env: Option<String>,
}

impl TracesTable {
    /// Parses the table; an error is a sentence for the user.
    pub(super) fn into_config(self, folder: &Path) -> Result<TracesConfig, String> {
        let usual = TraceSettings::default();
        if self.headers.len() > MAX_HEADERS {
            let n = self.headers.len();
            return Err(format!(
                "[traces] has {n} headers; at most {MAX_HEADERS} are allowed"
            ));
        }
        let headers = self.headers.into_iter().map(|(name, table)| {
            let secret = SecretRef::of("secret", table.secret_file, table.secret_env, folder)?;
            let secret = secret.ok_or_else(|| {
                format!("header {name} of [traces] has secret-file or secret-env")
            })?;
            Ok((name, secret))
        });
        Ok(TracesConfig {
            endpoint: self.endpoint.as_deref().map(endpoint).transpose()?,
            settings: TraceSettings {
                sample: self.sample.map_or(Ok(usual.sample), sample)?,
                max_queued: max_queued(self.max_queued, usual.max_queued)?,
            },
            headers: headers.collect::<Result<_, String>>()?,
            ca: self.ca.map(|ca| folder.join(ca)),
            timeout: timeout(self.timeout)?,
        })
    }
}

fn endpoint(text: &str) -> Result<Url, String> {
    let url =
        Url::parse(text).map_err(|error| format!("endpoint of [traces] is no URL: {error}"))?;
    let has_host = match url.host() {
        Some(Host::Domain(name)) => !name.is_empty(),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        None => false,
    };
    if !matches!(url.scheme(), "http" | "https") || !has_host {
        return Err("endpoint of [traces] is a URL like http://127.0.0.1:4317".to_owned());
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(
            "endpoint of [traces] ends with its port, mostly 4317: gRPC has no path and no query"
                .to_owned(),
        );
    }
    // A URL is shown to others, and a header is the place of a secret.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "endpoint of [traces] holds a user name or password; put it into headers".to_owned(),
        );
    }
    Ok(url)
}

fn sample(ratio: f64) -> Result<SampleRatio, String> {
    SampleRatio::new(ratio).ok_or_else(|| format!("sample is from 0.0 to 1.0, not {ratio}"))
}

fn timeout(text: Option<String>) -> Result<Duration, String> {
    let Some(text) = text else {
        return Ok(DEFAULT_TIMEOUT);
    };
    match some_time("timeout", &text)? {
        time if time > MAX_TIMEOUT => Err(format!("timeout is at most 1m, not {text:?}")),
        time => Ok(time),
    }
}

fn max_queued(text: Option<String>, usual: usize) -> Result<usize, String> {
    let Some(text) = text else {
        return Ok(usual);
    };
    match some_bytes("max-queued", &text)? {
        n if !(MIN_QUEUED..=1 << 30).contains(&n) => {
            Err(format!("max-queued is from 64KiB to 1GiB, not {text:?}"))
        }
        n => Ok(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(toml: &str) -> Result<TracesConfig, String> {
        let table = toml::from_str::<TracesTable>(toml);
        let table = table.map_err(|error| error.message().to_owned())?;
        table.into_config(Path::new("/etc"))
    }

    #[test]
    fn what_is_not_said_is_as_usual() {
        let config = parse("endpoint = 'http://127.0.0.1:4317'").unwrap();
        assert_eq!(config.settings, TraceSettings::default());
        assert_eq!(parse("").unwrap(), TracesConfig::default());
        assert_eq!((config.timeout, config.ca.clone()), (DEFAULT_TIMEOUT, None));
        assert_eq!(config.files().count(), 0);
        let text = "endpoint = 'https://traces.example/'\nsample = 0.5\nca = 'ca.pem'\ntimeout = '2s'\n\
            max-queued = '1MiB'\nheaders.authorization.secret-file = 'token'\n\
            headers.x-tenant.secret-env = 'TENANT'\n";
        let config = parse(text).unwrap();
        let files: Vec<&Path> = config.files().collect();
        assert_eq!(files, [Path::new("/etc/token"), Path::new("/etc/ca.pem")]);
        assert_eq!(config.address().as_deref(), Some("traces.example:443"));
        let shown: Vec<String> = config
            .keys()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        assert_eq!(
            shown,
            [
                "endpoint=https://traces.example/",
                "sample=0.5",
                "ca=/etc/ca.pem",
                "timeout=2s",
                "max-queued=1MiB",
                "headers.authorization=/etc/token",
                "headers.x-tenant=variable TENANT",
            ]
        );
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let with = |line: &str| format!("endpoint = 'http://127.0.0.1:4317'\n{line}");
        for (text, why) in [
            (
                "endpoint = 'collector'".to_owned(),
                "endpoint of [traces] is no URL: relative URL without a base",
            ),
            (
                "endpoint = 'grpc://collector:4317'".to_owned(),
                "endpoint of [traces] is a URL like http://127.0.0.1:4317",
            ),
            (
                "endpoint = 'http://me:secret@collector:4317'".to_owned(),
                "endpoint of [traces] holds a user name or password; put it into headers",
            ),
            (
                "endpoint = 'http://collector:4318/v1/traces'".to_owned(),
                "endpoint of [traces] ends with its port, mostly 4317: gRPC has no path and no query",
            ),
            (
                "endpoint = 'http://collector:4317?tenant=a'".to_owned(),
                "endpoint of [traces] ends with its port, mostly 4317: gRPC has no path and no query",
            ),
            (
                "endpoint = 'http://collector:4317/#a'".to_owned(),
                "endpoint of [traces] ends with its port, mostly 4317: gRPC has no path and no query",
            ),
            (with("sample = 1.5"), "sample is from 0.0 to 1.0, not 1.5"),
            (with("sample = nan"), "sample is from 0.0 to 1.0, not NaN"),
            (with("timeout = '0s'"), "timeout is longer than 0s"),
            (with("timeout = '2m'"), "timeout is at most 1m, not \"2m\""),
            (
                with("max-queued = '1KiB'"),
                "max-queued is from 64KiB to 1GiB, not \"1KiB\"",
            ),
            (
                with("headers.authorization = {}"),
                "header authorization of [traces] has secret-file or secret-env",
            ),
            (
                with("headers.a = { secret-file = 'a', secret-env = 'A' }"),
                "secret-file and secret-env exclude each other",
            ),
        ] {
            assert_eq!(parse(&text), Err(why.to_owned()), "{text}");
        }
    }
}
