//! Webhooks of a master: the tables `[webhook.NAME]` of the config file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;
use url::{Origin, Url};

use super::fetch::values::{some_bytes, some_time};
use super::secret::SecretRef;
use crawler_fetch::FetchError;
use crawler_fetch::address_policy::AddressPolicy;
use crawler_master::webhooks::{
    EventFilter, EventKind, RetrySettings, is_name_of_history, name_of_history,
};
use crawler_model::event::EventKind as PastKind;
use crawler_model::id::{IdError, WebhookName};
use crawler_model::resource::Phase;

/// Largest number of webhooks: each has a task and a queue of its own, and looks at every change.
const MAX_WEBHOOKS: usize = 32;
/// Time that a receiver has for its answer, unless the file sets another one.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest time that may be set: an event in hand holds up those behind it.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of events that wait, unless the file sets another number.
const MAX_QUEUED: u32 = 4 << 20;
/// The largest number of attempts that may be set.
const MAX_ATTEMPTS: u32 = 1_000;
/// The longest wait between two attempts that may be set.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// A receiver of events.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookConfig {
    /// Name, under which its position is stored.
    pub name: WebhookName,
    /// URL that events are posted to. Its path may be a secret.
    pub url: Url,
    /// Secret that calls are signed with.
    pub secret: SecretRef,
    /// Secret that calls are signed with too, for receivers that do not have the other one yet.
    pub previous_secret: Option<SecretRef>,
    /// Events that are sent.
    pub filter: EventFilter,
    /// Repetition of failed calls.
    pub retries: RetrySettings,
    /// Bytes of events that wait.
    pub max_queued: u32,
    /// Time that a receiver has for its answer.
    pub timeout: Duration,
    /// Networks that may be reached although they are not public.
    pub allow_networks: Vec<IpNet>,
}

impl WebhookConfig {
    /// Returns scheme, host and port of the URL.
    pub fn origin(&self) -> Origin {
        self.url.origin()
    }

    /// Returns the secrets that calls are signed with.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        std::iter::once(&self.secret).chain(&self.previous_secret)
    }

    /// Returns the files that hold the secrets.
    pub fn secret_files(&self) -> impl Iterator<Item = &Path> {
        self.secrets().filter_map(SecretRef::file)
    }
}

impl fmt::Debug for WebhookConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookConfig")
            .field("name", &self.name)
            .field("origin", &self.origin().ascii_serialization())
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}

/// Webhook in the form of the file.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WebhookTable {
    url: String,
    secret_file: Option<PathBuf>,
    secret_env: Option<String>,
    previous_secret_file: Option<PathBuf>,
    previous_secret_env: Option<String>,
    events: Option<Vec<String>>,
    #[serde(default)]
    phases: Vec<String>,
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    allow_networks: Vec<IpNet>,
    timeout: Option<String>,
    max_attempts: Option<u32>,
    max_retry_wait: Option<String>,
    max_queued: Option<String>,
}

/// Refuses more webhooks than a master has; an error is a sentence for the user.
pub(super) fn check_number<T>(tables: &BTreeMap<String, T>) -> Result<(), String> {
    match tables.len() {
        n if n > MAX_WEBHOOKS => Err(format!(
            "there are {n} webhooks; at most {MAX_WEBHOOKS} are allowed"
        )),
        _ => Ok(()),
    }
}

