//! One call: a fresh store and a fresh instance, ended by the first limit that it meets.
//!
//! Fuel ends a call that computes too much. At each tick of the epoch, processor time ends a call that has
//! held the processor too long. The outer timeout ends a call that waits, and the limiter one that grows.
//! Between two ticks a call yields, so that one rule never keeps a thread of the executor. The store is
//! always dropped with the call: its memory, its handles and, unless the call succeeded, its output.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wasmtime::{Store, UpdateDeadline};

use super::bindings::PluginPre;
use super::bindings::crawler::rules::types;
use super::bindings::exports::crawler::rules::rules;
use super::host_calls::reads::Plans;
use super::host_calls::{CallEnded, CallKind, CallState, HANDLES_MAX, Schemas};
use super::{CallConfig, CallFailure, CallOutput, CallReport, Usage};
use cpu_time::CpuTime;
use crawler_model::crawl::{Kill, RuleError, UnixMillis};
use crawler_model::guest_text::GuestText;
use crawler_model::plugin::Description;
use crawler_process::stage::Stage;

pub(crate) mod cpu_time;
mod frames;
pub(crate) mod limiter;
mod verdict;

/// Interval at which the epoch advances.
pub(super) const TICK: Duration = Duration::from_millis(10);
/// Bytes that one host call may carry, beyond those that limit `item-bytes` allows.
const TRANSFER_MIN: u64 = 5 << 20;

/// Function that is called, with its input.
pub(super) struct Call {
    pub(super) kind: CallKind,
    pub(super) description: Option<Arc<Description>>,
    pub(super) plans: Plans,
    pub(super) schemas: Schemas,
    pub(super) config: CallConfig,
    /// Clock that the guest sees.
    pub(super) now: UnixMillis,
    /// Seed of the guest's random numbers.
    pub(super) seed: [u8; 32],
}

/// Calls `describe`.
pub(super) async fn describe(
    plugin: &PluginPre<CallState>,
    call: Call,
) -> Result<rules::Description, (Kill, GuestText)> {
    let mut store = store(plugin, call);
    let limits = store.data().limits;
    let time = store.data().time.clone();
    let called = async {
        let instance = plugin.instantiate_async(&mut store).await?;
        instance
            .crawler_rules_rules()
            .call_describe(&mut store)
            .await
    };
    match within(limits.timeout, &time, called).await {
        Ok(description) => Ok(description),
        Err(error) => Err(verdict::classify(&error, store.data())),
    }
}

/// Calls `root`, or `parse` with the rule of this number.
pub(super) async fn run(
    plugin: &PluginPre<CallState>,
    call: Call,
    rule: Option<u32>,
) -> CallReport {
    let started = Instant::now();
    let mut store = Stage::Instance.charge(|| store(plugin, call));
    let limits = store.data().limits;
    let time = store.data().time.clone();
    let called = async {
        let instance = Stage::Instance
            .timed(pin!(plugin.instantiate_async(&mut store)))
            .await?;
        let exports = instance.crawler_rules_rules();
        match rule {
            Some(rule) => {
                let parse = pin!(exports.call_parse(&mut store, rule));
                Stage::Guest.timed(parse).await
            }
            None => {
                let root = pin!(exports.call_root(&mut store));
                Stage::Guest.timed(root).await
            }
        }
    };
    let result = within(limits.timeout, &time, called).await;
    let guest_fuel = limits.fuel - store.get_fuel().unwrap_or(0).min(limits.fuel);
    let mut state = Stage::Instance.charge(|| store.into_data());
    let fuel = guest_fuel.saturating_add(state.meter.used());
    let result = match result {
        Ok(_) if fuel > limits.fuel => Err(CallEnded::new(
            Kill::OutOfFuel,
            "the rule and its host calls together used up the fuel",
        )
        .into()),
        result => result,
    };
    let result = match result {
        Ok(Ok(())) => Ok(std::mem::take(&mut state.output)),
        Ok(Err(error)) => Err(CallFailure::Rule(rule_error(error))),
        Err(error) => Err(CallFailure::Killed(Box::new(verdict::kill_report(
            &error, &state,
        )))),
    };
    report(result, state, fuel, started)
}

fn report(
    result: Result<CallOutput, CallFailure>,
    state: CallState,
    fuel: u64,
    started: Instant,
) -> CallReport {
    let usage = Usage {
        fuel: fuel.min(state.limits.fuel),
        peak_memory: state.memory.peak(),
        elapsed: started.elapsed(),
    };
    let reads = state.matched();
    let has_given_up = matches!(result, Err(CallFailure::Rule(_)));
    let place = state.panic.as_ref().filter(|_| has_given_up);
    let place = place.map(|(_, place)| place.clone());
    let logs = state.logs.clone();
    // A line that the guest left open is written when its stream is dropped.
    Stage::Instance.charge(|| drop(state));
    let (logs, n_logs_dropped) = logs.take();
    CallReport {
        result,
        logs,
        n_logs_dropped,
        usage,
        place,
        reads,
    }
}

/// Creates a store that enforces the limits of a call.
fn store(plugin: &PluginPre<CallState>, call: Call) -> Store<CallState> {
    let limits = call.config.limits;
    let state = CallState::new(
        call.kind,
        call.description,
        call.plans,
        call.schemas,
        call.config,
        call.now,
        call.seed,
    );
    let mut store = Store::new(plugin.engine(), state);
    store.limiter(|state| &mut state.memory);
    store.set_max_component_handles(HANDLES_MAX);
    store.set_hostcall_fuel(
        usize::try_from(limits.item_bytes.saturating_add(TRANSFER_MIN)).unwrap_or(usize::MAX),
    );
    store
        .set_fuel(limits.fuel)
        .expect("the engine is configured to count fuel");
    store.epoch_deadline_callback(move |store| {
        if store.data().time.spent() >= limits.cpu {
            return Err(
                CallEnded::new(Kill::OutOfCpu, "the rule held the processor for too long").into(),
            );
        }
        Ok(UpdateDeadline::Yield(1))
    });
    store.set_epoch_deadline(1);
    store
}

async fn within<T>(
    timeout: Duration,
    time: &CpuTime,
    called: impl Future<Output = wasmtime::Result<T>>,
) -> wasmtime::Result<T> {
    match tokio::time::timeout(timeout, time.count(called)).await {
        Ok(result) => result,
        Err(_elapsed) => {
            Err(CallEnded::new(Kill::OutOfTime, "the call did not end in time").into())
        }
    }
}

fn rule_error(error: types::RuleError) -> RuleError {
    match error {
        // This host knows no key of the hints.
        types::RuleError::Retry(types::Retry {
            after_ms,
            why,
            hints: _,
        }) => RuleError::Retry {
            after_ms,
            why: why.into(),
        },
        types::RuleError::Skip(why) => RuleError::Skip(why.into()),
        types::RuleError::Blocked(why) => RuleError::Blocked(why.into()),
        types::RuleError::Fatal(why) => RuleError::Fatal(why.into()),
        types::RuleError::Other((code, why)) => RuleError::Other(code, why.into()),
    }
}
