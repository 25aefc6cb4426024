//! Faults of calls to a member, classified by code *and* text: the code alone does not show whether a write was
//! carried out (`Unavailable` stands for three different things).

use std::time::Duration;

use etcd_client::Error;
use tonic::{Code, Status};

use crate::StoreError;

/// Failure of a call, without a usable answer.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    /// Description, in the words of whoever noticed the fault.
    pub(super) why: String,
    endpoint: String,
}

/// Kind of a fault, by what a caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No member got the request.
    NotSent,
    /// The member knows of no leader and refused at once.
    NoLeader,
    /// The answer was lost. A write may have been carried out, now or later.
    Lost,
    /// The token expired, or users were changed since it was issued. Nothing was carried out.
    Token,
    /// The server has too much to do and refused at once.
    Busy,
    /// The requested revision is compacted.
    Compacted,
    /// The answer is larger than the client accepts.
    AnswerTooLarge,
    LeaseGone,
    NoSpace,
    Denied,
    Certificate,
    /// Any other refusal.
    Refused,
}

impl Fault {
    pub(super) fn new(kind: Kind, endpoint: &str, why: impl Into<String>) -> Self {
        Self {
            kind,
            why: why.into(),
            endpoint: endpoint.to_owned(),
        }
    }

    pub(super) fn elapsed(endpoint: &str, limit: Duration) -> Self {
        let limit = humantime::format_duration(limit);
        Self::new(Kind::Lost, endpoint, format!("no answer within {limit}"))
    }

    pub(super) fn of(endpoint: &str, error: &Error) -> Self {
        let (kind, why) = match error {
            Error::GRpcStatus(status) => of_status(status),
            Error::TransportError(e) => {
                let why = chain(e);
                let unsure = if is_about_certificates(&why) {
                    Kind::Certificate
                } else {
                    Kind::NotSent
                };
                (unsure, why)
            }
            Error::LeaseKeepAliveError(why) if why.contains("lease not found") => {
                (Kind::LeaseGone, why.clone())
            }
            // A watch gets the same error for an expired token as for a user without permission.
            Error::WatchError(why) if why.contains("permission denied") => {
                (Kind::Token, why.clone())
            }
            Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => {
                (Kind::Refused, error.to_string())
            }
            _ => (Kind::Lost, error.to_string()),
        };
        Self::new(kind, endpoint, why)
    }

    /// Returns the more informative of two members' failures: a member that answers but has lost the others
    /// says what is wrong, and an absent one does not.
    pub(super) fn more_telling(earlier: Option<Self>, later: Self) -> Self {
        match earlier {
            Some(earlier) if earlier.kind == Kind::NoLeader => earlier,
            Some(_) | None => later,
        }
    }

    /// True if the same call may succeed at another member, or at this one in a moment.
    pub(super) fn is_passing(&self) -> bool {
        match self.kind {
            Kind::NotSent | Kind::NoLeader | Kind::Lost | Kind::Token | Kind::Busy => true,
            Kind::Compacted
            | Kind::AnswerTooLarge
            | Kind::LeaseGone
            | Kind::NoSpace
            | Kind::Denied
            | Kind::Certificate
            | Kind::Refused => false,
        }
    }

    /// True if the member accepted the connection and closed it without an answer.
    pub(super) fn is_closed_connection(&self) -> bool {
        let signs = [
            "broken pipe",
            "connection closed",
            "connection reset",
            "reset by peer",
        ];
        self.kind == Kind::Lost
            && signs
                .iter()
                .any(|sign| self.why.to_lowercase().contains(sign))
    }

    /// Reclassifies a trusted connection that is closed again and again before anything is answered.
    pub(super) fn or_certificate(self) -> Self {
        if !self.is_closed_connection() {
            return self;
        }
        let why = "it ends each connection without an answer, as servers do that ask for another \
            certificate of ours";
        Self::new(Kind::Certificate, &self.endpoint, why)
    }

    /// True if another member should be called from now on.
    pub(super) fn is_the_members(&self) -> bool {
        matches!(
            self.kind,
            Kind::NotSent | Kind::NoLeader | Kind::Lost | Kind::Certificate
        )
    }

    /// Converts the fault to the error that callers of the store see. `endpoints` are all that were tried.
    pub(super) fn into_error(self, endpoints: String) -> StoreError {
        let Self {
            kind,
            why,
            endpoint,
        } = self;
        match kind {
            Kind::NotSent | Kind::Lost => StoreError::Unreachable { endpoints, why },
            Kind::NoLeader => StoreError::NoLeader { endpoint, why },
            Kind::Token | Kind::Busy => StoreError::Unavailable {
                why: format!("{endpoint}: {why}"),
            },
            Kind::LeaseGone => StoreError::LeaseGone,
            Kind::NoSpace => StoreError::NoSpace { endpoint, why },
            Kind::Denied => StoreError::Denied { endpoint, why },
            Kind::Certificate => StoreError::Certificate { endpoint, why },
            Kind::Compacted | Kind::AnswerTooLarge | Kind::Refused => {
                StoreError::Refused { endpoint, why }
            }
        }
    }
}

