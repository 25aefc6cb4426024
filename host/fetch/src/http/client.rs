//! The HTTP client underneath: it has no proxies from the environment, no redirects, no retries and no
//! resolver of its own.

use std::time::Duration;

use reqwest::{Client, ClientBuilder, Proxy, redirect, retry};
use rustls::crypto::{CryptoProvider, ring};

use super::super::phases::RecordConnections;
use super::super::resolve::FilteringResolver;
use super::FetchSettings;

/// Time for which idle connections are kept. It is short, so that their number follows the hosts in use: a
/// wide crawl uses thousands of hosts per second.
const IDLE: Duration = Duration::from_secs(5);

/// Maximum size in bytes of the head of an answer over HTTP/2: the same as the client's limit over HTTP/1.1.
const HEAD_MAX: u32 = 400 << 10;

/// Reason why the clients cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The settings of all clients are invalid.
    #[error("cannot set up the HTTP client; is the user agent {user_agent:?} a valid header?")]
    Client {
        /// User agent of the process.
        user_agent: String,
        /// Error of the client.
        #[source]
        source: reqwest::Error,
    },
    /// A proxy cannot be used.
    #[error("{url} cannot be used as a proxy")]
    Proxy {
        /// URL of the proxy, without user and password.
        url: String,
        /// Error of the client.
        #[source]
        source: reqwest::Error,
    },
}

pub(super) fn build(
    settings: &FetchSettings,
    resolver: FilteringResolver,
    proxy: Option<Proxy>,
) -> Result<Client, SetupError> {
    if CryptoProvider::get_default().is_none() {
        // This fails only if another thread was faster, and then a provider is installed.
        let _installed = ring::default_provider().install_default();
    }
    let builder = || match &proxy {
        Some(proxy) => builder(settings, resolver.clone()).proxy(proxy.clone()),
        None => builder(settings, resolver.clone()),
    };
    let built = builder().build().or_else(|error| {
        // A machine without root certificates can still fetch http.
        let without_roots = builder().tls_certs_only(settings.ca.clone()).build()?;
        tracing::warn!(%error, "no root certificates: https is fetched only as far as ca of [fetch] goes");
        Ok(without_roots)
    });
    built.map_err(|source| SetupError::Client {
        user_agent: settings.user_agent.clone(),
        source,
    })
}

pub(super) fn builder(settings: &FetchSettings, resolver: FilteringResolver) -> ClientBuilder {
    Client::builder()
        .tls_certs_merge(settings.ca.clone())
        .tls_danger_accept_invalid_certs(!settings.check_certificates)
        .user_agent(&settings.user_agent)
        .dns_resolver(resolver)
        .connector_layer(RecordConnections)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .connect_timeout(settings.connect_timeout)
        .pool_idle_timeout(IDLE)
        .http1_max_headers(settings.max_headers)
        .http1_ignore_invalid_headers_in_responses(true)
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http2_max_header_list_size(HEAD_MAX)
}
