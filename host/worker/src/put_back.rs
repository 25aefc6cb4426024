//! Pause of a crawl that was put back, because its worker uses more memory than it may and this crawl most of
//! it. Its frontier is closed, the shard stays with the worker, and the crawl goes on once memory is free.

use std::time::Duration;

use super::assigned::{Assigned, Stop};
use super::report::CrawlLog;
use super::{Live, MEMORY_SHORT};
use crawler_model::resource::Waits;
use crawler_process::memory::Seat;
use crawler_process::retry::Backoff;

/// The shortest pause of a crawl that was put back: others have their turn first.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Creates the back-off between being put back and going on.
pub fn new_backoff() -> Backoff {
    Backoff::new(FIRST_WAIT, LONGEST_WAIT)
}

impl Assigned {
    /// Shows why the crawl was put back, and waits until it may go on.
    pub(super) async fn wait_for_memory(
        &self,
        why: String,
        backoff: &mut Backoff,
        live: &Live,
        log: &CrawlLog,
    ) -> Result<(), Stop> {
        let condition = MEMORY_SHORT.to_owned();
        let waits = Waits { condition, why };
        self.wait(backoff, &waits, live, log).await?;
        let free = self.stop.run_until_cancelled(self.seat.free());
        free.await.ok_or(Stop::Told)?;
        log.note("info", "memory is free again");
        Ok(())
    }
}

/// Waits in the same way for a crawl whose shard no master knows.
pub async fn until_free(seat: &Seat, backoff: &mut Backoff, log: &CrawlLog, why: &str) {
    log.note("warn", format!("the crawl waits: {MEMORY_SHORT}: {why}"));
    tokio::time::sleep(backoff.next_delay()).await;
    seat.free().await;
    log.note("info", "memory is free again");
}
