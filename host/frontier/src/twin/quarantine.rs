//! Items that wait for a verdict, and held ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::open::Opened;
use super::plain::Plain;
use crate::quarantine::{Judgement, KeptBack, Profiles, Quarantine, WaitingPage};
use crate::{FrontierError, OpenOptions};
use crawler_model::crawl::ItemRecord;
use crawler_model::drift::{Action, Decision, Hold, Profile};
use crawler_model::id::{Digest, Run};

/// An item that is not in the outbox.
#[derive(Debug, Clone)]
struct Kept {
    page: u64,
    plugin: Digest,
    item: Arc<ItemRecord>,
}

/// Items that are not in the outbox, and profiles.
#[derive(Debug, Clone, Default)]
pub(super) struct Quarantined {
    waiting: BTreeMap<u64, Kept>,
    next: u64,
    last_hold: u64,
    holds: BTreeMap<u64, (Hold, BTreeMap<u64, Kept>)>,
    baseline: Profile,
    run_profile: Profile,
    /// Run of the second profile.
    profile_run: Run,
    /// Plugin of this opening.
    plugin: Option<Digest>,
    /// Last run of which held items were dropped while it was under way.
    dropped_in: Option<Run>,
}

impl Plain {
    /// Begins another opening, before the run is changed.
    pub(super) fn open_quarantine(&mut self, options: &OpenOptions) {
        let is_good = self.counts().due == 0;
        let quarantined = &mut self.quarantined;
        quarantined.plugin = Some(options.plugin);
        if quarantined.profile_run == options.run {
            return;
        }
        let of_run = std::mem::take(&mut quarantined.run_profile);
        if quarantined.profile_run == self.run && is_good {
            let holds = quarantined.holds.values().map(|(hold, _)| hold);
            let held = holds.filter(|hold| hold.run == self.run);
            quarantined.baseline =
                of_run.after_run(&quarantined.baseline, held.map(|hold| &hold.group));
        }
        quarantined.profile_run = options.run;
    }

    /// Stores items of a page that wait for a verdict.
    pub(super) fn keep_back(&mut self, page: u64, items: Vec<ItemRecord>) {
        self.counts.items += items.len() as u64;
        let quarantined = &mut self.quarantined;
        for item in items {
            let kept = Kept {
                page,
                plugin: quarantined.plugin.unwrap_or_else(|| Digest::of(b"")),
                item: Arc::new(item),
            };
            quarantined.waiting.insert(quarantined.next, kept);
            quarantined.next += 1;
        }
    }

    /// Returns the items that wait for a verdict or are held.
    pub fn kept_items(&self) -> Vec<ItemRecord> {
        let held = self.quarantined.holds.values();
        let held = held.flat_map(|(_, items)| items.values());
        let kept = self.quarantined.waiting.values().chain(held);
        kept.map(|kept| (*kept.item).clone()).collect()
    }

    /// Returns the number of items that are held.
    pub(super) fn n_held(&self) -> u64 {
        let holds = self.quarantined.holds.values();
        holds.map(|(hold, _)| hold.n_items).sum()
    }

    fn judge(&mut self, judgement: &Judgement) {
        let since = self.time.to_wall(self.time.latest());
        let quarantined = &mut self.quarantined;
        for number in &judgement.numbers {
            let Some(kept) = quarantined.waiting.remove(number) else {
                continue;
            };
            let Some((group, departure)) = &judgement.hold else {
                self.outbox.push_back(Arc::unwrap_or_clone(kept.item));
                continue;
            };
            let (run, plugin) = (kept.item.run, kept.plugin);
            let is_own =
                |hold: &Hold| hold.run == run && hold.plugin == plugin && hold.group == *group;
            let own = quarantined.holds.iter().find(|(_, (hold, _))| is_own(hold));
            let of_hold = own.map(|(of_hold, _)| *of_hold).unwrap_or_else(|| {
                quarantined.last_hold += 1;
                quarantined.last_hold
            });
            let (hold, items) = quarantined.holds.entry(of_hold).or_insert_with(|| {
                let hold = Hold {
                    number: of_hold,
                    run,
                    group: group.clone(),
                    departure: departure.clone(),
                    plugin,
                    since,
                    n_items: 0,
                    n_bytes: 0,
                    end: 0,
                    is_decided: false,
                };
                (hold, BTreeMap::new())
            });
            hold.n_items += 1;
            hold.n_bytes += kept.n_bytes();
            hold.end = hold.end.max(number + 1);
            hold.is_decided = false;
            items.insert(*number, kept);
        }
    }

