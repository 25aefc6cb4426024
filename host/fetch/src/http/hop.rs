//! One request and its answer.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Request, Response, StatusCode};
use tokio::select;
use tokio::time::{Instant, sleep_until};
use url::Url;

use super::super::cache::HttpCache;
use super::super::cookies::CookieJar;
use super::super::phases::RequestPhases;
use super::super::tape::{SentRequest, Tape};
use super::super::{FetchError, FetchRequest, FetchSlot};
use super::FetchSettings;
use super::body::{ACCEPTED, Body, Limit, codings, read};
use super::cached::Draft;
use super::failed;
use super::head::{headers, version};
use super::proxy_pools::ProxyPool;
use crawler_model::accept_status::AcceptStatus;
use crawler_model::exchange::Redirects;
use crawler_model::headers::Headers;
use crawler_model::page::FetchRecord;
use crawler_model::settings::{ContentTypes, CredentialNames};
use crawler_process::memory::Account;

/// Headers that frame a message or choose its coding; only the client sets them.
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
    /// True if its resource names the port.
    pub(super) names_port: bool,
    pub(super) method: Method,
    headers: HeaderMap,
    cookies: Option<Arc<CookieJar>>,
    pub(super) body: Option<Bytes>,
    /// Statuses of redirects that are not followed.
    pub(super) accept_status: AcceptStatus,
    pub(super) content_types: ContentTypes,
    /// Maximum length of the body of a successful answer, if that is wanted whole.
    pub(super) max_file: Option<u64>,
    /// Proxies that the request goes through. If `None`, it goes to the host directly.
    pub(super) pool: Option<Arc<ProxyPool>>,
    /// Names of credentials to send to the hosts that they are for.
    credentials: CredentialNames,
    /// Memory account that the body of the answer is charged to while it is read.
    pub(super) account: Account,
    /// Slot that is given up while the request waits for the turn of a host.
    pub(super) slot: Option<Arc<dyn FetchSlot>>,
    /// Cache that may have the answer, and keeps it otherwise.
    pub(super) cache: Option<HttpCache>,
    /// Tape that records the exchange, for an archive.
    pub(super) tape: Option<Arc<Tape>>,
    /// Redirects that led here.
    pub(super) redirects: Option<Redirects>,
}

/// Result of sending a hop once.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) outcome: Result<Outcome, FetchError>,
    /// Time until its end.
    pub(super) took: Duration,
    /// True if it ended before there was a connection, so that nothing was asked.
    pub(super) was_not_connected: bool,
    /// Key and head of the answer, if the cache may keep it.
    pub(super) draft: Option<Draft>,
}

/// Outcome of an exchange.
#[derive(Debug)]
pub(super) enum Outcome {
    /// An answer, read as far as the limit.
    Received(Received),
    /// A redirect; its body was not read.
    Redirect {
        /// Absolute URL without fragment.
        to: Url,
        /// Status of the answer, which decides the method of the next hop.
        status: StatusCode,
    },
}

/// An answer.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) status: u16,
    /// Headers with names in lower case.
    pub(super) headers: Headers,
    pub(super) body: Bytes,
    pub(super) truncated: bool,
    /// Record of the fetch, without the part before the request was sent.
    pub(super) record: FetchRecord,
}

impl Hop {
    /// Creates a plain GET of a URL.
    pub(super) fn get(url: Url, names_port: bool, pool: Option<Arc<ProxyPool>>) -> Self {
        Self {
            url,
            names_port,
            method: Method::GET,
            headers: HeaderMap::new(),
            cookies: None,
            body: None,
            accept_status: AcceptStatus::default(),
            content_types: ContentTypes::default(),
            max_file: None,
            pool,
            credentials: CredentialNames::default(),
            account: Account::default(),
            slot: None,
            cache: None,
            tape: None,
            redirects: None,
        }
    }

