//! Redriving of dead letters: they are tried again.

use std::collections::BTreeSet;

use bytes::Bytes;
use prost::Message as _;
use slatedb::WriteBatch;

use super::inner::Inner;
use super::state::{State, Waiting};
use crate::records::{self, Stage};
use crate::workbench::{HostHealth, HostId, QueuePosition};
use crate::{FrontierError, keys};
use crawler_model::crawl::Request;
use crawler_model::resource::Redrive;

impl Inner {
    /// Tries the dead letters again that the order selects, and returns their number.
    pub(super) async fn redrive(&self, order: &Redrive) -> Result<u64, FrontierError> {
        self.check()?;
        let mut n_redriven = 0;
        let prefix = keys::dead_letters_of(self.run);
        let mut range = prefix.clone()..keys::end_of(&prefix);
        loop {
            let entries = self.piece(range.clone()).await?;
            let Some((last, _)) = entries.last() else {
                break;
            };
            range.start = keys::after(last);
            let mut letters = Vec::new();
            for (key, value) in entries {
                let letter: records::DeadLetter = self.decode(&value, "dead letter")?;
                if order.wants(&letter.reason) {
                    let request = letter.request.clone().into_request();
                    let request = request.map_err(|why| self.damaged(why))?;
                    letters.push((key, request, letter));
                }
            }
            n_redriven += self.redrive_all(letters).await?;
        }
        self.take_changed.notify_one();
        Ok(n_redriven)
    }

    async fn redrive_all(
        &self,
        letters: Vec<(Bytes, Request, records::DeadLetter)>,
    ) -> Result<u64, FrontierError> {
        let mut n_redriven = 0;
        if letters.is_empty() {
            return Ok(0);
        }
        let guard = self.writer.lock().await;
        // All steps that may fail come before the first change, so that the counts in memory agree with the batch.
        let mut known = Vec::with_capacity(letters.len());
        for (key, request, letter) in letters {
            let (host, fingerprint) = (keys::host_of(&request), request.fingerprint());
            let present = self.state_of(host, fingerprint).await?;
            let is_over =
                present.is_some_and(|state| state.run == self.run.0 && state.visit > letter.visit);
            known.push((key, request, letter, is_over));
        }
        let mut batch = WriteBatch::new();
        let mut hosts = BTreeSet::new();
        {
            let mut state = self.state();
            for (key, request, letter, is_over) in known {
                batch.delete(key);
                if is_over {
                    // A later visit has come; going back would give its items keys that were used before.
                    state.forget_death(&letter.reason);
                    continue;
                }
                n_redriven += 1;
                state.try_again(request, letter, &mut hosts, &mut batch);
            }
            for host in hosts {
                state.save_host(host, &mut batch);
            }
        }
        self.write(&guard, batch, 0).await?;
        Ok(n_redriven)
    }
}

impl State {
    /// Queues a page again that was given up.
    fn try_again(
        &mut self,
        request: Request,
        letter: records::DeadLetter,
        hosts: &mut BTreeSet<HostId>,
        batch: &mut WriteBatch,
    ) {
        let fingerprint = request.fingerprint();
        let lane = self
            .bench
            .lane_for(keys::host_of(&request), request.priority);
        self.bench
            .update_health(lane.host, HostHealth::clear_failures);
        let at = QueuePosition {
            due: self.time.latest(),
            entry: self.last.next_entry,
        };
        self.last.next_entry += 1;
        self.counts.due += 1;
        self.forget_death(&letter.reason);
        let record = records::State {
            run: self.run.0,
            stage: Stage::Due as i32,
            due: at.due,
            entry: at.entry,
            priority: lane.priority,
            visit: letter.visit,
            depth: letter.depth,
            plugin: letter.plugin,
            ..records::State::default()
        };
        batch.put(keys::state(lane.host, fingerprint), record.encode_to_vec());
        let waiting = Waiting {
            request,
            fingerprint,
            depth: letter.depth,
            attempt: 1,
            visit: letter.visit,
            failure: letter.reason,
            validators: None,
            plugin: letter.plugin,
        };
        // The host is saved in any case, because its failures were forgotten.
        hosts.insert(lane.host);
        self.wait(lane, at, waiting, batch);
    }
}
