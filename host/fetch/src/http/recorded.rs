//! Exchanges for an archive, and answers of an archive in the place of sites: then nothing is asked of anybody.
//!
//! Neither the address policy nor robots.txt nor turns of hosts count, because no host is asked. What follows from an
//! answer is decided by the same steps as for a new one: redirects, cookies, content types, and bounds on the body.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt as _;
use hyper::http;
use reqwest::Response;
use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

use super::body::{Body, Limit, codings, read};
use super::head::headers;
use super::hop::{Hop, Outcome, Received};
use super::politeness::Politeness;
use super::sent::Sent;
use super::{FetchSettings, HttpFetcher};
use crate::throttle::Requester;
use crate::{FetchError, FetchRequest};
use crawler_model::crawl::UnixMillis;
use crawler_model::exchange::{BodyForm, Exchange, Redirects};
use crawler_model::page::FetchRecord;
use crawler_model::settings::CredentialNames;
use crawler_process::stage::Stage;

/// Answers that were recorded. Called by many tasks at once.
#[async_trait]
pub trait Recorded: fmt::Debug + Send + Sync + 'static {
    /// Returns the exchange that answers this request, with at least the first `most` bytes of the body if it has as
    /// many. One of the page that these redirects belong to goes before others. Returns `None` if there is none, and the
    /// reason if it cannot be read. The body has no transfer-encoding.
    async fn answer(
        &self,
        method: &str,
        url: &Url,
        body: Option<&Bytes>,
        redirects: Option<&Redirects>,
        most: u64,
    ) -> Result<Option<Exchange>, String>;
}

impl HttpFetcher {
    /// Returns the same fetcher with answers that were recorded, in the place of all sites.
    pub fn replaying(mut self, recorded: Arc<dyn Recorded>) -> Self {
        self.recorded = Some(recorded);
        self
    }

    /// Takes from a request what concerns only the way to a site, if no site is asked.
    pub(super) fn without_ways(&self, request: &mut FetchRequest) {
        if self.recorded.is_some() {
            // The archive has whole answers.
            (request.proxy, request.validators) = (None, None);
            request.credentials = CredentialNames::default();
        }
    }

    /// Returns the result of a hop: by the archive if there is one, and otherwise by the site, if it may be asked.
    pub(super) async fn ask(
        &self,
        hop: &Hop,
        max_body: u64,
        politeness: &Politeness,
        requester: Requester,
    ) -> Sent {
        if let Some(recorded) = &self.recorded {
            let outcome = hop.replayed(&**recorded, &self.settings, max_body);
            return Sent::unasked(outcome.boxed().await, 0);
        }
        let admitted = self.admit(&hop.url, politeness);
        match Stage::Guard.timed(pin!(admitted)).await {
            Ok(pace) => self.send(hop, max_body, &pace, requester).await,
            Err(failure) => failure.into(),
        }
    }
}

impl Hop {
    /// Notes that a redirect leads on from this hop.
    pub(super) fn note_redirect(&mut self) {
        match &mut self.redirects {
            Some(redirects) => redirects.n += 1,
            None => {
                self.redirects = Some(Redirects {
                    method: self.method.to_string(),
                    url: self.url.clone(),
                    body: self.body.clone().unwrap_or_default(),
                    n: 1,
                });
            }
        }
    }

    /// Ends the exchange on the tape, if there is one, with its outcome at this moment.
    pub(super) fn record(&self, outcome: &Result<Outcome, FetchError>, now: UnixMillis) {
        let Some(tape) = &self.tape else { return };
        match outcome {
            Ok(Outcome::Received(answer)) => tape.end(now, answer.record.clone()),
            Ok(Outcome::Redirect { .. }) => tape.end(now, FetchRecord::default()),
            Err(_) => tape.discard(),
        }
    }

    /// Returns the outcome of the recorded answer to this hop, by the same steps as that of a new one.
    async fn replayed(
        &self,
        recorded: &dyn Recorded,
        settings: &FetchSettings,
        max_body: u64,
    ) -> Result<Outcome, FetchError> {
        // One byte more than the limit tells that the body is longer.
        let most = max_body.max(self.max_file.unwrap_or(0)).saturating_add(1);
        let (method, url, body) = (self.method.as_str(), &self.url, self.body.as_ref());
        let found = recorded.answer(method, url, body, self.redirects.as_ref(), most);
        let found = found.await.map_err(|why| FetchError::Archive { why })?;
        let exchange = found.ok_or(FetchError::NotInArchive)?;
        let response = response_of(&exchange).map_err(|error| FetchError::Archive {
            why: error.to_string(),
        })?;
        self.receive_cookies(&response);
        if let Some(outcome) = self.without_body(&response, settings)? {
            return Ok(outcome);
        }
        let sent = codings(response.headers());
        let headers = headers(&response, !sent.is_empty(), settings);
        let limit = self.limit(&response, max_body);
        let is_cut = match exchange.body_form {
            BodyForm::Cut | BodyForm::Unread => true,
            BodyForm::Sent | BodyForm::Decoded => false,
        };
        if let (Limit::Whole(max), true) = (limit, is_cut) {
            return Err(FetchError::FileSize { max });
        }
        let codings = match exchange.body_form {
            BodyForm::Sent => sent,
            BodyForm::Decoded | BodyForm::Cut | BodyForm::Unread => Vec::new(),
        };
        // The length that the site announced is that of another body if this one was cut or decoded.
        let mut bare = http::Response::new(exchange.body);
        *bare.status_mut() = response.status();
        let held = self.account.reserve(0);
        let bare = Response::from(bare);
        let read = read(bare, &self.method, &codings, settings, limit, held, None);
        let Body {
            body, truncated, ..
        } = read.await.map_err(of_record)?;
        let mut record = exchange.record;
        record.stored_at = Some(exchange.ended_at);
        Ok(Outcome::Received(Received {
            status: exchange.status,
            headers,
            body,
            truncated: truncated || is_cut,
            record,
        }))
    }
}

/// Returns the error of reading a body from its record. It is the same each time, so that the page is not tried again.
fn of_record(error: FetchError) -> FetchError {
    match error {
        FetchError::FileSize { .. } | FetchError::Encoding { .. } => error,
        error => FetchError::Archive {
            why: error.to_string(),
        },
    }
}

/// Returns the head of an answer as it came from the site, without headers that no client would take.
fn response_of(exchange: &Exchange) -> Result<Response, http::Error> {
    let mut builder = http::Response::builder().status(exchange.status);
    for (name, value) in &exchange.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            builder = builder.header(name, value);
        }
    }
    builder.body(Bytes::new()).map(Response::from)
}