impl WebhookTable {
    /// Parses the table; an error is a sentence for the user.
    pub(super) fn into_config(self, name: &str, folder: &Path) -> Result<WebhookConfig, String> {
        let webhook_name: WebhookName = name.parse().map_err(|error: IdError| error.to_string())?;
        if is_name_of_history(&webhook_name) {
            return Err(format!(
                "webhook {name} ends in .events, as the position of another webhook does; give it another name"
            ));
        }
        let secret = SecretRef::of("secret", self.secret_file, self.secret_env, folder)?;
        let secret = secret.ok_or_else(|| {
            format!(
                "webhook {name} has secret-file or secret-env, by which receivers verify its calls"
            )
        })?;
        let (file, variable) = (self.previous_secret_file, self.previous_secret_env);
        let previous_secret = SecretRef::of("previous-secret", file, variable, folder)?;
        let phases = self.phases.iter().map(|text| phase(text));
        let phases: Vec<&'static str> = phases.collect::<Result<_, _>>()?;
        let mut history = Vec::new();
        let kinds = match self.events {
            Some(events) if events.is_empty() => {
                return Err(format!(
                    "webhook {name} has no events: it would tell nothing"
                ));
            }
            Some(events) => {
                let mut kinds: Vec<EventKind> = Vec::new();
                for text in &events {
                    match text.parse() {
                        Ok(kind) => kinds.push(kind),
                        Err(_) => history.push(past_kind(text)?),
                    }
                }
                kinds
            }
            // A resource that is deleted is in no phase.
            None if !phases.is_empty() => vec![EventKind::Added, EventKind::Changed],
            None => EventKind::ALL.to_vec(),
        };
        if !history.is_empty() {
            name_of_history(&webhook_name).map_err(|error| error.to_string())?;
        }
        Ok(WebhookConfig {
            url: url(name, &self.url, &self.allow_networks)?,
            name: webhook_name,
            secret,
            previous_secret,
            filter: EventFilter {
                name_prefix: self.prefix,
                kinds,
                history,
                phases,
            },
            retries: RetrySettings {
                max_attempts: attempts(self.max_attempts)?,
                max_wait: bounded_time("max-retry-wait", self.max_retry_wait, MAX_RETRY_WAIT)?
                    .unwrap_or(RetrySettings::default().max_wait),
            },
            max_queued: max_queued(self.max_queued)?,
            timeout: bounded_time("timeout", self.timeout, MAX_TIMEOUT)?.unwrap_or(TIMEOUT),
            allow_networks: self.allow_networks,
        })
    }
}

/// Parses the URL of a receiver. It is not quoted, because its path may be a secret.
fn url(name: &str, text: &str, allow_networks: &[IpNet]) -> Result<Url, String> {
    let url =
        Url::parse(text).map_err(|error| format!("url of webhook {name} is no URL: {error}"))?;
    let address_policy = AddressPolicy::new(allow_networks.to_vec());
    address_policy.check(&url).map_err(|error| match error {
        FetchError::Scheme { .. } => {
            format!("url of webhook {name} begins with https:// or http://")
        }
        FetchError::Address { address, .. } => format!(
            "url of webhook {name} leads to {address}, which is not a public address; allow-networks of the webhook can allow it"
        ),
        error => format!("url of webhook {name}: {error}"),
    })?;
    Ok(url)
}

/// Parses a kind of event of a history.
fn past_kind(text: &str) -> Result<PastKind, String> {
    let mut kinds = PastKind::ALL.into_iter();
    let meant = kinds.find(|kind| kind.as_str() == text);
    meant.ok_or_else(|| {
        format!(
            "an event is added, changed or deleted, or a kind of what happens to resources and nodes, such as rule-killed or lost, not {text:?}"
        )
    })
}

fn phase(text: &str) -> Result<&'static str, String> {
    let mut words = Phase::WORDS.into_iter();
    let meant = words.find(|word| word.eq_ignore_ascii_case(text));
    meant.ok_or_else(|| {
        format!(
            "a phase is one of {}, not {text:?}",
            Phase::WORDS.join(", ")
        )
    })
}

fn attempts(n: Option<u32>) -> Result<u32, String> {
    match n {
        None => Ok(RetrySettings::default().max_attempts),
        Some(n) if (1..=MAX_ATTEMPTS).contains(&n) => Ok(n),
        Some(n) => Err(format!("max-attempts is from 1 to {MAX_ATTEMPTS}, not {n}")),
    }
}

fn bounded_time(
    key: &str,
    text: Option<String>,
    max: Duration,
) -> Result<Option<Duration>, String> {
    let Some(text) = text else {
        return Ok(None);
    };
    let time = some_time(key, &text)?;
    match time > max {
        true => Err(format!(
            "{key} is at most {}, not {text:?}",
            humantime::format_duration(max)
        )),
        false => Ok(Some(time)),
    }
}

