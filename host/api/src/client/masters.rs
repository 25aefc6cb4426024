//! The masters that a client may ask, and the choice among them for each call.
//!
//! The one that answered last is asked first, then the others in their order. Another master is asked if a
//! call failed in a way that time may mend: no connection, a lost answer, a master that can do nothing at
//! present. The client does not know whether the call was carried out before its answer was lost; the id of
//! its request makes that harmless. A master that refuses a call because its caller makes too many is asked again
//! a moment later.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crawler_proto as proto;
use proto::crawler_master_client::CrawlerMasterClient;
use tokio::time::Instant;
use tonic::metadata::AsciiMetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use super::connector::Callee;
use super::error::ClientError;
use super::transport::{ANSWER_MAX, ConnectionFailure, Server, transport_failure};
use crate::metadata::{FORWARDED, NODE_SECRET, REQUEST_ID, TRACE_PARENT};
use crate::problem::Problem;
use crate::secret::Secret;
use crate::tls::ClientTls;
use crawler_model::id::{NodeId, RequestId};
use crawler_process::retry;
use crawler_process::telemetry::chain;
use crawler_process::traces;

/// Largest random part of the pause before a call that came too soon is made again.
const JITTER: Duration = Duration::from_millis(500);

/// Client of the calls, with the metadata of each.
pub(super) type Calls = CrawlerMasterClient<InterceptedService<Channel, CallMetadata>>;

/// Metadata that goes with a call.
#[derive(Debug, Clone)]
pub(super) struct CallMetadata {
    /// Id of the request, if the call changes something.
    pub(super) request: Option<RequestId>,
    /// Master that hands the call on.
    pub(super) through: Option<NodeId>,
    /// Value of the header `Authorization`.
    pub(super) authorization: Option<Secret>,
    /// Secret of the nodes, if a master hands the call on.
    pub(super) node: Option<Secret>,
}

impl Interceptor for CallMetadata {
    fn call(&mut self, mut call: Request<()>) -> Result<Request<()>, Status> {
        if let Some(request) = &self.request {
            let id = request.as_str().parse();
            let id = id.expect("a request id has visible ASCII characters only");
            call.metadata_mut().insert(REQUEST_ID, id);
        }
        if let Some(master) = &self.through {
            let id = master.as_str().parse();
            let id = id.expect("a node id has visible ASCII characters only");
            call.metadata_mut().insert(FORWARDED, id);
        }
        if let Some(span) = traces::current() {
            let header = span.to_string().parse();
            let header = header.expect("it has digits and dashes only");
            call.metadata_mut().insert(TRACE_PARENT, header);
        }
        let secrets = [
            ("authorization", &self.authorization),
            (NODE_SECRET, &self.node),
        ];
        for (key, secret) in secrets {
            let Some(secret) = secret else {
                continue;
            };
            let mut value: AsciiMetadataValue = secret.expose().parse().map_err(|_| {
                Status::invalid_argument("the access token has characters that no token has")
            })?;
            value.set_sensitive(true);
            call.metadata_mut().insert(key, value);
        }
        Ok(call)
    }
}

/// Masters of a client, and which one is asked first.
#[derive(Debug)]
pub(super) struct Masters {
    /// The masters, at least one.
    all: Vec<Master>,
    first: AtomicUsize,
}

#[derive(Debug)]
struct Master {
    url: String,
    channel: Channel,
}

impl Masters {
    /// Connects to the first master that can be reached; the others are connected when they are needed.
    pub(super) async fn connect(urls: &[String], tls: &ClientTls) -> Result<Self, ClientError> {
        let servers = urls.iter().map(|url| parse(url, tls, Callee::Master));
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        let mut errors = Vec::new();
        for (first, (url, server)) in urls.iter().zip(&servers).enumerate() {
            match server.connect().await {
                Ok(channel) => {
                    let all = urls.iter().zip(&servers).map(|(url, server)| Master {
                        url: url.clone(),
                        channel: server.connect_lazy(),
                    });
                    let mut all: Vec<Master> = all.collect();
                    all[first].channel = channel;
                    return Ok(Self {
                        all,
                        first: first.into(),
                    });
                }
                Err(error) => errors.push(unreachable(url, ConnectionFailure::of(&error))),
            }
        }
        Err(together(errors))
    }

