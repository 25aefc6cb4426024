//! A receiver of traces by OTLP over gRPC in the process of a test. It keeps the spans that it gets, and can be made to
//! fail.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opentelemetry_proto::tonic as otlp;
use otlp::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use otlp::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use otlp::common::v1::KeyValue;
use otlp::common::v1::any_value::Value;
use otlp::trace::v1::Span;
use tokio::runtime::{Builder, Runtime};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status};

/// Behaviour of the receiver towards calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It takes all spans.
    Takes,
    /// It takes all spans of a call but the first.
    RefusesOne,
    /// It refuses calls with this code.
    Fails(Code),
    /// It takes all spans, and answers after this time.
    Slow(Duration),
    /// It never answers.
    Silent,
}

/// Span that was received, with what is of use to tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedSpan {
    /// Id of the trace, in hexadecimal digits.
    pub trace: String,
    /// Id of the span, in hexadecimal digits.
    pub id: String,
    /// Id of the span around it; empty if there is none.
    pub parent: String,
    /// Name of the span.
    pub name: String,
    /// Number of the kind, as in the specification.
    pub kind: i32,
    /// Times of its beginning and its end, in nanoseconds since 1970.
    pub times: (u64, u64),
    /// Attributes of the span; numbers are written in digits.
    pub attributes: BTreeMap<String, String>,
    /// Reason why it failed, if it did.
    pub error: Option<String>,
    /// Attributes of the process that has sent it.
    pub resource: BTreeMap<String, String>,
}

/// A running receiver; it stops when it is dropped.
///
/// It runs on a thread of its own. A test may block its own runtime, and the receiver still answers.
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// `None` only while the receiver is dropped.
    runtime: Option<Runtime>,
}

struct Shared(Mutex<State>);

struct State {
    manner: Manner,
    n_calls: usize,
    authorization: Option<String>,
    spans: Vec<ReceivedSpan>,
}

impl Receiver {
    /// Starts a receiver that takes all spans.
    ///
    /// # Panics
    ///
    /// Panics if no port or thread is available.
    pub fn start() -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("otlp-receiver")
            .enable_all()
            .build()
            .expect("a thread for the receiver");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener
            .set_nonblocking(true)
            .expect("a listener that does not block");
        let address = listener.local_addr().expect("address of the receiver");
        let shared = Arc::new(Shared(Mutex::new(State {
            manner: Manner::Takes,
            n_calls: 0,
            authorization: None,
            spans: Vec::new(),
        })));
        let service = TraceServiceServer::new(Service(shared.clone()));
        runtime.handle().spawn(async move {
            let listener =
                tokio::net::TcpListener::from_std(listener).expect("a listener of this runtime");
            let incoming = TcpListenerStream::new(listener);
            let served = Server::builder().add_service(service);
            served
                .serve_with_incoming(incoming)
                .await
                .expect("it is served until it is dropped");
        });
        Self {
            address,
            shared,
            runtime: Some(runtime),
        }
    }

    /// Returns the URL of the receiver.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets what becomes of calls from now on.
    pub fn set_manner(&self, manner: Manner) {
        self.shared.lock().manner = manner;
    }

    /// Returns the number of calls so far.
    pub fn n_calls(&self) -> usize {
        self.shared.lock().n_calls
    }

    /// Returns the header `authorization` of the last call.
    pub fn authorization(&self) -> Option<String> {
        self.shared.lock().authorization.clone()
    }

    /// Returns the spans that were taken so far.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        self.shared.lock().spans.clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // A runtime must not be waited for in another one, where most tests end.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call, and returns what becomes of it.
    fn begin(&self, request: &Request<ExportTraceServiceRequest>) -> Manner {
        let mut state = self.lock();
        state.n_calls += 1;
        let shown = request.metadata().get("authorization");
        state.authorization = shown.and_then(|shown| Some(shown.to_str().ok()?.to_owned()));
        state.manner
    }
}

struct Service(Arc<Shared>);

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let manner = self.0.begin(&request);
        let n_refused = match manner {
            Manner::Takes | Manner::Slow(_) => 0,
            Manner::RefusesOne => 1,
            Manner::Fails(code) => return Err(Status::new(code, "on purpose")),
            Manner::Silent => std::future::pending().await,
        };
        let spans = received(request.into_inner()).skip(n_refused);
        self.0.lock().spans.extend(spans);
        if let Manner::Slow(time) = manner {
            tokio::time::sleep(time).await;
        }
        let partial_success = (n_refused > 0).then(|| ExportTracePartialSuccess {
            rejected_spans: n_refused as i64,
            error_message: "on purpose".to_owned(),
        });
        Ok(Response::new(ExportTraceServiceResponse {
            partial_success,
        }))
    }
}

fn received(request: ExportTraceServiceRequest) -> impl Iterator<Item = ReceivedSpan> {
    request.resource_spans.into_iter().flat_map(|of_resource| {
        let resource = of_resource.resource.unwrap_or_default();
        let resource = attributes(resource.attributes);
        let spans = of_resource
            .scope_spans
            .into_iter()
            .flat_map(|of_scope| of_scope.spans);
        spans.map(move |span| received_span(span, resource.clone()))
    })
}

fn received_span(span: Span, resource: BTreeMap<String, String>) -> ReceivedSpan {
    ReceivedSpan {
        trace: hexadecimal(&span.trace_id),
        id: hexadecimal(&span.span_id),
        parent: hexadecimal(&span.parent_span_id),
        name: span.name,
        kind: span.kind,
        times: (span.start_time_unix_nano, span.end_time_unix_nano),
        attributes: attributes(span.attributes),
        error: span.status.map(|status| status.message),
        resource,
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let shown = attributes.into_iter().map(|KeyValue { key, value, .. }| {
        let value = match value.and_then(|value| value.value) {
            Some(Value::StringValue(text)) => text,
            Some(Value::IntValue(number)) => number.to_string(),
            other => format!("{other:?}"),
        };
        (key, value)
    });
    shown.collect()
}
