//! Calls that this process makes by itself: a body that is posted to one URL, which the operator has named.
//!
//! The URL is judged like that of a page, except that its port may be any, and that networks are allowed for this URL alone. A
//! connection goes to the address that was judged. Redirects are not followed, and nothing is sent twice.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ipnet::IpNet;
use reqwest::Client;
use reqwest::header::RETRY_AFTER;
use url::Url;

use super::failed::in_client;
use super::{FetchSettings, SetupError, client};
use crate::FetchError;
use crate::address_policy::AddressPolicy;
use crate::resolve::FilteringResolver;

/// Client that posts to one URL.
pub struct PostClient {
    client: Client,
    url: Url,
    address_policy: Arc<AddressPolicy>,
    resolver: FilteringResolver,
    settings: FetchSettings,
}

/// Answer to a call. Its body is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostAnswer {
    /// Status.
    pub status: u16,
    /// Value of `Retry-After`, if there is one: see [`retry_after`](super::retry_after).
    pub retry_after: Option<String>,
}

/// Reason why a call was not answered.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PostError {
    /// The address may not be reached.
    #[error("{host} is at {address}, which is not a public address")]
    Address {
        /// Host as written in the URL.
        host: String,
        /// Address that the host resolved to.
        address: String,
    },
    /// The receiver has not answered in time.
    #[error("no answer within {limit:?}")]
    Timeout {
        /// Longest time for an answer.
        limit: Duration,
    },
    /// The call failed in another way.
    #[error(transparent)]
    Failed(FetchError),
}

impl PostClient {
    /// Creates a client with its own connections. These networks may be reached although they are not public.
    pub fn new(
        url: Url,
        allow_networks: Vec<IpNet>,
        settings: FetchSettings,
    ) -> Result<Self, SetupError> {
        let address_policy = Arc::new(AddressPolicy::new(allow_networks));
        let fixed = settings.hosts.clone();
        let resolver = FilteringResolver::new(Arc::clone(&address_policy), fixed, &settings.names);
        Ok(Self {
            client: client::build(&settings, resolver.clone(), None)?,
            url,
            address_policy,
            resolver,
            settings,
        })
    }

    /// Posts a body with these headers, and returns the answer.
    pub async fn post(
        &self,
        headers: Vec<(&'static str, String)>,
        body: Bytes,
        limit: Duration,
    ) -> Result<PostAnswer, PostError> {
        self.check()?;
        let _port = self.resolver.announce_port(&self.url, true);
        let request = self.client.post(self.url.clone()).body(body);
        let request = headers.into_iter().fold(request, |request, (name, value)| {
            request.header(name, value)
        });
        match tokio::time::timeout(limit, request.send()).await {
            Ok(Ok(answer)) => {
                let retry_after = answer.headers().get(RETRY_AFTER);
                let retry_after = retry_after.and_then(|value| value.to_str().ok());
                Ok(PostAnswer {
                    status: answer.status().as_u16(),
                    retry_after: retry_after.map(str::to_owned),
                })
            }
            Ok(Err(error)) => Err(PostError::of(in_client(error, &self.settings))),
            Err(_elapsed) => Err(PostError::Timeout { limit }),
        }
    }

    /// Judges the URL as far as that is possible without resolving its name.
    pub fn check(&self) -> Result<(), PostError> {
        self.address_policy.check(&self.url).map_err(PostError::of)
    }
}

impl PostError {
    fn of(error: FetchError) -> Self {
        match error {
            FetchError::Address { host, address } => Self::Address { host, address },
            error => Self::Failed(error),
        }
    }
}

/// Shows the host alone: the path of a URL may be a secret.
impl std::fmt::Debug for PostClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostClient")
            .field("host", &self.url.host_str())
            .finish_non_exhaustive()
    }
}
