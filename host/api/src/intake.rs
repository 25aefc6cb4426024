//! Intake of the calls of a listener: who calls, whether the caller may call now, its trace, and the line that the log gets.
//!
//! Both forms of the calls come through here before anything of a body is read. A call ends when its answer is there,
//! or, if that is a stream, when the stream is open; open streams are bounded where they are opened. Every call of a client is a line of its own target: at `info`
//! if it was carried out or refused, at `warn` if it was let in and this side failed. The line has neither tokens nor
//! bodies. The calls of a master are counted, too. A call that is let in is a span of a trace if it is recorded: a caller
//! decides that for its own trace, and a master that hands a call on has decided it already. The span of a call whose
//! caller has gone away has failed.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::time::Instant;
use tonic::Code;

use super::Api;
use super::access::methods::Method;
use super::access::{Access, Caller, Headers};
use super::call_counts::CallCounts;
use super::caller_limits::{CallerLimiter, InHand};
use super::problem::Problem;
use crawler_process::traces::{self, Span, TraceParent, Tracer};

/// Target of the lines, for filters such as `CRAWLER_LOG=info,crawler_api::calls=off`.
const TARGET: &str = "crawler_api::calls";
/// Word for a call that is not in the table of calls.
const UNKNOWN: &str = "unknown";

/// Intake of one listener.
#[derive(Debug, Clone)]
pub(crate) struct Intake {
    pub(crate) access: Access,
    /// Bounds of callers; `None` on a process that answers nodes only.
    pub(crate) limiter: Option<CallerLimiter>,
    /// Beginning of the traces of calls.
    pub(crate) tracer: Tracer,
}

/// Call in hand. If it is dropped before its end, the caller has gone away.
#[derive(Debug)]
pub(crate) struct OngoingCall {
    line: CallLine,
    /// Permit of the caller; `None` if the call is not bounded by its caller.
    _in_hand: Option<InHand>,
    has_ended: bool,
    /// Span of the call, until the call is carried out within it.
    span: Span,
}

/// Line of the log about a call.
#[derive(Debug)]
struct CallLine {
    method: &'static str,
    /// Words for the caller; `None` if it was not let in.
    subject: Option<String>,
    address: Option<SocketAddr>,
    began: Instant,
    /// Counts of the calls of a master. `None` on a process that answers nodes only.
    counts: Option<Arc<CallCounts>>,
}

impl Intake {
    /// Creates the intake of a listener of this master.
    pub(crate) fn of_master(api: &Api, access: Access) -> Self {
        Self {
            access,
            limiter: Some(api.limiter()),
            tracer: api.parts.tracer.clone(),
        }
    }

    /// Begins a call, unless its caller has no right to it or makes too many calls.
    pub(crate) fn begin(
        &self,
        method: Option<&'static Method>,
        shown: Headers<'_>,
        address: Option<SocketAddr>,
    ) -> Result<(Caller, OngoingCall), Problem> {
        let mut line = CallLine {
            method: method.map_or(UNKNOWN, |method| method.name),
            subject: None,
            address,
            began: Instant::now(),
            counts: self.limiter.as_ref().map(CallerLimiter::counts),
        };
        let begun = self.access.caller(method, shown, address);
        let begun = begun.and_then(|caller| {
            line.subject = Some(caller.name().to_owned());
            let bounded = self.limiter.as_ref().zip(caller.limit_key());
            let in_hand = bounded.map(|(limiter, key)| limiter.begin(key));
            Ok((caller, in_hand.transpose()?))
        });
        match begun {
            Ok((caller, in_hand)) => {
                let parent = shown.trace_parent.and_then(TraceParent::parse);
                let span = (self.tracer).of_call(line.method, parent, !shown.is_handed_on);
                let call = OngoingCall {
                    line,
                    _in_hand: in_hand,
                    has_ended: false,
                    span,
                };
                Ok((caller, call))
            }
            Err(problem) => {
                line.write(problem.grpc_code(), false);
                Err(problem)
            }
        }
    }
}

impl OngoingCall {
    /// Takes the span of the call, within which it is carried out and ended.
    pub(crate) fn take_span(&mut self) -> Span {
        std::mem::take(&mut self.span)
    }

    /// Ends the call with the code of its answer.
    pub(crate) fn end(mut self, code: Code) {
        self.has_ended = true;
        traces::note(|notes| {
            notes.number("rpc.grpc.status_code", code as i32);
            if is_failure(code) {
                notes.text("error.type", name(code)).fail(name(code));
            }
        });
        self.line.write(code, true);
    }
}

impl Drop for OngoingCall {
    fn drop(&mut self) {
        if !self.has_ended {
            self.line.write(Code::Cancelled, true);
        }
    }
}

impl CallLine {
    /// Writes the line. One of a call that was not let in is at `info` whatever its code: a stranger must not be able to
    /// fill the usual log.
    fn write(&self, code: Code, is_let_in: bool) {
        let Self {
            method,
            subject,
            began,
            ..
        } = self;
        let subject = subject.as_deref();
        let address = self.address.map(tracing::field::display);
        let took = began.elapsed();
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let result = name(code);
        if let Some(counts) = &self.counts {
            counts.note(method, result, took);
        }
        match is_let_in && is_failure(code) {
            true => {
                tracing::warn!(target: TARGET, method, subject, address, duration_ms, result, "call failed");
            }
            false => {
                tracing::info!(target: TARGET, method, subject, address, duration_ms, result, "call");
            }
        }
    }
}

