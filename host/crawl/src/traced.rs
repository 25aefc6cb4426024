//! Traces of pages: each attempt is a span, with its steps below it, and so is the delivery of what it brought.
//!
//! Items are delivered in batches when their page is over. So the pages that are recorded wait here for the sinks that
//! do not have their items yet, by the key of the last one. Delivery after a restart is not recorded.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::parts::CrawlParts;
use crawler_frontier::{Claim, Ended};
use crawler_model::crawl::{ItemKey, ItemRecord};
use crawler_model::settings::SinkName;
use crawler_plugin::{CallFailure, CallReport};
use crawler_process::traces::{self, Notes, Span, TraceContext, Tracer};

/// Number of pages that wait for their delivery, over all sinks. The oldest goes if there are more.
const WAITING_MAX: usize = 1_024;

/// Recorded pages whose items not all sinks have.
pub(super) struct Undelivered {
    n_sinks: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pages: HashMap<ItemKey, Waiting>,
    /// Keys of the pages by their numbers, the oldest first.
    order: BTreeMap<u64, ItemKey>,
    /// Number of pages so far.
    n_pages: u64,
}

/// Page that waits for sinks.
struct Waiting {
    /// Place in the order.
    number: u64,
    context: TraceContext,
    n_items: usize,
    /// Number of sinks that do not have its items.
    n_sinks: usize,
}

/// Begins the span of an attempt, whose claim was asked for at the moment `begun`.
pub(super) fn of_claim(
    parts: &CrawlParts,
    name: &'static str,
    claim: &Claim,
    begun: Option<Instant>,
) -> Span {
    let request = &claim.request;
    let run = (parts.resource, parts.run);
    let span = parts.tracer.of_url(name, run, request.url.as_str(), begun);
    span.past("take", begun);
    span.note(|notes| {
        notes
            .url("url.full", &request.url)
            .number("crawler.resource.id", parts.resource.0)
            .number("crawler.run", parts.run.0)
            .number("crawler.attempt", claim.attempt)
            .number("crawler.depth", claim.depth);
    });
    span
}

/// Notes the end of an attempt in its span.
pub(super) fn note_end(ended: &Ended) {
    traces::note(|notes| {
        match ended {
            Ended::Done(done) => notes.text("crawler.outcome", done.as_str()),
            Ended::Retry { reason, .. } => notes.text("crawler.outcome", "retry").fail(reason),
            Ended::Dead { reason } => notes.text("crawler.outcome", "dead").fail(reason),
        };
    });
}

/// Notes that an attempt does not count.
pub(super) fn note_put_back() {
    traces::note(|notes| {
        notes.text("crawler.outcome", "put-back");
    });
}

/// Begins the span of the call of a rule.
pub(super) fn of_call(rule: &str, plugin: impl FnOnce() -> String) -> Span {
    let span = traces::child("rule");
    span.note(|notes| {
        notes
            .text("crawler.rule", rule)
            .text("crawler.plugin", plugin());
    });
    span
}

/// Notes the report of a call in its span.
pub(super) async fn noted(call: impl Future<Output = CallReport>) -> CallReport {
    let report = call.await;
    traces::note(|notes| note_report(notes, &report));
    report
}

fn note_report(notes: &mut Notes, report: &CallReport) {
    notes
        .number("crawler.fuel", report.usage.fuel)
        .number("crawler.peak_memory", report.usage.peak_memory);
    match &report.result {
        Ok(output) => {
            notes
                .number("crawler.items", output.items.len())
                .number("crawler.requests", output.requests.len());
        }
        Err(CallFailure::Rule(_)) => {
            notes.fail("the rule returned an error");
        }
        Err(CallFailure::Killed(kill)) => {
            notes.text("error.type", kill.kill).fail(&kill.message);
        }
    }
}

impl Undelivered {
    pub(super) fn new(n_sinks: usize) -> Self {
        Self {
            n_sinks,
            state: Mutex::default(),
        }
    }