    /// Builds the first hop of a request, or returns why it cannot be sent.
    pub(super) fn first(
        request: FetchRequest,
        pool: Option<Arc<ProxyPool>>,
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
        let validators = request.validators.unwrap_or_default();
        for (name, value) in [
            (header::IF_NONE_MATCH, validators.etag),
            (header::IF_MODIFIED_SINCE, validators.last_modified),
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
            accept_status: request.accept_status,
            content_types: request.content_types,
            max_file: request.max_file,
            pool,
            credentials: request.credentials,
            account: request.account,
            slot: request.slot,
            cache: None,
            tape: request.tape,
            redirects: None,
        })
    }

    /// Turns the hop into the one that a redirect leads to and returns the URL that it led from. Like in
    /// browsers, a POST becomes a GET on 301 and 302, and any method but HEAD on 303; 307 and 308 repeat the
    /// request.
    pub(super) fn redirect(&mut self, to: Url, status: StatusCode) -> Url {
        self.note_redirect();
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
        // The validators are those of the first URL.
        for name in [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE] {
            self.headers.remove(name);
        }
        std::mem::replace(&mut self.url, to)
    }

    /// Returns true if the hop requests a page and has no other effect.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD) && self.body.is_none()
    }

    /// Sends the request and reads the answer, within the timeouts.
    pub(super) async fn exchange(
        &self,
        client: &Client,
        settings: &FetchSettings,
        max_body: u64,
    ) -> Exchange {
        let (begun, phases, mut draft) = (Instant::now(), Arc::default(), None);
        let outcome = self.answered(client, settings, max_body, begun, &phases, &mut draft);
        Exchange {
            outcome: outcome.await,
            took: begun.elapsed(),
            was_not_connected: phases.was_not_connected(),
            draft,
        }
    }

    async fn answered(
        &self,
        client: &Client,
        settings: &FetchSettings,
        max_body: u64,
        begun: Instant,
        phases: &Arc<RequestPhases>,
        draft: &mut Option<Draft>,
    ) -> Result<Outcome, FetchError> {
        let request = self.request(settings)?;
        // The cookies may be others than when the cache was asked.
        let key = self.cache_key(&request, settings);
        let sent = self.tape.as_ref();
        let sent = sent.map(|_| SentRequest::of(&request, &settings.user_agent));
        let whole = (settings.timeout, "timeout");
        let (limit, setting) = (settings.first_byte_timeout, "first-byte-timeout").min(whole);
        // One timer serves both limits, because each timer has to be inserted among all others and removed again.
        let mut clock = pin!(sleep_until(moment(begun, limit)));
        let response = select! {
            biased;
            sent = RequestPhases::of(phases, client.execute(request)) => {
                sent.map_err(|error| failed::in_client(error, settings))?
            }
            () = &mut clock => return Err(FetchError::Timeout { limit, setting }),
        };
        let record = FetchRecord {
            lookup: phases.lookup(),
            connect: phases.connect(),
            first_byte: begun.elapsed(),
            ..FetchRecord::default()
        };
        if let (Some(tape), Some(sent)) = (&self.tape, sent) {
            tape.begin(sent, &response);
        }
        self.receive_cookies(&response);
        *draft = key.and_then(|key| self.draft(key, &response));
        let (limit, setting) = whole;
        clock.as_mut().reset(moment(begun, limit));
        select! {
            biased;
            outcome = self.outcome(response, record, settings, max_body) => outcome,
            () = &mut clock => Err(FetchError::Timeout { limit, setting }),
        }
    }

    /// Returns the request as it is sent now, with the present cookies.
    pub(super) fn request(&self, settings: &FetchSettings) -> Result<Request, FetchError> {
        let mut request = Request::new(self.method.clone(), self.url.clone());
        *request.body_mut() = self.body.clone().map(Into::into);
        let mut headers = self.headers.clone();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
        if let Some(cookies) = &self.cookies
            && !headers.contains_key(header::COOKIE)
            && let Some(sent) = cookies.header(&self.url)
        {
            let sent = HeaderValue::try_from(sent).map_err(|_| FetchError::Request {
                why: "the cookies of its host are not a valid header".to_owned(),
            })?;
            headers.insert(header::COOKIE, sent);
        }
        let named = |name| settings.credentials.get(name);
        let mut shown = self.credentials.iter().filter_map(named);
        if !headers.contains_key(header::AUTHORIZATION)
            && let Some(authorization) = shown.find_map(|shown| shown.for_url(&self.url))
        {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Takes the cookies that an answer sets.
    pub(super) fn receive_cookies(&self, response: &Response) {
        if let Some(cookies) = &self.cookies {
            let set = response.headers().get_all(header::SET_COOKIE).iter();
            cookies.receive(&self.url, set.filter_map(|value| value.to_str().ok()));
        }
    }

    /// Returns the outcome once the answer begins, and reads its body.
    pub(super) async fn outcome(
        &self,
        response: Response,
        mut record: FetchRecord,
        settings: &FetchSettings,
        max_body: u64,
    ) -> Result<Outcome, FetchError> {
        if let Some(outcome) = self.without_body(&response, settings)? {
            return Ok(outcome);
        }
        let codings = codings(response.headers());
        let limit = self.limit(&response, max_body);
        let encoded = self.tape.as_deref().filter(|_| !codings.is_empty());
        if let Some(tape) = encoded {
            let (Limit::Cut(max) | Limit::Whole(max)) = limit;
            tape.expect_encoded(max, self.account.reserve(0));
        }
        let status = response.status().as_u16();
        let headers = headers(&response, !codings.is_empty(), settings);
        record.address = response.remote_addr();
        record.version = version(response.version());
        let begun = Instant::now();
        let Body {
            body,
            truncated,
            n_received,
        } = read(
            response,
            &self.method,
            &codings,
            settings,
            limit,
            self.account.reserve(0),
            encoded,
        )
        .await?;
        if let Some(tape) = &self.tape {
            tape.set_body(&body, !codings.is_empty(), truncated);
        }
        record.body = begun.elapsed();
        record.n_received = n_received;
        Ok(Outcome::Received(Received {
            status,
            headers,
            body,
            truncated,
            record,
        }))
    }
}

/// Returns the moment `after` the beginning, limited to times that clocks can represent.
fn moment(begun: Instant, after: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    begun + after.min(FAR)
}
