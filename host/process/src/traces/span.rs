//! Spans: the steps of a trace, from their beginning to their end.

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::time::Instant;
use url::Url;

use super::Recorder;
use super::context::{SpanId, TraceContext};
use crawler_model::guest_text::GuestText;

/// Largest number of attributes of a span; further ones are left out.
const ATTRIBUTES_MAX: usize = 32;
/// Largest number of bytes of a text of a span; a longer one is cut.
const TEXT_MAX: usize = 1 << 10;
/// Word for work that was dropped before its end, such as a call whose caller has gone.
const CANCELLED: &str = "cancelled";

/// Side of a step that a span tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Step within this process.
    Internal,
    /// Answer to a call.
    Server,
    /// Call to another process.
    Client,
}

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text without control characters.
    Text(String),
    /// Number.
    Number(i64),
}

/// Span that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSpan {
    /// The span and its trace.
    pub context: TraceContext,
    /// Span around it; `None` for the first one of a trace.
    pub parent: Option<SpanId>,
    /// Name of the step.
    pub name: &'static str,
    /// Side of the step.
    pub kind: Kind,
    /// Beginning, in nanoseconds since 1970.
    pub begun_at: u64,
    /// End, in nanoseconds since 1970.
    pub ended_at: u64,
    /// Attributes, each key once.
    pub attributes: Vec<(&'static str, Value)>,
    /// Reason why the step failed. `None` if it did not.
    pub error: Option<String>,
}

impl EndedSpan {
    /// Returns the number of bytes that the span takes in memory, about.
    pub(super) fn n_bytes(&self) -> usize {
        let of_attribute = |(_, value): &(&str, Value)| {
            let of_text = match value {
                Value::Text(text) => text.capacity(),
                Value::Number(_) => 0,
            };
            size_of::<(&str, Value)>() + of_text
        };
        let attributes: usize = self.attributes.iter().map(of_attribute).sum();
        size_of::<Self>() + attributes + self.error.as_ref().map_or(0, String::capacity)
    }
}

/// Notes about a step that goes on.
#[derive(Debug, Default)]
pub struct Notes {
    attributes: Vec<(&'static str, Value)>,
    error: Option<String>,
}

impl Notes {
    /// Notes a text, which may be written by a site, a client or a rule: it is cut at its bound, and control characters
    /// are escaped.
    pub fn text(&mut self, key: &'static str, text: impl fmt::Display) -> &mut Self {
        let text = GuestText::within(TEXT_MAX, text);
        self.set(key, Value::Text(text.into()))
    }

    /// Notes a number.
    pub fn number(&mut self, key: &'static str, number: impl TryInto<i64>) -> &mut Self {
        self.set(key, Value::Number(number.try_into().unwrap_or(i64::MAX)))
    }

    /// Notes a URL, without the name and the password of a user.
    pub fn url(&mut self, key: &'static str, url: &Url) -> &mut Self {
        if url.username().is_empty() && url.password().is_none() {
            return self.text(key, url);
        }
        let mut url = url.clone();
        // A URL with a user has a host, so both can be taken out.
        let _is_done = url.set_username("").and_then(|()| url.set_password(None));
        self.text(key, url)
    }

    /// Notes that the step failed.
    pub fn fail(&mut self, why: impl fmt::Display) -> &mut Self {
        self.error = Some(GuestText::within(TEXT_MAX, why).into());
        self
    }

