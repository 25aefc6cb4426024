//! Failures of requests: in the client, or by taking too long.

use std::error::Error;
use std::io;
use std::time::Duration;

use futures::FutureExt as _;

use super::FetchSettings;
use crate::FetchError;
use crate::error::is_out_of_files;
use crate::resolve::ResolveError;

/// Returns the result of `work` if it takes no longer than this setting of `[fetch]` allows.
///
/// This is not an async function, because one would hold the work twice: as its argument and while it awaits it.
pub(super) fn within<T>(
    limit: Duration,
    setting: &'static str,
    work: impl Future<Output = Result<T, FetchError>>,
) -> impl Future<Output = Result<T, FetchError>> {
    tokio::time::timeout(limit, work)
        .map(move |done| done.unwrap_or(Err(FetchError::Timeout { limit, setting })))
}

/// Translates an error of the client.
pub(super) fn in_client(error: reqwest::Error, settings: &FetchSettings) -> FetchError {
    let error = error.without_url();
    let causes = || {
        let first: &(dyn Error + 'static) = &error;
        std::iter::successors(Some(first), |&cause| cause.source())
    };
    if let Some(unresolved) = causes().find_map(|cause| cause.downcast_ref::<ResolveError>()) {
        return unresolved.clone().into_fetch_error();
    }
    let mut of_system = causes().filter_map(|cause| cause.downcast_ref::<io::Error>());
    if of_system.any(is_out_of_files) {
        return FetchError::OpenFiles;
    }
    if error.is_timeout() {
        return FetchError::Timeout {
            limit: settings.connect_timeout,
            setting: "connect-timeout",
        };
    }
    let mut of_http = causes().filter_map(|cause| cause.downcast_ref::<hyper::Error>());
    if of_http.any(hyper::Error::is_parse_too_large) {
        let max = settings.max_headers;
        return FetchError::Headers { max };
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
