//! Moves of items that are not in the outbox: by verdicts, and by decisions. Each batch moves a few.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use prost::Message as _;
use slatedb::WriteBatch;

use super::DurableFrontier;
use super::inner::Inner;
use super::state::{Compared, LatestItems, State, WaitingItem, stored_profile};
use crate::quarantine::{Judgement, KeptBack, Profiles, Quarantine, WaitingPage};
use crate::{FrontierError, OpenOptions, keys, records};
use crawler_model::changes::ItemIdentity;
use crawler_model::crawl::{Counts, ItemRecord};
use crawler_model::drift::{Action, Decision, Hold, Profile};
use crawler_model::id::{Digest, Run};

/// Number of items that one batch moves, and their size in bytes, above which it takes no further one. Pages wait for the
/// writer meanwhile.
pub(super) const MAX_ITEMS: usize = 256;
const MAX_BYTES: usize = 1 << 20;

#[async_trait]
impl Quarantine for DurableFrontier {
    fn profiles(&self) -> Option<Profiles> {
        Some(self.inner.state().quarantined.profiles.clone())
    }

    fn waiting(&self, from: u64) -> Vec<WaitingPage> {
        let inner = &self.inner;
        let state = inner.state();
        state.quarantined.pages(from, inner.run, inner.plugin)
    }

    fn kept_back(&self) -> KeptBack {
        self.inner.state().quarantined.kept_back()
    }

    fn holds(&self) -> Vec<Hold> {
        let state = self.inner.state();
        state.quarantined.holds.values().cloned().collect()
    }

    async fn judge(&self, judgement: Judgement) -> Result<(), FrontierError> {
        let mut numbers = judgement.numbers.as_slice();
        while !numbers.is_empty() {
            let n = self.inner.judge_some(numbers, &judgement).await?;
            numbers = numbers.get(n..).unwrap_or_default();
        }
        Ok(())
    }

    async fn store_profile(&self, run: &Profile) -> Result<(), FrontierError> {
        let inner = &self.inner;
        inner.check()?;
        let (record, run) = (stored_profile(run, inner.run), run.clone());
        let guard = inner.writer.lock().await;
        let mut batch = WriteBatch::new();
        {
            let mut state = inner.state();
            state.quarantined.profiles.run = run;
            // The profile of this run says that the one before is in the baseline.
            if state.quarantined.has_new_profiles {
                state.quarantined.put_profiles(inner.run, &mut batch);
            } else {
                batch.put(Bytes::from_static(keys::RUN_PROFILE), record);
            }
        }
        inner.write(&guard, batch, 0).await.map(drop)
    }

    async fn decide(&self, decision: &Decision) -> Result<u64, FrontierError> {
        let mut n_decided = 0;
        for (hold, until) in &decision.holds {
            let mut from = 0;
            while let Some((n, next)) = self
                .inner
                .decide_some(*hold, from..*until, decision.action)
                .await?
            {
                n_decided += n;
                from = next;
            }
        }
        Ok(n_decided)
    }
}

/// Items on their way into the outbox, with what is known of them.
type Passing = Vec<(records::KeptItem, Arc<ItemRecord>)>;

impl Inner {
    /// Loads what is not in the outbox. `last_run` is the run that the frontier was in before.
    pub(super) async fn load_quarantine(
        &self,
        state: &mut State,
        options: &OpenOptions,
        last_run: Run,
    ) -> Result<(), FrontierError> {
        let record = self.get(Bytes::from_static(keys::QUARANTINE)).await?;
        let record = record.map(|bytes| self.decode::<records::Quarantine>(&bytes, "quarantine"));
        state.quarantined.record = record.transpose()?.unwrap_or_default();
        if state.quarantined.record.dropped_in != options.run.0 {
            state.quarantined.record.dropped_in = 0;
        }
        let mut found = self.scan_prefix(keys::WAITING).await?;
        while let Some((key, value)) = found.next().await? {
            let number = keys::parse_number(&key);
            let number = number.ok_or_else(|| self.damaged("a key is too short".to_owned()))?;
            let record: records::KeptItem = self.decode(&value, "item that waits")?;
            let item = Arc::new(self.kept_item(&record)?);
            let page = record.page;
            state
                .quarantined
                .insert(number, WaitingItem { page, item, record });
        }
        drop(found);
        let mut found = self.scan_prefix(keys::HOLDS).await?;
        while let Some((_, value)) = found.next().await? {
            let hold: Hold = serde_json::from_slice(&value)
                .map_err(|e| self.damaged(format!("a record (hold) does not decode: {e}")))?;
            state.quarantined.holds.insert(hold.number, hold);
        }
        drop(found);
        state.count_held();
        let (baseline, _) = self.stored_profile(keys::BASELINE_PROFILE).await?;
        let (of_run, run) = self.stored_profile(keys::RUN_PROFILE).await?;
        let quarantined = &mut state.quarantined;
        if run == options.run {
            quarantined.profiles = Profiles {
                baseline,
                run: of_run,
            };
            return Ok(());
        }
        // What an unfinished run has seen may be the part of a site that is like no other.
        let is_good = run == last_run && self.had_nothing_left(last_run).await?;
        quarantined.profiles.baseline = match is_good {
            true => {
                let holds = quarantined.holds.values();
                let held = holds.filter(|hold| hold.run == last_run);
                of_run.after_run(&baseline, held.map(|hold| &hold.group))
            }
            false => baseline,
        };
        // They are stored with the head, which says that the run has begun.
        quarantined.has_new_profiles = run != Run(0);
        Ok(())
    }

