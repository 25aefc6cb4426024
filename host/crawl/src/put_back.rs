//! Pause of a crawl that was put back, because its process uses more memory than it may and this crawl most of
//! it. The frontier is closed meanwhile.

use std::time::Duration;

use super::log::CrawlLog;
use crawler_process::memory::CrawlMemory;
use crawler_process::retry::Backoff;

/// Name of the state of a crawl that waits because its process is close to its memory limit.
pub const MEMORY_SHORT: &str = "MemoryShort";

/// The shortest pause of a crawl that was put back: others have their turn first.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Creates the back-off between being put back and going on.
pub fn new_backoff() -> Backoff {
    Backoff::new(FIRST_WAIT, LONGEST_WAIT)
}

/// Logs why the crawl was put back, and waits until it may go on.
pub async fn until_free(
    crawl_memory: &CrawlMemory,
    backoff: &mut Backoff,
    log: &CrawlLog,
    why: &str,
) {
    log.note("warn", format!("the crawl waits: {MEMORY_SHORT}: {why}"));
    tokio::time::sleep(backoff.next_delay()).await;
    wait_until_free(crawl_memory, log).await;
}

/// Waits until memory is free, and logs that.
pub async fn wait_until_free(crawl_memory: &CrawlMemory, log: &CrawlLog) {
    crawl_memory.free().await;
    log.note("info", "memory is free again");
}
