//! One engine with room for one call, on which all cases run one after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crawler_model::id::Digest;
use crawler_model::plugin::Limits;
use crawler_plugin::engine::{Engine, Plugin};
use crawler_plugin::{Admit as _, CallReport, Rules as _};

use crate::case::Guest;
use crate::guests::{config, context, hostile, page, settings};
use crate::rules::{SHARP, SPARSE, WIDE};

pub(crate) const URL: &str = "http://a.test/dir/page";
/// Deadline that ends a case that hangs; nothing is measured by it.
const DEADLINE: Duration = Duration::from_secs(60);
/// Largest length of a log line, in bytes.
const LINE_MAX: usize = 4 << 10;

pub(crate) struct Stage {
    pub(crate) engine: Engine,
    /// Engine where compiling may take little memory.
    fenced: Engine,
    loaded: Mutex<HashMap<Guest, Arc<Plugin>>>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let mut little = settings(1);
        little.compile_time = Duration::from_secs(20);
        little.compile_memory = 64 << 20;
        Self {
            engine: Engine::new(settings(1)).expect("the engine starts"),
            fenced: Engine::new(little).expect("the engine starts"),
            loaded: Mutex::default(),
        }
    }

    pub(crate) async fn plugin(&self, guest: Guest) -> Arc<Plugin> {
        let loaded = self
            .loaded
            .lock()
            .expect("no test panicked")
            .get(&guest)
            .cloned();
        if let Some(plugin) = loaded {
            return plugin;
        }
        let plugin = self.load(component(guest)).await;
        let mut loaded = self.loaded.lock().expect("no test panicked");
        Arc::clone(loaded.entry(guest).or_insert(plugin))
    }

    pub(crate) async fn load(&self, bytes: Bytes) -> Arc<Plugin> {
        let loaded = self.engine.load(Digest::of(&bytes), bytes).await;
        loaded.expect("the plugin is loaded")
    }

    /// Calls a rule, and checks the bounds that hold for every call.
    pub(crate) async fn call(
        &self,
        guest: Guest,
        rule: &str,
        body: &str,
        change: fn(&mut Limits),
    ) -> Result<CallReport, String> {
        let config = config(change, &[]);
        let limits = config.limits;
        let plugin = self.plugin(guest).await;
        let called = plugin.parse(config, rule, page(URL, body.to_owned()), context());
        let report = in_time(called).await?;
        check_bounds(&report, &limits)?;
        Ok(report)
    }

    /// Pushes bytes; returns the refusal, or an empty text.
    pub(crate) async fn push(&self, bytes: Bytes, is_fenced: bool) -> Result<String, String> {
        let engine = if is_fenced {
            &self.fenced
        } else {
            &self.engine
        };
        let admitted = in_time(engine.admit(bytes)).await?;
        Ok(admitted.map_or_else(|error| error.to_string(), |_| String::new()))
    }

    /// Checks that a page is parsed as it should be, whatever came before.
    pub(crate) async fn good_page(&self) -> Result<(), String> {
        let report = self
            .call(Guest::Hostile, "ok", "<p>größe</p>", |_| ())
            .await?;
        let output = report
            .result
            .map_err(|e| format!("a good page failed: {e:?}"))?;
        let item = output.items.first().map(|item| item.json.as_str());
        let next = output.requests.first().map(|request| request.url.as_str());
        let expected = (
            Some(r#"{"url":"http://a.test/dir/page"}"#),
            Some("http://a.test/dir/next"),
        );
        if (item, next) == expected && output.items.len() == 1 && output.requests.len() == 1 {
            return Ok(());
        }
        Err(format!("a good page gave {output:?}"))
    }
}

fn component(guest: Guest) -> Bytes {
    match guest {
        Guest::Hostile => hostile(),
        Guest::Sharp => SHARP.component(),
        Guest::Sparse => SPARSE.component(),
        Guest::Wide => WIDE.component(),
    }
}

async fn in_time<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let ended = tokio::time::timeout(DEADLINE, work).await;
    ended.map_err(|_| format!("it did not end within {} s", DEADLINE.as_secs()))
}

/// Checks the bounds that no call exceeds, however it ends.
pub(crate) fn check_bounds(report: &CallReport, limits: &Limits) -> Result<(), String> {
    let usage = &report.usage;
    if usage.fuel > limits.fuel || usage.peak_memory > limits.memory {
        return Err(format!("it used more than its limits: {usage:?}"));
    }
    if report.logs.len() as u64 > limits.log_lines {
        return Err(format!("it left {} lines", report.logs.len()));
    }
    let lines = report.logs.iter().map(|line| line.message.as_str());
    match lines.into_iter().find(|line| !is_harmless(line)) {
        Some(line) => Err(format!(
            "it left the line {:?}",
            line.get(..80).unwrap_or(line)
        )),
        None => Ok(()),
    }
}

/// Returns true if a line is short, and nothing in it moves a cursor or turns text around.
fn is_harmless(line: &str) -> bool {
    let turns = |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    line.len() <= LINE_MAX && !line.chars().any(|c| c.is_control() || turns(c))
}

/// Returns the resident memory of this process, in KiB.
pub(crate) fn resident_kib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let n = line.and_then(|line| line.split_whitespace().next());
    n.and_then(|n| n.parse().ok()).expect("it is a number")
}

/// Returns the time since a moment, in milliseconds.
pub(crate) fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}
