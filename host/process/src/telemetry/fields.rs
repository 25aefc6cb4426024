//! Fields of a log line: its own and those of the spans around it, each name once.
//!
//! A field of an inner span wins over one of an outer span, and a field of the line itself over both. Both
//! formats of the log read their fields here.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::{FmtContext, FormatFields};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, Scope};

/// Fields with their values, in the order in which they are shown.
#[derive(Default)]
pub(super) struct Fields(Vec<(Field, Value)>);

#[derive(Clone)]
enum Value {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    /// Text that is quoted where people read it.
    Text(String),
    /// Value as its `Display` or `Debug` writes it.
    Shown(String),
}

/// Layer that keeps the fields of each span for the lines within it.
pub(super) struct SpanFields;

impl Fields {
    /// Returns the fields of a line: its message, those of its spans from the outermost to the innermost, and
    /// its own.
    pub(super) fn of<S, N>(context: &FmtContext<'_, S, N>, event: &Event<'_>) -> Self
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
        N: for<'a> FormatFields<'a> + 'static,
    {
        let mut fields = Self::default();
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            if let Some(Self(inner)) = span.extensions().get::<Self>() {
                fields.replace(inner);
            }
        }
        let mut own = Self::default();
        event.record(&mut own);
        fields.0.retain(|(field, _)| own.place(field).is_none());
        let message = own
            .0
            .iter()
            .position(|(field, _)| field.name() == "message");
        let message = message.map(|place| own.0.remove(place));
        fields.0.splice(0..0, message);
        fields.0.append(&mut own.0);
        fields
    }

    /// Hands the fields over, in their order.
    pub(super) fn record(&self, visitor: &mut dyn Visit) {
        for (field, value) in &self.0 {
            match value {
                Value::Bool(value) => visitor.record_bool(field, *value),
                Value::Signed(value) => visitor.record_i64(field, *value),
                Value::Unsigned(value) => visitor.record_u64(field, *value),
                Value::Float(value) => visitor.record_f64(field, *value),
                Value::Text(text) => visitor.record_str(field, text),
                Value::Shown(text) => visitor.record_debug(field, &format_args!("{text}")),
            }
        }
    }

    /// Takes fields over; those of a name that is known change their value and keep their place.
    fn replace(&mut self, fields: &[(Field, Value)]) {
        for (field, value) in fields {
            match self.place(field) {
                Some(place) => self.0[place].1 = value.clone(),
                None => self.0.push((field.clone(), value.clone())),
            }
        }
    }

    fn place(&self, field: &Field) -> Option<usize> {
        let is_same = |(known, _): &(Field, Value)| known.name() == field.name();
        self.0.iter().position(is_same)
    }

    fn push(&mut self, field: &Field, value: Value) {
        self.0.push((field.clone(), value));
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field, Value::Shown(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, Value::Text(value.to_owned()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, Value::Bool(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, Value::Signed(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, Value::Unsigned(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field, Value::Float(value));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanFields {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let mut later = Fields::default();
        values.record(&mut later);
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            fields.replace(&later.0);
        }
    }
}
