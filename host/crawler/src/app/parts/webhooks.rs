//! Webhooks of a master, and signed calls to other receivers, with the secrets that their tables name.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};

use super::access;
use crate::config::{FetcherSettings, FileConfig, SecretRef, WebhookConfig};
use crawler_api::webhooks::HttpWebhook;
use crawler_fetch::http::FetchSettings;
use crawler_fetch::http::post::PostClient;
use crawler_fetch::webhook::{SigningKey, WebhookClient};
use crawler_master::webhooks::Webhook;
use crawler_process::clock::Clock;

/// Returns the webhooks of the config file.
pub(in crate::app) fn webhooks(
    config: &FileConfig,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Vec<Webhook>> {
    if config.webhooks.is_empty() {
        return Ok(Vec::new());
    }
    let settings = call_settings(config)?;
    let webhooks = config.webhooks.iter();
    let webhooks = webhooks.map(|webhook| {
        let made = self::webhook(webhook, settings.clone(), clock);
        made.with_context(|| format!("webhook {} cannot be used", webhook.name))
    });
    webhooks.collect()
}

/// Returns the settings of calls to receivers that the config file names. Names and certificates are looked up as for
/// pages: `[hosts]`, and `ca` and the resolver of `[fetch]`.
pub(in crate::app) fn call_settings(config: &FileConfig) -> anyhow::Result<FetchSettings> {
    let mut settings = FetcherSettings {
        fetch: FetchSettings {
            hosts: config.hosts.clone(),
            ca: access::certificates(config.fetch.values.ca.as_deref())?,
            ..FetchSettings::default()
        },
        ..FetcherSettings::default()
    };
    config.fetch.values.apply(&mut settings);
    Ok(FetchSettings {
        // A crawl may read pages of anybody; a receiver is to be the one that is meant.
        check_certificates: true,
        ..settings.fetch
    })
}

/// Reads the keys that calls are signed with.
pub(in crate::app) fn signing_keys<'s>(
    secrets: impl Iterator<Item = &'s SecretRef>,
) -> anyhow::Result<Vec<SigningKey>> {
    let keys = secrets.map(|secret| {
        let text = secret.read().map_err(|why| anyhow!(why))?;
        let key = text.parse::<SigningKey>();
        key.with_context(|| secret.place())
    });
    keys.collect()
}

fn webhook(
    config: &WebhookConfig,
    settings: FetchSettings,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Webhook> {
    let keys = signing_keys(config.secrets())?;
    let client = PostClient::new(config.url.clone(), config.allow_networks.clone(), settings)?;
    Ok(Webhook {
        name: config.name.clone(),
        filter: config.filter.clone(),
        retries: config.retries,
        max_queued: config.max_queued,
        sender: Arc::new(HttpWebhook(WebhookClient {
            client,
            keys,
            timeout: config.timeout,
            table: "webhook",
            clock: clock.clone(),
        })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_process::clock::SystemClock;

    #[test]
    fn a_secret_that_is_none_is_refused_with_its_place_and_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crawler.toml");
        let text = "[webhook.chat]\nurl = 'https://hooks.example/'\nsecret-file = 'secret'\n";
        std::fs::write(&path, text).unwrap();
        let made = || {
            let config = crate::config::load(Some(&path)).unwrap();
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            webhooks(&config, &clock).map(|webhooks| webhooks.len())
        };
        let secret = folder.path().join("secret");
        let missing = format!("{:#}", made().unwrap_err());
        assert!(
            missing.contains("webhook chat cannot be used: cannot read "),
            "{missing}"
        );
        std::fs::write(&secret, "hunter2\n").unwrap();
        let refused = format!("{:#}", made().unwrap_err());
        let place = secret.display().to_string();
        assert!(
            refused.contains(&place) && refused.contains("openssl rand"),
            "{refused}"
        );
        assert!(!refused.contains("hunter2"), "{refused}");
        std::fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        assert_eq!(made().unwrap(), 1);
        // The secret before it counts as well.
        let previous = folder.path().join("previous");
        let line = "previous-secret-file = 'previous'\n";
        std::fs::write(&path, format!("{text}{line}")).unwrap();
        std::fs::write(&previous, "hunter3\n").unwrap();
        let refused = format!("{:#}", made().unwrap_err());
        let place = previous.display().to_string();
        assert!(refused.contains(&place), "{refused}");
        assert!(!refused.contains("hunter3"), "{refused}");
        std::fs::copy(&secret, &previous).unwrap();
        assert_eq!(made().unwrap(), 1);
    }
}
