//! Errors as callers see them: one table of codes for gRPC and HTTP.
//!
//! HTTP gives `application/problem+json` (RFC 9457) with `code`, `detail` and `hint`; gRPC gives the
//! status of the same row with the message `detail; hint` and the hint once more as metadata.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tonic::metadata::{Ascii, MetadataValue};

use crawler_master::{Code, ControlError};
use crawler_process::telemetry::chain;

/// gRPC metadata key of the hint.
const HINT: &str = "hint";
/// gRPC metadata key of the reason.
const REASON: &str = "reason";
/// gRPC metadata key of the time in milliseconds after which to try again (gRPC proposal A6).
const PUSHBACK: &str = "grpc-retry-pushback-ms";
/// Largest length of a message in bytes; it travels in a header, and clients refuse headers of more than 16
/// KiB.
const MESSAGE_MAX: usize = 2 << 10;

/// Error of a call that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    /// Code, which tells what the caller can do.
    pub code: Code,
    /// HTTP status: that of the code's row, or a closer one if HTTP has it (405, 415).
    pub status: StatusCode,
    /// Description of the fault and of the thing that it concerns.
    pub detail: String,
    /// Way out; empty if the detail says it all.
    pub hint: String,
    /// Reason on which another master acts.
    pub reason: Option<Reason>,
    /// True if the same call may succeed in a moment; HTTP then adds `Retry-After`, gRPC
    /// `grpc-retry-pushback-ms`.
    pub is_passing: bool,
}

/// Reason that programs act on: another master, or another step, may still carry the call out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The call needs the leader, and this master does not lead.
    NotLeading,
    /// The bytes of a plugin have to be stored again.
    PluginGone,
    /// The resource has no frontier yet.
    NeverCrawled,
    /// The caller makes more calls than it may. The same master takes the call a moment later.
    CallerLimit,
}

impl Reason {
    const ALL: [Self; 4] = [
        Self::NotLeading,
        Self::PluginGone,
        Self::NeverCrawled,
        Self::CallerLimit,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::NotLeading => "NOT_LEADING",
            Self::PluginGone => "PLUGIN_GONE",
            Self::NeverCrawled => "NEVER_CRAWLED",
            Self::CallerLimit => "CALLER_LIMIT",
        }
    }
}

/// All codes.
const CODES: [Code; 10] = [
    Code::InvalidArgument,
    Code::NotFound,
    Code::AlreadyExists,
    Code::FailedPrecondition,
    Code::ResourceExhausted,
    Code::Unauthenticated,
    Code::PermissionDenied,
    Code::Aborted,
    Code::Unavailable,
    Code::Internal,
];

/// One code in its three forms.
struct Row {
    code: Code,
    name: &'static str,
    http: StatusCode,
    grpc: tonic::Code,
}

const fn row(code: Code) -> Row {
    let (name, http, grpc) = match code {
        Code::InvalidArgument => (
            "INVALID_ARGUMENT",
            StatusCode::BAD_REQUEST,
            tonic::Code::InvalidArgument,
        ),
        Code::NotFound => ("NOT_FOUND", StatusCode::NOT_FOUND, tonic::Code::NotFound),
        Code::AlreadyExists => (
            "ALREADY_EXISTS",
            StatusCode::CONFLICT,
            tonic::Code::AlreadyExists,
        ),
        Code::FailedPrecondition => (
            "FAILED_PRECONDITION",
            StatusCode::PRECONDITION_FAILED,
            tonic::Code::FailedPrecondition,
        ),
        Code::ResourceExhausted => (
            "RESOURCE_EXHAUSTED",
            StatusCode::PAYLOAD_TOO_LARGE,
            tonic::Code::ResourceExhausted,
        ),
        Code::Unauthenticated => (
            "UNAUTHENTICATED",
            StatusCode::UNAUTHORIZED,
            tonic::Code::Unauthenticated,
        ),
        Code::PermissionDenied => (
            "PERMISSION_DENIED",
            StatusCode::FORBIDDEN,
            tonic::Code::PermissionDenied,
        ),
        Code::Aborted => ("ABORTED", StatusCode::CONFLICT, tonic::Code::Aborted),
        Code::Unavailable => (
            "UNAVAILABLE",
            StatusCode::SERVICE_UNAVAILABLE,
            tonic::Code::Unavailable,
        ),
        Code::Internal => (
            "INTERNAL",
            StatusCode::INTERNAL_SERVER_ERROR,
            tonic::Code::Internal,
        ),
    };
    Row {
        code,
        name,
        http,
        grpc,
    }
}

