//! Messages of OTLP: the process, and the spans that it sends.

use opentelemetry_proto::tonic as otlp;
use otlp::collector::trace::v1::ExportTraceServiceRequest;
use otlp::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use otlp::resource::v1::Resource;
use otlp::trace::v1::span::SpanKind;
use otlp::trace::v1::status::StatusCode;
use otlp::trace::v1::{ResourceSpans, ScopeSpans};

use crawler_process::traces::{EndedSpan, Kind, Value};

/// Name under which receivers know the program.
const SERVICE: &str = "crawler";

/// Returns what receivers know the process by.
pub(super) fn resource(node: String) -> Resource {
    let text = |key: &str, text: &str| attribute(key, &Value::Text(text.to_owned()));
    let mut attributes = vec![
        text("service.name", SERVICE),
        text("service.version", env!("CARGO_PKG_VERSION")),
    ];
    if !node.is_empty() {
        attributes.push(text("service.instance.id", &node));
    }
    Resource {
        attributes,
        ..Resource::default()
    }
}

/// Returns the message with these spans.
pub(super) fn message(resource: &Resource, spans: &[EndedSpan]) -> ExportTraceServiceRequest {
    let of_scope = ScopeSpans {
        scope: Some(InstrumentationScope {
            name: SERVICE.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        }),
        spans: spans.iter().map(span_message).collect(),
        ..ScopeSpans::default()
    };
    let of_resource = ResourceSpans {
        resource: Some(resource.clone()),
        scope_spans: vec![of_scope],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest {
        resource_spans: vec![of_resource],
    }
}

fn span_message(span: &EndedSpan) -> otlp::trace::v1::Span {
    let kind = match span.kind {
        Kind::Internal => SpanKind::Internal,
        Kind::Server => SpanKind::Server,
        Kind::Client => SpanKind::Client,
    };
    let status = span.error.as_ref().map(|error| otlp::trace::v1::Status {
        message: error.clone(),
        code: StatusCode::Error.into(),
    });
    let parent = span.parent.map(|parent| parent.as_bytes().to_vec());
    let attributes = span.attributes.iter();
    let attributes = attributes.map(|(key, value)| attribute(key, value));
    otlp::trace::v1::Span {
        trace_id: span.context.trace.as_bytes().to_vec(),
        span_id: span.context.span.as_bytes().to_vec(),
        parent_span_id: parent.unwrap_or_default(),
        name: span.name.to_owned(),
        kind: kind.into(),
        start_time_unix_nano: span.begun_at,
        end_time_unix_nano: span.ended_at,
        attributes: attributes.collect(),
        status,
        ..otlp::trace::v1::Span::default()
    }
}

fn attribute(key: &str, value: &Value) -> KeyValue {
    let value = match value {
        Value::Text(text) => any_value::Value::StringValue(text.clone()),
        Value::Number(number) => any_value::Value::IntValue(*number),
    };
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
