//! Counts the work of the pass in tests, so that they can tell linear from quadratic without a clock.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// One step is one byte read or one open element looked at. Does nothing outside tests.
#[inline(always)]
pub(super) fn add(n: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + n);
    #[cfg(not(test))]
    let _ = n;
}

/// The steps of this thread since the last call.
#[cfg(test)]
pub(super) fn take() -> usize {
    STEPS.take()
}
