//! From what ended a call to a report that names the limit and where the guest was.

use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::model::crawl::Kill;
use crate::model::plugin::Limits;
use crate::plugin::KillReport;
use crate::plugin::host_calls::{CallState, Ended, logs};

/// In wasmtime's words; it has no type for this.
const TRANSFER_EXHAUSTED: &str = "fuel allocated for hostcalls has been exhausted";

/// All that is known about a call that ended with this error.
pub(super) fn kill_report(error: &wasmtime::Error, state: &CallState) -> KillReport {
    let (kill, cause) = classify(error, state);
    let message = match remedy(kill, &state.limits) {
        Some(remedy) => format!("{cause}; {remedy}"),
        None => cause,
    };
    KillReport {
        kill,
        message,
        panic: state.panic.clone(),
        backtrace: backtrace(error),
    }
}

/// Which fault or limit, and a sentence about it.
pub(super) fn classify(error: &wasmtime::Error, state: &CallState) -> (Kill, String) {
    if let Some(ended) = error.downcast_ref::<Ended>() {
        return (ended.kill, ended.message.clone());
    }
    if error.downcast_ref::<I32Exit>().is_some() {
        return (
            Kill::Denied,
            "the rule called exit, which ends a process; return an error instead".to_owned(),
        );
    }
    if error.downcast_ref::<PoolConcurrencyLimitError>().is_some() {
        return (Kill::NoRoom, "the pool of instances is in use".to_owned());
    }
    let trap = error.downcast_ref::<Trap>();
    match trap {
        Some(Trap::OutOfFuel) => return (Kill::OutOfFuel, "the rule used up its fuel".to_owned()),
        Some(Trap::StackOverflow) => {
            return (
                Kill::StackOverflow,
                "the rule recursed too deeply; its call stack is used up".to_owned(),
            );
        }
        _ => {}
    }
    // An allocator that is told no aborts, which looks like any other trap. Without a trap, the
    // instance needed more to start with.
    if let Some(wanted) = state.memory.refused()
        && matches!(trap, None | Some(Trap::UnreachableCodeReached))
    {
        return (
            Kill::OutOfMemory,
            format!("the rule wanted {} KiB of memory", wanted.div_ceil(1 << 10)),
        );
    }
    let cause = error.root_cause().to_string();
    if cause.contains(TRANSFER_EXHAUSTED) {
        return (
            Kill::OverBudget,
            "the rule handed over more in one call than limit item-bytes would ever allow"
                .to_owned(),
        );
    }
    match (&state.panic, trap) {
        (Some((message, place)), _) => (
            Kill::Trapped,
            format!("the rule panicked at {place}: {message}"),
        ),
        (None, Some(trap)) => (Kill::Trapped, trap.to_string()),
        (None, None) => (Kill::Trapped, logs::escaped(&cause)),
    }
}

/// What a user could change.
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

/// The guest's functions, innermost first.
fn backtrace(error: &wasmtime::Error) -> Vec<String> {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else {
        return Vec::new();
    };
    // Only its text has the names as a person writes them: `  0: 0x1a2b - module!function`.
    backtrace
        .to_string()
        .lines()
        .filter_map(|line| line.split_once(" - "))
        .map(|(_, name)| logs::escaped(without_hash(name)))
        .collect()
}

/// `module!path::function` without the `::h0123456789abcdef` that compilers add.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            path
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_as_in_its_source() {
        assert_eq!(without_hash("m!a::b::h1ae90b67556d7bf6"), "m!a::b");
        assert_eq!(without_hash("m!a::hello"), "m!a::hello");
    }
}