    fn decide(&mut self, decision: &Decision) -> u64 {
        let (quarantined, mut n_decided) = (&mut self.quarantined, 0);
        for (of_hold, until) in &decision.holds {
            let Some((hold, items)) = quarantined.holds.get_mut(of_hold) else {
                continue;
            };
            let later = items.split_off(until);
            let decided = std::mem::replace(items, later);
            if decided.is_empty() {
                continue;
            }
            n_decided += decided.len() as u64;
            hold.n_items = items.len() as u64;
            hold.n_bytes = items.values().map(Kept::n_bytes).sum();
            hold.is_decided = true;
            if decision.action == Action::Drop && hold.run == self.run {
                quarantined.dropped_in = Some(self.run);
                quarantined.run_profile.note_dropped(&hold.group);
            }
            if decision.action == Action::Release {
                let run = &mut quarantined.run_profile;
                quarantined.baseline.note_released(run, &hold.group);
                let released = decided.into_values();
                let released = released.map(|kept| Arc::unwrap_or_clone(kept.item));
                self.outbox.extend(released);
            }
        }
        quarantined.holds.retain(|_, (hold, _)| hold.n_items > 0);
        n_decided
    }
}

impl Kept {
    fn n_bytes(&self) -> u64 {
        serde_json::to_vec(&*self.item).map_or(0, |json| json.len() as u64)
    }
}

#[async_trait]
impl Quarantine for Opened {
    fn profiles(&self) -> Option<Profiles> {
        let state = self.shared.state();
        let quarantined = &state.plain.quarantined;
        Some(Profiles {
            baseline: quarantined.baseline.clone(),
            run: quarantined.run_profile.clone(),
        })
    }

    fn waiting(&self, from: u64) -> Vec<WaitingPage> {
        let state = self.shared.state();
        let quarantined = &state.plain.quarantined;
        let mut pages: Vec<WaitingPage> = Vec::new();
        for (number, kept) in quarantined.waiting.range(from..) {
            let item = (*number, kept.item.clone());
            match pages.last_mut() {
                Some(page) if page.page == kept.page => page.items.push(item),
                Some(_) | None => pages.push(WaitingPage {
                    page: kept.page,
                    is_earlier: kept.item.run != state.plain.run
                        || Some(kept.plugin) != quarantined.plugin,
                    items: vec![item],
                }),
            }
        }
        pages
    }

    fn kept_back(&self) -> KeptBack {
        let state = self.shared.state();
        let quarantined = &state.plain.quarantined;
        let holds = quarantined.holds.values().map(|(hold, _)| hold);
        KeptBack {
            n_waiting: quarantined.waiting.len() as u64,
            waiting_bytes: quarantined.waiting.values().map(Kept::n_bytes).sum(),
            n_held: holds.clone().map(|hold| hold.n_items).sum(),
            held_bytes: holds.clone().map(|hold| hold.n_bytes).sum(),
            n_holds: holds.count() as u64,
            has_dropped: quarantined.dropped_in == Some(state.plain.run),
        }
    }

    fn holds(&self) -> Vec<Hold> {
        let state = self.shared.state();
        let holds = state.plain.quarantined.holds.values();
        holds.map(|(hold, _)| hold.clone()).collect()
    }

    async fn judge(&self, judgement: Judgement) -> Result<(), FrontierError> {
        self.shared.check()?;
        self.shared.change(|state| state.plain.judge(&judgement));
        Ok(())
    }

    async fn store_profile(&self, run: &Profile) -> Result<(), FrontierError> {
        self.shared.check()?;
        let run = run.clone();
        self.shared
            .change(|state| state.plain.quarantined.run_profile = run);
        Ok(())
    }

    async fn decide(&self, decision: &Decision) -> Result<u64, FrontierError> {
        self.shared.check()?;
        Ok(self.shared.change(|state| state.plain.decide(decision)))
    }
}
