//! Items that do not go straight to the outbox: they wait for the verdict on their window, or are held.
//!
//! An item that is to be judged is stored in the batch of its page, with a number of its own, and is in no outbox. One batch
//! moves it on: into the outbox, where it gets its place among the other items, or into a hold. A decision moves the items
//! of a hold in the same way, or removes them. An item is therefore in one place at any moment, a process may end at any
//! moment, and no sink gets an item twice or goes past one that comes later.
//!
//! A decision names the items that it is about, by the numbers before which they are. Those that are held meanwhile stay.
//! A decision that was cut off is made again, and finds what is left.
//!
//! If items are compared from run to run, they are compared when they enter the outbox: an item that is held counts neither
//! as delivered nor as removed. A run of which items were dropped therefore stays one that has not seen all that there is, and
//! the frontier notes that with the first of them. Items of an earlier run enter it without being compared, because the
//! present run may have told newer ones under their keys.
//!
//! The profile of the last good run is stored here, too. A run that has nothing left to fetch becomes the last good one when
//! the next begins.

use std::sync::Arc;

use async_trait::async_trait;

use crate::FrontierError;
use crawler_model::crawl::ItemRecord;
use crawler_model::drift::{Decision, Departure, GroupName, Hold, Profile};

/// Profiles that items are judged by.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profiles {
    /// Profile of the last good run.
    pub baseline: Profile,
    /// Profile of the items of this run that have passed. A crash loses those of the last seconds.
    pub run: Profile,
}

/// Items of one page that wait for a verdict.
#[derive(Debug, Clone)]
pub struct WaitingPage {
    /// Entry of the page.
    pub page: u64,
    /// True if an earlier run or another plugin has brought it.
    pub is_earlier: bool,
    /// Its items in their order, with their numbers.
    pub items: Vec<(u64, Arc<ItemRecord>)>,
}

/// Verdict on items that wait.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// Numbers of the items.
    pub numbers: Vec<u64>,
    /// Kind and host of the items, and the reason why they are held. `None` if they pass.
    pub hold: Option<(GroupName, Departure)>,
}

/// Numbers of items that are not in the outbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptBack {
    /// Items that wait for a verdict.
    pub n_waiting: u64,
    /// Their size in bytes.
    pub waiting_bytes: u64,
    /// Items that are held.
    pub n_held: u64,
    /// Their size in bytes.
    pub held_bytes: u64,
    /// Holds that wait for a decision.
    pub n_holds: u64,
    /// True if held items of this run were dropped: the sinks never get them, although the run has seen them.
    pub has_dropped: bool,
}

/// Items that wait for a verdict, and held ones. What this trait gives by itself is right for a frontier that has no earlier
/// run to judge by: nothing is judged there, and all items go to the outbox.
#[async_trait]
pub trait Quarantine: Send + Sync + 'static {
    /// Returns the profiles that items are judged by. `None` if nothing is judged here.
    fn profiles(&self) -> Option<Profiles> {
        None
    }

    /// Returns the pages with items that wait, from this number on, in the order of their numbers.
    fn waiting(&self, _from: u64) -> Vec<WaitingPage> {
        Vec::new()
    }

    /// Returns the numbers of items that are not in the outbox.
    fn kept_back(&self) -> KeptBack {
        KeptBack::default()
    }

    /// Returns the holds that wait for a decision.
    fn holds(&self) -> Vec<Hold> {
        Vec::new()
    }

    /// Moves items that wait into the outbox, or into the hold that their kind and host have in their run. Numbers of which
    /// none waits any more are passed over. Each item is moved once, however often the call is cut off and made again.
    async fn judge(&self, _judgement: Judgement) -> Result<(), FrontierError> {
        Ok(())
    }

    /// Stores the profile of the items of this run that have passed.
    async fn store_profile(&self, _run: &Profile) -> Result<(), FrontierError> {
        Ok(())
    }

    /// Carries a decision out and returns the number of items that it has moved or removed. The kinds and hosts of released
    /// items are not judged any more in this run. The caller makes it durable by settling.
    async fn decide(&self, _decision: &Decision) -> Result<u64, FrontierError> {
        Ok(0)
    }
}
