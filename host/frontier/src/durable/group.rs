//! Group commit: pages that wait for the write guard at the same time share one batch.

use std::collections::{HashSet, VecDeque};
use std::pin::pin;
use std::sync::{MutexGuard, PoisonError};

use slatedb::WriteBatch;
use tokio::sync::oneshot;

use super::candidates::Links;
use super::inner::Inner;
use super::links::DedupContext;
use super::queued::{Answer, Queued};
use super::state::{LatestItems, StoredPage};
use super::writer::{BreakOnDrop, WriteGuard};
use crate::workbench::HostId;
use crate::{Commit, Committed, Ended, FrontierError, keys, records};
use crawler_model::crawl::{Done, Fingerprint};
use crawler_process::stage::Stage;

/// Limits of one batch: its pages, and the new links, and the bytes of items that are compared, above which no further
/// page joins it.
const MAX_PAGES: usize = 32;
const MAX_LINKS: usize = 4_096;
const MAX_ITEM_BYTES: usize = 4 << 20;

/// One batch in the making.
struct Group<'a> {
    batch: WriteBatch,
    stored_here: HashSet<Fingerprint>,
    answers: Vec<(oneshot::Sender<Answer>, Committed)>,
    /// Items of its pages, if items are compared, and their size in bytes.
    latest_items: LatestItems,
    item_bytes: usize,
    break_on_drop: BreakOnDrop<'a>,
}

impl<'a> Group<'a> {
    fn new(inner: &'a Inner) -> Self {
        Self {
            batch: WriteBatch::new(),
            stored_here: HashSet::new(),
            answers: Vec::new(),
            latest_items: LatestItems::new(),
            item_bytes: 0,
            break_on_drop: BreakOnDrop {
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
        let for_peers = std::mem::take(&mut commit.result.for_peers);
        let links = Stage::Seen.charge(|| self.links(requests, for_peers));
        let (reply, mut answer) = oneshot::channel();
        self.queue().push_back(Queued {
            commit,
            links,
            reply,
        });
        loop {
            tokio::select! {
                biased;
                answered = &mut answer => {
                    let shard = self.shard;
                    return answered.unwrap_or(Err(FrontierError::Closed { shard }));
                }
                guard = self.writer.lock() => {
                    // Pages that are about to end queue up meanwhile, and share the batch. The lock is held, so that none
                    // of them begins a batch of its own.
                    tokio::task::yield_now().await;
                    self.commit_queued(&guard).await;
                }
            }
        }
    }

    /// Commits the waiting pages in their order. When it returns, at least the first of them has its answer.
    async fn commit_queued(&self, guard: &WriteGuard<'_>) {
        let mut group = Group::new(self);
        let mut has_failed = false;
        while group.answers.len() < MAX_PAGES
            && group.stored_here.len() < MAX_LINKS
            && group.item_bytes < MAX_ITEM_BYTES
            && let Some(queued) = { self.queue().pop_front() }
        {
            let is_alone = self.depends_on_earlier_pages(&queued);
            if is_alone && !group.answers.is_empty() {
                self.queue().push_front(queued);
                break;
            }
            group.break_on_drop.is_armed = true;
            match self.add(&mut group, queued.commit, queued.links).await {
                Ok(committed) => group.answers.push((queued.reply, committed)),
                Err(error) => {
                    // The caller may be gone. What it has counted is read anew.
                    drop(queued.reply.send(Err(error)));
                    has_failed = true;
                    break;
                }
            }
            if is_alone {
                break;
            }
        }
        let written = match group.answers.len() {
            0 => Ok(0),
            n_pages => self.write(guard, group.batch, n_pages).await,
        };
        group.break_on_drop.is_armed = false;
        if has_failed {
            self.state().patterns.clear();
        }
        for (reply, committed) in group.answers {
            let answer = written.clone().map(|_sequence| committed);
            drop(reply.send(answer));
        }
    }

    /// Returns true if the commit depends on something that a page before it may change, which then has to be
    /// in the database.
    fn depends_on_earlier_pages(&self, queued: &Queued) -> bool {
        queued.links.has_reload() || self.state().head.has_reloads
    }

    async fn add(&self, group: &mut Group<'_>, mut commit: Commit, mut links: Links) -> Answer {
        let claim = &commit.claim;
        let (fingerprint, visit, entry) = (claim.fingerprint, claim.visit, claim.entry);
        let (host, has_reloads) = {
            let mut state = self.state();
            let has_reloads = state.head.has_reloads;
            (state.find(claim)?.lane.host, has_reloads)
        };
        let redirect_target = commit
            .result
            .final_url
            .as_ref()
            .map(|request| (request.fingerprint(), self.seen_key(request)));
        if let (Some(request), Some((redirect_target, _))) =
            (&commit.result.final_url, redirect_target)
            && !claim.request.reload
            && redirect_target != fingerprint
            && (group.stored_here.contains(&redirect_target) || self.knows(request).await?)
        {
            // Another page was redirected there meanwhile, and its items are stored.
            commit.result.ended = Ended::Done(Done::Duplicate);
            commit.result.items.clear();
            commit.result.watched.clear();
            commit.result.observed.kinds.clear();
            links = Links::default();
        }
        let compared = self.compare(&commit, &group.latest_items).await?;
        let watched = std::mem::take(&mut commit.result.watched);
        let led_to = commit.result.final_url.as_ref();
        let page = led_to.unwrap_or(&commit.claim.request);
        let watched = self.identities(page, watched);
        let earlier_death = match (&commit.result.ended, has_reloads) {
            (Ended::Dead { .. }, true) => self.dead_letter(host, fingerprint).await?,
            _ => None,
        };
        let context = DedupContext {
            ending: Some(fingerprint),
            redirect_target: redirect_target.map(|(fingerprint, _)| fingerprint),
            growth: Some(commit.growth),
            stored_here: std::mem::take(&mut group.stored_here),
        };
        let mut new_links = Stage::Seen
            .timed(pin!(self.deduplicate(links, context)))
            .await?;
        let is_superseded = has_reloads
            && self
                .state_of(host, fingerprint)
                .await?
                .is_some_and(|state| state.visit > visit);
        group.stored_here = std::mem::take(&mut new_links.stored_here);
        let mut stored = self.seen_keys(&new_links);
        stored.extend(redirect_target.map(|(_, key)| key));
        let stored_page = StoredPage {
            is_superseded,
            earlier_death,
        };
        let mut state = self.state();
        if let Some(compared) = &compared {
            state.tell_items(compared, &mut commit.result.items);
        }
        let committed = state.commit(
            commit,
            new_links,
            stored_page,
            self.plugin,
            &mut group.batch,
        )?;
        state.keep_back(entry, watched, self.plugin, &mut group.batch);
        if let Some(mut compared) = compared {
            state.note_changes(&mut compared, &mut group.batch);
            let items = compared.latest.values();
            let items = items.filter_map(|latest| latest.item.as_ref());
            group.item_bytes += items.map(|item| item.json.len()).sum::<usize>();
            group.latest_items.extend(compared.latest);
        }
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
