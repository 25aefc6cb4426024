//! Forwards calls that change something from a master that does not lead to the one that does, in one hop.
//!
//! A call carries the id of its request from the listener where it arrived to the record that it writes. So
//! the same call can be sent again, to whichever master leads by then, if its answer was lost: it is carried
//! out once. A forwarded call is not forwarded again: if it reaches a master that does not lead, that master
//! says so, and the first one looks for the leader again.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::access::Caller;
use super::client::{Client, ClientError};
use super::problem::{Problem, Reason};
use super::tls::ClientTls;
use super::{Api, CALL_DEADLINE};
use crawler_access::audit::{AuditEntry, AuditLog};
use crawler_master::control::Asked;
use crawler_master::{Code, ControlError};
use crawler_model::id::{NAME_MAX, NodeId, RequestId};
use crawler_model::node::Contender;
use crawler_process::traces;
use crawler_store::election::ElectionStatus;

/// Length in bytes of the longest name that a call can carry: a plugin with its version.
const NAMES_MAX: usize = 2 * NAME_MAX + 1;
/// Pause between two tries if nothing reports a new leader.
const PAUSE: Duration = Duration::from_millis(100);
/// Part of the deadline that the last try leaves unused, so that its error still reaches the caller.
const RESERVE: Duration = Duration::from_secs(1);
/// Time that a call waits for a leader while the store does not answer.
const STORE_PATIENCE: Duration = Duration::from_secs(3);

/// The origin of a call that changes something.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// Id of the request; the same however often the call is sent.
    pub(crate) request: RequestId,
    /// True if the call itself says that a master forwarded it: it is not forwarded again.
    pub(crate) is_forwarded: bool,
    /// Master that forwarded the call, for the log and the record. `None` if none did, or if it is not proved.
    pub(crate) through: Option<NodeId>,
}

impl Origin {
    /// Returns the origin of a call by a client; a call without an id gets one.
    pub(crate) fn client(request: Option<RequestId>) -> Self {
        Self {
            request: request.unwrap_or_else(RequestId::random),
            is_forwarded: false,
            through: None,
        }
    }
}

impl Api {
    /// Returns what the master records of a call: its id, and the subject of the token that the caller has shown.
    pub(super) fn asked<'a>(&'a self, origin: &'a Origin) -> Asked<'a> {
        let admission = self.caller.admission();
        let request = &origin.request;
        let by = admission.map_or("", |admission| admission.subject.as_str());
        Asked { request, by }
    }
}

/// Forwards calls to the leader.
pub(super) struct Forwarder {
    /// Id of this master.
    id: NodeId,
    election_status: watch::Receiver<ElectionStatus>,
    audit: AuditLog,
    /// Certificates with which a leader that speaks TLS is called.
    tls: ClientTls,
    /// Connection that was used last, and the URL that it leads to.
    kept: Mutex<Option<(String, Client)>>,
}

impl Forwarder {
    pub(super) fn new(
        id: NodeId,
        election_status: watch::Receiver<ElectionStatus>,
        audit: AuditLog,
        tls: ClientTls,
    ) -> Self {
        Self {
            id,
            election_status,
            audit,
            tls,
            kept: Mutex::default(),
        }
    }

