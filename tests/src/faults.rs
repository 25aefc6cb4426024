//! Choice of the faults that the calls of a faulty thing meet with: on command, or by chance that can be repeated.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::random::Random;

/// Source of the faults that calls meet with. It is cheap to clone, and begins with no fault.
#[derive(Debug, Clone)]
pub struct Faults<F>(Arc<Mutex<Plan<F>>>);

#[derive(Debug)]
struct Plan<F> {
    mode: Mode<F>,
    n_calls: usize,
    met: BTreeMap<F, usize>,
}

#[derive(Debug)]
enum Mode<F> {
    None,
    Always(F),
    Script(VecDeque<Option<F>>),
    Chance(Random, u64, Vec<F>),
}

impl<F> Default for Faults<F> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Plan {
            mode: Mode::None,
            n_calls: 0,
            met: BTreeMap::new(),
        })))
    }
}

impl<F: Copy + Ord> Faults<F> {
    fn plan(&self) -> MutexGuard<'_, Plan<F>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets all calls succeed from now on.
    pub fn none(&self) {
        self.plan().mode = Mode::None;
    }

    /// Makes all calls meet with this fault from now on.
    pub fn always(&self, fault: F) {
        self.plan().mode = Mode::Always(fault);
    }

    /// Makes the next calls meet with these faults, one after the other; later calls meet with none.
    pub fn script(&self, faults: impl IntoIterator<Item = Option<F>>) {
        self.plan().mode = Mode::Script(faults.into_iter().collect());
    }

    /// Makes calls meet with one of these faults, with a probability of `percent` in 100.
    pub fn chance(&self, percent: u64, faults: &[F], random: Random) {
        assert!(!faults.is_empty(), "name the faults");
        self.plan().mode = Mode::Chance(random, percent, faults.to_vec());
    }

    /// Number of calls so far.
    pub fn n_calls(&self) -> usize {
        self.plan().n_calls
    }

    /// Number of times that each fault was met.
    pub fn met(&self) -> BTreeMap<F, usize> {
        self.plan().met.clone()
    }

    /// Returns the fault of the next call.
    pub fn next(&self) -> Option<F> {
        let mut plan = self.plan();
        plan.n_calls += 1;
        let fault = match &mut plan.mode {
            Mode::None => None,
            Mode::Always(fault) => Some(*fault),
            Mode::Script(faults) => faults.pop_front().flatten(),
            Mode::Chance(random, percent, faults) => {
                let nth = random.below(faults.len() as u64);
                let nth = usize::try_from(nth).expect("below a number of this type");
                (random.below(100) < *percent).then(|| faults[nth])
            }
        }?;
        *plan.met.entry(fault).or_default() += 1;
        Some(fault)
    }
}
