//! One request and its answer.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, StatusCode, Version};
use tokio::time::Instant;
use url::Url;

use super::super::cookies::CookieJar;
use super::super::credentials::Credential;
use super::super::phases::Phases;
use super::super::resolve::ResolveError;
use super::super::{FetchError, FetchRequest};
use super::FetchSettings;
use super::body::{ACCEPTED, Body, ReadError, STRETCH, TooSlow, is_encoded, read};
use super::routes::Pool;
use crate::model::page::FetchRecord;
use crate::model::settings::ContentTypes;

/// Headers that frame a message or choose its coding: the client's own business.
const NOT_FOR_REQUESTS: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A request that is ready to be sent.
#[derive(Debug)]
pub(super) struct Hop {
    pub(super) url: Url,
    /// Its resource names the port.
    pub(super) names_port: bool,
    method: Method,
    headers: HeaderMap,
    cookies: Option<Arc<CookieJar>>,
    body: Option<Bytes>,
    content_types: ContentTypes,
    /// Through which it goes. None: straight.
    pub(super) pool: Option<Arc<Pool>>,
    /// Shown to the hosts that they are for.
    credentials: Vec<Credential>,
}

/// What became of one sending.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) outcome: Result<Outcome, FetchError>,
    /// Until its end.
    pub(super) took: Duration,
    /// It ended before there was a connection: nobody was asked.
    pub(super) was_not_connected: bool,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// An answer, read as far as the limit.
    Received(Received),
    /// A redirect; its body was not read.
    Redirect {
        /// Absolute, without fragment.
        to: Url,
        /// Which decides the method of the next hop.
        status: StatusCode,
    },
}

/// An answer.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) status: u16,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    pub(super) truncated: bool,
    /// But for what came before it was sent.
    pub(super) record: FetchRecord,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Hop {
    /// A request for a URL and nothing else.
    pub(super) fn get(url: Url, names_port: bool, pool: Option<Arc<Pool>>) -> Self {
        Self {
            url,
            names_port,
            method: Method::GET,
            headers: HeaderMap::new(),
            cookies: None,
            body: None,
            content_types: ContentTypes::default(),
            pool,
            credentials: Vec::new(),
        }
    }

    /// The request as asked for, or what is wrong with it.
    pub(super) fn first(
        request: FetchRequest,
        pool: Option<Arc<Pool>>,
        credentials: Vec<Credential>,
    ) -> Result<Self, FetchError> {
        let refused = |why: String| FetchError::Request { why };
        let method = Method::from_bytes(request.method.as_bytes())
            .ok()
            .filter(|method| !matches!(*method, Method::CONNECT | Method::TRACE))
            .ok_or_else(|| refused(format!("{:?} is not a method for pages", request.method)))?;
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers {
            let valid_name = HeaderName::from_bytes(name.as_bytes())
                .ok()
                .filter(|name| !NOT_FOR_REQUESTS.contains(&name.as_str()))
                .ok_or_else(|| refused(format!("header {name:?} cannot be set")))?;
            let value = HeaderValue::from_str(&value)
                .map_err(|_| refused(format!("the value of header {name:?} is not valid")))?;
            headers.append(valid_name, value);
        }
        if let Some(identity) = request.identity {
            let own = [("user-agent", identity.user_agent.as_str())];
            for (name, value) in own.iter().chain(identity.headers) {
                let name = HeaderName::from_static(name);
                let value = HeaderValue::from_str(value)
                    .map_err(|_| refused(format!("the value of header {name} is not valid")))?;
                headers.entry(name).or_insert(value);
            }
        }
        let unless = request.unless.unwrap_or_default();
        for (name, value) in [
            (header::IF_NONE_MATCH, unless.etag),
            (header::IF_MODIFIED_SINCE, unless.last_modified),
        ] {
            if let Some(value) = value {
                let value = HeaderValue::from_str(&value)
                    .map_err(|_| refused(format!("the value of header {name} is not valid")))?;
                headers.insert(name, value);
            }
        }
        let mut url = request.url;
        url.set_fragment(None);
        Ok(Self {
            url,
            names_port: request.names_port,
            method,
            headers,
            cookies: request.cookies,
            body: request.body,
            content_types: request.content_types,
            pool,
            credentials,
        })
    }

    /// The hop that a redirect leads to. What browsers do: a POST becomes a GET on 301 and 302,
    /// anything but HEAD on 303; 307 and 308 repeat the request.
    pub(super) fn redirected(mut self, to: Url, status: StatusCode) -> Self {
        let becomes_get = match status {
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = None;
            for name in [
                header::CONTENT_TYPE,
                header::CONTENT_ENCODING,
                header::CONTENT_LANGUAGE,
                header::CONTENT_LOCATION,
            ] {
                self.headers.remove(name);
            }
        }
        // What is known is known of the first URL.
        for name in [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE] {
            self.headers.remove(name);
        }
        Self { url: to, ..self }
    }

    /// Whether it asks for a page and does nothing else.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD) && self.body.is_none()
    }

    /// Sends it and reads the answer, in the time that there is for that.
    pub(super) async fn exchange(
        &self,
        client: &Client,
        settings: &FetchSettings,
        max_body: u64,
    ) -> Exchange {
        let (begun, phases) = (Instant::now(), Arc::default());
        let answered = self.answered(client, settings, max_body, &phases);
        let outcome = tokio::time::timeout(settings.timeout, answered).await;
        Exchange {
            outcome: outcome.unwrap_or(Err(FetchError::Timeout {
                limit: settings.timeout,
                setting: "timeout",
            })),
            took: begun.elapsed(),
            was_not_connected: phases.was_not_connected(),
        }
    }

    async fn answered(
        &self,
        client: &Client,
        settings: &FetchSettings,
        max_body: u64,
        phases: &Arc<Phases>,
    ) -> Result<Outcome, FetchError> {
        let mut request = client
            .request(self.method.clone(), self.url.clone())
            .headers(self.headers.clone());
        if let Some(body) = &self.body {
            request = request.body(body.clone());
        }
        let failed = |error: reqwest::Error| fetch_error(error, settings);
        let accepted = HeaderValue::from_static(ACCEPTED);
        request = request.header(header::ACCEPT_ENCODING, accepted);
        if let Some(cookies) = &self.cookies
            && !self.headers.contains_key(header::COOKIE)
            && let Some(sent) = cookies.header(&self.url)
        {
            request = request.header(header::COOKIE, sent);
        }
        let mut shown = self.credentials.iter();
        if !self.headers.contains_key(header::AUTHORIZATION)
            && let Some(authorization) = shown.find_map(|shown| shown.for_url(&self.url))
        {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        let begun = Instant::now();
        let limit = settings.first_byte_timeout;
        let sent = tokio::time::timeout(limit, Phases::of(phases, request.send())).await;
        let response = sent.map_err(|_elapsed| FetchError::Timeout {
            limit,
            setting: "first-byte-timeout",
        })?;
        let response = response.map_err(failed)?;
        let record = FetchRecord {
            lookup: phases.lookup(),
            connect: phases.connect(),
            first_byte: begun.elapsed(),
            ..FetchRecord::default()
        };
        if let Some(cookies) = &self.cookies {
            let set = response.headers().get_all(header::SET_COOKIE).iter();
            cookies.hear(&self.url, set.filter_map(|value| value.to_str().ok()));
        }
        self.outcome(response, record, settings, max_body).await
    }

    /// What came of it, once the answer begins: its body is read here.
    pub(super) async fn outcome(
        &self,
        response: Response,
        mut record: FetchRecord,
        settings: &FetchSettings,
        max_body: u64,
    ) -> Result<Outcome, FetchError> {
        if let Some(to) = self.target(&response) {
            let status = response.status();
            return Ok(Outcome::Redirect { to, status });
        }
        let (status, headers) = (response.status().as_u16(), headers(&response, settings));
        let content_type = response.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()));
        if response.status().is_success() && !self.content_types.want(content_type.as_deref()) {
            let content_type = content_type.unwrap_or_default().into_owned();
            return Err(FetchError::ContentType { content_type });
        }
        record.address = response.remote_addr();
        record.version = version(response.version());
        let begun = Instant::now();
        let body = read(response, &self.method, max_body, settings.min_rate).await;
        record.body = begun.elapsed();
        let Body {
            body,
            truncated,
            n_received,
        } = body.map_err(|error| match error {
            ReadError::Connection(error) => fetch_error(error, settings),
            ReadError::Slow(TooSlow { n }) => FetchError::TooSlow {
                n,
                time: STRETCH,
                least: settings.min_rate,
            },
            ReadError::Short => FetchError::Connection {
                why: "the body ended before what was announced or encoded".to_owned(),
            },
            ReadError::Encoding { encoding, why } => FetchError::Encoding { encoding, why },
        })?;
        record.n_received = n_received;
        Ok(Outcome::Received(Received {
            status,
            headers,
            body,
            truncated,
            record,
        }))
    }

    /// Where a redirect leads. An answer that does not say where is a page like any other.
    fn target(&self, response: &Response) -> Option<Url> {
        let redirects = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        let location = response.headers().get(header::LOCATION)?;
        let location = String::from_utf8_lossy(location.as_bytes());
        let mut to = self.url.join(&location).ok().filter(|_| redirects)?;
        to.set_fragment(None);
        Some(to)
    }
}

