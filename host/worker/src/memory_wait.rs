//! Wait of an assignment whose crawl was put back for want of memory. The shard stays with the worker, and the
//! crawl goes on once memory is free.

use super::assigned::{Assigned, Stop};
use super::crawl_state::CrawlState;
use crawler_crawl::log::CrawlLog;
use crawler_crawl::put_back::{self, MEMORY_SHORT};
use crawler_model::resource::Waits;
use crawler_process::retry::Backoff;

impl Assigned {
    /// Shows why the crawl was put back, and waits until it may go on.
    pub(super) async fn wait_for_memory(
        &self,
        why: String,
        backoff: &mut Backoff,
        crawl_state: &CrawlState,
        log: &CrawlLog,
    ) -> Result<(), Stop> {
        let condition = MEMORY_SHORT.to_owned();
        let waits = Waits { condition, why };
        self.wait(backoff, &waits, crawl_state, log).await?;
        let free = put_back::wait_until_free(&self.crawl_memory, log);
        let free = self.stop.run_until_cancelled(free);
        free.await.ok_or(Stop::Requested)
    }
}
