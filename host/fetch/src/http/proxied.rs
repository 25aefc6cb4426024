//! Sends a hop on its way: directly to its host, or through one of the proxies of a name.
//!
//! If no connection came about, nothing was asked, so the page is sent through the next proxy at once: if that
//! one works, the first is to blame. Later failures are failures of the page.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;
use url::Url;

use super::FetchSettings;
use super::hop::{Exchange, Hop, Outcome};
use super::proxy_pools::{PooledProxy, ProxyPool, ProxyPools};
use crate::FetchError;
use crawler_model::crawl::host_of;

/// Maximum number of proxies that a page is sent through in a row. Its host waits meanwhile, for a connection
/// of each.
const MAX_TRIES: usize = 3;

impl ProxyPools {
    /// Sends a hop on its way.
    pub(super) async fn exchange(
        &self,
        hop: &Hop,
        settings: &FetchSettings,
        max_body: u64,
    ) -> Exchange {
        match &hop.pool {
            // The future is boxed, because most requests do not need it.
            Some(pool) => Box::pin(pool.exchange(hop, settings, max_body)).await,
            None => hop.exchange(&self.direct, settings, max_body).await,
        }
    }
}

impl ProxyPool {
    async fn exchange(&self, hop: &Hop, settings: &FetchSettings, max_body: u64) -> Exchange {
        let host = host_of(&hop.url);
        let (mut tried, mut doubted) = (Vec::new(), Vec::new());
        let mut last = None;
        while tried.len() < MAX_TRIES {
            let Some((index, proxy)) = self.next(&tried) else {
                break;
            };
            tried.push(index);
            let begun = Instant::now();
            let mut exchange = match is_itself(proxy, &hop.url) {
                Some(refused) => return nothing(refused),
                None => hop.exchange(&proxy.client, settings, max_body).await,
            };
            match proxy.blame(&hop.url, &exchange, settings).await {
                Blame::Nobody => {
                    if exchange.outcome.is_ok() {
                        self.worked(index, begun);
                        for other in doubted {
                            self.rest(other, "another proxy connected where it did not");
                        }
                    }
                    if let Ok(Outcome::Received(answer)) = &mut exchange.outcome {
                        answer.record.proxy = Some(Arc::clone(&proxy.label));
                        // The address is that of the proxy, and rules are not told it.
                        answer.record.address = None;
                    }
                    return exchange;
                }
                Blame::Either { was_asked: true } => {
                    let rests = self.doubt(index, &host);
                    if exchange.outcome.is_ok() {
                        let proxy = proxy.label.to_string();
                        exchange.outcome = Err(match rests {
                            true => self.resting(Duration::ZERO),
                            false => FetchError::Proxy { proxy },
                        });
                    }
                    return exchange;
                }
                Blame::Either { was_asked: false } => {
                    self.doubt(index, &host);
                    doubted.push(index);
                    last = Some(exchange);
                }
                Blame::Proxy(why) => self.rest(index, why),
            }
        }
        // Either all proxies that could be tried failed at this host, or all of them rest, which is not the
        // page's fault.
        let resting = || nothing(self.check().err().unwrap_or(self.resting(Duration::ZERO)));
        last.unwrap_or_else(resting)
    }
}

/// Party to blame for a failed exchange.
#[derive(Debug, PartialEq, Eq)]
enum Blame {
    Nobody,
    /// The proxy or the host; `was_asked` is true if one of them was asked for the page.
    Either {
        was_asked: bool,
    },
    /// The proxy, with a description of its fault.
    Proxy(&'static str),
}

impl PooledProxy {
    async fn blame(&self, url: &Url, exchange: &Exchange, settings: &FetchSettings) -> Blame {
        // These are answers that a proxy itself gives where it does not tunnel; a site may give them too, then.
        let is_forwarded = url.scheme() == "http" && self.url.scheme().starts_with("http");
        let has_failed = matches!(
            exchange.outcome,
            Err(FetchError::Connection { .. }
                | FetchError::Timeout { .. }
                | FetchError::Headers { .. })
        );
        if !exchange.was_not_connected {
            let is_407 = matches!(&exchange.outcome, Ok(Outcome::Received(a)) if a.status == 407);
            return match is_forwarded && (is_407 || has_failed) {
                true => Blame::Either { was_asked: true },
                false => Blame::Nobody,
            };
        }
        let is_proxys = |host: &str| self.url.host_str() == Some(host);
        match &exchange.outcome {
            Err(FetchError::Resolve { host, .. }) if is_proxys(host) => {
                Blame::Proxy("its name cannot be resolved")
            }
            Err(_) if has_failed && is_forwarded => Blame::Proxy("it cannot be connected to"),
            // The words are those of hyper-util, which offers no other way to tell.
            Err(FetchError::Connection { why }) => {
                let says = |words: &str| why.contains(words);
                if says("failed to create underlying connection") {
                    Blame::Proxy("it cannot be connected to")
                } else if says("proxy authorization required") || says("credentials not accepted") {
                    Blame::Proxy("it does not accept user and password")
                } else {
                    Blame::Either { was_asked: false }
                }
            }
            Err(FetchError::Timeout { .. }) => {
                match self.is_there(settings.connect_timeout).await {
                    true => Blame::Either { was_asked: false },
                    false => Blame::Proxy("it cannot be connected to in time"),
                }
            }
            Ok(_) | Err(_) => Blame::Nobody,
        }
    }

    /// Returns true if the proxy itself can be connected to.
    async fn is_there(&self, limit: Duration) -> bool {
        let connect = async {
            let host = self.url.host_str().unwrap_or_default();
            let port = self.url.port_or_known_default().unwrap_or_default();
            let addresses = self.resolver.found(host).await.unwrap_or_default();
            let addresses: Vec<_> = addresses.into_iter().map(|ip| (ip, port).into()).collect();
            TcpStream::connect(&addresses[..]).await.is_ok()
        };
        tokio::time::timeout(limit, connect).await.unwrap_or(false)
    }
}

/// Refuses a page on the proxy's own host, because its name would be looked up like the proxy's, without a check.
fn is_itself(proxy: &PooledProxy, url: &Url) -> Option<FetchError> {
    let why =
        || "it is on the host of its proxy; ask for it with setting proxy as direct".to_owned();
    let is_name = url.domain().is_some() && proxy.url.host_str() == url.host_str();
    is_name.then(|| FetchError::Request { why: why() })
}

/// Returns an exchange in which nothing was asked.
fn nothing(why: FetchError) -> Exchange {
    Exchange {
        outcome: Err(why),
        took: Duration::ZERO,
        was_not_connected: true,
        draft: None,
    }
}
