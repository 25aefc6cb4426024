//! Sends the spans of traces to a receiver, by OTLP over gRPC (<https://opentelemetry.io/docs/specs/otlp/>).
//!
//! Spans are sent in batches, one call at a time, a few seconds after their end or sooner if many wait. A call that fails
//! for a while is made again after a pause, and its batch is given up after a few attempts. Spans that come meanwhile wait
//! in their queue, within its bound, so a receiver that is away costs spans and nothing else. At a stop, the call in hand
//! goes on and what waits is sent once more, for a few seconds at most.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic as otlp;
use otlp::collector::trace::v1::ExportTraceServiceRequest;
use otlp::collector::trace::v1::trace_service_client::TraceServiceClient;
use otlp::resource::v1::Resource;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request};

use super::connector::Callee;
use super::error::ClientError;
use super::masters::parse;
use super::transport::{Server, transport_failure};
use crate::tls::{ClientTls, TlsError};
use crawler_model::guest_text::GuestText;
use crawler_process::retry::Backoff;
use crawler_process::traces::{SpanBatch, SpanQueue};

mod message;

use message::{message, resource};

/// Time that a receiver has for its answer, unless another one is set.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time after the end of a span until it is sent, if the receiver answers.
const INTERVAL: Duration = Duration::from_secs(5);
/// Number of calls for one batch, which is given up then.
const MAX_ATTEMPTS: u32 = 5;
/// Time that the last spans may take to be sent after a stop.
const LAST: Duration = Duration::from_secs(5);
/// Time for which the log is silent about a receiver that fails after one line.
const LOG_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Largest number of bytes of what a receiver says of a failure, in the log.
const SAID_MAX: usize = 256;

/// Receiver of traces.
pub struct ReceiverSettings {
    /// URL with `http://`, or `https://` for TLS.
    pub endpoint: String,
    /// Headers of each call. Their values may be secrets.
    pub headers: Vec<(String, String)>,
    /// File with CA certificates, in PEM, by which the receiver is verified. If `None`, those that the system trusts do.
    pub ca: Option<PathBuf>,
    /// Longest time for an answer.
    pub timeout: Duration,
}

/// Error of settings by which no receiver can be called.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    /// The name or the value of a header has characters that none has.
    #[error(
        "header {name} has characters that no header of gRPC has; write its name in lower case"
    )]
    Header {
        /// Name as given.
        name: String,
    },
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The URL is none that can be called.
    #[error(transparent)]
    Url(#[from] ClientError),
}

/// Sender of the spans of a process.
pub struct SpanSender {
    endpoint: String,
    server: Server,
    calls: TraceServiceClient<Channel>,
    headers: Vec<(AsciiMetadataKey, AsciiMetadataValue)>,
    timeout: Duration,
    queue: Arc<SpanQueue>,
    /// Batch that the receiver does not have yet, and the number of calls for it.
    in_hand: Option<(SpanBatch, u32)>,
    backoff: Backoff,
    log: FailureLog,
}

/// Failures of calls, as the log tells of them.
#[derive(Default)]
struct FailureLog {
    /// Time of the last line.
    told: Option<Instant>,
    /// Number of spans that were lost since.
    n_lost: u64,
    /// Number of spans that had found no room by the last look.
    n_without_room: u64,
}

/// Spans of a call that the receiver does not take.
struct Refused {
    n_spans: u64,
    why: String,
}

/// Failure of a call.
struct Failure {
    why: String,
    /// True if another call may succeed.
    is_passing: bool,
}

impl SpanSender {
    /// Creates the sender of the spans in a queue. It connects with its first call.
    pub fn new(settings: ReceiverSettings, queue: Arc<SpanQueue>) -> Result<Self, ReceiverError> {
        let ReceiverSettings {
            endpoint,
            headers,
            ca,
            timeout,
        } = settings;
        let tls = match endpoint.starts_with("https://") {
            true => ClientTls::of_command(ca, None)?,
            false => ClientTls::default(),
        };
        let headers = headers.into_iter().map(|(name, value)| {
            let key = name.parse::<AsciiMetadataKey>().ok();
            let parsed = key.zip(value.parse::<AsciiMetadataValue>().ok());
            let (key, mut value) = parsed.ok_or(ReceiverError::Header { name })?;
            value.set_sensitive(true);
            Ok((key, value))
        });
        let headers = headers.collect::<Result<Vec<_>, ReceiverError>>()?;
        let server = parse(&endpoint, &tls, Callee::Receiver)?;
        Ok(Self {
            calls: TraceServiceClient::new(server.connect_lazy()),
            server,
            endpoint,
            headers,
            timeout,
            queue,
            in_hand: None,
            backoff: Backoff::new(Duration::from_secs(1), Duration::from_secs(30)),
            log: FailureLog::default(),
        })
    }

    /// Sends spans as those of this node until `stop`, and then what is left, within a few seconds.
    pub async fn run(mut self, node: String, stop: CancellationToken) {
        let resource = resource(node);
        let too_late = async {
            stop.cancelled().await;
            tokio::time::sleep(LAST).await;
        };
        let is_too_late = tokio::select! {
            biased;
            () = self.send_until(&resource, &stop) => false,
            () = too_late => true,
        };
        if is_too_late {
            let why = format!("no answer within {} s at the end", LAST.as_secs());
            self.log.failed(&self.endpoint, &why);
        }
        self.give_up();
    }

