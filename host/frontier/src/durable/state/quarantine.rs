//! Items that wait for a verdict, holds, and profiles, in memory and in batches.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use slatedb::WriteBatch;

use super::State;
use crate::quarantine::{KeptBack, Profiles, WaitingPage};
use crate::{keys, records};
use crawler_model::changes::ItemIdentity;
use crawler_model::crawl::ItemRecord;
use crawler_model::drift::{Departure, GroupName, Hold, Profile};
use crawler_model::id::{Digest, Run};

/// Items that wait for a verdict, and holds. Held items are in the store alone.
#[derive(Debug, Default)]
pub(in crate::durable) struct Quarantined {
    pub(in crate::durable) waiting: BTreeMap<u64, WaitingItem>,
    waiting_bytes: u64,
    pub(in crate::durable) holds: BTreeMap<u64, Hold>,
    pub(in crate::durable) record: records::Quarantine,
    pub(in crate::durable) profiles: Profiles,
    /// True if the profiles are those of a run that begins, and are not stored yet.
    pub(in crate::durable) has_new_profiles: bool,
}

/// An item that waits for a verdict.
#[derive(Debug, Clone)]
pub(in crate::durable) struct WaitingItem {
    pub(in crate::durable) page: u64,
    pub(in crate::durable) item: Arc<ItemRecord>,
    pub(in crate::durable) record: records::KeptItem,
}

impl Quarantined {
    /// Adds an item that waits. Its record is stored already, or with the batch in the making.
    pub(in crate::durable) fn insert(&mut self, number: u64, item: WaitingItem) {
        self.waiting_bytes += item.record.json.len() as u64;
        self.waiting.insert(number, item);
    }

    /// Removes an item that waits.
    pub(in crate::durable) fn remove(&mut self, number: u64, batch: &mut WriteBatch) {
        if let Some(item) = self.waiting.remove(&number) {
            self.waiting_bytes -= item.record.json.len() as u64;
            batch.delete(keys::waiting(number));
        }
    }

    pub(in crate::durable) fn kept_back(&self) -> KeptBack {
        let holds = self.holds.values();
        KeptBack {
            n_waiting: self.waiting.len() as u64,
            waiting_bytes: self.waiting_bytes,
            n_held: holds.clone().map(|hold| hold.n_items).sum(),
            held_bytes: holds.map(|hold| hold.n_bytes).sum(),
            n_holds: self.holds.len() as u64,
            has_dropped: self.record.dropped_in != 0,
        }
    }

    /// Returns pages with items that wait, from this number on. Others than those of this run and plugin are earlier ones.
    pub(in crate::durable) fn pages(&self, from: u64, run: Run, plugin: u32) -> Vec<WaitingPage> {
        let mut pages: Vec<WaitingPage> = Vec::new();
        for (number, waiting) in self.waiting.range(from..) {
            let item = (*number, waiting.item.clone());
            match pages.last_mut() {
                Some(page) if page.page == waiting.page => page.items.push(item),
                Some(_) | None => pages.push(WaitingPage {
                    page: waiting.page,
                    is_earlier: waiting.item.run != run || waiting.record.plugin != plugin,
                    items: vec![item],
                }),
            }
        }
        pages
    }

    /// Returns the number of the hold that these items of a run belong to: that of the run and the plugin, or a new one.
    pub(in crate::durable) fn hold_of(
        &mut self,
        run: Run,
        plugin: Digest,
        (group, departure): &(GroupName, Departure),
        since: u64,
    ) -> u64 {
        let mut holds = self.holds.values();
        let known =
            holds.find(|hold| hold.run == run && hold.plugin == plugin && hold.group == *group);
        if let Some(known) = known {
            return known.number;
        }
        self.record.last_hold += 1;
        let number = self.record.last_hold;
        let hold = Hold {
            number,
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
        self.holds.insert(number, hold);
        number
    }

    /// Stores a hold as it is now, or removes it if it has no items any more.
    pub(in crate::durable) fn put_hold(&mut self, number: u64, batch: &mut WriteBatch) {
        match self.holds.get(&number) {
            Some(hold) if hold.n_items > 0 => {
                let json = serde_json::to_vec(hold).expect("a hold is JSON");
                batch.put(keys::hold(number), json);
            }
            Some(_) | None => {
                self.holds.remove(&number);
                batch.delete(keys::hold(number));
            }
        }
    }

    /// Stores the numbers that are given next.
    pub(in crate::durable) fn put_record(&self, batch: &mut WriteBatch) {
        batch.put(
            Bytes::from_static(keys::QUARANTINE),
            self.record.encode_to_vec(),
        );
    }

    /// Stores the profile of the last good run, and that of this run: when the run begins, and when a decision has changed
    /// them.
    pub(in crate::durable) fn put_profiles(&self, run: Run, batch: &mut WriteBatch) {
        let Profiles {
            baseline,
            run: of_run,
        } = &self.profiles;
        let baseline = stored_profile(baseline, Run(0));
        batch.put(Bytes::from_static(keys::BASELINE_PROFILE), baseline);
        let of_run = stored_profile(of_run, run);
        batch.put(Bytes::from_static(keys::RUN_PROFILE), of_run);
    }
}

/// Returns the record of a profile. It takes time, and is made without the state wherever that goes.
pub(in crate::durable) fn stored_profile(profile: &Profile, run: Run) -> Vec<u8> {
    let json = profile.stored().into();
    records::StoredProfile { run: run.0, json }.encode_to_vec()
}

impl State {
    /// Brings the totals up to date with the holds.
    pub(in crate::durable) fn count_held(&mut self) {
        self.counts.held = self.quarantined.kept_back().n_held;
    }

    /// Stores items of a page that wait for a verdict, in the batch of the page, which was applied already.
    pub(in crate::durable) fn keep_back(
        &mut self,
        page: u64,
        items: Vec<(ItemRecord, Option<ItemIdentity>)>,
        plugin: u32,
        batch: &mut WriteBatch,
    ) {
        if items.is_empty() {
            return;
        }
        self.counts.items += items.len() as u64;
        let quarantined = &mut self.quarantined;
        for (item, identity) in items {
            let json = serde_json::to_vec(&item).expect("a record of texts is JSON");
            let record = records::KeptItem {
                json: json.into(),
                plugin,
                page,
                identity: identity.map(Into::into),
            };
            let number = quarantined.record.next;
            quarantined.record.next += 1;
            batch.put(keys::waiting(number), record.encode_to_vec());
            let item = Arc::new(item);
            quarantined.insert(number, WaitingItem { page, item, record });
        }
        quarantined.put_record(batch);
        if let Some(comparison) = &mut self.comparison {
            comparison.counts.n_items = self.counts.items;
            comparison.put_counts(batch);
        }
    }
}