impl Problem {
    /// Time after which to try again after a problem that passes.
    pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

    /// Creates a problem with the HTTP status of its code.
    pub fn new(code: Code, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            status: row(code).http,
            detail: detail.into(),
            hint: hint.into(),
            reason: None,
            is_passing: false,
        }
    }

    /// Creates a problem for a bound of this process that is reached at present: 503 over HTTP,
    /// `RESOURCE_EXHAUSTED` over gRPC.
    pub fn passing(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Code::ResourceExhausted, detail, hint)
            .with_status(StatusCode::SERVICE_UNAVAILABLE)
            .passes()
    }

    /// Returns the same problem, marked as one that may be over in a moment.
    #[must_use]
    pub fn passes(mut self) -> Self {
        self.is_passing = true;
        self
    }

    /// Returns the same problem with this reason.
    #[must_use]
    pub fn because(mut self, reason: Reason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Creates a problem for a request that is invalid.
    pub fn invalid(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, detail, hint)
    }

    /// Returns the same problem with a closer HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Returns the names of all codes.
    pub(crate) fn code_names() -> [&'static str; CODES.len()] {
        CODES.map(|code| row(code).name)
    }

    /// Returns the name of the code.
    pub(crate) fn code_name(&self) -> &'static str {
        row(self.code).name
    }

    /// Returns the code as gRPC has it.
    pub(crate) fn grpc_code(&self) -> tonic::Code {
        row(self.code).grpc
    }

    /// Returns the JSON body of the HTTP response.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "code": row(self.code).name,
            "detail": self.detail,
            "hint": self.hint,
        })
    }

    /// Returns the gRPC status.
    pub fn to_status(&self) -> tonic::Status {
        let message = if self.hint.is_empty() {
            self.detail.clone()
        } else {
            format!("{}; {}", self.detail, self.hint)
        };
        let mut status = tonic::Status::new(row(self.code).grpc, cut(&message));
        if let Some(hint) = ascii(&self.hint) {
            status.metadata_mut().insert(HINT, hint);
        }
        if let Some(reason) = self.reason {
            let reason = MetadataValue::from_static(reason.as_str());
            status.metadata_mut().insert(REASON, reason);
        }
        if self.is_passing {
            let pushback = MetadataValue::from(Self::RETRY_AFTER.as_secs() * 1_000);
            status.metadata_mut().insert(PUSHBACK, pushback);
        }
        status
    }

    /// Parses a gRPC status on the client's side. A status that no row has comes from a server of another
    /// kind or from the transport, and counts as internal.
    pub fn from_status(status: &tonic::Status) -> Self {
        let mut rows = CODES.map(row).into_iter();
        let found = rows.find(|row| row.grpc == status.code());
        let code = found.map_or(Code::Internal, |row| row.code);
        let hint = status.metadata().get(HINT).and_then(|h| h.to_str().ok());
        let message = status.message();
        // A hint that is not ASCII, or was cut, is in the message only.
        let (detail, hint) = hint
            .and_then(|hint| Some((message.strip_suffix(hint)?.strip_suffix("; ")?, hint)))
            .unwrap_or((message, ""));
        let reason = status.metadata().get(REASON).and_then(|r| r.to_str().ok());
        let reason = Reason::ALL.into_iter().find(|r| Some(r.as_str()) == reason);
        let problem = Self {
            reason,
            is_passing: status.metadata().contains_key(PUSHBACK),
            ..Self::new(code, detail, hint)
        };
        // A bound that is reached at present is no body that is too large.
        match (code, problem.is_passing, reason) {
            (Code::ResourceExhausted, true, Some(Reason::CallerLimit)) => {
                problem.with_status(StatusCode::TOO_MANY_REQUESTS)
            }
            (Code::ResourceExhausted, true, _) => {
                problem.with_status(StatusCode::SERVICE_UNAVAILABLE)
            }
            _ => problem,
        }
    }
}

