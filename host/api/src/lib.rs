//! The interfaces to the outside: gRPC and HTTP/JSON, and the client of the former.
//!
//! ```text
//! grpc, http   two forms of the same calls and answers; each parses its own requests and ends in Api
//! Api          bounds of every call: how many at once, for how long, until when; then Control
//! connections  how many of them a listener has, plain or encrypted
//! tls          certificates in files, of listeners and of clients
//! requests     what bodies may hold in memory, and how long they may take
//! bounds       how long calls may take, how many there may be, and how large they are
//! calls        how many calls and uploads there are at once
//! spec         what a caller asks of a resource, as gRPC, HTTP and the command line share it
//! answer       the messages that calls answer, made of what the master shows
//! convert      messages that are taken apart: requests, and those between masters and workers
//! lifecycle    the calls that decide whether a resource is crawled, and by whom
//! frontier     the calls that look into a frontier
//! plugins      the calls about plugins, whose bytes do not go through the leader
//! metadata     names of what goes with a call beside its message
//! push         a plugin on its way from a caller
//! problem      errors: one table of codes for both forms
//! client       the calls from the other side, and those of a master to workers
//! forward      the way of a call that changes something to the leader
//! ```
//!
//! The meaning of each call is defined by [`Control`]; nothing here decides anything.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crawler_proto as proto;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use tokio_util::sync::CancellationToken;

use self::calls::{Calls, Permit, Uploads};
use self::client::{Client, ClientError};
use self::forward::{Forwarder, Origin};
use self::problem::Problem;
use self::spec::{SpecRequest, resource_name};
use self::tls::ClientTls;
use crawler_master::control::items::ItemQuery;
use crawler_master::control::{Control, Precondition};
use crawler_master::{Code, ControlError};
use crawler_model::id::{NodeId, ResourceName, Run};
use crawler_model::resource::Resource;

mod answer;
mod bounds;
mod calls;
pub mod client;
mod connections;
mod convert;
mod forward;
mod frontier;
pub mod grpc;
pub mod http;
mod lifecycle;
mod metadata;
mod plugins;
pub mod problem;
mod push;
pub mod requests;
pub mod spec;
pub mod tls;

pub use self::bounds::{
    CALL_DEADLINE, CALLS_MAX, PAGE_MAX, PIECE_MAX, REQUEST_MAX, STREAMS_MAX, UPLOAD_DEADLINE,
};
pub use self::connections::Peer;
pub use self::convert::crawl::totals;
pub use self::convert::resource_spec;
pub use self::convert::settings::placement_spec;
pub use self::convert::statistics::{statistics, statistics_message};

/// The calls of a master, within their bounds. Both forms end here.
#[derive(Clone)]
pub struct Api {
    control: Arc<Control>,
    forward: Arc<Forwarder>,
    calls: Calls,
    uploads: Uploads,
    stop: CancellationToken,
}

type Stream<T> = BoxStream<'static, Result<T, Problem>>;

impl Api {
    /// Creates the calls of this master, with at most `uploads` plugins pushed at once. Calls that change
    /// something are handed on to the leader with the certificates in `tls`. Streams end when `stop` is
    /// cancelled.
    pub fn new(
        id: NodeId,
        control: Arc<Control>,
        uploads: usize,
        tls: ClientTls,
        stop: CancellationToken,
    ) -> Self {
        let election_status = control.election_status().clone();
        Self {
            forward: Arc::new(Forwarder::new(id, election_status, tls)),
            control,
            calls: Calls::new("master"),
            uploads: Uploads::new(uploads),
            stop,
        }
    }

    /// Returns the size of the largest plugin that is accepted, in bytes.
    pub(crate) fn max_plugin_size(&self) -> u64 {
        self.control.max_plugin_size()
    }

    pub(crate) async fn add_resource(
        &self,
        origin: &Origin,
        request: SpecRequest,
    ) -> Result<proto::NodeSpec, Problem> {
        let request = &request;
        let call = async {
            let spec = request.clone().into_spec()?;
            let own = || async {
                let added = self.control.add_resource(spec.clone(), &origin.request);
                Ok(answer::placed(&added.await?))
            };
            let theirs = |leader: Client| async move { leader.add_resource(request.clone()).await };
            self.change(origin, own, theirs).await
        };
        self.logged(origin, "AddResource", request.name.as_str(), call)
            .await
    }

    /// Reads the present spec, changes what the request names, and writes the whole.
    pub(crate) async fn update_resource(
        &self,
        origin: &Origin,
        request: SpecRequest,
    ) -> Result<proto::Resource, Problem> {
        let request = &request;
        let own = || async move {
            let change = |present: &Resource| request.changed(present);
            let updated = self
                .control
                .update_resource(&request.name, change, &origin.request);
            Ok(answer::resource(updated.await?))
        };
        let theirs = |leader: Client| async move { leader.update_resource(request.clone()).await };
        let call = self.change(origin, own, theirs);
        self.logged(origin, "UpdateResource", request.name.as_str(), call)
            .await
    }

    pub(crate) async fn delete_resource(
        &self,
        origin: &Origin,
        name: &str,
        purge: bool,
        precondition: Precondition,
    ) -> Result<(), Problem> {
        let call = async {
            let name = &resource_name(name)?;
            let own = || async move {
                let request = &origin.request;
                let deleted = self
                    .control
                    .delete_resource(name, purge, precondition, request);
                Ok(deleted.await?)
            };
            let theirs = |leader: Client| async move {
                leader.delete_resource(name, purge, precondition).await
            };
            self.change(origin, own, theirs).await
        };
        self.logged(origin, "DeleteResource", name, call).await
    }