/// True if this side failed, and not the caller.
fn is_failure(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

/// Returns the name of a code, as the errors of HTTP have it.
fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::caller_limits::CallerLimits;
    use crawler_process::clock::SystemClock;
    use crawler_process::telemetry::testing::Log;
    use crawler_process::traces::{SampleRatio, TraceSettings};

    const SECRET: &[u8] = b"Bearer crawler_secret";

    fn intake(concurrency: u32) -> Intake {
        Intake {
            tracer: Tracer::default(),
            access: Access::default(),
            limiter: Some(CallerLimiter::new(CallerLimits {
                rate: 0,
                concurrency,
                ..CallerLimits::default()
            })),
        }
    }

    fn begin(intake: &Intake, method: &str) -> Result<OngoingCall, Problem> {
        let shown = Headers {
            authorization: Some(SECRET),
            ..Headers::default()
        };
        let address = Some(([10, 0, 0, 1], 7).into());
        let begun = intake.begin(Method::named(method), shown, address);
        begun.map(|(_caller, call)| call)
    }

    /// Returns the lines without their times.
    fn lines(log: &Log) -> Vec<String> {
        let lines = log.lines().into_iter();
        let lines = lines.map(|line| line.split_once(' ').unwrap().1.trim_start().to_owned());
        lines.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn every_call_is_a_line_and_has_no_secret() {
        let (log, _guard) = Log::of_this_thread("info");
        let intake = intake(0);
        let call = begin(&intake, "ListNodes").unwrap();
        tokio::time::advance(Duration::from_millis(12)).await;
        call.end(Code::Ok);
        begin(&intake, "GetResource").unwrap().end(Code::NotFound);
        begin(&intake, "GetResource")
            .unwrap()
            .end(Code::Unavailable);
        drop(begin(&intake, "AddResource").unwrap());
        begin(&intake, "Nonsense").unwrap_err();
        let who = r#"subject="a caller without a token" address=10.0.0.1:7"#;
        assert_eq!(
            lines(&log),
            [
                format!(r#"INFO call method="ListNodes" {who} duration_ms=12 result="OK""#),
                format!(r#"INFO call method="GetResource" {who} duration_ms=0 result="NOT_FOUND""#),
                format!(
                    r#"WARN call failed method="GetResource" {who} duration_ms=0 result="UNAVAILABLE""#
                ),
                format!(r#"INFO call method="AddResource" {who} duration_ms=0 result="CANCELLED""#),
                r#"INFO call method="unknown" address=10.0.0.1:7 duration_ms=0 result="PERMISSION_DENIED""#
                    .to_owned(),
            ]
        );
        let counts = intake.limiter.as_ref().unwrap().counts().read();
        let counts = counts.into_iter().map(|read| {
            let results: Vec<_> = read.results.into_iter().collect();
            (read.method, results, read.durations.n())
        });
        assert_eq!(
            counts.collect::<Vec<_>>(),
            [
                ("AddResource", vec![("CANCELLED", 1)], 1),
                ("GetResource", vec![("NOT_FOUND", 1), ("UNAVAILABLE", 1)], 2),
                ("ListNodes", vec![("OK", 1)], 1),
                ("unknown", vec![("PERMISSION_DENIED", 1)], 1),
            ]
        );
    }

    #[test]
    fn a_call_is_in_hand_until_it_ends_or_is_dropped() {
        let intake = intake(1);
        for ends in [true, false] {
            let call = begin(&intake, "ListNodes").unwrap();
            let refused = begin(&intake, "ListNodes").unwrap_err();
            assert_eq!(refused.grpc_code(), Code::ResourceExhausted);
            match ends {
                true => call.end(Code::Ok),
                false => drop(call),
            }
        }
        assert!(begin(&intake, "ListNodes").is_ok());
    }

    #[tokio::test]
    async fn a_call_that_is_let_in_goes_on_with_the_trace_of_its_caller() {
        const PARENT: &[u8] = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let settings = TraceSettings {
            sample: SampleRatio::new(1.0).unwrap(),
            ..TraceSettings::default()
        };
        let (tracer, queue) = Tracer::new(settings, Arc::new(SystemClock));
        let intake = Intake {
            tracer,
            ..intake(0)
        };
        let begin = |method, trace_parent, is_handed_on| {
            let shown = Headers {
                trace_parent,
                is_handed_on,
                ..Headers::default()
            };
            intake.begin(Method::named(method), shown, None)
        };
        for (method, parent, is_handed_on, code) in [
            ("ListNodes", Some(PARENT), false, Code::Ok),
            ("GetResource", None, false, Code::Unavailable),
            ("AddResource", None, true, Code::Ok),
        ] {
            let (_caller, mut call) = begin(method, parent, is_handed_on).unwrap();
            let span = call.take_span();
            span.around(Box::pin(async { call.end(code) })).await;
        }
        begin("Nonsense", Some(PARENT), false).unwrap_err();
        let batch = queue.take().unwrap();
        let [list, get] = batch.spans() else {
            panic!("{:?}", batch.spans());
        };
        let known = TraceParent::parse(PARENT).unwrap().context;
        assert_eq!((list.name, list.parent), ("ListNodes", Some(known.span)));
        assert_eq!(list.context.trace, known.trace);
        assert_eq!((get.name, get.parent), ("GetResource", None));
        assert_eq!(
            (&list.error, get.error.as_deref()),
            (&None, Some("UNAVAILABLE"))
        );
    }
}