fn of_status(status: &Status) -> (Kind, String) {
    let why = chain(status);
    let says = |text: &str| status.message().contains(text);
    let kind = match status.code() {
        _ if is_about_certificates(&why) => Kind::Certificate,
        Code::Unavailable if says("connect error") || says("dns error") => Kind::NotSent,
        Code::Unavailable if says("no leader") || says("not supported for learner") => {
            Kind::NoLeader
        }
        Code::Unauthenticated => Kind::Token,
        Code::InvalidArgument if says("auth: revision") || says("auth store is old") => Kind::Token,
        Code::InvalidArgument if says("user name") || says("authentication failed") => Kind::Denied,
        Code::FailedPrecondition if says("authentication is not enabled") => Kind::Denied,
        Code::PermissionDenied => Kind::Denied,
        Code::NotFound if says("lease not found") => Kind::LeaseGone,
        Code::OutOfRange if says("compacted") => Kind::Compacted,
        Code::OutOfRange if says("message length too large") => Kind::AnswerTooLarge,
        Code::ResourceExhausted if says("space exceeded") => Kind::NoSpace,
        Code::ResourceExhausted if says("too many requests") => Kind::Busy,
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::OutOfRange
        | Code::FailedPrecondition
        | Code::ResourceExhausted
        | Code::Unimplemented
        | Code::DataLoss => Kind::Refused,
        // A call whose error is not known to be a refusal may have been carried out.
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable => Kind::Lost,
    };
    (kind, why)
}

fn is_about_certificates(why: &str) -> bool {
    why.contains("certificate") || why.contains("received fatal alert")
}

/// Returns the message with its causes, each once.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = match error.downcast_ref::<Status>() {
        Some(status) => status.message().to_owned(),
        None => error.to_string(),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        let why = error.to_string();
        if !text.contains(&why) {
            text = format!("{text}: {why}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: Code, message: &str, expected: Kind) {
        let fault = Fault::of("http://a", &Error::GRpcStatus(Status::new(code, message)));
        assert_eq!(fault.kind, expected, "{code:?} {message}");
        assert_eq!(fault.why, message);
    }

    #[test]
    fn a_write_whose_fate_is_not_known_is_told_from_one_that_was_refused() {
        use Kind::{Lost, NoLeader, NoSpace, NotSent, Refused};
        check(Code::Unavailable, "tcp connect error", NotSent);
        check(Code::Unavailable, "etcdserver: no leader", NoLeader);
        check(Code::Unavailable, "etcdserver: request timed out", Lost);
        check(Code::Unavailable, "etcdserver: leader changed", Lost);
        check(Code::Unavailable, "http2 error", Lost);
        check(Code::Unknown, "transport error", Lost);
        check(Code::Unknown, "context deadline exceeded", Lost);
        check(Code::Cancelled, "Timeout expired", Lost);
        check(
            Code::InvalidArgument,
            "etcdserver: request is too large",
            Refused,
        );
        check(
            Code::ResourceExhausted,
            "etcdserver: mvcc: database space exceeded",
            NoSpace,
        );
    }

    #[test]
    fn other_refusals_are_told_apart_by_what_can_be_done() {
        use Kind::{AnswerTooLarge, Busy, Compacted, Denied, LeaseGone, Token};
        check(
            Code::OutOfRange,
            "etcdserver: mvcc: required revision has been compacted",
            Compacted,
        );
        check(
            Code::OutOfRange,
            "Error, decoded message length too large: found 5 bytes, the limit is: 4 bytes",
            AnswerTooLarge,
        );
        check(
            Code::NotFound,
            "etcdserver: requested lease not found",
            LeaseGone,
        );
        check(
            Code::ResourceExhausted,
            "etcdserver: too many requests",
            Busy,
        );
        check(
            Code::Unauthenticated,
            "etcdserver: invalid auth token",
            Token,
        );
        check(
            Code::InvalidArgument,
            "etcdserver: user name is empty",
            Denied,
        );
        check(
            Code::InvalidArgument,
            "etcdserver: authentication failed, invalid user ID or password",
            Denied,
        );
        check(
            Code::PermissionDenied,
            "etcdserver: permission denied",
            Denied,
        );
    }
}
