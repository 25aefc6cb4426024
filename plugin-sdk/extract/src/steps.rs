//! Counts the work of reading a page in tests, so that they can tell linear from quadratic without a clock.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// Adds steps. A step is one byte read or copied, or one open, declared or captured thing looked at. Outside of
/// tests it does nothing.
#[inline(always)]
pub(crate) fn add(n: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + n);
    #[cfg(not(test))]
    let _ = n;
}

/// Returns the steps of this thread since the last call.
#[cfg(test)]
pub(crate) fn take() -> usize {
    STEPS.take()
}