    /// Sends spans until `stop`, and then what is left.
    async fn send_until(&mut self, resource: &Resource, stop: &CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.queue.filled() => {}
                () = tokio::time::sleep(INTERVAL) => {}
            }
            // What ended before the stop is in the queue now.
            let is_last = stop.is_cancelled();
            let goes_on = self.send(resource, stop).await;
            if is_last || !goes_on {
                return;
            }
        }
    }

    /// Sends what waits, and before a stop only full batches after the first: spans that end meanwhile wait for the next
    /// time. A call in hand is never cut off, since the receiver may have its spans already. Returns
    /// false if a call that began after the stop has failed: nothing follows it.
    async fn send(&mut self, resource: &Resource, stop: &CancellationToken) -> bool {
        loop {
            let is_last = stop.is_cancelled();
            if self.in_hand.is_none() {
                self.in_hand = self.queue.take().map(|batch| (batch, 0));
            }
            let Some((batch, n_calls)) = &mut self.in_hand else {
                return true;
            };
            *n_calls += 1;
            let is_given_up = *n_calls >= MAX_ATTEMPTS;
            let is_full = batch.is_full();
            let message = message(resource, batch.spans());
            let failure = match self.export(message).await {
                Ok(refused) => {
                    self.backoff.reset();
                    self.end(refused.as_ref().map_or(0, |refused| refused.n_spans));
                    if let Some(Refused { why, .. }) = refused {
                        self.log.failed(&self.endpoint, &why);
                    }
                    self.tell_no_room();
                    match is_full || is_last {
                        true => continue,
                        false => return true,
                    }
                }
                Err(failure) => failure,
            };
            if is_given_up || !failure.is_passing {
                self.end(u64::MAX);
            }
            self.log.failed(&self.endpoint, &failure.why);
            if is_last {
                return false;
            }
            let pause = tokio::time::sleep(self.backoff.next_delay());
            stop.run_until_cancelled(pause).await;
        }
    }

    /// Makes a call. Returns the spans that the receiver has refused, if there are some.
    async fn export(
        &mut self,
        message: ExportTraceServiceRequest,
    ) -> Result<Option<Refused>, Failure> {
        let mut request = Request::new(message);
        for (key, value) in &self.headers {
            request.metadata_mut().insert(key.clone(), value.clone());
        }
        let answer = tokio::time::timeout(self.timeout, self.calls.export(request)).await;
        let answer = match answer {
            Ok(Ok(answer)) => answer.into_inner(),
            Ok(Err(status)) => {
                return Err(match transport_failure(&status) {
                    // Its code is that of this side, and tells nothing of the receiver.
                    Some(failure) => Failure {
                        why: failure.why,
                        is_passing: true,
                    },
                    None => Failure {
                        why: format!("{:?}: {}", status.code(), said(status.message())),
                        is_passing: is_passing(status.code()),
                    },
                });
            }
            Err(_elapsed) => {
                // Nothing else would tell that the connection is dead.
                self.calls = TraceServiceClient::new(self.server.connect_lazy());
                let time = humantime::format_duration(self.timeout);
                return Err(Failure {
                    why: format!("no answer within {time}, which is timeout of [traces]"),
                    is_passing: true,
                });
            }
        };
        let partial = answer.partial_success.unwrap_or_default();
        let n_spans = u64::try_from(partial.rejected_spans).unwrap_or(0);
        let why = said(&partial.error_message);
        let why = format!("it refuses {n_spans} spans: {why}");
        Ok((n_spans > 0).then_some(Refused { n_spans, why }))
    }

    /// Ends the batch in hand, of which the receiver does not get this number of spans.
    fn end(&mut self, n_refused: u64) {
        if let Some((batch, _)) = self.in_hand.take() {
            self.log.n_lost += n_refused.min(batch.spans().len() as u64);
            batch.end(n_refused);
        }
    }

    /// Tells of spans that found no room although the receiver answers.
    fn tell_no_room(&mut self) {
        let n_all = self.queue.n_without_room();
        let n_new = n_all - std::mem::replace(&mut self.log.n_without_room, n_all);
        if n_new > 0 {
            self.log.n_lost += n_new;
            let why = "max-queued of [traces] is full: raise it, or record less with sample";
            self.log.failed(&self.endpoint, why);
        }
    }

    /// Counts what could not be sent until the end as lost.
    fn give_up(&mut self) {
        self.end(u64::MAX);
        while let Some(batch) = self.queue.take() {
            self.log.n_lost += batch.spans().len() as u64;
            batch.end(u64::MAX);
        }
        let n_lost = self.log.n_lost;
        if n_lost > 0 {
            tracing::warn!(
                receiver = self.endpoint,
                n_lost,
                "spans of traces were not sent"
            );
        }
    }
}

impl FailureLog {
    /// Logs that a call has failed, once for a while.
    fn failed(&mut self, receiver: &str, why: &str) {
        if self
            .told
            .is_some_and(|told| told.elapsed() < LOG_AGAIN_AFTER)
        {
            return;
        }
        self.told = Some(Instant::now());
        let n_lost = std::mem::take(&mut self.n_lost);
        tracing::warn!(receiver, why, n_lost, "traces cannot be sent");
    }
}

/// Returns what a receiver says, for the log.
fn said(text: &str) -> GuestText {
    GuestText::within(SAID_MAX, text)
}

/// True if the specification lets a call that the receiver has answered with this code be made again. With
/// `RESOURCE_EXHAUSTED` it asks for a time after which that may be done, which is not read here.
fn is_passing(code: Code) -> bool {
    matches!(
        code,
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss
    )
}

#[cfg(test)]
mod tests;