    /// Returns a profile, with its run. One that does not decode begins anew: it only informs.
    async fn stored_profile(&self, key: &'static [u8]) -> Result<(Profile, Run), FrontierError> {
        let Some(bytes) = self.get(Bytes::from_static(key)).await? else {
            return Ok((Profile::default(), Run(0)));
        };
        let record: records::StoredProfile = self.decode(&bytes, "profile")?;
        let profile = Profile::read(&record.json).unwrap_or_else(|| {
            tracing::warn!("a profile of items does not decode and begins anew");
            Profile::default()
        });
        Ok((profile, Run(record.run)))
    }

    /// Returns true if a run has fetched all that it knew of.
    async fn had_nothing_left(&self, run: Run) -> Result<bool, FrontierError> {
        let totals = self.get(keys::totals(run)).await?;
        let totals = totals.map(|bytes| self.decode::<records::Totals>(&bytes, "totals"));
        let counts = totals.transpose()?.map(Counts::from);
        Ok(counts.is_some_and(|counts| counts.due == 0))
    }

    /// Returns the identities of items that wait, by which they are compared once they pass; none if items are not compared.
    pub(super) fn identities(
        &self,
        page: &crawler_model::crawl::Request,
        items: Vec<ItemRecord>,
    ) -> Vec<(ItemRecord, Option<ItemIdentity>)> {
        if items.is_empty() {
            return Vec::new();
        }
        let comparison = {
            let state = self.state();
            let comparison = state.comparison.as_ref();
            comparison.map(|comparison| comparison.keys.clone())
        };
        let identities = comparison.map(|keys| keys.identities(page, &items));
        let identities = identities.unwrap_or_default();
        let identities = identities.into_iter().map(Some);
        let identities = identities.chain(std::iter::repeat(None));
        items.into_iter().zip(identities).collect()
    }

    /// Moves the first of these items on, and returns how many of the numbers are done.
    pub(super) async fn judge_some(
        &self,
        numbers: &[u64],
        judgement: &Judgement,
    ) -> Result<usize, FrontierError> {
        self.check()?;
        let guard = self.writer.lock().await;
        let (mut n_bytes, mut n_done) = (0, 0);
        let mut moved: Vec<(u64, WaitingItem)> = Vec::new();
        {
            let state = self.state();
            for number in numbers {
                if moved.len() >= MAX_ITEMS || n_bytes >= MAX_BYTES {
                    break;
                }
                n_done += 1;
                if let Some(waiting) = state.quarantined.waiting.get(number) {
                    n_bytes += waiting.record.json.len();
                    moved.push((*number, waiting.clone()));
                }
            }
        }
        if moved.is_empty() {
            return Ok(n_done);
        }
        let mut batch = WriteBatch::new();
        match &judgement.hold {
            None => {
                let passing = moved.iter();
                let passing =
                    passing.map(|(_, waiting)| (waiting.record.clone(), waiting.item.clone()));
                let passing: Passing = passing.collect();
                let compared = self.compare_passing(&passing).await?;
                let mut state = self.state();
                for (number, _) in &moved {
                    state.quarantined.remove(*number, &mut batch);
                }
                state.pass(passing, compared, &mut batch);
            }
            Some(hold) => {
                let now = self.state().time.latest();
                let mut state = self.state();
                let since = state.time.to_wall(now);
                let mut grown = BTreeSet::new();
                for (number, waiting) in moved {
                    let run = waiting.item.run;
                    let plugin = state.plugin_of(waiting.record.plugin);
                    let quarantined = &mut state.quarantined;
                    let of_hold = quarantined.hold_of(run, plugin, hold, since);
                    quarantined.remove(number, &mut batch);
                    batch.put(keys::held(of_hold, number), waiting.record.encode_to_vec());
                    if let Some(hold) = quarantined.holds.get_mut(&of_hold) {
                        hold.n_items += 1;
                        hold.n_bytes += waiting.record.json.len() as u64;
                        hold.end = hold.end.max(number + 1);
                        hold.is_decided = false;
                    }
                    grown.insert(of_hold);
                }
                for of_hold in grown {
                    state.quarantined.put_hold(of_hold, &mut batch);
                }
                state.quarantined.put_record(&mut batch);
                state.count_held();
            }
        }
        self.write(&guard, batch, 0).await?;
        Ok(n_done)
    }

