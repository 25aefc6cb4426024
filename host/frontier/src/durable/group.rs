//! Group commit: pages that wait for the turn at the same time share one batch.

use std::collections::{HashSet, VecDeque};
use std::sync::{MutexGuard, PoisonError};

use slatedb::WriteBatch;
use tokio::sync::oneshot;

use super::Inner;
use super::links::{Around, Links};
use super::state::Before;
use super::writer::{CutOff, Turn};
use crate::workbench::HostId;
use crate::{Commit, Committed, Ended, FrontierError, keys, records};
use crawler_model::crawl::{Done, Fingerprint};

/// Limits of one batch: its pages, and the new links above which no further page joins it.
const MAX_PAGES: usize = 32;
const MAX_LINKS: usize = 4_096;

type Answer = Result<Committed, FrontierError>;

/// A page's end that waits for its batch.
pub(super) struct Queued {
    commit: Commit,
    links: Links,
    tell: oneshot::Sender<Answer>,
}

/// One batch in the making.
struct Group<'a> {
    batch: WriteBatch,
    stored_here: HashSet<Fingerprint>,
    told: Vec<(oneshot::Sender<Answer>, Committed)>,
    cut_off: CutOff<'a>,
}

impl<'a> Group<'a> {
    fn new(inner: &'a Inner) -> Self {
        Self {
            batch: WriteBatch::new(),
            stored_here: HashSet::new(),
            told: Vec::new(),
            cut_off: CutOff {
                inner,
                is_armed: false,
            },
        }
    }
}

impl Inner {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Queued>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn commit(&self, mut commit: Commit) -> Answer {
        self.check()?;
        let requests = std::mem::take(&mut commit.result.requests);
        let links = self.links(requests, std::mem::take(&mut commit.result.for_others));
        let (tell, mut told) = oneshot::channel();
        self.queue().push_back(Queued {
            commit,
            links,
            tell,
        });
        loop {
            tokio::select! {
                biased;
                answer = &mut told => {
                    let shard = self.shard;
                    return answer.unwrap_or(Err(FrontierError::Closed { shard }));
                }
                turn = self.writer.lock() => self.commit_queued(&turn).await,
            }
        }
    }

    /// Commits the waiting pages in their order. When it returns, at least the first of them has its answer.
    async fn commit_queued(&self, turn: &Turn<'_>) {
        let mut group = Group::new(self);
        let mut has_failed = false;
        while group.told.len() < MAX_PAGES
            && group.stored_here.len() < MAX_LINKS
            && let Some(queued) = { self.queue().pop_front() }
        {
            let is_alone = self.reads_what_pages_write(&queued);
            if is_alone && !group.told.is_empty() {
                self.queue().push_front(queued);
                break;
            }
            group.cut_off.is_armed = true;
            match self.add(&mut group, queued.commit, queued.links).await {
                Ok(committed) => group.told.push((queued.tell, committed)),
                Err(error) => {
                    // The caller may be gone. What it has counted is read anew.
                    drop(queued.tell.send(Err(error)));
                    has_failed = true;
                    break;
                }
            }
            if is_alone {
                break;
            }
        }
        let written = match group.told.len() {
            0 => Ok(0),
            n_pages => self.write(turn, group.batch, n_pages).await,
        };
        group.cut_off.is_armed = false;
        if has_failed {
            self.state().patterns.clear();
        }
        for (tell, committed) in group.told {
            let answer = written.clone().map(|_sequence| committed);
            drop(tell.send(answer));
        }
    }

    /// Returns true if the commit depends on something that a page before it may change, which then has to be
    /// in the database.
    fn reads_what_pages_write(&self, queued: &Queued) -> bool {
        queued.links.has_reload() || self.state().head.has_reloads
    }

    async fn add(&self, group: &mut Group<'_>, mut commit: Commit, mut links: Links) -> Answer {
        let claim = &commit.claim;
        let (fingerprint, visit) = (claim.fingerprint, claim.visit);
        let (host, has_reloads) = {
            let mut state = self.state();
            let has_reloads = state.head.has_reloads;
            (state.find(claim)?.lane.host, has_reloads)
        };
        let led_to = commit
            .result
            .final_url
            .as_ref()
            .map(|request| (request.fingerprint(), self.seen_key(request)));
        if let (Some(request), Some((led_to, _))) = (&commit.result.final_url, led_to)
            && !claim.request.reload
            && led_to != fingerprint
            && (group.stored_here.contains(&led_to) || self.knows(request).await?)
        {
            // Another page was redirected there meanwhile, and its items are stored.
            commit.result.ended = Ended::Done(Done::Duplicate);
            commit.result.items.clear();
            links = Links::default();
        }
        let earlier_death = match (&commit.result.ended, has_reloads) {
            (Ended::Dead { .. }, true) => self.dead_letter(host, fingerprint).await?,
            _ => None,
        };
        let around = Around {
            ending: Some(fingerprint),
            led_to: led_to.map(|(fingerprint, _)| fingerprint),
            growth: Some(commit.growth),
            stored_here: std::mem::take(&mut group.stored_here),
        };
        let mut sorted = self.sort_out(links, around).await?;
        let is_superseded = has_reloads
            && self
                .state_of(host, fingerprint)
                .await?
                .is_some_and(|state| state.visit > visit);
        group.stored_here = std::mem::take(&mut sorted.stored_here);
        let mut stored = self.seen_keys(&sorted);
        stored.extend(led_to.map(|(_, key)| key));
        let before = Before {
            is_superseded,
            earlier_death,
        };
        let mut state = self.state();
        let committed = state.commit(commit, sorted, before, self.plugin, &mut group.batch)?;
        drop(state);
        // Known from here on: should the batch not be written, nothing is asked here any more.
        self.remember(stored);
        Ok(committed)
    }

    /// Returns why an earlier visit of a URL was given up.
    async fn dead_letter(
        &self,
        host: HostId,
        fingerprint: Fingerprint,
    ) -> Result<Option<String>, FrontierError> {
        let bytes = self
            .get(keys::dead_letter(self.run, host, fingerprint))
            .await?;
        let letter = bytes.map(|bytes| self.decode::<records::DeadLetter>(&bytes, "dead letter"));
        Ok(letter.transpose()?.map(|letter| letter.reason))
    }
}
