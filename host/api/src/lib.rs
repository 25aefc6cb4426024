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
//! caller_limits how many calls each caller makes, a second and at once
//! call_counts  how many calls have ended, and how, for metrics
//! intake       the way into every call: its caller, the caller's bounds, its line in the log
//! access       whether a caller has to show a token, and what it may do
//! streams      the calls that answer with a stream
//! tokens       the calls about access tokens
//! joins        the calls by which nodes get certificates
//! nodes        nodes that call this process, as their certificates name them
//! spec         what a caller asks of a resource, as gRPC, HTTP and the command line share it
//! answer       the messages that calls answer, made of what the master shows
//! convert      messages that are taken apart: requests, and those between masters and workers
//! lists        the calls that list, in pages
//! lifecycle    the calls that decide whether a resource is crawled, and by whom
//! schedules    the calls about the schedule of a resource, and about its runs
//! frontier     the calls that look into a frontier
//! changes      the call that lists changes of items
//! quarantine   the calls about held items
//! plugins      the calls about plugins, whose bytes do not go through the leader
//! secret       text that is sent and never printed
//! metadata     names of what goes with a call beside its message
//! push         a plugin on its way from a caller
//! problem      errors: one table of codes for both forms
//! client       the calls from the other side, those of a master to workers, and the way of traces to their receiver
//! forward      the way of a call that changes something to the leader
//! webhooks     the calls by which a leader tells receivers of events
//! ```
//!
//! The meaning of each call is defined by [`Control`]; nothing here decides anything.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crawler_proto as proto;
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use self::access::Caller;
use self::caller_limits::CallerLimiter;
use self::calls::{Calls, Uploads};
use self::client::{Client, ClientError};
use self::forward::{Forwarder, Origin};
use self::problem::Problem;
use self::spec::SpecRequest;
use self::tls::ClientTls;
use crawler_access::audit::AuditLog;
use crawler_access::ca::Authority;
use crawler_master::Code;
use crawler_master::control::{Control, Precondition};
use crawler_model::id::{NodeId, PluginRef, ResourceName};
use crawler_model::resource::Resource;
use crawler_process::clock::Clock;
use crawler_process::traces::Tracer;
use crawler_store::catalog::Catalog;

pub mod access;
mod answer;
mod bounds;
mod call_counts;
mod caller_limits;
mod calls;
mod changes;
pub mod client;
mod connections;
mod convert;
mod event_versions;
mod forward;
mod frontier;
pub mod grpc;
pub mod http;
mod intake;
mod joins;
mod lifecycle;
mod lists;
mod metadata;
pub mod nodes;
mod plugins;
pub mod problem;
mod push;
mod quarantine;
pub mod requests;
mod schedules;
mod secret;
pub mod spec;
mod streams;
pub mod tls;
mod tokens;
pub mod webhooks;

pub use self::bounds::{
    CALL_DEADLINE, CALLS_MAX, PAGE_MAX, PIECE_MAX, REQUEST_MAX, STREAMS_MAX, UPLOAD_DEADLINE,
};
pub use self::call_counts::{CallCounts, MethodRead};
pub use self::caller_limits::CallerLimits;
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
    limiter: CallerLimiter,
    uploads: Uploads,
    stop: CancellationToken,
    parts: Arc<ApiParts>,
    /// Caller of the calls. Unless a listener has set it, it may do nothing.
    caller: Caller,
}

/// Parts that calls about access need.
pub struct ApiParts {
    /// Catalog that keeps the access tokens.
    pub catalog: Catalog,
    /// Record of who did what.
    pub audit: AuditLog,
    /// Certificates with which calls are handed on to the leader.
    pub tls: ClientTls,
    /// Clock by which tokens are issued.
    pub clock: Arc<dyn Clock>,
    /// CA that issues the certificates of nodes.
    pub authority: Arc<Authority>,
    /// Bounds on the calls of each caller.
    pub limits: CallerLimits,
    /// Beginning of the traces of calls.
    pub tracer: Tracer,
}

type Stream<T> = BoxStream<'static, Result<T, Problem>>;

impl Api {
    /// Creates the calls of this master, with at most `uploads` plugins pushed at once. Streams end when
    /// `stop` is cancelled.
    pub fn new(
        id: NodeId,
        control: Arc<Control>,
        parts: ApiParts,
        uploads: usize,
        stop: CancellationToken,
    ) -> Self {
        let election_status = control.election_status().clone();
        let (audit, tls) = (parts.audit.clone(), parts.tls.clone());
        Self {
            forward: Arc::new(Forwarder::new(id, election_status, audit, tls)),
            control,
            calls: Calls::new("master"),
            limiter: CallerLimiter::new(parts.limits),
            uploads: Uploads::new(uploads),
            stop,
            parts: Arc::new(parts),
            caller: Caller::default(),
        }
    }