    /// Moves or removes the next items of a hold with these numbers. Returns how many, and the number after the last of
    /// them: a scan that begins there does not pass over those that are gone. With no item left, it returns `None`.
    pub(super) async fn decide_some(
        &self,
        number: u64,
        numbers: Range<u64>,
        action: Action,
    ) -> Result<Option<(u64, u64)>, FrontierError> {
        self.check()?;
        let guard = self.writer.lock().await;
        if numbers.is_empty() || !self.state().quarantined.holds.contains_key(&number) {
            return Ok(None);
        }
        let (mut batch, mut passing, mut n_bytes) = (WriteBatch::new(), Passing::new(), 0);
        let mut next = numbers.start;
        let scanned = keys::held(number, numbers.start)..keys::held(number, numbers.end);
        let mut found = self.scan(scanned).await?;
        while passing.len() < MAX_ITEMS
            && n_bytes < MAX_BYTES
            && let Some((key, value)) = found.next().await?
        {
            let record: records::KeptItem = self.decode(&value, "held item")?;
            let item = Arc::new(self.kept_item(&record)?);
            n_bytes += record.json.len();
            next = keys::parse_number(&key).map_or(next, |number| number + 1);
            batch.delete(key);
            passing.push((record, item));
        }
        drop(found);
        if passing.is_empty() {
            return Ok(None);
        }
        let n = passing.len() as u64;
        let compared = match action {
            Action::Release => self.compare_passing(&passing).await?,
            Action::Drop => Compared::default(),
        };
        // The first batch changes profiles, and a decision that is carried out again begins at 0, too.
        let is_first = numbers.start == 0;
        {
            let mut state = self.state();
            let quarantined = &mut state.quarantined;
            let mut changes_profiles = false;
            if let Some(hold) = quarantined.holds.get_mut(&number) {
                hold.n_items = hold.n_items.saturating_sub(n);
                hold.n_bytes = hold.n_bytes.saturating_sub(n_bytes as u64);
                hold.is_decided = true;
                let Profiles { baseline, run } = &mut quarantined.profiles;
                let is_own = hold.run == self.run;
                match action {
                    Action::Release if is_first => baseline.note_released(run, &hold.group),
                    Action::Drop if is_own => {
                        quarantined.record.dropped_in = self.run.0;
                        run.note_dropped(&hold.group);
                    }
                    Action::Release | Action::Drop => {}
                }
                changes_profiles = is_first && (is_own || action == Action::Release);
            }
            quarantined.put_hold(number, &mut batch);
            quarantined.put_record(&mut batch);
            if changes_profiles {
                quarantined.put_profiles(self.run, &mut batch);
            }
            if action == Action::Release {
                state.pass(passing, compared, &mut batch);
            }
            state.count_held();
        }
        self.write(&guard, batch, 0).await?;
        Ok(Some((n, next)))
    }

    /// Compares items that are about to enter the outbox, if the items of this run are compared. Those of earlier runs are
    /// not.
    async fn compare_passing(&self, passing: &Passing) -> Result<Compared, FrontierError> {
        let identified = passing.iter().enumerate();
        let identified = identified.filter(|(_, (_, item))| item.run == self.run);
        let identified = identified.filter_map(|(place, (record, item))| {
            let identity = record.identity.clone()?;
            Some((place, ItemIdentity::from(identity), &**item))
        });
        let identified: Vec<(usize, ItemIdentity, &ItemRecord)> = identified.collect();
        let compared = self.compare_all(identified, &LatestItems::new()).await?;
        Ok(compared.unwrap_or_default())
    }

    fn kept_item(&self, record: &records::KeptItem) -> Result<ItemRecord, FrontierError> {
        let item = serde_json::from_slice(&record.json);
        item.map_err(|e| self.damaged(format!("an item is not JSON: {e}")))
    }
}

impl State {
    /// Puts items into the outbox, with the changes that they are.
    fn pass(&mut self, passing: Passing, mut compared: Compared, batch: &mut WriteBatch) {
        let passing = passing.into_iter();
        let passing = passing.map(|(record, item)| (record.plugin, Arc::unwrap_or_clone(item)));
        let (plugins, mut items): (Vec<u32>, Vec<ItemRecord>) = passing.unzip();
        self.tell_items(&compared, &mut items);
        for (plugin, item) in plugins.into_iter().zip(items) {
            self.outbox.push(vec![item], plugin, &mut self.last, batch);
        }
        self.note_changes(&mut compared, batch);
    }

    /// Returns the digest of a plugin by its number in records.
    fn plugin_of(&self, number: u32) -> Digest {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let bytes = self.head.plugins.get(place);
        let bytes = bytes.and_then(|bytes| <[u8; 32]>::try_from(&bytes[..]).ok());
        bytes.map_or_else(|| Digest::of(b""), Digest::from)
    }
}
