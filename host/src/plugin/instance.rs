//! One call: a fresh store and a fresh instance, ended by the first limit that it meets.
//!
//! Fuel ends what computes too much, epoch ticks what holds the processor too long, the outer
//! timeout what waits, the limiter what grows. Between two ticks a call yields, so that one rule
//! never keeps a thread of the executor. Whatever happens, the store is dropped with the call: its
//! memory, its handles and its output, unless the call succeeded.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wasmtime::{Store, UpdateDeadline};

use super::bindings::PluginPre;
use super::bindings::crawler::rules::types;
use super::bindings::exports::crawler::rules::rules;
use super::host_calls::extract::Plans;
use super::host_calls::{CallState, Ended, Scene, Schemas, logs};
use super::{CallConfig, CallFailure, CallOutput, CallReport, Usage};
use crate::model::crawl::{Kill, RuleError, UnixMillis};
use crate::model::plugin::Description;

pub(crate) mod limiter;
mod verdict;

/// How often the epoch moves on.
pub(super) const TICK: Duration = Duration::from_millis(10);
/// Bytes that one host call may carry, beyond what limit `item-bytes` allows.
const TRANSFER_MIN: u64 = 5 << 20;
/// Bytes of a reason that a rule gives.
const REASON_MAX: usize = 4 << 10;

/// What is called, and with what.
pub(super) struct Call {
    pub(super) scene: Scene,
    pub(super) description: Option<Arc<Description>>,
    pub(super) plans: Plans,
    pub(super) schemas: Schemas,
    pub(super) config: CallConfig,
    /// The clock that the guest sees.
    pub(super) now: UnixMillis,
    /// Of the guest's random numbers.
    pub(super) seed: [u8; 32],
}

/// Calls `describe`.
pub(super) async fn describe(
    plugin: &PluginPre<CallState>,
    call: Call,
) -> Result<rules::Description, (Kill, String)> {
    let mut store = store(plugin, call);
    let limits = store.data().limits;
    let called = async {
        let instance = plugin.instantiate_async(&mut store).await?;
        instance
            .crawler_rules_rules()
            .call_describe(&mut store)
            .await
    };
    match within(limits.timeout, called).await {
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
    let mut store = store(plugin, call);
    let limits = store.data().limits;
    let called = async {
        let instance = plugin.instantiate_async(&mut store).await?;
        let exports = instance.crawler_rules_rules();
        match rule {
            Some(rule) => exports.call_parse(&mut store, rule).await,
            None => exports.call_root(&mut store).await,
        }
    };
    let result = within(limits.timeout, called).await;
    let guest_fuel = limits.fuel - store.get_fuel().unwrap_or(0).min(limits.fuel);
    let mut state = store.into_data();
    let fuel = guest_fuel.saturating_add(state.meter.used());
    let result = match result {
        Ok(_) if fuel > limits.fuel => Err(Ended {
            kill: Kill::OutOfFuel,
            message: "the rule and its host calls together used up the fuel".to_owned(),
        }
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
    let logs = state.logs.clone();
    // A line that the guest left open is written when its stream is dropped.
    drop(state);
    let (logs, n_logs_dropped) = logs.take();
    CallReport {
        result,
        logs,
        n_logs_dropped,
        usage,
    }
}

/// A store that enforces the limits of a call.
fn store(plugin: &PluginPre<CallState>, call: Call) -> Store<CallState> {
    let limits = call.config.limits;
    let state = CallState::new(
        call.scene,
        call.description,
        call.plans,
        call.schemas,
        call.config,
        call.now,
        call.seed,
    );
    let mut store = Store::new(plugin.engine(), state);
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(
        usize::try_from(limits.item_bytes.saturating_add(TRANSFER_MIN)).unwrap_or(usize::MAX),
    );
    store
        .set_fuel(limits.fuel)
        .expect("the engine is configured to count fuel");
    let mut n_ticks = limits.cpu.as_millis().div_ceil(TICK.as_millis()).max(1);
    store.epoch_deadline_callback(move |_| {
        n_ticks -= 1;
        if n_ticks == 0 {
            return Err(Ended {
                kill: Kill::OutOfCpu,
                message: "the rule held the processor for too long".to_owned(),
            }
            .into());
        }
        Ok(UpdateDeadline::Yield(1))
    });
    store.set_epoch_deadline(1);
    store
}

async fn within<T>(
    timeout: Duration,
    called: impl Future<Output = wasmtime::Result<T>>,
) -> wasmtime::Result<T> {
    match tokio::time::timeout(timeout, called).await {
        Ok(result) => result,
        Err(_elapsed) => Err(Ended {
            kill: Kill::OutOfTime,
            message: "the call did not end in time".to_owned(),
        }
        .into()),
    }
}

fn rule_error(error: types::RuleError) -> RuleError {
    let text = |text: String| logs::escaped(super::host_calls::up_to(&text, REASON_MAX));
    match error {
        // No key of its hints is known.
        types::RuleError::Retry(types::Retry {
            after_ms,
            why,
            hints: _,
        }) => RuleError::Retry {
            after_ms,
            why: text(why),
        },
        types::RuleError::Skip(why) => RuleError::Skip(text(why)),
        types::RuleError::Blocked(why) => RuleError::Blocked(text(why)),
        types::RuleError::Fatal(why) => RuleError::Fatal(text(why)),
        types::RuleError::Other((code, why)) => RuleError::Other(code, text(why)),
    }
}
