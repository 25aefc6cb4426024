//! Search for one URL, whatever became of it.

use super::FrontierReader;
use crate::monotonic_time::MonotonicTime;
use crate::records::{self, Stage};
use crate::workbench::{LaneId, QueuePosition};
use crate::{FrontierError, keys};
use crawler_model::crawl::{Done, Fingerprint, Request, UnixMillis};
use crawler_model::frontier::{UrlEntry, UrlState};
use crawler_model::id::Shard;

/// Number of attempts to find one URL.
const FIND_ATTEMPTS: usize = 3;

impl FrontierReader {
    /// Returns what is known of a request at the moment `now`, or `None` if it was never stored.
    pub async fn find(
        &self,
        request: &Request,
        now: UnixMillis,
    ) -> Result<Option<UrlEntry>, FrontierError> {
        // The state and the record that it names are read one after the other; a page that ends in between is
        // found by the next attempt.
        for _ in 1..FIND_ATTEMPTS {
            let found = self.find_once(request, now).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        self.find_once(request, now).await
    }

    async fn find_once(
        &self,
        request: &Request,
        now: UnixMillis,
    ) -> Result<Option<UrlEntry>, FrontierError> {
        let (host, fingerprint) = (keys::host_of(request), request.fingerprint());
        let key = keys::state(host, fingerprint);
        let state: Option<records::State> = self.record(&key, "state").await?;
        let Some(state) = state.filter(|state| state.run == self.run.0) else {
            return self.redirected_or_sent(request, fingerprint).await;
        };
        let lane = LaneId {
            host,
            priority: state.priority,
        };
        let position = QueuePosition {
            due: state.due,
            entry: state.entry,
        };
        if state.stage() == Stage::Due {
            let key = keys::ready(self.run, lane, position);
            let record = self.get(&key).await?;
            let entry = record.map(|value| self.ready(&key, &value)).transpose()?;
            let mut time = MonotonicTime::from(self.last_batch().await?.latest);
            time.now(now);
            let wait = self.wait_of(host, time).await?;
            return Ok(entry.map(|mut entry| {
                if let UrlState::Due { at, .. } = &mut entry.state {
                    *at = time.to_wall(*at);
                }
                entry.at_host(wait)
            }));
        }
        if state.stage() == Stage::Dead {
            let key = keys::dead_letter(self.run, host, fingerprint);
            let record = self.get(&key).await?;
            return record.map(|value| self.dead(&value)).transpose();
        }
        self.of_state(state).map(Some)
    }

    /// Returns the entry of a URL that was the target of redirects, or was sent to the shard that it belongs to.
    async fn redirected_or_sent(
        &self,
        request: &Request,
        fingerprint: Fingerprint,
    ) -> Result<Option<UrlEntry>, FrontierError> {
        let key = keys::seen(self.run, keys::host_of(request), fingerprint);
        let seen: Option<records::Seen> = self.record(&key, "seen").await?;
        Ok(seen.map(|seen| UrlEntry {
            request: request.clone(),
            depth: 0,
            run: self.run,
            state: match seen.to {
                Some(to) => UrlState::Sent { to: Shard(to) },
                None => UrlState::Done(Done::Duplicate),
            },
            since: 0,
        }))
    }
}
