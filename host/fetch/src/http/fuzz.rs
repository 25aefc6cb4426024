//! Entry point for fuzz targets: processes an answer without a connection.

use reqwest::Response;
use url::Url;

use super::hop::{Hop, Outcome};
use super::{FetchSettings, page};
use crate::{Answer, FetchError};
use crawler_model::page::FetchRecord;

/// Returns the answer to a GET of this URL as rules see it, or the target of its redirect, also within the host.
pub async fn answer(
    url: Url,
    response: Response,
    settings: &FetchSettings,
    max_body: u64,
) -> Result<Answer, FetchError> {
    let hop = Hop::get(url, false, None);
    let record = FetchRecord::default();
    Ok(
        match hop.outcome(response, record, settings, max_body).await? {
            Outcome::Redirect { to, .. } => Answer::Redirect { to },
            Outcome::Received(answer) => {
                Answer::Page(Box::new(page(hop.url, Vec::new(), answer, 0, max_body)))
            }
        },
    )
}
