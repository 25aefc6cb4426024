//! Calls that change something, on a master that does not lead: one hop to the one that does.
//!
//! A call carries the id of its request from the door it came in by to the record that it makes. So
//! the same call can be sent again, to whoever leads by then, when its answer was lost on the way: it
//! is carried out once. A call that was forwarded goes no further: where it has come to the wrong
//! master, that one says so, and the first looks again.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::CALL_DEADLINE;
use super::client::{Client, ClientError};
use super::problem::{Problem, Reason};
use crate::master::{Code, ControlError};
use crate::model::id::{NAME_MAX, NodeId, RequestId};
use crate::model::node::Contender;
use crate::store::election::Standing;

/// gRPC metadata: the id of the request.
pub(super) const REQUEST_ID: &str = "request-id";
/// gRPC metadata: the master that has sent the call here.
pub(super) const FORWARDED: &str = "crawler-forwarded";
/// Bytes of the longest thing that a call can be about: a plugin with its version.
const NAMES_MAX: usize = 2 * NAME_MAX + 1;
/// Between two tries when nothing tells that there is a new leader.
const PAUSE: Duration = Duration::from_millis(100);
/// What the last try leaves of the deadline, so that its error still reaches the caller.
const RESERVE: Duration = Duration::from_secs(1);
/// How long a call waits for a leader while the store does not answer.
const STORE_PATIENCE: Duration = Duration::from_secs(3);

/// The origin of a call that changes something.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// Which call it is, however often it is sent.
    pub(crate) request: RequestId,
    /// The address that the call came from, where the door knows it.
    pub(crate) caller: Option<SocketAddr>,
    /// The master that has sent it here, as the call itself says. None: a client.
    pub(crate) through: Option<NodeId>,
}

impl Origin {
    /// A call by a client; without an id of its own it gets one.
    pub(crate) fn client(request: Option<RequestId>, caller: Option<SocketAddr>) -> Self {
        Self {
            request: request.unwrap_or_else(RequestId::random),
            caller,
            through: None,
        }
    }
}

/// The way to the leader.
pub(super) struct Forward {
    /// This master.
    id: NodeId,
    standing: watch::Receiver<Standing>,
    /// The connection that was used last.
    kept: Mutex<Option<(String, Client)>>,
}

impl Forward {
    pub(super) fn new(id: NodeId, standing: watch::Receiver<Standing>) -> Self {
        Self {
            id,
            standing,
            kept: Mutex::default(),
        }
    }

    /// Writes into the log what became of a call that changes something.
    pub(super) fn tell<T>(
        &self,
        origin: &Origin,
        (method, name): (&'static str, &str),
        result: &Result<T, Problem>,
    ) {
        // Cloned: the election does not wait for the log.
        let leader = self.standing.borrow().leader.clone();
        let leader = leader.as_ref().map(|leader| leader.id.as_str());
        let through = origin.through.as_ref().map(NodeId::as_str);
        let caller = origin.caller.map(tracing::field::display);
        // Other names are refused, and quoted in the reason.
        let is_name = |name: &str| {
            (1..=NAMES_MAX).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic())
        };
        let name = Some(name).filter(|name| is_name(name));
        match result {
            Ok(_) => tracing::info!(method, name, caller, through, leader, "request carried out"),
            Err(problem) => {
                let reason = &problem.detail;
                tracing::info!(
                    method,
                    name,
                    caller,
                    through,
                    leader,
                    reason,
                    "request refused"
                );
            }
        }
    }

    /// Has a call carried out by the leader, whoever that is: here by `own`, or there by `theirs`.
    /// Tries again while the lead changes hands.
    pub(super) async fn change<T, Own, Theirs>(
        &self,
        origin: &Origin,
        own: impl Fn() -> Own,
        theirs: impl Fn(Client) -> Theirs,
    ) -> Result<T, Problem>
    where
        Own: Future<Output = Result<T, Problem>>,
        Theirs: Future<Output = Result<T, ClientError>>,
    {
        let started = Instant::now();
        let mut standing = self.standing.clone();
        loop {
            let present = standing.borrow_and_update().clone();
            let tried = match (present.leadership(), &present.leader) {
                (Some(_), _) => own().await,
                (None, Some(leader)) if present.own.is_none() && origin.through.is_none() => {
                    tokio::select! {
                        tried = self.ask(leader, origin, &theirs) => tried,
                        // Who does not answer may have lost the lead meanwhile.
                        () = replaced(&mut standing, leader) => continue,
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
            if origin.through.is_some() || started.elapsed() > patience {
                return Err(problem);
            }
            let changed = tokio::time::timeout(PAUSE, standing.changed()).await;
            if let Ok(Err(_election_is_over)) = changed {
                return Err(problem);
            }
        }
    }

    async fn ask<T, Theirs>(
        &self,
        leader: &Contender,
        origin: &Origin,
        theirs: impl Fn(Client) -> Theirs,
    ) -> Result<T, Problem>
    where
        Theirs: Future<Output = Result<T, ClientError>>,
    {
        let client = self.client(&leader.address)?;
        let client = client.on_behalf_of(&origin.request, &self.id);
        theirs(client).await.map_err(|error| match error {
            ClientError::Refused(problem) => problem,
            ClientError::Unreachable { .. } | ClientError::Url { .. } => {
                let detail = format!("{} leads and does not answer: {error}", leader.id);
                let problem = Problem::new(Code::Unavailable, detail, "try again");
                problem.because(Reason::NotLeading)
            }
        })
    }

    fn client(&self, address: &str) -> Result<Client, Problem> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((present, client)) if present == address => Ok(client.clone()),
            _ => {
                let client = Client::lazy(&format!("http://{address}"));
                let client =
                    client.map_err(|e| Problem::new(Code::Unavailable, e.to_string(), ""))?;
                *kept = Some((address.to_owned(), client.clone()));
                Ok(client)
            }
        }
    }
}

/// Waits until somebody else leads, or nobody.
async fn replaced(standing: &mut watch::Receiver<Standing>, leader: &Contender) {
    let is_other = |standing: &Standing| standing.leader.as_ref() != Some(leader);
    if standing.wait_for(is_other).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn nobody(standing: &Standing) -> Problem {
    ControlError::not_leading(standing).into()
}
