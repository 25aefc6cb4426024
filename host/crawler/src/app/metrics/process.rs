//! Metrics of every process: what it uses, its calls to the store, its leases, and the plugins that it has compiled.

use std::fmt;
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};

use super::Leases;
use super::families as f;
use super::writer::Writer;
use crawler_model::crawl::UnixMillis;
use crawler_plugin::engine::Engine;
use crawler_process::clock::Clock;
use crawler_process::memory::resident;
use crawler_process::traces::Tracer;
use crawler_store::counting_store::{CALLS, StoreCounts};
use crawler_store::lease::Term;

/// Parts of every process that metrics are read from.
pub(in crate::app) struct Process {
    /// Start of the process.
    started_at: UnixMillis,
    store: Arc<StoreCounts>,
    pub(super) engine: Engine,
    pub(super) leases: Leases,
    tracer: Tracer,
}

impl Process {
    /// Creates the parts of a process that starts now.
    pub(in crate::app) fn new(
        clock: &dyn Clock,
        store: Arc<StoreCounts>,
        engine: &Engine,
        tracer: Tracer,
    ) -> Self {
        Self {
            started_at: clock.unix_millis(),
            store,
            engine: engine.clone(),
            leases: Leases::default(),
            tracer,
        }
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> fmt::Result {
        writer.numbers(&f::BUILD, [(vec![env!("CARGO_PKG_VERSION")], 1_u64)])?;
        writer.number(&f::START, self.started_at as f64 / 1_000.0)?;
        let spent = clock_gettime(ClockId::ProcessCPUTime);
        writer.number(&f::CPU, spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9)?;
        let resident = resident::now().map(|bytes| (Vec::new(), bytes));
        writer.numbers(&f::RESIDENT, resident)?;

        let calls: Vec<_> = CALLS.into_iter().zip(&self.store.calls).collect();
        let results: Vec<_> = calls.iter().map(|(_, c)| c.results.read()).collect();
        let results = calls.iter().zip(&results).flat_map(|((call, _), results)| {
            let results = results.iter();
            results.map(move |(result, n)| (vec![*call, result.as_str()], *n))
        });
        writer.numbers(&f::STORE_CALLS, results)?;
        let made = calls.iter().map(|(call, c)| (*call, c.durations.read()));
        let made = made.filter(|(_, read)| read.n() > 0);
        let durations = made.map(|(call, read)| (vec![call], read));
        writer.durations(&f::STORE_DURATIONS, durations)?;
        let leases = self.leases.get().into_iter().flatten();
        let leases = leases.map(|(role, registered)| {
            let is_held = registered.borrow().as_ref().is_some_and(Term::is_held);
            (vec![role.as_str()], u64::from(is_held))
        });
        writer.numbers(&f::LEASE, leases)?;

        let counts = self.engine.counts();
        let loads = counts.loads.read();
        let loads = loads.iter().map(|(word, n)| (vec![word.as_str()], *n));
        writer.numbers(&f::LOADS, loads)?;
        writer.durations(&f::COMPILES, [(Vec::new(), counts.compiles.read())])?;
        writer.number(&f::READY, self.engine.present_use().plugins)?;
        let spans = self.tracer.counts();
        let spans = spans.iter().map(|(word, n)| (vec![word.as_str()], *n));
        writer.numbers(&f::TRACE_SPANS, spans)
    }
}
