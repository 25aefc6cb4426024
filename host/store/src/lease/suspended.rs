//! Time for which the machine was suspended: a process does not notice it, and its monotonic clock does not
//! count it.

use std::time::Duration;

/// Returns the time since the machine was started. Only differences are meaningful, and only in whole seconds:
/// the value comes from two readings of clocks, between which time passes.
#[cfg(target_os = "linux")]
pub(super) fn suspended() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    let since_start = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    let awake = since_start(ClockId::Monotonic);
    since_start(ClockId::Boottime).saturating_sub(awake)
}

/// Returns zero, because the time is not known on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn suspended() -> Duration {
    Duration::ZERO
}
