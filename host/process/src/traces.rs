//! Traces: what happened to one URL or in one call, as spans with their times, for a receiver that shows them.
//!
//! A [`Tracer`] begins traces and decides which are recorded. The span of the work in hand is known to the thread while
//! it polls that work ([`Span::around`]), so the steps of a page or a call begin spans within it ([`child`]) without
//! being handed anything. Where nothing is recorded, such a step costs one look at the thread. Spans that have ended
//! wait in a [`SpanQueue`], which is bounded in bytes: what finds no room is counted and lost, and no work ever waits
//! for the receiver. How spans are sent is left to whoever takes them from the queue.
//!
//! ```text
//! context  ids, and the header by which a trace goes on in another process
//! sample   the part of all traces that is recorded
//! span     spans, from their beginning to their end
//! queue    spans that have ended
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use crate::clock::Clock;
use crawler_model::id::{Digest, ResourceId, Run};

mod context;
mod queue;
mod sample;
mod span;

pub use context::{SpanId, TraceContext, TraceId, TraceParent};
pub use queue::{BATCH_BYTES, SpanBatch, SpanQueue};
pub use sample::SampleRatio;
pub use span::{Around, EndedSpan, Kind, Notes, Span, Value, child, child_of_kind, current, note};

/// Settings of the traces of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceSettings {
    /// Part of all URLs and calls that is recorded: setting `sample`.
    pub sample: SampleRatio,
    /// Largest number of bytes of spans that wait to be sent: setting `max-queued`.
    pub max_queued: usize,
}

impl Default for TraceSettings {
    fn default() -> Self {
        Self {
            sample: SampleRatio::default(),
            max_queued: 4 << 20,
        }
    }
}

/// Beginning of all traces of a process. Clones share the queue. The default records nothing.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Recorder>>);

/// Parts that all spans of a process share.
pub(crate) struct Recorder {
    sample: SampleRatio,
    /// Cluster or data root that the process belongs to, once it is known.
    home: OnceLock<String>,
    queue: Arc<SpanQueue>,
    clock: Arc<dyn Clock>,
}

impl Tracer {
    /// Creates a tracer, and the queue from which its spans are taken.
    pub fn new(settings: TraceSettings, clock: Arc<dyn Clock>) -> (Self, Arc<SpanQueue>) {
        let queue = Arc::new(SpanQueue::new(settings.max_queued));
        let recorder = Recorder {
            sample: settings.sample,
            home: OnceLock::new(),
            queue: queue.clone(),
            clock,
        };
        (Self(Some(Arc::new(recorder))), queue)
    }

    /// Tells the cluster or the data root that the process belongs to, before the first URL: others have the same numbers
    /// of resources and runs. It never changes: a further call has no effect.
    pub fn tell_home(&self, home: &str) {
        if let Some(recorder) = &self.0 {
            recorder.home.get_or_init(|| home.to_owned());
        }
    }

    /// Returns true if some traces may be recorded.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the present moment if some traces may be recorded, for spans whose trace is known later.
    pub fn moment(&self) -> Option<Instant> {
        self.is_on().then(Instant::now)
    }

    /// Begins a span of the trace of a URL, with a beginning in the past if there is one. The URL alone decides
    /// whether it is recorded, so that all attempts, machines and runs agree. The trace is the same in all attempts
    /// of a run, and another one in other clusters.
    pub fn of_url(
        &self,
        name: &'static str,
        (resource, run): (ResourceId, Run),
        url: &str,
        begun: Option<Instant>,
    ) -> Span {
        let Some(recorder) = &self.0 else {
            return Span::default();
        };
        let [number, _, _, _] = words(&Digest::of(url.as_bytes()));
        if !recorder.sample.takes(number) {
            return Span::default();
        }
        let home = recorder.home.get().map_or("", String::as_str);
        let named = Digest::of(format!("{home}/{resource}/{run}/{url}").as_bytes());
        let [high, low, _, _] = words(&named);
        let context = TraceContext {
            trace: TraceId::of(high, low),
            span: SpanId::random(),
        };
        Span::begin(recorder, context, None, (name, Kind::Internal), begun)
    }

    /// Begins the span of a call that is answered here. It goes on with the trace of its caller, if the caller tells
    /// of one, and is recorded if the caller records it. `may_begin` is false if a call without a trace is never
    /// recorded.
    pub fn of_call(
        &self,
        name: &'static str,
        parent: Option<TraceParent>,
        may_begin: bool,
    ) -> Span {
        let Some(recorder) = &self.0 else {
            return Span::default();
        };
        let (trace, is_recorded) = match parent {
            Some(parent) => (parent.context.trace, parent.is_recorded),
            None => {
                let trace = TraceId::random();
                (trace, may_begin && recorder.sample.takes(trace.number()))
            }
        };
        if !is_recorded {
            return Span::default();
        }
        let span = SpanId::random();
        let context = TraceContext { trace, span };
        let parent = parent.map(|parent| parent.context.span);
        Span::begin(recorder, context, parent, (name, Kind::Server), None)
    }

    /// Begins a span below one that may have ended, with a beginning in the past if there is one.
    pub fn below(&self, parent: TraceContext, name: &'static str, begun: Option<Instant>) -> Span {
        let Some(recorder) = &self.0 else {
            return Span::default();
        };
        let context = TraceContext {
            span: SpanId::random(),
            ..parent
        };
        let kind = (name, Kind::Internal);
        Span::begin(recorder, context, Some(parent.span), kind, begun)
    }

    /// Returns the numbers of spans so far by what became of them. They are empty if nothing is ever recorded.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let recorder = self.0.as_ref();
        recorder.map_or_else(BTreeMap::new, |recorder| recorder.queue.counts())
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer")
            .field("is_on", &self.is_on())
            .finish_non_exhaustive()
    }
}

/// Returns the words that a digest is made of.
fn words(digest: &Digest) -> [u64; 4] {
    let (words, _) = digest.as_bytes().as_chunks::<8>();
    std::array::from_fn(|n| u64::from_be_bytes(words[n]))
}

#[cfg(test)]
mod tests;
