//! State above all nodes: the seed's dice, what is cut off or late at this moment, and the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::check::{Checker, Tally};
use super::fault::Fault;
use crawler_frontier::twin::{Event, FaultPlan, LostMessage};

/// Kind of partition between a node and the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Partition {
    /// Requests of the node do not reach the store.
    Requests,
    /// The store carries out the node's requests, and the answers do not reach the node.
    Answers,
}

/// Result of a simulation.
pub(super) struct Report {
    /// Events, in order.
    pub(super) journal: Vec<String>,
    /// First violation of an invariant.
    pub(super) violation: Option<String>,
    /// Number of times that each invariant had something to judge.
    pub(super) tally: Tally,
    /// Kinds of faults that occurred.
    pub(super) faults: BTreeSet<Fault>,
}

/// State above all nodes.
pub(super) struct SimWorld {
    began: Instant,
    dice: Mutex<StdRng>,
    injects_faults: AtomicBool,
    /// Cuts of nodes, by their labels; the empty label is the store itself.
    cuts: Mutex<BTreeMap<String, Partition>>,
    /// Nodes whose watches are silent.
    silent: Mutex<BTreeSet<String>>,
    changed: watch::Sender<()>,
    journal: Mutex<Vec<String>>,
    violation: Mutex<Option<String>>,
    violated: CancellationToken,
    checker: Mutex<Checker>,
    faults: Mutex<BTreeSet<Fault>>,
    /// Moment of the latest attempt at a request, and number of attempts in it.
    attempts: Mutex<(Duration, u32)>,
}

/// Largest number of attempts at requests in one moment. Time stands still while anything has work to do, so work
/// that goes round in circles would never end.
const MAX_AT_ONCE: u32 = 10_000;

impl SimWorld {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            began: Instant::now(),
            dice: Mutex::new(StdRng::seed_from_u64(seed)),
            injects_faults: AtomicBool::new(false),
            cuts: Mutex::default(),
            silent: Mutex::default(),
            changed: watch::Sender::new(()),
            journal: Mutex::default(),
            violation: Mutex::default(),
            violated: CancellationToken::new(),
            checker: Mutex::new(Checker::default()),
            faults: Mutex::default(),
            attempts: Mutex::default(),
        }
    }

    /// Returns the virtual time since the beginning.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn set_faults(&self, injects_faults: bool) {
        self.injects_faults.store(injects_faults, Ordering::Relaxed);
        if !injects_faults {
            self.cuts.lock().unwrap().clear();
            self.silent.lock().unwrap().clear();
            self.changed.send_replace(());
        }
    }

    pub(super) fn injects_faults(&self) -> bool {
        self.injects_faults.load(Ordering::Relaxed)
    }

    /// Returns true with a probability of `percent` in 100.
    pub(super) fn chance(&self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// Returns true with a probability of `percent` in 100 while faults are injected, and never otherwise; takes
    /// note of the fault.
    pub(super) fn fault(&self, what: Fault, percent: u32) -> bool {
        let occurs = self.injects_faults() && self.chance(percent);
        if occurs {
            self.occurs(what);
        }
        occurs
    }

    /// Takes note that a fault of this kind occurs.
    pub(super) fn occurs(&self, what: Fault) {
        self.faults.lock().unwrap().insert(what);
    }

    pub(super) fn below(&self, n: u32) -> u32 {
        self.dice.lock().unwrap().random_range(0..n)
    }

    pub(super) fn millis(&self, from: u32, to: u32) -> Duration {
        Duration::from_millis(u64::from(from + self.below(to - from)))
    }

    /// Returns the time that a message is under way.
    pub(super) fn way(&self) -> Duration {
        match self.fault(Fault::Delay, 4) {
            true => self.millis(200, 4_000),
            false => self.millis(1, 20),
        }
    }

    pub(super) fn cut(&self, node: &str, cut: Option<Partition>) {
        let mut cuts = self.cuts.lock().unwrap();
        match cut {
            Some(cut) => _ = cuts.insert(node.to_owned(), cut),
            None => _ = cuts.remove(node),
        }
        drop(cuts);
        self.changed.send_replace(());
    }

    pub(super) fn silence(&self, node: &str, is_silent: bool) {
        let mut silent = self.silent.lock().unwrap();
        match is_silent {
            true => silent.insert(node.to_owned()),
            false => silent.remove(node),
        };
        drop(silent);
        self.changed.send_replace(());
    }

    /// Returns the cut between the store and this node at this moment.
    pub(super) fn cut_of(&self, node: &str) -> Option<Partition> {
        let cuts = self.cuts.lock().unwrap();
        cuts.get("").or_else(|| cuts.get(node)).copied()
    }

    pub(super) fn is_silent(&self, node: &str) -> bool {
        self.cut_of(node).is_some() || self.silent.lock().unwrap().contains(node)
    }

    /// Returns a receiver that changes when a node is cut off, or is no longer.
    pub(super) fn changed(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub(super) fn checker(&self) -> MutexGuard<'_, Checker> {
        self.checker.lock().unwrap()
    }

    pub(super) fn note(&self, line: impl Display) {
        let now = self.now();
        let line = format!("{:>9.3} {line}", now.as_secs_f64());
        self.journal.lock().unwrap().push(line);
    }

    /// Counts an attempt at a request, before the host's turn.
    pub(super) fn on_attempt(&self) {
        let now = self.now();
        let mut attempts = self.attempts.lock().unwrap();
        if attempts.0 != now {
            *attempts = (now, 0);
        }
        attempts.1 += 1;
        if attempts.1 == MAX_AT_ONCE {
            self.violation(format_args!(
                "{MAX_AT_ONCE} attempts at requests in one moment"
            ));
        }
    }

    /// Records a violation; only the first one counts.
    pub(super) fn violation(&self, what: impl Display) {
        self.note(format_args!("VIOLATION {what}"));
        let mut violation = self.violation.lock().unwrap();
        violation.get_or_insert_with(|| what.to_string());
        self.violated.cancel();
    }

    pub(super) fn judge(&self, found: Result<(), String>) {
        if let Err(what) = found {
            self.violation(what);
        }
    }

    pub(super) async fn violated(&self) {
        self.violated.cancelled().await;
    }

    pub(super) fn report(&self) -> Report {
        Report {
            journal: std::mem::take(&mut *self.journal.lock().unwrap()),
            violation: self.violation.lock().unwrap().take(),
            tally: self.checker().tally.clone(),
            faults: std::mem::take(&mut *self.faults.lock().unwrap()),
        }
    }
}

/// Faults between workers and the object store.
impl FaultPlan for SimWorld {
    fn delay(&self) -> Duration {
        self.way()
    }

    fn lost(&self) -> Option<LostMessage> {
        let is_lost = self.injects_faults() && self.chance(2);
        is_lost.then(|| match self.chance(50) {
            true => {
                self.occurs(Fault::LostWrite);
                LostMessage::Request
            }
            false => {
                self.occurs(Fault::UnknownWrite);
                LostMessage::Answer
            }
        })
    }

    fn tell(&self, event: Event) {
        match &event {
            Event::Opened {
                shard,
                epoch,
                storage_epoch,
                ..
            } => self.note(format_args!(
                "opened {shard} epoch {epoch} as {storage_epoch}"
            )),
            Event::Durable { .. } => {}
            Event::Fenced {
                shard,
                storage_epoch,
            } => self.note(format_args!("fenced {shard} as {storage_epoch}")),
        }
        let found = self.checker().on_frontier(&event, self.now());
        self.judge(found);
    }
}
