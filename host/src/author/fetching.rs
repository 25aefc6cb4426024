//! One page for a rule, fetched as a crawl would fetch it: by the same fetcher, with the same manners.

use url::Url;

use crate::fetch::agents::identity;
use crate::fetch::gate::Asker;
use crate::fetch::{Answer, Failure, Fetch, FetchError, FetchRequest};
use crate::memory::Account;
use crate::model::crawl::{Page, Request};
use crate::model::settings::CrawlSettings;

/// Redirects from host to host that are followed; those within a host are the fetcher's.
const MAX_HOSTS: usize = 10;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum NoPage {
    /// A request brought no answer.
    #[error("cannot fetch {url}")]
    Failed {
        /// What was asked for.
        url: Url,
        /// What went wrong.
        source: FetchError,
    },
    /// One host leads to the next, without an end.
    #[error("{url}: more than {MAX_HOSTS} redirects from host to host")]
    Redirects {
        /// Where they began.
        url: Url,
    },
}

/// Fetches it as a crawl with these settings would, cut after so many bytes. Redirects to other hosts are
/// followed, as a crawl does with requests of their own.
pub async fn page(
    fetch: &dyn Fetch,
    wanted: &Request,
    settings: &CrawlSettings,
    max_body: u64,
) -> Result<Page, NoPage> {
    let mut request = wanted.clone();
    for n_before in 0..=MAX_HOSTS {
        let fetch_request = FetchRequest {
            url: request.url.clone(),
            // Whoever types an address names its port; a site that leads elsewhere does not.
            names_port: n_before == 0,
            method: request.method.clone(),
            headers: request.headers.clone(),
            identity: identity(&settings.user_agents, &request.url, 1),
            cookies: None,
            proxy: settings.proxy.clone(),
            credentials: settings.credentials.clone().unwrap_or_default(),
            body: request.body.clone(),
            max_url_length: settings.max_url_length(),
            content_types: settings.content_types.clone().unwrap_or_default(),
            max_body,
            delay: settings.delay(),
            random_delay: settings.random_delay(),
            host_rate: settings.host_rate.clone().unwrap_or_default(),
            unless: None,
            robots: settings.robots(),
            max_crawl_delay: settings.max_crawl_delay(),
            account: Account::default(),
            asker: Asker::waiting(),
            place: None,
        };
        let fetched = fetch.fetch(fetch_request).await;
        let fetched = fetched.map_err(|Failure { error, .. }| NoPage::Failed {
            url: request.url.clone(),
            source: error,
        })?;
        match fetched.answer {
            Answer::Page(page) => return Ok(*page),
            Answer::Elsewhere { to } => request = request.redirected(to),
        }
    }
    let url = wanted.url.clone();
    Err(NoPage::Redirects { url })
}
