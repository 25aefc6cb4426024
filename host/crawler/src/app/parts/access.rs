//! Proxies, credentials and certificates, with the contents of the files and variables that their tables
//! name.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use reqwest::Certificate;

use crate::config::{CredentialConfig, ProxyConfig, SecretRef};
use crawler_fetch::credentials::{Credential, Credentials};
use crawler_fetch::http::ProxySettings;
use crawler_model::settings::AccessName;

/// Reads the table `[proxies]`.
pub(super) fn proxies(
    config: &BTreeMap<AccessName, Vec<ProxyConfig>>,
) -> anyhow::Result<BTreeMap<AccessName, Vec<ProxySettings>>> {
    let proxy = |proxy: &ProxyConfig| {
        let login = proxy.login.as_ref().map(|(user, password)| {
            let password = read(password).with_context(|| format!("proxy {}", proxy.url))?;
            anyhow::Ok((user.clone(), password))
        });
        Ok(ProxySettings {
            url: proxy.url.clone(),
            login: login.transpose()?,
        })
    };
    let named = |(name, proxies): (&AccessName, &Vec<ProxyConfig>)| {
        let proxies: anyhow::Result<_> = proxies.iter().map(proxy).collect();
        Ok((name.clone(), proxies?))
    };
    config.iter().map(named).collect()
}

/// Reads the table `[credentials]`.
pub(super) fn credentials(config: &[CredentialConfig]) -> anyhow::Result<Credentials> {
    let credential = |config: &CredentialConfig| {
        let what = || format!("credentials {}", config.name);
        let secret = read(&config.secret).with_context(what)?;
        let hosts = config.hosts.clone();
        let credential = match &config.user {
            Some(user) => Credential::basic(hosts, user, &secret, config.plain_http),
            None => Credential::bearer(hosts, &secret, config.plain_http),
        };
        let credential = credential.with_context(what)?;
        Ok((config.name.clone(), credential))
    };
    config.iter().map(credential).collect()
}

/// Reads the certificates of a file.
pub(super) fn certificates(file: Option<&Path>) -> anyhow::Result<Vec<Certificate>> {
    let Some(file) = file else {
        return Ok(Vec::new());
    };
    let what = || format!("ca of [fetch], {}", file.display());
    let bytes = std::fs::read(file).with_context(what)?;
    let certificates = Certificate::from_pem_bundle(&bytes).with_context(what)?;
    match certificates.is_empty() {
        true => Err(anyhow!("{} has no certificate in PEM", what())),
        false => Ok(certificates),
    }
}

fn read(secret: &SecretRef) -> anyhow::Result<String> {
    secret.read().map_err(|why| anyhow!(why))
}