    pub(crate) async fn resource(&self, name: &str) -> Result<proto::Resource, Problem> {
        let call = async { self.control.resource(&resource_name(name)?).await };
        Ok(answer::resource(self.within(CALL_DEADLINE, call).await?))
    }

    pub(crate) async fn resources(
        &self,
        page_size: u32,
        page_token: &str,
    ) -> Result<proto::ListResourcesResponse, Problem> {
        let max = page_max(page_size);
        let call = async {
            let after = match page_token {
                "" => None,
                token => Some(token.parse().map_err(|e| spec::invalid("page_token", e))?),
            };
            self.control.resources(after, max).await
        };
        let page = self.within(CALL_DEADLINE, call).await?;
        Ok(answer::resources(page))
    }

    pub(crate) async fn nodes(&self) -> Result<proto::ListNodesResponse, Problem> {
        let view = self.within(CALL_DEADLINE, self.control.nodes()).await?;
        Ok(answer::nodes(view))
    }

    /// Returns items of a resource. Fields that are empty or 0 ask for nothing.
    pub(crate) async fn items(
        &self,
        request: proto::ReadItemsRequest,
    ) -> Result<Stream<proto::Item>, Problem> {
        self.open(async {
            let proto::ReadItemsRequest {
                name,
                follow,
                after,
                run,
                kind,
                since,
                limit,
            } = request;
            let after = match after.as_str() {
                "" => None,
                text => Some(text.parse().map_err(|e| spec::invalid("after", e))?),
            };
            let query = ItemQuery {
                run: (run > 0).then_some(Run(run)),
                kind: (!kind.is_empty()).then_some(kind),
                since: (since > 0).then_some(since),
                limit: (limit > 0).then_some(limit),
                follow,
                after,
            };
            let items = self.control.items(&name, query).await?;
            Ok(items.map_ok(answer::item).boxed())
        })
        .await
    }

    /// Streams a kept file of a resource.
    pub(crate) async fn file(&self, name: &str, digest: &str) -> Result<Stream<Bytes>, Problem> {
        self.open(async {
            let digest = digest.parse().map_err(|e| spec::invalid("digest", e))?;
            self.control.file(name, digest).await
        })
        .await
    }

    pub(crate) async fn node_events(&self) -> Result<Stream<proto::NodeEvent>, Problem> {
        self.open(async {
            let events = self.control.node_events();
            Ok(events.map_ok(answer::node_event).boxed())
        })
        .await
    }

    pub(crate) async fn logs(
        &self,
        name: &str,
        follow: bool,
    ) -> Result<Stream<proto::LogLine>, Problem> {
        self.open(async {
            let name: ResourceName = resource_name(name)?;
            let lines = self.control.logs(&name, follow).await?;
            Ok(lines.map_ok(convert::crawl::line_message).boxed())
        })
        .await
    }

    /// Carries out a call that changes something, and logs its outcome.
    async fn logged<T>(
        &self,
        origin: &Origin,
        method: &'static str,
        name: &str,
        call: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let result = Box::pin(call).await;
        self.forward.log(origin, (method, name), &result);
        result
    }

    /// Has the leader carry a call out.
    async fn change<T, Own, Theirs>(
        &self,
        origin: &Origin,
        own: impl Fn() -> Own,
        theirs: impl Fn(Client) -> Theirs,
    ) -> Result<T, Problem>
    where
        Own: Future<Output = Result<T, Problem>>,
        Theirs: Future<Output = Result<T, ClientError>>,
    {
        let call = self.forward.change(origin, own, theirs);
        self.within(CALL_DEADLINE, Box::pin(call)).await
    }

    async fn within<T, E: Into<Problem>>(
        &self,
        deadline: Duration,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Problem> {
        let _permit = self.calls.call()?;
        bounded(deadline, call).await
    }

    /// Opens a stream. It counts as a call until it ends, and ends with an error when the master stops.
    async fn open<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<BoxStream<'static, Result<T, ControlError>>, ControlError>>,
    ) -> Result<Stream<T>, Problem> {
        let permit = self.calls.stream()?;
        let stream = bounded(CALL_DEADLINE, call).await?;
        Ok(until(stream, self.stop.clone(), permit))
    }
}

/// Returns the number of entries of one answer for the page size that a caller asks for; 0 means as many as
/// allowed.
fn page_max(page_size: u32) -> usize {
    match usize::try_from(page_size) {
        Ok(n @ 1..PAGE_MAX) => n,
        _ => PAGE_MAX,
    }
}

async fn bounded<T, E: Into<Problem>>(
    deadline: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, Problem> {
    match tokio::time::timeout(deadline, call).await {
        Ok(result) => result.map_err(|e| logged(e.into())),
        Err(_elapsed) => Err(Problem::new(
            Code::Unavailable,
            format!("the call took longer than {} s", deadline.as_secs()),
            "try again; it may have been carried out",
        )),
    }
}

fn until<T: Send + 'static>(
    stream: BoxStream<'static, Result<T, ControlError>>,
    stop: CancellationToken,
    permit: Permit,
) -> Stream<T> {
    let state = Some((stream, stop, permit));
    stream::unfold(state, |state| async {
        let (mut stream, stop, permit) = state?;
        let next = tokio::select! {
            biased;
            () = stop.cancelled() => {
                let stopping = Problem::new(Code::Unavailable, "the master is stopping", "try again");
                return Some((Err(stopping), None));
            }
            next = stream.next() => next?,
        };
        Some(match next {
            Ok(value) => (Ok(value), Some((stream, stop, permit))),
            Err(error) => (Err(logged(error.into())), None),
        })
    })
    .boxed()
}

/// Logs an internal error where it leaves this process. Other errors are the caller's to read.
fn logged(problem: Problem) -> Problem {
    if problem.code == Code::Internal {
        tracing::error!(error = %problem, "call failed");
    }
    problem
}
