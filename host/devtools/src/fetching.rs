//! Fetches one page for a rule as a crawl would: with the same fetcher and the same restraint.

use url::Url;

use crawler_fetch::{Answer, Failure, Fetch, FetchError, FetchRequest};
use crawler_model::crawl::{Page, Request};
use crawler_model::settings::CrawlSettings;

/// Redirects from host to host that are followed; the fetcher follows those within a host.
const MAX_HOSTS: usize = 10;

/// Reason why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A request failed without an answer.
    #[error("cannot fetch {url}")]
    Failed {
        /// URL of the request.
        url: Url,
        /// Error of the fetcher.
        source: FetchError,
    },
    /// Hosts redirect to one another more often than is followed.
    #[error("{url}: more than {MAX_HOSTS} redirects from host to host")]
    Redirects {
        /// URL that the redirects began with.
        url: Url,
    },
}

/// Fetches the page as a crawl with these settings would, and cuts its body after `max_body` bytes. Redirects
/// to other hosts are followed here; a crawl does so with requests of their own.
pub async fn page(
    fetch: &dyn Fetch,
    wanted: &Request,
    settings: &CrawlSettings,
    max_body: u64,
) -> Result<Page, PageError> {
    let mut request = wanted.clone();
    for n_before in 0..=MAX_HOSTS {
        let fetch_request = FetchRequest {
            // A user who types an address may name its port; a redirect may not.
            names_port: n_before == 0,
            ..FetchRequest::new(&request, settings, 1, max_body)
        };
        let fetched = fetch.fetch(fetch_request).await;
        let fetched = fetched.map_err(|Failure { error, .. }| PageError::Failed {
            url: request.url.clone(),
            source: error,
        })?;
        match fetched.answer {
            Answer::Page(page) => return Ok(*page),
            Answer::Redirect { to } => request = request.redirected(to),
        }
    }
    let url = wanted.url.clone();
    Err(PageError::Redirects { url })
}