    /// Returns the calls as this caller may make them.
    pub(crate) fn on_behalf_of(&self, caller: Caller) -> Self {
        Self {
            caller,
            ..self.clone()
        }
    }

    /// Returns the counts of the calls of clients that have ended.
    pub fn call_counts(&self) -> Arc<CallCounts> {
        self.limiter.counts()
    }

    /// Returns the counter of the calls of each caller, which both listeners share.
    pub(crate) fn limiter(&self) -> CallerLimiter {
        self.limiter.clone()
    }

    /// Parses the name of a resource, and checks that the caller may use it.
    fn resource_name(&self, text: &str) -> Result<ResourceName, Problem> {
        let name = spec::resource_name(text)?;
        self.check_name(name.as_str())?;
        Ok(name)
    }

    /// Parses the name of a plugin, and checks that the caller may use it.
    fn plugin_ref(&self, text: &str) -> Result<PluginRef, Problem> {
        let plugin = spec::plugin_ref("plugin", text)?;
        self.check_name(plugin.name.as_str())?;
        Ok(plugin)
    }

    /// Checks that the caller may use a name. Refused reads are recorded here; refused changes are where they end.
    fn check_name(&self, name: &str) -> Result<(), Problem> {
        let checked = self.caller.check_name(name);
        checked.inspect_err(|problem| {
            self.forward
                .record_refused_read(&self.caller, name, problem)
        })
    }

    /// Checks that the caller may use the names in a spec. Proxies, credentials and declared sinks are in no namespace.
    fn check_spec(&self, request: &SpecRequest) -> Result<(), Problem> {
        self.caller.check_name(request.name.as_str())?;
        if let Some(plugin) = &request.plugin {
            self.caller.check_name(plugin.name.as_str())?;
        }
        let placement = &request.placement;
        let targets = [&placement.near, &placement.apart].into_iter().flatten();
        for target in targets
            .map(ToString::to_string)
            .filter(|name| !name.is_empty())
        {
            self.caller.check_name(&target)?;
        }
        let crawl = &request.crawl;
        let names_sink = !crawl.sink_names().is_only_lines();
        let names_access = crawl.proxy.is_some() || crawl.credentials.is_some() || names_sink;
        match names_access && !self.caller.grants().covers_all() {
            true => Err(Problem::new(
                Code::PermissionDenied,
                "proxies, credentials and sinks of the workers are in no namespace",
                "leave them out, or use a token without a namespace",
            )),
            false => Ok(()),
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
            self.check_spec(request)?;
            let spec = request.clone().into_spec()?;
            let own = || async {
                let added = self.control.add_resource(spec.clone(), self.asked(origin));
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
                .update_resource(&request.name, change, self.asked(origin));
            Ok(answer::resource(updated.await?))
        };
        let theirs = |leader: Client| async move { leader.update_resource(request.clone()).await };
        let call = async {
            self.check_spec(request)?;
            self.change(origin, own, theirs).await
        };
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
            let name = &self.resource_name(name)?;
            let own = || async move {
                let asked = self.asked(origin);
                let deleted = self
                    .control
                    .delete_resource(name, purge, precondition, asked);
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
        let call = async {
            let name = self.resource_name(name)?;
            Ok::<_, Problem>(self.control.resource(&name).await?)
        };
        Ok(answer::resource(self.within(CALL_DEADLINE, call).await?))
    }

    /// Carries out a call that changes something, and logs and records its outcome.
    async fn logged<T>(
        &self,
        origin: &Origin,
        method: &'static str,
        name: &str,
        call: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let mut unfinished = self.forward.begin((origin, &self.caller), method, name);
        let result = self.with_access(call).await;
        unfinished.end(&result, "");
        result
    }

    /// Carries a call out until the caller's token is not valid any more.
    async fn with_access<T>(
        &self,
        call: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let mut call = Box::pin(call);
        tokio::select! {
            biased;
            problem = self.caller.loses_access() => Err(problem),
            result = &mut call => result,
        }
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
        let call = self.forward.change((origin, &self.caller), own, theirs);
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

/// Logs an internal error where it leaves this process. Other errors are the caller's to read.
fn logged(problem: Problem) -> Problem {
    if problem.code == Code::Internal {
        tracing::error!(error = %problem, "call failed");
    }
    problem
}