impl From<ControlError> for Problem {
    fn from(error: ControlError) -> Self {
        let reason = match &error {
            ControlError::NotLeading { .. } => Some(Reason::NotLeading),
            ControlError::PluginGone { .. } => Some(Reason::PluginGone),
            ControlError::NoFrontier { .. } => Some(Reason::NeverCrawled),
            _ => None,
        };
        let is_passing = matches!(&error, ControlError::Store(e) if e.is_transient());
        Self {
            reason,
            is_passing,
            ..Self::new(error.code(), chain(&error), error.hint())
        }
    }
}

fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_MAX)]
}

fn ascii(hint: &str) -> Option<MetadataValue<Ascii>> {
    let plain: String = cut(hint)
        .chars()
        .map(|c| if matches!(c, ' '..='~') { c } else { '?' })
        .collect();
    if plain.is_empty() {
        return None;
    }
    plain.parse().ok()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_json().to_string()));
        *response.status_mut() = self.status;
        // The log of calls tells it.
        response.extensions_mut().insert(self.grpc_code());
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if self.code == Code::Unauthenticated {
            let scheme = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
        }
        if self.is_passing {
            let seconds = HeaderValue::from(Self::RETRY_AFTER.as_secs());
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_frontier::FrontierError;
    use crawler_master::WorkerCallError;
    use crawler_model::id::{Digest, Generation, ResourceId, Run};
    use crawler_model::resource::ShardId;
    use crawler_plugin::PluginError;
    use crawler_store::StoreError;

    /// Checks one error in both forms; the hint is part of the gRPC message, and separate in HTTP.
    #[track_caller]
    fn check(error: ControlError, http: u16, code: &str, detail: &str, hint: &str) {
        let problem = Problem::from(error);
        assert_eq!(
            problem.to_json(),
            serde_json::json!({
                "title": StatusCode::from_u16(http).unwrap().canonical_reason().unwrap(),
                "status": http,
                "code": code,
                "detail": detail,
                "hint": hint,
            })
        );
        let status = problem.to_status();
        let grpc: String = format!("{:?}", status.code());
        assert_eq!(grpc.to_uppercase(), code.replace('_', ""));
        let message = match hint {
            "" => detail.to_owned(),
            hint => format!("{detail}; {hint}"),
        };
        assert_eq!(status.message(), message);
        assert_eq!(
            Problem::from_status(&status),
            problem,
            "a client reads what was written"
        );
    }

    #[test]
    fn s10_an_existing_name_is_told_how_to_change_it() {
        check(
            ControlError::ResourceExists {
                name: "books".parse().unwrap(),
            },
            409,
            "ALREADY_EXISTS",
            "resource books exists already",
            "change it with `crawler resource update books`, or delete it first",
        );
    }

    #[test]
    fn a_change_that_came_too_late_is_told_to_look_again() {
        check(
            ControlError::OtherGeneration {
                name: "books".parse().unwrap(),
                present: Generation(5),
                wanted: Generation(4),
            },
            409,
            "ABORTED",
            "resource books has generation 5, not 4: it was changed meanwhile",
            "look at it again: `crawler resource get books`",
        );
    }

    #[test]
    fn s12_a_resource_without_its_plugin_is_told_how_to_push_it() {
        check(
            ControlError::NoPluginFor {
                plugin: "shop".parse().unwrap(),
                resource: "books".parse().unwrap(),
            },
            412,
            "FAILED_PRECONDITION",
            "there is no plugin shop",
            "push it first: `crawler plugin push PATH --as shop@VERSION`, or name another with --plugin when adding books",
        );
    }

    #[test]
    fn s13_an_unknown_name_is_not_found_and_told_where_names_are_listed() {
        check(
            ControlError::NoResource { name: "a".into() },
            404,
            "NOT_FOUND",
            "there is no resource a",
            "`crawler resource list` shows those there are",
        );
        check(
            ControlError::NoPlugin {
                plugin: "a@1.0.0".into(),
            },
            404,
            "NOT_FOUND",
            "there is no plugin a@1.0.0",
            "`crawler plugin list` shows those there are",
        );
    }

    #[test]
    fn every_other_error_has_its_row_too() {
        let why = || "no".to_owned();
        let books = "books@1.0.0";
        check(
            ControlError::Invalid {
                field: "name",
                why: "resource name is empty".into(),
            },
            400,
            "INVALID_ARGUMENT",
            "resource name is empty",
            "",
        );
        check(
            ControlError::OtherBytes {
                plugin: Box::new(books.parse().unwrap()),
                present: Digest::of(b"a"),
                pushed: Digest::of(b"b"),
            },
            409,
            "ALREADY_EXISTS",
            &format!(
                "plugin {books} exists with other bytes: digest {}, pushed {}",
                Digest::of(b"a"),
                Digest::of(b"b"),
            ),
            "raise the version of the plugin, in its Cargo.toml or in the rules of a script, or push with --as NAME@VERSION",
        );
        check(
            ControlError::ItemsDiffer {
                plugin: Box::new(books.parse().unwrap()),
                before: "0.9.0".parse().unwrap(),
                changes: (0..10).map(|n| n.to_string()).collect(),
            },
            412,
            "FAILED_PRECONDITION",
            "the items of books@1.0.0 differ from those of version 0.9.0: 0; 1; 2; 3; 4; 5; 6; 7; and 2 more",
            "raise the first number of its version that is not 0, or say that it is meant with --allow-breaking",
        );
        check(
            ControlError::PluginInUse {
                plugin: books.parse().unwrap(),
                resource: "shop".parse().unwrap(),
            },
            412,
            "FAILED_PRECONDITION",
            "plugin books@1.0.0 is used by resource shop",
            "delete the resource first: `crawler resource delete shop`",
        );
        check(
            ControlError::NeedsRestart {
                name: "shop".parse().unwrap(),
                field: "params",
                argument: "--param start=x".to_owned(),
            },
            412,
            "FAILED_PRECONDITION",
            "params of resource shop can only change with a new run",
            "`crawler resource restart shop --param start=x` begins one",
        );
        check(
            ControlError::PluginTooLarge { max: 10 },
            413,
            "RESOURCE_EXHAUSTED",
            "the plugin has more than 10 bytes",
            "build it in release mode, or raise --plugin-size",
        );
        let refused = PluginError::Refused {
            found: why().into(),
            allowed: "b".into(),
            remedy: "c".into(),
        };
        check(
            ControlError::Plugin(refused),
            400,
            "INVALID_ARGUMENT",
            "cannot take the plugin: no; b; c",
            "",
        );
        let host = PluginError::Host {
            doing: "start it",
            why: why(),
        };
        check(
            ControlError::Plugin(host),
            500,
            "INTERNAL",
            "cannot take the plugin: cannot start it: no",
            "",
        );
        check(
            ControlError::Contended {
                what: "resource a".into(),
            },
            503,
            "UNAVAILABLE",
            "resource a was changed by others at the same time",
            "try again",
        );
        let name = || "shop".parse().unwrap();
        check(
            ControlError::NoFrontier { name: name() },
            412,
            "FAILED_PRECONDITION",
            "resource shop was never crawled: it has no frontier yet",
            "`crawler resource get shop` shows what it waits for",
        );
        let no_dead_letters = |reason: Option<&str>, present: &[(&str, u64)]| {
            let present = present.iter().map(|(reason, n)| ((*reason).to_owned(), *n));
            ControlError::NoDeadLetters {
                name: name(),
                run: Run(2),
                reason: reason.map(str::to_owned),
                present: present.collect(),
            }
        };
        check(
            no_dead_letters(Some("timeout"), &[("connection", 1), ("status-503", 7)]),
            412,
            "FAILED_PRECONDITION",
            "run 2 of resource shop has no dead letters given up for timeout",
            "there are connection (1), status-503 (7)",
        );
        check(
            no_dead_letters(None, &[]),
            412,
            "FAILED_PRECONDITION",
            "run 2 of resource shop has no dead letters",
            "`crawler frontier stats shop` shows what became of its URLs",
        );
        check(
            ControlError::NothingHeld {
                name: name(),
                hold: Some("0.1".into()),
            },
            412,
            "FAILED_PRECONDITION",
            "resource shop has no hold 0.1",
            "`crawler quarantine list shop` shows what is held",
        );
        check(
            ControlError::HeldDecided { name: name() },
            412,
            "FAILED_PRECONDITION",
            "what is held of resource shop was decided about before, and the first decision counts; a worker has yet to carry it out",
            "a worker carries them out once it has the shard: `crawler resource resume shop` if the resource is paused",
        );
        let missing = FrontierError::Missing {
            shard: ShardId::only(ResourceId(7)),
        };
        check(
            missing.into(),
            412,
            "FAILED_PRECONDITION",
            "FrontierMissing: the frontier 7/0 was there and is gone from the data root; restore it from a copy, or crawl anew with `crawler resource restart`",
            "",
        );
        check(
            ControlError::Worker(WorkerCallError {
                address: "a:1".into(),
                why: why(),
            }),
            503,
            "UNAVAILABLE",
            "the worker at a:1 does not answer: no",
            "try again",
        );
        check(
            ControlError::Store(StoreError::Unavailable { why: why() }),
            503,
            "UNAVAILABLE",
            "the store does not answer: no",
            "",
        );
        check(
            ControlError::Store(StoreError::TooLarge {
                key: "k".into(),
                n_bytes: 300_000,
            }),
            400,
            "INVALID_ARGUMENT",
            "record k has 300000 bytes; at most 262144 are allowed",
            "",
        );
        let source = std::io::Error::other("disk full");
        check(
            ControlError::Store(StoreError::Io {
                doing: "write",
                path: "/log".into(),
                source,
            }),
            500,
            "INTERNAL",
            "cannot write /log: disk full",
            "",
        );
    }

    #[test]
    fn a_client_learns_whether_and_when_to_call_again() {
        let bounded = Problem::passing("1 plugin is being pushed", "push it again");
        let limited = Problem::new(Code::ResourceExhausted, "a calls too fast", "wait")
            .with_status(StatusCode::TOO_MANY_REQUESTS)
            .because(Reason::CallerLimit)
            .passes();
        let too_large = Problem::new(Code::ResourceExhausted, "the body is too large", "");
        let shown = |problem: &Problem| {
            let pushback = problem.to_status().metadata().get(PUSHBACK).cloned();
            let response = problem.clone().into_response();
            let after = response.headers().get(header::RETRY_AFTER).cloned();
            let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
            (
                pushback.map(|value| text(value.as_bytes())),
                after.map(|value| text(value.as_bytes())),
                response.status().as_u16(),
            )
        };
        let in_a_second = |status| (Some("1000".to_owned()), Some("1".to_owned()), status);
        assert_eq!(shown(&bounded), in_a_second(503));
        assert_eq!(shown(&limited), in_a_second(429));
        assert_eq!(shown(&too_large), (None, None, 413));
        for problem in [bounded, limited, too_large] {
            assert_eq!(Problem::from_status(&problem.to_status()), problem);
        }
    }

    #[test]
    fn a_message_that_no_header_could_carry_is_cut() {
        let status = Problem::invalid("ä".repeat(10_000), "ask ä").to_status();
        assert!(status.message().len() <= MESSAGE_MAX);
        assert_eq!(status.metadata().get(HINT).unwrap(), "ask ?");
    }
}
