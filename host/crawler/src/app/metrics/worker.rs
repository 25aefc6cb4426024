//! Metrics of a worker: its crawls by resource, sinks, requests, calls of rules, frontiers and memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::families as f;
use super::families::Family;
use super::process::Process;
use super::writer::Writer;
use crawler_fetch::http::HttpFetcher;
use crawler_frontier::durable::Frontiers;
use crawler_process::memory::Memory;
use crawler_worker::{CrawlMetrics, Crawls, Load, ResourceRow, Tally};

/// Name of the row of all resources without a row of their own. No resource has this name.
const OTHERS: &str = "(others)";

/// Parts of a worker that metrics are read from.
pub(in crate::app) struct Worker {
    pub(in crate::app) crawls: Crawls,
    pub(in crate::app) fetch: Arc<HttpFetcher>,
    pub(in crate::app) frontiers: Arc<Frontiers>,
    pub(in crate::app) memory: Memory,
}

impl Worker {
    pub(super) fn write(&self, process: &Process, writer: &mut Writer<'_>) -> fmt::Result {
        write_crawls(&self.crawls.metrics(), writer)?;
        self.write_sinks(writer)?;
        self.write_fetches(writer)?;
        write_calls(process, writer)?;
        self.write_frontiers(writer)?;
        let memory = self.memory.present_use();
        let limit = memory.allowed.map(|bytes| (Vec::new(), bytes));
        writer.numbers(&f::MAX_MEMORY, limit)?;
        writer.number(&f::IS_SHORT, u64::from(memory.is_short))?;
        writer.number(&f::PUT_BACK, memory.n_put_back)
    }

    fn write_sinks(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let sinks = self.crawls.sink_counts();
        write_counts(writer, &f::SINK_WRITES, &sinks.writes.read())?;
        writer.number(&f::SINK_ITEMS, sinks.items.read())?;
        writer.number(&f::SINK_REJECTED, sinks.rejected.read())?;
        writer.durations(&f::SINK_DURATIONS, [(Vec::new(), sinks.durations.read())])
    }

    fn write_fetches(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let counts = self.fetch.counts();
        write_counts(writer, &f::REQUESTS, &counts.requests.read())?;
        writer.number(&f::RECEIVED, counts.received.read())?;
        let phases = [
            ("wait", &counts.waits),
            ("lookup", &counts.lookups),
            ("connect", &counts.connects),
            ("first_byte", &counts.first_bytes),
            ("body", &counts.bodies),
        ];
        let phases = phases.map(|(phase, durations)| (vec![phase], durations.read()));
        writer.durations(&f::PHASES, phases)?;
        writer.number(&f::KNOWN_HOSTS, self.fetch.n_known_hosts() as u64)
    }

    fn write_frontiers(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let counts = self.frontiers.counts();
        writer.number(&f::OPENINGS, counts.opened.read())?;
        let results = [
            (vec!["ok"], counts.batches.read()),
            (vec!["failed"], counts.failures.read()),
            (vec!["closed"], counts.closed.read()),
        ];
        writer.numbers(&f::BATCHES, results)?;
        writer.number(&f::BATCH_PAGES, counts.pages.read())?;
        writer.durations(&f::DURABLE, [(Vec::new(), counts.durable.read())])
    }
}

/// Writes the rows of all resources, metric by metric.
pub(super) fn write_crawls(crawls: &CrawlMetrics, writer: &mut Writer<'_>) -> fmt::Result {
    let rows = &crawls.resources;
    write_words(writer, &f::PAGES, rows, |tally| &tally.pages)?;
    write_words(writer, &f::STATUSES, rows, |tally| &tally.statuses)?;
    write_totals(writer, &f::RETRIES, rows, |tally| tally.retries)?;
    write_words(writer, &f::DEAD, rows, |tally| &tally.dead)?;
    write_words(writer, &f::REFUSED, rows, |tally| &tally.refused)?;
    write_totals(writer, &f::ITEMS, rows, |tally| tally.items)?;
    write_totals(writer, &f::BODY_BYTES, rows, |tally| tally.bytes)?;
    write_totals(writer, &f::KEPT_BYTES, rows, |tally| tally.kept_bytes)?;
    write_loads(writer, &f::CRAWLS, rows, |load| load.crawls)?;
    write_loads(writer, &f::DUE, rows, |load| load.due)?;
    write_loads(writer, &f::IN_FLIGHT, rows, |load| load.in_flight)?;
    write_loads(writer, &f::READY_HOSTS, rows, |load| load.ready_hosts)?;
    write_loads(writer, &f::OUTBOX_ITEMS, rows, |l| l.undelivered_items)?;
    write_loads(writer, &f::OUTBOX_BYTES, rows, |l| l.undelivered_bytes)?;
    write_loads(writer, &f::DISK_BYTES, rows, |load| load.disk_bytes)?;
    write_counts(writer, &f::WAITING, &crawls.waiting)
}

/// Writes the metrics of calls of rules. A master has an engine too, but it calls no rules.
fn write_calls(process: &Process, writer: &mut Writer<'_>) -> fmt::Result {
    let counts = process.engine.counts();
    write_counts(writer, &f::RULE_CALLS, &counts.calls.read())?;
    write_counts(writer, &f::KILLS, &counts.kills.read())?;
    writer.number(&f::FUEL, counts.fuel.read())?;
    writer.durations(&f::RULE_DURATIONS, [(Vec::new(), counts.durations.read())])?;
    writer.durations(&f::RULE_WAITS, [(Vec::new(), counts.waits.read())])?;
    let present = process.engine.present_use();
    writer.number(&f::INSTANCES, present.calls)?;
    writer.number(&f::MAX_INSTANCES, present.max_calls)?;
    writer.number(&f::CALL_MEMORY, present.memory)?;
    writer.number(&f::MAX_CALL_MEMORY, present.max_memory)
}

/// Writes counts by one word.
fn write_counts(
    writer: &mut Writer<'_>,
    family: &Family,
    counts: &BTreeMap<String, u64>,
) -> fmt::Result {
    let samples = counts.iter().map(|(word, n)| (vec![word.as_str()], *n));
    writer.numbers(family, samples)
}

fn write_words(
    writer: &mut Writer<'_>,
    family: &Family,
    rows: &[ResourceRow],
    words: fn(&Tally) -> &BTreeMap<String, u64>,
) -> fmt::Result {
    let samples = rows.iter().flat_map(|row| {
        let words = words(&row.tally).iter();
        words.map(move |(word, n)| (vec![name(row), word.as_str()], *n))
    });
    writer.numbers(family, samples)
}

fn write_totals(
    writer: &mut Writer<'_>,
    family: &Family,
    rows: &[ResourceRow],
    total: fn(&Tally) -> u64,
) -> fmt::Result {
    let samples = rows.iter().map(|row| (vec![name(row)], total(&row.tally)));
    writer.numbers(family, samples)
}

/// Writes a number of the present crawls. Resources without a crawl are left out.
fn write_loads(
    writer: &mut Writer<'_>,
    family: &Family,
    rows: &[ResourceRow],
    number: fn(&Load) -> u64,
) -> fmt::Result {
    let present = rows
        .iter()
        .filter(|row| row.load.crawls > 0 || row.name.is_none());
    let samples = present.map(|row| (vec![name(row)], number(&row.load)));
    writer.numbers(family, samples)
}

fn name(row: &ResourceRow) -> &str {
    row.name.as_ref().map_or(OTHERS, |name| name.as_str())
}