fn version(version: Version) -> Option<&'static str> {
    match version {
        Version::HTTP_09 => Some("0.9"),
        Version::HTTP_10 => Some("1.0"),
        Version::HTTP_11 => Some("1.1"),
        Version::HTTP_2 => Some("2"),
        _ => None,
    }
}

fn headers(response: &Response, settings: &FetchSettings) -> Vec<(String, String)> {
    let mut n_bytes = 0;
    let is_encoded = is_encoded(response.headers());
    let of_coding = [header::CONTENT_ENCODING, header::CONTENT_LENGTH];
    response
        .headers()
        .iter()
        .filter(|(name, _)| !is_encoded || !of_coding.contains(name))
        .take(settings.max_headers)
        .take_while(|(name, value)| {
            n_bytes += name.as_str().len() + value.len();
            n_bytes <= settings.max_header_bytes
        })
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), value.into_owned())
        })
        .collect()
}

fn fetch_error(error: reqwest::Error, settings: &FetchSettings) -> FetchError {
    let error = error.without_url();
    let causes = || {
        let first: &(dyn Error + 'static) = &error;
        std::iter::successors(Some(first), |&cause| cause.source())
    };
    if let Some(unresolved) = causes().find_map(|cause| cause.downcast_ref::<ResolveError>()) {
        return unresolved.clone().into_fetch_error();
    }
    if error.is_timeout() {
        return FetchError::Timeout {
            limit: settings.connect_timeout,
            setting: "connect-timeout",
        };
    }
    let mut texts: Vec<String> = causes().map(ToString::to_string).collect();
    texts.dedup();
    let why = texts.join(": ");
    if error.is_builder() {
        FetchError::Request { why }
    } else {
        FetchError::Connection { why }
    }
}
