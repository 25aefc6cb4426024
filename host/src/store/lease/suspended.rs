//! How long the machine was suspended: a process does not see it, and its monotonic clock does not count it.

use std::time::Duration;

/// Since the machine has started. Only differences tell something, and those by whole seconds: it is made of two
/// looks at clocks, between which time passes.
#[cfg(target_os = "linux")]
pub(super) fn suspended() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    let since_start = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    let awake = since_start(ClockId::Monotonic);
    since_start(ClockId::Boottime).saturating_sub(awake)
}

/// It cannot be told here.
#[cfg(not(target_os = "linux"))]
pub(super) fn suspended() -> Duration {
    Duration::ZERO
}