    fn set(&mut self, key: &'static str, value: Value) -> &mut Self {
        let known = self.attributes.iter().position(|(known, _)| *known == key);
        match known {
            Some(place) => self.attributes[place].1 = value,
            None if self.attributes.len() < ATTRIBUTES_MAX => self.attributes.push((key, value)),
            None => {}
        }
        self
    }
}

/// Step that goes on; it ends when this is dropped. The default is a step that is not recorded.
#[derive(Default)]
pub struct Span(Option<Arc<Live>>);

/// Step that goes on and is recorded.
struct Live {
    recorder: Arc<Recorder>,
    context: TraceContext,
    parent: Option<SpanId>,
    name: &'static str,
    kind: Kind,
    begun_at: u64,
    begun: Instant,
    notes: Mutex<Notes>,
}

/// Work within a span. The span ends with it, as one that has failed if the work is dropped before its end.
#[must_use = "futures do nothing unless they are polled"]
pub struct Around<F> {
    // Dropped first: spans within end before this one.
    work: F,
    span: Span,
}

/// Time in which a thread works within a span. Dropping it goes on with the span around it.
struct Entered(Option<Option<Arc<Live>>>);

thread_local! {
    /// Span of the work that the thread polls.
    static CURRENT: RefCell<Option<Arc<Live>>> = const { RefCell::new(None) };
}

/// Begins a span within that of the work in hand. It is not recorded if there is none.
pub fn child(name: &'static str) -> Span {
    child_of_kind(name, Kind::Internal)
}

/// Begins a span of this kind, like [`child`].
pub fn child_of_kind(name: &'static str, kind: Kind) -> Span {
    let begun = |live: &Arc<Live>| live.child((name, kind), None);
    CURRENT
        .with_borrow(|current| current.as_ref().map(begun))
        .unwrap_or_default()
}

/// Notes something of the work in hand. Nothing is computed if it is not recorded.
pub fn note(note: impl FnOnce(&mut Notes)) {
    CURRENT.with_borrow(|current| {
        if let Some(live) = current {
            note(&mut live.notes());
        }
    });
}

/// Returns the span of the work in hand, which goes along with calls to other processes. `None` if it is not recorded.
pub fn current() -> Option<TraceContext> {
    CURRENT.with_borrow(|current| current.as_ref().map(|live| live.context))
}

impl Span {
    pub(super) fn begin(
        recorder: &Arc<Recorder>,
        context: TraceContext,
        parent: Option<SpanId>,
        (name, kind): (&'static str, Kind),
        begun: Option<Instant>,
    ) -> Self {
        let now = Instant::now();
        let begun = begun.unwrap_or(now);
        let before = now.duration_since(begun).as_nanos();
        let before = u64::try_from(before).unwrap_or(u64::MAX);
        Self(Some(Arc::new(Live {
            context,
            parent,
            name,
            kind,
            begun_at: recorder.clock.unix_nanos().saturating_sub(before),
            begun,
            notes: Mutex::default(),
            recorder: recorder.clone(),
        })))
    }

    /// Returns true if the span is recorded.
    pub fn is_recorded(&self) -> bool {
        self.0.is_some()
    }

    /// Notes something of the step. Nothing is computed if it is not recorded.
    pub fn note(&self, note: impl FnOnce(&mut Notes)) {
        if let Some(live) = &self.0 {
            note(&mut live.notes());
        }
    }

    /// Adds a step that is over: it began at this moment and ends now.
    pub fn past(&self, name: &'static str, begun: Option<Instant>) {
        if let Some(live) = &self.0 {
            drop(live.child((name, Kind::Internal), begun));
        }
    }

    /// Does work within the span, which ends with it. A future that is not `Unpin` is handed over by
    /// [`std::pin::pin`], so that it is not copied.
    pub fn around<F: Future + Unpin>(self, work: F) -> Around<F> {
        Around { span: self, work }
    }

    /// Returns the span, for steps that follow when it may have ended. `None` if it is not recorded.
    pub fn context(&self) -> Option<TraceContext> {
        self.0.as_ref().map(|live| live.context)
    }

    fn poll_within<T>(&self, poll: impl FnOnce() -> T) -> T {
        let _entered = self.enter();
        poll()
    }

    fn enter(&self) -> Entered {
        let live = self.0.as_ref();
        Entered(live.map(|live| CURRENT.replace(Some(live.clone()))))
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Span").field(&self.context()).finish()
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(live) = self.0.take() {
            live.end();
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(outer) = self.0.take() {
            CURRENT.set(outer);
        }
    }
}

impl Live {
    fn child(&self, name: (&'static str, Kind), begun: Option<Instant>) -> Span {
        let context = TraceContext {
            span: SpanId::random(),
            ..self.context
        };
        Span::begin(
            &self.recorder,
            context,
            Some(self.context.span),
            name,
            begun,
        )
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        let Notes { attributes, error } = std::mem::take(&mut *self.notes());
        let took = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.recorder.queue.push(EndedSpan {
            context: self.context,
            parent: self.parent,
            name: self.name,
            kind: self.kind,
            begun_at: self.begun_at,
            ended_at: self.begun_at.saturating_add(took),
            attributes,
            error,
        });
    }
}

impl<F> Drop for Around<F> {
    fn drop(&mut self) {
        // The span of work that has come to its end is gone already.
        self.span.note(|notes| {
            if notes.error.is_none() {
                notes.text("error.type", CANCELLED).fail(CANCELLED);
            }
        });
    }
}

impl<F: Future + Unpin> Future for Around<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { span, work } = &mut *self;
        let polled = span.poll_within(|| Pin::new(work).poll(cx));
        if polled.is_ready() {
            *span = Span::default();
        }
        polled
    }
}
