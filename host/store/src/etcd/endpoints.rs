//! Members of etcd. One is called until it fails, then the next one.
//!
//! The client's own balancer keeps dead members in its rotation, so each member has a client of its own here.
//! Each call has a deadline: a channel's timeout ends with the headers of an answer, and an answer that is held
//! up in its body would be waited for without end.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Error, Identity, TlsOptions};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::fault::{Fault, Kind};
use super::settings::{EtcdSettings, TlsSettings};
use crate::StoreError;

/// Servers close connections that are pinged more often than every 5 s.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// All members, and the one that is called at present.
#[derive(Debug)]
pub(super) struct Endpoints {
    members: Vec<Member>,
    present: AtomicUsize,
    user: Option<(String, String)>,
    call_timeout: Duration,
}

struct Member {
    url: String,
    client: Client,
    /// Set once the member has accepted name and password.
    knows_us: OnceCell<()>,
    /// True if the last call was answered, so that an outage is logged once.
    answers: AtomicBool,
}

impl Endpoints {
    /// Creates the clients of all members. Connections are opened by the first calls.
    pub(super) async fn new(settings: &EtcdSettings) -> Result<Self, StoreError> {
        let mut members = Vec::with_capacity(settings.endpoints.len());
        for endpoint in &settings.endpoints {
            members.push(Member::new(endpoint.trim(), settings).await?);
        }
        if members.is_empty() {
            return Err(StoreError::Endpoint {
                endpoint: String::new(),
                why: "none is given".to_owned(),
            });
        }
        Ok(Self {
            members,
            present: AtomicUsize::new(0),
            user: settings.user.clone(),
            call_timeout: settings.call_timeout,
        })
    }

    /// Returns the endpoints of all members, for messages.
    pub(super) fn names(&self) -> String {
        let urls: Vec<&str> = self.members.iter().map(|m| m.url.as_str()).collect();
        urls.join(",")
    }

    /// Returns how often a call is worth trying: once at each member, but twice at a single one, whose
    /// connection may have died since the last call.
    pub(super) fn n_tries(&self) -> usize {
        self.members.len().max(2)
    }

    pub(super) fn error(&self, fault: Fault) -> StoreError {
        fault.into_error(self.names())
    }

    /// Returns the index of the member that is asked next.
    pub(super) fn present(&self) -> usize {
        self.present.load(Ordering::Relaxed)
    }

    pub(super) fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// Classifies an error of a stream that a member had opened.
    pub(super) fn fault(&self, at: usize, error: &Error) -> Fault {
        Fault::of(&self.members[at].url, error)
    }

    /// Asks the present member once.
    pub(super) async fn try_once<T, F>(
        &self,
        limit: Duration,
        call: impl FnOnce(Client) -> F,
    ) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let at = self.present();
        let member = &self.members[at];
        // A caller that gives up has waited too long: the next call goes to another member.
        let unanswered = FailoverGuard {
            endpoints: self,
            at,
        };
        let answer = match self.admitted(member).await {
            Err(fault) => Err(fault),
            Ok(client) => match timeout(limit, call(client)).await {
                Err(_elapsed) => Err(Fault::elapsed(&member.url, limit)),
                Ok(answer) => answer.map_err(|e| Fault::of(&member.url, &e)),
            },
        };
        std::mem::forget(unanswered);
        match &answer {
            Err(fault) => self.note(at, fault).await,
            Ok(_) => member.answers.store(true, Ordering::Relaxed),
        }
        answer
    }

    /// Asks until a member answers or all were tried. This is for calls that may be carried out twice.
    pub(super) async fn ask<T, F>(&self, call: impl Fn(Client) -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.ask_within(self.call_timeout, call).await
    }

    /// Does the same as [`Endpoints::ask`], with this deadline for each member.
    pub(super) async fn ask_within<T, F>(
        &self,
        limit: Duration,
        call: impl Fn(Client) -> F,
    ) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut worst: Option<Fault> = None;
        for _ in 0..self.n_tries() {
            match self.try_once(limit, &call).await {
                Err(fault) if fault.is_passing() => {
                    worst = Some(Fault::more_telling(worst, fault));
                }
                answer => return answer,
            }
        }
        Err(worst.expect("there is at least one try"))
    }

    /// Returns the client of a member, after the login.
    async fn admitted(&self, member: &Member) -> Result<Client, Fault> {
        let mut client = member.client.clone();
        if let Some(user) = &self.user {
            let introduced = member.knows_us.get_or_try_init(async || {
                let introduced = client.update_user(Some(user.clone()));
                match timeout(self.call_timeout, introduced).await {
                    Ok(answer) => answer.map_err(|e| Fault::of(&member.url, &e)),
                    // Only name and password were sent.
                    Err(_elapsed) => Err(Fault::new(
                        Kind::NotSent,
                        &member.url,
                        "no answer to name and password",
                    )),
                }
            });
            // Other calls may be logging in already, each of them in vain.
            let limit = timeout(self.call_timeout, introduced);
            let late = |_| Fault::new(Kind::NotSent, &member.url, "no answer to name and password");
            limit.await.map_err(late)??;
        }
        Ok(client)
    }

    /// Reacts to a failure.
    pub(super) async fn note(&self, at: usize, fault: &Fault) {
        let member = &self.members[at];
        if fault.kind == Kind::Token {
            // The next call shows whether it works.
            let _refreshed = timeout(self.call_timeout, member.client.refresh_token()).await;
        }
        if fault.is_the_members() {
            if member.answers.swap(false, Ordering::Relaxed) {
                tracing::warn!(
                    endpoint = member.url,
                    why = fault.why,
                    "etcd does not answer"
                );
            }
            self.fail_over(at);
        }
    }

    /// Calls the next member from now on, unless another call has already moved on.
    fn fail_over(&self, at: usize) {
        let next = (at + 1) % self.members.len();
        let moved = self
            .present
            .compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
        if moved.is_ok() && next != at {
            tracing::info!(
                endpoint = self.members[next].url,
                "going on with another etcd"
            );
        }
    }
}