    /// Notes the items of the page in hand, which are about to be stored, if the page is recorded.
    pub(super) fn wait(&self, items: &[ItemRecord]) {
        let (Some(context), Some(last)) = (traces::current(), items.last()) else {
            return;
        };
        let mut state = self.lock();
        let State {
            pages,
            order,
            n_pages,
        } = &mut *state;
        *n_pages += 1;
        let waiting = Waiting {
            number: *n_pages,
            context,
            n_items: items.len(),
            n_sinks: self.n_sinks,
        };
        order.insert(waiting.number, last.key.clone());
        if let Some(earlier) = pages.insert(last.key.clone(), waiting) {
            order.remove(&earlier.number);
        }
        if order.len() > WAITING_MAX
            && let Some((_, oldest)) = order.pop_first()
        {
            pages.remove(&oldest);
        }
    }

    /// Adds the delivery of items to the traces of their pages. It began at the moment `begun` and is over.
    pub(super) fn delivered(
        &self,
        tracer: &Tracer,
        sink: &SinkName,
        items: &[ItemRecord],
        begun: Option<Instant>,
    ) {
        if !tracer.is_on() {
            return;
        }
        let mut state = self.lock();
        let State { pages, order, .. } = &mut *state;
        for item in items {
            if pages.is_empty() {
                return;
            }
            let Some(waiting) = pages.get_mut(&item.key) else {
                continue;
            };
            let span = tracer.below(waiting.context, "deliver", begun);
            span.note(|notes| {
                notes
                    .text("crawler.sink", sink)
                    .number("crawler.items", waiting.n_items);
            });
            waiting.n_sinks = waiting.n_sinks.saturating_sub(1);
            if waiting.n_sinks == 0 {
                order.remove(&waiting.number);
                pages.remove(&item.key);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;

    use serde_json::value::RawValue;

    use super::*;
    use crawler_model::id::{ResourceId, Run};
    use crawler_process::clock::SystemClock;
    use crawler_process::traces::{SampleRatio, SpanQueue, TraceSettings};

    fn record(n: usize) -> ItemRecord {
        ItemRecord {
            key: ItemKey(n.to_string()),
            url: "http://shop.test/".to_owned(),
            rule: "page".to_owned(),
            schema: "page".to_owned(),
            run: Run(1),
            fetched_at: 1,
            item: RawValue::from_string("{}".to_owned()).unwrap(),
            change: None,
        }
    }

    /// Returns the names of the spans that have ended.
    fn ended(queue: &Arc<SpanQueue>) -> Vec<&'static str> {
        let mut names = Vec::new();
        while let Some(batch) = queue.take() {
            names.extend(batch.spans().iter().map(|span| span.name));
        }
        names
    }

    #[tokio::test]
    async fn the_oldest_page_goes_when_too_many_wait_for_sinks() {
        let settings = TraceSettings {
            sample: SampleRatio::new(1.0).unwrap(),
            ..TraceSettings::default()
        };
        let (tracer, queue) = Tracer::new(settings, Arc::new(SystemClock));
        let undelivered = Undelivered::new(2);
        for n in 0..=WAITING_MAX {
            let page = tracer.of_url("page", (ResourceId(1), Run(1)), &n.to_string(), None);
            let stored = async { undelivered.wait(&[record(n)]) };
            page.around(pin!(stored)).await;
        }
        let is_waiting = |n| undelivered.lock().pages.contains_key(&record(n).key);
        assert!(!is_waiting(0) && is_waiting(1) && is_waiting(WAITING_MAX));
        // A page that is not recorded does not wait.
        undelivered.wait(&[record(WAITING_MAX + 1)]);
        ended(&queue);
        let items: Vec<ItemRecord> = (0..=WAITING_MAX + 1).map(record).collect();
        let deliver = |sink: &SinkName| {
            undelivered.delivered(&tracer, sink, &items, None);
            ended(&queue)
        };
        let (lines, lake) = (SinkName::lines(), "lake".parse().unwrap());
        assert_eq!(deliver(&lines), ["deliver"; WAITING_MAX]);
        assert_eq!(deliver(&lake), ["deliver"; WAITING_MAX]);
        assert!(deliver(&lake).is_empty(), "both sinks have them");
        assert!(undelivered.lock().order.is_empty());
    }
}
