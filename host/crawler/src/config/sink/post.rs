//! URLs that declared sinks post items to. A path may be a secret, so only the origin is shown.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use ipnet::IpNet;
use url::Url;

use super::super::fetch::values::{some_bytes, time};
use super::super::secret::SecretRef;
use super::SinkTable;
use crawler_fetch::FetchError;
use crawler_fetch::address_policy::AddressPolicy;
use crawler_message_sink::webhook::{PostFormat, WebhookSettings};

/// Receiver of items.
#[derive(Clone, PartialEq, Eq)]
pub struct PostConfig {
    /// URL that items are posted to. Its path may be a secret.
    pub url: Url,
    /// Secret that calls are signed with.
    secret: SecretRef,
    /// Secret that calls are signed with too, for receivers that do not have the other one yet.
    previous_secret: Option<SecretRef>,
    /// Networks that may be reached although they are not public.
    pub allow_networks: Vec<IpNet>,
    /// Settings of posts.
    pub settings: WebhookSettings,
}

impl PostConfig {
    /// Returns scheme, host and port of the URL.
    pub fn shown(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Returns the secrets that calls are signed with.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        std::iter::once(&self.secret).chain(&self.previous_secret)
    }

    /// Returns the files that hold the secrets.
    pub(super) fn secret_files(&self) -> impl Iterator<Item = &Path> {
        self.secrets().filter_map(SecretRef::file)
    }

    /// Returns the places of the secrets, in words.
    pub(super) fn secret_place(&self) -> String {
        let places: Vec<String> = self.secrets().map(SecretRef::place).collect();
        format!("secret from {}", places.join(" and "))
    }
}

impl fmt::Debug for PostConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostConfig")
            .field("origin", &self.shown())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Parses the table of a receiver; an error is a sentence for the user.
pub(super) fn post(url: Url, table: SinkTable, folder: &Path) -> Result<PostConfig, String> {
    let address_policy = AddressPolicy::new(table.allow_networks.clone());
    address_policy.check(&url).map_err(|error| match error {
        FetchError::Address { address, .. } => format!(
            "its url leads to {address}, which is not a public address; allow-networks of the sink can allow it"
        ),
        error => format!("its url is refused: {error}"),
    })?;
    let (file, variable) = (table.secret_file.clone(), table.secret_env.clone());
    let secret = SecretRef::of("secret", file, variable, folder)?;
    let secret =
        secret.ok_or("it has secret-file or secret-env, by which receivers verify its calls")?;
    let file = table.previous_secret_file.clone();
    let variable = table.previous_secret_env.clone();
    Ok(PostConfig {
        url,
        secret,
        previous_secret: SecretRef::of("previous-secret", file, variable, folder)?,
        allow_networks: table.allow_networks.clone(),
        settings: settings(table)?,
    })
}

fn settings(table: SinkTable) -> Result<WebhookSettings, String> {
    let default = WebhookSettings::default();
    let a_time = |key: &str, text: Option<String>, default: Duration| match text {
        Some(text) => time(key, &text),
        None => Ok(default),
    };
    let format = table.format.as_ref().map(|text| {
        let parsed = text.parse::<PostFormat>();
        parsed.map_err(|error| format!("format {error}"))
    });
    let batch_bytes = table.batch_bytes.as_ref();
    let batch_bytes = batch_bytes.map(|text| some_bytes("batch-bytes", text));
    let settings = WebhookSettings {
        format: format.transpose()?.unwrap_or(default.format),
        batch_items: table.batch_items.unwrap_or(default.batch_items),
        batch_bytes: match batch_bytes.transpose()? {
            Some(n_bytes) => n_bytes as u64,
            None => default.batch_bytes,
        },
        max_wait: a_time("max-wait", table.max_wait, default.max_wait)?,
        timeout: a_time("timeout", table.timeout, default.timeout)?,
        max_retry_wait: a_time(
            "max-retry-wait",
            table.max_retry_wait,
            default.max_retry_wait,
        )?,
    };
    settings.check().map_err(|error| error.to_string())?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::super::SinkPlace;
    use super::super::tests::parse;
    use super::*;

    fn post(toml: &str) -> PostConfig {
        match parse("out", toml).unwrap().place {
            SinkPlace::Post(post) => *post,
            other => panic!("{other:?} is no webhook"),
        }
    }

    #[test]
    fn a_url_and_a_secret_are_enough_for_posts() {
        let items = post("url = 'https://hooks.test/T0KEN'\nsecret-file = 's'");
        assert_eq!(items.settings, WebhookSettings::default());
        assert_eq!(items.shown(), "https://hooks.test");
        assert_eq!(items.secret_place(), "secret from /etc/s");
        assert!(!format!("{items:?}").contains("T0KEN"));
    }

    #[test]
    fn every_key_of_posts_has_its_place() {
        let items = post(
            "url = 'http://10.1.2.3:8080/'\nsecret-env = 'S'\nprevious-secret-file = 'old'\n\
             allow-networks = ['10.0.0.0/8']\nformat = 'json'\nbatch-items = 7\nbatch-bytes = '2MiB'\n\
             max-wait = '0s'\ntimeout = '5s'\nmax-retry-wait = '1h'",
        );
        let seconds = |n| Duration::from_secs(n);
        let expected = WebhookSettings {
            format: PostFormat::Array,
            batch_items: 7,
            batch_bytes: 2 << 20,
            max_wait: seconds(0),
            timeout: seconds(5),
            max_retry_wait: seconds(3_600),
        };
        assert_eq!(items.settings, expected);
        let files: Vec<&Path> = items.secret_files().collect();
        assert_eq!(files, [Path::new("/etc/old")]);
        assert_eq!(items.secret_place(), "secret from variable S and /etc/old");
    }

    #[test]
    fn what_makes_no_sense_of_posts_is_named_without_the_path() {
        let with = |line: &str| format!("url = 'https://hooks.test/'\nsecret-env = 'S'\n{line}");
        for (text, why) in [
            (
                "url = 'https://hooks.test/T0KEN'".to_owned(),
                "it has secret-file or secret-env, by which receivers verify its calls",
            ),
            (
                "url = 'http://127.0.0.1/T0KEN'\nsecret-env = 'S'".to_owned(),
                "its url leads to 127.0.0.1, which is not a public address; allow-networks of the sink can allow it",
            ),
            (
                "url = 'https://u:T0KEN@hooks.test/'\nsecret-env = 'S'".to_owned(),
                "its url is refused: the request cannot be sent: the URL holds a user name or password",
            ),
            (
                with("format = 'csv'"),
                "format \"csv\" is no format of posts: there are jsonl and json",
            ),
            (
                with("previous-secret-file = 'a'\nprevious-secret-env = 'A'"),
                "previous-secret-file and previous-secret-env exclude each other",
            ),
            (
                with("timeout = '1h'"),
                "timeout is 1h; it goes from 1s to 10m",
            ),
        ] {
            let expected = format!("sink out: {why}");
            assert_eq!(parse("out", &text), Err(expected), "{text}");
        }
    }
}