/// Guard that moves on when it is dropped.
struct FailoverGuard<'a> {
    endpoints: &'a Endpoints,
    at: usize,
}

impl Drop for FailoverGuard<'_> {
    fn drop(&mut self) {
        self.endpoints.fail_over(self.at);
    }
}

impl Member {
    async fn new(endpoint: &str, settings: &EtcdSettings) -> Result<Self, StoreError> {
        let wrong = |why: String| StoreError::Endpoint {
            endpoint: endpoint.to_owned(),
            why,
        };
        let scheme_is_given = endpoint.contains("://");
        let url = match (scheme_is_given, &settings.tls) {
            (true, _) => endpoint.to_owned(),
            (false, None) => format!("http://{endpoint}"),
            (false, Some(_)) => format!("https://{endpoint}"),
        };
        let parsed = url::Url::parse(&url).map_err(|e| wrong(e.to_string()))?;
        let mut options = ConnectOptions::new()
            .with_connect_timeout(settings.connect_timeout)
            .with_timeout(settings.call_timeout)
            .with_keep_alive(PING_INTERVAL, PING_TIMEOUT)
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        match (parsed.scheme(), &settings.tls) {
            _ if parsed.host().is_none() => return Err(wrong("it names no host".to_owned())),
            ("http", None) => {}
            ("http", Some(_)) => {
                return Err(wrong(
                    "certificates are given and it says http, not https".to_owned(),
                ));
            }
            ("https", None) => {
                return Err(StoreError::Certificate {
                    endpoint: url,
                    why: "it says https and no authority is given that vouches for it".to_owned(),
                });
            }
            ("https", Some(tls)) => options = options.with_tls(options_of(tls)),
            (scheme, _) => return Err(wrong(format!("it says {scheme}, not http or https"))),
        }
        let client = Client::connect([&url], Some(options)).await;
        let client = client.map_err(|e| match e {
            // No connection is opened here: only certificates and keys are read.
            Error::TransportError(_) => {
                Fault::new(Kind::Certificate, &url, Fault::of(&url, &e).why)
                    .into_error(String::new())
            }
            other => wrong(other.to_string()),
        })?;
        Ok(Self {
            url,
            client,
            knows_us: OnceCell::new(),
            answers: AtomicBool::new(true),
        })
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.url)
    }
}

fn options_of(tls: &TlsSettings) -> TlsOptions {
    let mut options = TlsOptions::new().ca_certificate(Certificate::from_pem(&tls.ca));
    if let Some((certificate, key)) = &tls.client {
        options = options.identity(Identity::from_pem(certificate, key));
    }
    options
}
