//! Answers of the cache in the place of answers of sites, and answers of sites that the cache is to keep.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Request, Response};

use super::body::codings;
use super::hop::{Hop, Outcome};
use super::{FetchSettings, HttpFetcher};
use crate::cache::{CacheError, CacheSettings, Found, Head, HttpCache, Scope, key};
use crate::{FetchError, FetchRequest};
use crawler_model::id::Digest;
use crawler_model::page::FetchRecord;

/// Key and head of an answer that may be stored once its outcome is known.
#[derive(Debug)]
pub(super) struct Draft {
    key: Digest,
    head: Head,
}

impl HttpFetcher {
    /// Returns the same fetcher with a cache, which answers what it has in the place of sites. Redirects, robots.txt
    /// and pages are in it.
    pub fn caching(mut self, settings: &CacheSettings) -> Result<Self, CacheError> {
        let scope = Scope {
            settings: &self.settings,
            allow_networks: self.address_policy.allow_networks(),
        };
        let cache = HttpCache::open(settings, scope.digest(), self.clock.clone())?;
        self.cache = Some(cache);
        Ok(self)
    }

    /// Returns the cache as a request uses it. The request is made without a condition: the cache has the whole answer,
    /// and an answer to a condition is none for later runs.
    pub(super) fn cache_for(&self, request: &mut FetchRequest) -> Option<HttpCache> {
        let cache = self.cache.clone()?;
        request.validators = None;
        Some(match request.asks_site {
            true => cache.within(Duration::ZERO),
            false => cache,
        })
    }

    /// Returns the number of answers that came from the cache. Returns `None` if there is no cache.
    pub fn n_from_cache(&self) -> Option<u64> {
        self.cache.as_ref().map(HttpCache::n_hits)
    }
}

impl Hop {
    /// Returns the outcome of the answer that the cache has for this hop, if it has one.
    pub(super) async fn cached(
        &self,
        settings: &FetchSettings,
        max_body: u64,
    ) -> Option<Result<Outcome, FetchError>> {
        let cache = self.cache.as_ref()?;
        // If there is no valid request, sending it reports why.
        let key = self.cache_key(&self.request(settings).ok()?, settings)?;
        // One byte more than the limit tells that the body is longer.
        let most = max_body.max(self.max_file.unwrap_or(0)).saturating_add(1);
        let found = cache.find(key, most, &self.account).await;
        let given = match found {
            Some(found) => self.given(found, settings, max_body).await,
            None => None,
        };
        match given.is_some() {
            true => cache.count_hit(),
            false => tracing::debug!(%key, "not in the cache"),
        }
        given
    }

    /// Returns the outcome of a stored answer, by the same steps as that of a new one. Returns `None` if this hop needs
    /// a body and the one before it did not.
    async fn given(
        &self,
        found: Found,
        settings: &FetchSettings,
        max_body: u64,
    ) -> Option<Result<Outcome, FetchError>> {
        let Found { head, body, held } = found;
        let response = head.response(body).ok()?;
        if !head.has_body && matches!(self.without_body(&response, settings), Ok(None)) {
            return None;
        }
        tracing::debug!(stored_at = head.stored_at, "the cache has the answer");
        self.receive_cookies(&response);
        let record = FetchRecord {
            stored_at: Some(head.stored_at),
            ..FetchRecord::default()
        };
        let mut outcome = self.outcome(response, record, settings, max_body).await;
        if let Ok(Outcome::Received(answer)) = &mut outcome {
            answer.record.n_received = head.n_received;
        }
        drop(held);
        Some(outcome)
    }

    /// Returns the key of this request. Returns `None` if there is no cache.
    pub(super) fn cache_key(&self, request: &Request, settings: &FetchSettings) -> Option<Digest> {
        let cache = self.cache.as_ref()?;
        let pool = self.pool.as_ref();
        let proxies = pool.and_then(|pool| settings.proxies.get(pool.name()));
        let proxies = proxies.map(Vec::as_slice).unwrap_or_default();
        let (body, user_agent) = (self.body.as_ref(), &settings.user_agent);
        Some(key(cache.scope(), request, body, user_agent, proxies))
    }

    /// Returns what the cache may keep of an answer to the request with this key. Returns `None` if the answer is not
    /// for later runs.
    pub(super) fn draft(&self, key: Digest, response: &Response) -> Option<Draft> {
        let now = self.cache.as_ref()?.now();
        let is_encoded = !codings(response.headers()).is_empty();
        let head = Head::of(response, is_encoded, now);
        head.is_lasting().then_some(Draft { key, head })
    }

    /// Stores the answer of an exchange that may be stored and is whole.
    pub(super) async fn keep(&self, draft: Draft, outcome: &Result<Outcome, FetchError>) {
        let Some(cache) = &self.cache else { return };
        let Draft { key, mut head } = draft;
        let body = match outcome {
            Ok(Outcome::Received(answer)) if !answer.truncated => {
                head.has_body = true;
                head.n_received = answer.record.n_received;
                answer.body.clone()
            }
            Ok(Outcome::Redirect { .. }) | Err(FetchError::ContentType { .. }) => Bytes::new(),
            Ok(Outcome::Received(_)) | Err(_) => return,
        };
        let held = self.account.reserve(body.len() as u64);
        cache.keep(key, head, body, held).await;
    }
}