    /// Creates a list of one master, which is connected when it is needed.
    pub(super) fn lazy(url: &str, tls: &ClientTls) -> Result<Self, ClientError> {
        Ok(Self {
            all: vec![Master {
                url: url.to_owned(),
                channel: parse(url, tls, Callee::Master)?.connect_lazy(),
            }],
            first: 0.into(),
        })
    }

    /// Has one of the masters answer, within the deadline for all.
    pub(super) async fn call<T, Asked>(
        &self,
        deadline: Duration,
        metadata: &CallMetadata,
        ask: impl Fn(Calls) -> Asked,
    ) -> Result<T, ClientError>
    where
        Asked: Future<Output = Result<Response<T>, Status>>,
    {
        let end = Instant::now() + deadline;
        let first = self.first.load(Ordering::Relaxed);
        let mut errors = Vec::new();
        'masters: for at in (0..self.all.len()).map(|n| (first + n) % self.all.len()) {
            let master = &self.all[at];
            let error = loop {
                let error = match tokio::time::timeout_at(end, ask(master.calls(metadata))).await {
                    Ok(Ok(response)) => {
                        self.first.store(at, Ordering::Relaxed);
                        return Ok(response.into_inner());
                    }
                    Ok(Err(status)) => master.error(&status),
                    Err(_elapsed) => {
                        let why = format!("no answer within {} s", deadline.as_secs());
                        let url = master.url.clone();
                        errors.push(ClientError::Unreachable { url, why });
                        break 'masters;
                    }
                };
                let pause = Problem::RETRY_AFTER + retry::delay_after(JITTER, JITTER, 0);
                if !error.is_caller_limit() || Instant::now() + pause >= end {
                    break error;
                }
                tokio::time::sleep(pause).await;
            };
            if !error.is_of_one_master() {
                self.first.store(at, Ordering::Relaxed);
                return Err(error);
            }
            errors.push(error);
        }
        Err(together(errors))
    }

    /// Returns the error that the master which answered last ended a stream with.
    pub(super) fn error(&self, status: &Status) -> ClientError {
        self.all[self.first.load(Ordering::Relaxed)].error(status)
    }
}

impl Master {
    fn calls(&self, metadata: &CallMetadata) -> Calls {
        CrawlerMasterClient::with_interceptor(self.channel.clone(), metadata.clone())
            .max_decoding_message_size(ANSWER_MAX)
    }

    fn error(&self, status: &Status) -> ClientError {
        match transport_failure(status) {
            Some(failure) => unreachable(&self.url, failure),
            None => ClientError::Refused(Problem::from_status(status)),
        }
    }
}

/// Parses the URL of a server.
pub(super) fn parse(url: &str, tls: &ClientTls, callee: Callee) -> Result<Server, ClientError> {
    let wrong = |why: String| ClientError::Url {
        url: url.to_owned(),
        why,
    };
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(wrong(
            "it does not start with http:// or https://".to_owned(),
        ));
    }
    Server::at(url.to_owned(), tls, callee).map_err(|e| wrong(chain(&e)))
}

/// Returns the error of a client that has no connection to this URL.
pub(super) fn unreachable(url: &str, failure: ConnectionFailure) -> ClientError {
    let url = url.to_owned();
    match failure.tls.filter(|fault| !fault.is_passing()) {
        Some(fault) => ClientError::Tls { url, fault },
        None => ClientError::Unreachable {
            url,
            why: failure.why,
        },
    }
}

/// Returns one error for the failures of several masters. An answer of a master outweighs a missing one.
fn together(mut errors: Vec<ClientError>) -> ClientError {
    let answered = |error: &ClientError| matches!(error, ClientError::Refused(_));
    if let Some(at) = errors.iter().rposition(answered) {
        return errors.swap_remove(at);
    }
    let (mut urls, mut causes) = (Vec::new(), BTreeSet::new());
    for error in errors {
        match error {
            ClientError::Unreachable { url, why } => {
                urls.push(url);
                causes.insert(why);
            }
            other => return other,
        }
    }
    ClientError::Unreachable {
        url: urls.join(", "),
        why: Vec::from_iter(causes).join("; "),
    }
}
