//! Turns the error that ended a call into a report that names the limit and the place in the guest.

use wasmtime::{PoolConcurrencyLimitError, Trap};
use wasmtime_wasi::I32Exit;

use super::frames;
use crate::KillReport;
use crate::host_calls::{CallEnded, CallState};
use crawler_model::crawl::Kill;
use crawler_model::guest_text::GuestText;
use crawler_model::plugin::Limits;

/// Wasmtime's message for this error, which has no type.
const TRANSFER_EXHAUSTED: &str = "fuel allocated for hostcalls has been exhausted";

/// Returns everything that is known about a call that ended with this error.
pub(super) fn kill_report(error: &wasmtime::Error, state: &CallState) -> KillReport {
    let (kill, cause) = classify(error, state);
    let mut message = match remedy(kill, &state.limits) {
        Some(remedy) => GuestText::of(format_args!("{cause}; {remedy}")),
        None => cause,
    };
    if let Some((said, place)) = state.panic.as_ref().filter(|_| kill != Kill::Trapped) {
        message = GuestText::of(format_args!("{message}; it had failed at {place}: {said}"));
    }
    KillReport {
        kill,
        message,
        backtrace: frames::of(error),
    }
}

/// Returns the fault or limit, and a sentence about it.
pub(super) fn classify(error: &wasmtime::Error, state: &CallState) -> (Kill, GuestText) {
    if let Some(ended) = error.downcast_ref::<CallEnded>() {
        return (ended.kill, ended.message.clone());
    }
    if error.downcast_ref::<I32Exit>().is_some() {
        return (
            Kill::Denied,
            "the rule called exit, which ends a process; return an error instead".into(),
        );
    }
    if error.downcast_ref::<PoolConcurrencyLimitError>().is_some() {
        return (Kill::NoRoom, "the pool of instances is in use".into());
    }
    let trap = error.downcast_ref::<Trap>();
    match trap {
        Some(Trap::OutOfFuel) => return (Kill::OutOfFuel, "the rule used up its fuel".into()),
        Some(Trap::StackOverflow) => {
            return (
                Kill::StackOverflow,
                "the rule recursed too deeply; its call stack is used up".into(),
            );
        }
        _ => {}
    }
    // An allocator whose request is refused aborts, which looks like any other trap. Without a trap, the
    // instance needed more memory to start with.
    if let Some(wanted) = state.memory.refused()
        && matches!(trap, None | Some(Trap::UnreachableCodeReached))
    {
        return (
            Kill::OutOfMemory,
            GuestText::of(format_args!(
                "the rule wanted {} KiB of memory",
                wanted.div_ceil(1 << 10)
            )),
        );
    }
    let cause = GuestText::of(error.root_cause());
    if cause.contains(TRANSFER_EXHAUSTED) {
        return (
            Kill::OverBudget,
            "the rule handed over more in one call than limit item-bytes would ever allow".into(),
        );
    }
    match (&state.panic, trap) {
        (Some((message, place)), _) => (
            Kill::Trapped,
            GuestText::of(format_args!("the rule panicked at {place}: {message}")),
        ),
        (None, Some(trap)) => (Kill::Trapped, GuestText::of(trap)),
        (None, None) => (Kill::Trapped, cause),
    }
}

/// Returns the setting that a user could change.
fn remedy(kill: Kill, limits: &Limits) -> Option<String> {
    let name = kill.limit()?;
    let value = match kill {
        Kill::OutOfFuel => limits.fuel.to_string(),
        Kill::OutOfCpu => humantime::format_duration(limits.cpu).to_string(),
        Kill::OutOfTime => humantime::format_duration(limits.timeout).to_string(),
        Kill::OutOfMemory => format!("{} KiB", limits.memory >> 10),
        Kill::Trapped | Kill::StackOverflow | Kill::OverBudget | Kill::Denied | Kill::NoRoom => {
            return None;
        }
    };
    Some(format!(
        "limit {name} is {value}; raise it with --limit {name}=VALUE"
    ))
}