    /// Begins a call that changes something. Its outcome is logged and recorded, even if the caller goes away
    /// meanwhile. A forwarded call is recorded twice: where it arrived, with the address of the caller, and by the
    /// leader.
    pub(super) fn begin<'a>(
        &'a self,
        (origin, caller): (&'a Origin, &'a Caller),
        method: &'static str,
        name: &str,
    ) -> Unfinished<'a> {
        Unfinished {
            forwarder: self,
            origin,
            caller,
            method,
            name: name.to_owned(),
            has_ended: false,
        }
    }

    /// Records that a caller was refused what it wanted to read.
    pub(super) fn record_refused_read(&self, caller: &Caller, name: &str, problem: &Problem) {
        if let Some(method) = caller.reads() {
            let entry = caller.audit_entry((method, name), Err(problem));
            self.audit.record_refused(entry);
        }
    }

    /// Has the leader carry a call out: by `own` if this master leads, otherwise by `theirs`. Tries again
    /// while the lead changes hands.
    pub(super) async fn change<T, Own, Theirs>(
        &self,
        (origin, caller): (&Origin, &Caller),
        own: impl Fn() -> Own,
        theirs: impl Fn(Client) -> Theirs,
    ) -> Result<T, Problem>
    where
        Own: Future<Output = Result<T, Problem>>,
        Theirs: Future<Output = Result<T, ClientError>>,
    {
        let started = Instant::now();
        let mut election_status = self.election_status.clone();
        loop {
            let present = election_status.borrow_and_update().clone();
            let tried = match (present.leadership(), &present.leader) {
                (Some(_), _) => own().await,
                (None, Some(leader)) if present.own.is_none() && !origin.is_forwarded => {
                    tokio::select! {
                        tried = self.ask(leader, (origin, caller), &theirs) => tried,
                        // A leader that does not answer may have lost the lead meanwhile.
                        () = replaced(&mut election_status, leader) => continue,
                    }
                }
                (None, _) => Err(nobody(&present)),
            };
            let problem = match tried {
                Err(problem) if problem.reason == Some(Reason::NotLeading) => problem,
                done_or_refused => return done_or_refused,
            };
            let patience = match &present.fault {
                Some(_) => STORE_PATIENCE,
                None => CALL_DEADLINE.saturating_sub(RESERVE),
            };
            if origin.is_forwarded || started.elapsed() > patience {
                return Err(problem);
            }
            let changed = tokio::time::timeout(PAUSE, election_status.changed()).await;
            if let Ok(Err(_election_is_over)) = changed {
                return Err(problem);
            }
        }
    }

    async fn ask<T, Theirs>(
        &self,
        leader: &Contender,
        (origin, caller): (&Origin, &Caller),
        theirs: impl Fn(Client) -> Theirs,
    ) -> Result<T, Problem>
    where
        Theirs: Future<Output = Result<T, ClientError>>,
    {
        let client = self.client(leader.url())?;
        let client = client.on_behalf_of(&origin.request, &self.id);
        let client = client.showing(caller.authorization());
        let client = client.showing_node(caller.node_secret());
        let span = traces::child_of_kind("forward", traces::Kind::Client);
        span.note(|notes| {
            notes.text("crawler.leader", &leader.id);
        });
        let answered = async {
            let answer = theirs(client).await;
            if let Err(error) = &answer {
                traces::note(|notes| {
                    notes.fail(error);
                });
            }
            answer
        };
        span.around(pin!(answered)).await.map_err(|error| {
            let hint = match &error {
                ClientError::Refused(problem) => return problem.clone(),
                ClientError::Tls { fault, .. } => fault.hint_for_nodes(),
                ClientError::Unreachable { .. } | ClientError::Url { .. } => "try again",
            };
            let detail = format!("{} leads and does not answer: {error}", leader.id);
            let problem = Problem::new(Code::Unavailable, detail, hint);
            problem.because(Reason::NotLeading)
        })
    }

    fn client(&self, url: String) -> Result<Client, Problem> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((present, client)) if *present == url => Ok(client.clone()),
            _ => {
                let client = Client::lazy(&url, &self.tls);
                let client =
                    client.map_err(|e| Problem::new(Code::Unavailable, e.to_string(), ""))?;
                *kept = Some((url, client.clone()));
                Ok(client)
            }
        }
    }
}

/// Call that changes something, until it has ended.
pub(super) struct Unfinished<'a> {
    forwarder: &'a Forwarder,
    origin: &'a Origin,
    caller: &'a Caller,
    method: &'static str,
    name: String,
    has_ended: bool,
}

impl Unfinished<'_> {
    /// Names what the call is about, once it is known.
    pub(super) fn name(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    /// Logs and records the outcome. `done` says what was done, beyond the name.
    pub(super) fn end<T>(&mut self, result: &Result<T, Problem>, done: &str) {
        self.has_ended = true;
        let (method, name) = (self.method, self.known_name());
        let subject = self.caller.name();
        let caller = self.caller.address.map(tracing::field::display);
        let through = self.origin.through.as_ref().map(NodeId::as_str);
        // Cloned: the election does not wait for the log.
        let leader = self.forwarder.election_status.borrow().leader.clone();
        let leader = leader.as_ref().map(|leader| leader.id.as_str());
        match result {
            Ok(_) => {
                tracing::info!(
                    method,
                    name,
                    subject,
                    caller,
                    through,
                    leader,
                    "request carried out"
                );
            }
            Err(problem) => {
                let reason = &problem.detail;
                tracing::info!(
                    method,
                    name,
                    subject,
                    caller,
                    through,
                    leader,
                    reason,
                    "request refused"
                );
            }
        }
        let mut entry = self.entry(result.as_ref().map(drop));
        if result.is_ok() {
            done.clone_into(&mut entry.detail);
        }
        match result {
            // Strangers must not be able to fill the record.
            Err(problem)
                if problem.code == Code::PermissionDenied || self.caller.has_own_proof() =>
            {
                self.forwarder.audit.record_refused(entry);
            }
            Ok(_) | Err(_) => self.forwarder.audit.record(entry),
        }
    }

    fn entry(&self, outcome: Result<(), &Problem>) -> AuditEntry {
        let name = self.known_name().unwrap_or_default();
        AuditEntry {
            through: self.origin.through.clone(),
            ..self.caller.audit_entry((self.method, name), outcome)
        }
    }

    /// Returns the name if it is one. Other texts are refused, and quoted in the reason.
    fn known_name(&self) -> Option<&str> {
        let name = self.name.as_str();
        let is_name =
            (1..=NAMES_MAX).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic());
        Some(name).filter(|_| is_name)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            let mut entry = self.entry(Ok(()));
            "CANCELLED".clone_into(&mut entry.result);
            "the caller went away; it may have been carried out".clone_into(&mut entry.detail);
            match self.caller.has_own_proof() {
                true => self.forwarder.audit.record_refused(entry),
                false => self.forwarder.audit.record(entry),
            }
        }
    }
}

/// Waits until another master leads, or none.
async fn replaced(election_status: &mut watch::Receiver<ElectionStatus>, leader: &Contender) {
    let is_other =
        |election_status: &ElectionStatus| election_status.leader.as_ref() != Some(leader);
    if election_status.wait_for(is_other).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn nobody(election_status: &ElectionStatus) -> Problem {
    ControlError::not_leading(election_status).into()
}