fn max_queued(text: Option<String>) -> Result<u32, String> {
    let Some(text) = text else {
        return Ok(MAX_QUEUED);
    };
    let n_bytes = some_bytes("max-queued", &text)?;
    let allowed = u32::try_from(n_bytes).ok().filter(|n| *n <= 1 << 30);
    allowed.ok_or_else(|| format!("max-queued is at most 1GiB, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(toml: &str) -> Result<WebhookConfig, String> {
        let table = toml::from_str::<WebhookTable>(toml);
        let table = table.map_err(|error| error.message().to_owned())?;
        table.into_config("chat", Path::new("/etc"))
    }

    #[test]
    fn what_is_not_said_is_as_usual() {
        let config = parse("url = 'https://hooks.example/x'\nsecret-file = 's'").unwrap();
        assert_eq!(config.secret, SecretRef::File("/etc/s".into()));
        assert_eq!(config.previous_secret, None);
        assert_eq!(config.filter, EventFilter::default());
        assert_eq!(config.retries, RetrySettings::default());
        assert_eq!((config.timeout, config.max_queued), (TIMEOUT, MAX_QUEUED));
        let text = "url = 'http://10.1.2.3:8080/'\nsecret-env = 'S'\nphases = ['failed']\n\
            prefix = 'team/'\nallow-networks = ['10.0.0.0/8']\ntimeout = '2s'\nmax-attempts = 3\n\
            max-retry-wait = '1m'\nmax-queued = '1MiB'";
        let config = parse(text).unwrap();
        assert_eq!(config.filter.phases, ["Failed"]);
        let kinds = [EventKind::Added, EventKind::Changed];
        assert_eq!(config.filter.kinds, kinds, "what is deleted has no phase");
        assert_eq!(config.retries.max_attempts, 3);
        assert_eq!(config.max_queued, 1 << 20);
        let debug = format!("{config:?}");
        assert!(debug.contains("http://10.1.2.3:8080"), "{debug}");
        let secret = parse("url = 'https://hooks.example/T0KEN'\nsecret-env = 'S'").unwrap();
        assert!(!format!("{secret:?}").contains("T0KEN"));
        let two = "url = 'https://hooks.example/'\nsecret-env = 'S'\nprevious-secret-file = 'old'";
        let config = parse(two).unwrap();
        let secrets: Vec<String> = config.secrets().map(SecretRef::place).collect();
        assert_eq!(secrets, ["variable S", "/etc/old"]);
        let files: Vec<&Path> = config.secret_files().collect();
        assert_eq!(files, [Path::new("/etc/old")]);
    }

    #[test]
    fn kinds_of_histories_are_chosen_beside_states() {
        let text = "url = 'https://hooks.example/'\nsecret-env = 'S'\nevents = ['changed', 'rule-killed', 'lost']";
        let filter = parse(text).unwrap().filter;
        assert_eq!(filter.kinds, [EventKind::Changed]);
        assert_eq!(filter.history, [PastKind::RuleKilled, PastKind::Lost]);
        let table = toml::from_str::<WebhookTable>(text).unwrap();
        let refused = table.into_config("chat.events", Path::new("/etc"));
        assert!(refused.unwrap_err().contains("ends in .events"));
    }

    #[test]
    fn what_makes_no_sense_is_named_without_the_path_of_the_url() {
        let secret = "secret-env = 'S'";
        let with = |line: &str| format!("url = 'https://hooks.example/'\n{secret}\n{line}");
        for (text, why) in [
            (
                "url = 'https://hooks.example/'".to_owned(),
                "webhook chat has secret-file or secret-env, by which receivers verify its calls",
            ),
            (
                format!("url = 'ftp://hooks.example/T0KEN'\n{secret}"),
                "url of webhook chat begins with https:// or http://",
            ),
            (
                format!("url = 'hooks'\n{secret}"),
                "url of webhook chat is no URL: relative URL without a base",
            ),
            (
                format!("url = 'http://127.0.0.1/T0KEN'\n{secret}"),
                "url of webhook chat leads to 127.0.0.1, which is not a public address; allow-networks of the webhook can allow it",
            ),
            (
                format!("url = 'https://user:pw@hooks.example/'\n{secret}"),
                "url of webhook chat: the request cannot be sent: the URL holds a user name or password",
            ),
            (
                with("previous-secret-file = 'a'\nprevious-secret-env = 'A'"),
                "previous-secret-file and previous-secret-env exclude each other",
            ),
            (
                with("events = []"),
                "webhook chat has no events: it would tell nothing",
            ),
            (
                with("events = ['gone']"),
                "an event is added, changed or deleted, or a kind of what happens to resources and nodes, such as rule-killed or lost, not \"gone\"",
            ),
            (
                with("phases = ['Done']"),
                "a phase is one of Pending, Running, Paused, Finished, Failed, not \"Done\"",
            ),
            (with("timeout = '0s'"), "timeout is longer than 0s"),
            (with("timeout = '2m'"), "timeout is at most 1m, not \"2m\""),
            (
                with("max-attempts = 0"),
                "max-attempts is from 1 to 1000, not 0",
            ),
            (
                with("max-queued = '2GiB'"),
                "max-queued is at most 1GiB, not \"2GiB\"",
            ),
        ] {
            assert_eq!(parse(&text), Err(why.to_owned()), "{text}");
        }
    }
}
