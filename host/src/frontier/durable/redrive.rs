//! Dead letters, tried again.

use std::collections::BTreeSet;

use bytes::Bytes;
use prost::Message as _;
use slatedb::WriteBatch;

use super::Inner;
use super::state::Waiting;
use crate::frontier::records::{self, Stage};
use crate::frontier::workbench::{LaneId, Turn};
use crate::frontier::{FrontierError, keys};
use crate::model::crawl::Request;
use crate::model::resource::Redrive;

impl Inner {
    /// Those that the order is about; how many.
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
        let turn = self.writer.lock().await;
        let mut batch = WriteBatch::new();
        let mut hosts = BTreeSet::new();
        for (key, request, letter) in letters {
            let fingerprint = request.fingerprint();
            let lane = LaneId {
                host: keys::host_of(&request),
                priority: request.priority,
            };
            let present = self.state_of(lane.host, fingerprint).await?;
            let is_over =
                present.is_some_and(|state| state.run == self.run.0 && state.visit > letter.visit);
            batch.delete(key);
            let mut state = self.state();
            let state = &mut *state;
            if is_over {
                // A later visit has come; to go back would be to give its items their keys again.
                state.forget_death(&letter.reason);
                continue;
            }
            n_redriven += 1;
            let at = Turn {
                due: state.time.latest(),
                entry: state.last.next_entry,
            };
            state.last.next_entry += 1;
            state.counts.due += 1;
            state.forget_death(&letter.reason);
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
            if state.wait(lane, at, waiting, &mut batch) {
                hosts.insert(lane.host);
            }
        }
        for host in hosts {
            self.state().save_host(host, &mut batch);
        }
        self.write(&turn, batch, 0).await?;
        Ok(n_redriven)
    }
}
