//! The fetcher of pages that the user asks for.

use std::sync::Arc;

use crate::app::parts;
use crate::cli::devtools::FetchSetup;
use crawler_fetch::Fetch;
use crawler_process::clock::SystemClock;

/// Creates the fetcher for pages that the user asks for. Refuses settings that make no sense.
pub(super) fn fetcher(fetch_setup: &FetchSetup) -> anyhow::Result<Arc<dyn Fetch>> {
    fetch_setup.settings.check()?;
    let address_policy =
        parts::address_policy(&fetch_setup.allow_networks, &fetch_setup.allow_ports);
    let clock = Arc::new(SystemClock);
    Ok(parts::fetcher(
        address_policy,
        &fetch_setup.fetch,
        &fetch_setup.hosts,
        fetch_setup.cache.as_ref(),
        clock,
    )?)
}
