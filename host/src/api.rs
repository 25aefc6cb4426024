//! The interfaces to the outside: gRPC and HTTP/JSON, and the client of the former.
//!
//! ```text
//! grpc, http   two forms of the same calls; each parses its own and ends in Api
//! Api          bounds of every call: how many at once, for how long, until when; then Control
//! convert      messages to plain values and back
//! answer, spec the plain values: what calls answer and ask
//! frontier     the same for the calls that look into a frontier
//! problem      errors: one table of codes for both forms
//! client       the calls from the other side, and those of a master to workers
//! ```
//!
//! What a call means is in [`Control`]; nothing here decides anything.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use self::answer::{ItemAnswer, NodeAnswer, Placed, PluginAnswer, ResourceAnswer, ResourcesAnswer};
use self::problem::Problem;
use self::spec::{SpecRequest, plugin_ref, resource_name};
use crate::master::control::Control;
use crate::master::{Code, ControlError};
use crate::model::id::{Digest, PluginName, PluginRef, PluginVersion, ResourceName};
use crate::model::status::LogLine;

pub mod answer;
pub mod client;
mod convert;
pub mod frontier;
pub mod grpc;
pub mod http;
pub mod problem;
pub mod spec;

/// How long a call may take that is not a stream.
pub const CALL_DEADLINE: Duration = Duration::from_secs(30);
/// How long pushing a plugin may take.
pub const UPLOAD_DEADLINE: Duration = Duration::from_secs(300);
/// Calls and streams at once, over all clients; further ones are turned away.
pub const CALLS_MAX: usize = 512;
/// Bytes of one request that is not an upload.
pub const REQUEST_MAX: usize = 4 << 20;
/// Bytes of one piece of a plugin on its way.
pub const PIECE_MAX: usize = 1 << 20;
/// Resources, or URLs, in one answer.
pub const PAGE_MAX: usize = 1_000;

/// The calls of a master, within their bounds. Both forms end here.
#[derive(Clone)]
pub struct Api {
    control: Arc<Control>,
    calls: Arc<Semaphore>,
    stop: CancellationToken,
}

type Stream<T> = BoxStream<'static, Result<T, Problem>>;

impl Api {
    /// The calls of this master; streams end when `stop` is cancelled.
    pub fn new(control: Arc<Control>, stop: CancellationToken) -> Self {
        Self {
            control,
            calls: Arc::new(Semaphore::new(CALLS_MAX)),
            stop,
        }
    }

    /// The largest plugin that is taken, in bytes.
    pub(crate) fn max_plugin_size(&self) -> u64 {
        self.control.max_plugin_size()
    }

    pub(crate) async fn add_resource(&self, request: SpecRequest) -> Result<Placed, Problem> {
        let call = async { self.control.add_resource(request.into_spec()?).await };
        Ok(Placed::from(&self.within(CALL_DEADLINE, call).await?))
    }

    /// Reads the present spec, changes what the request names, and writes the whole.
    pub(crate) async fn update_resource(
        &self,
        request: SpecRequest,
    ) -> Result<ResourceAnswer, Problem> {
        let call = async {
            let name = request.name.clone();
            let change = |present| request.clone().over(present);
            self.control.update_resource(&name, change).await
        };
        Ok(self.within(CALL_DEADLINE, call).await?.into())
    }

    pub(crate) async fn delete_resource(&self, name: &str, purge: bool) -> Result<(), Problem> {
        let call = async {
            let name = resource_name(name)?;
            self.control.delete_resource(&name, purge).await
        };
        self.within(CALL_DEADLINE, call).await
    }

    pub(crate) async fn restart_resource(&self, name: &str) -> Result<ResourceAnswer, Problem> {
        let call = async { self.control.restart_resource(&resource_name(name)?).await };
        Ok(self.within(CALL_DEADLINE, call).await?.into())
    }

    pub(crate) async fn resource(&self, name: &str) -> Result<ResourceAnswer, Problem> {
        let call = async { self.control.resource(&resource_name(name)?).await };
        Ok(self.within(CALL_DEADLINE, call).await?.into())
    }

    pub(crate) async fn resources(
        &self,
        page_size: u32,
        page_token: &str,
    ) -> Result<ResourcesAnswer, Problem> {
        let max = page_max(page_size);
        let call = async {
            let after = match page_token {
                "" => None,
                token => Some(token.parse().map_err(|e| spec::invalid("page_token", e))?),
            };
            self.control.resources(after, max).await
        };
        let page = self.within(CALL_DEADLINE, call).await?;
        Ok(ResourcesAnswer {
            resources: page.entries.into_iter().map(Into::into).collect(),
            next_page_token: page.next.map(String::from).unwrap_or_default(),
        })
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<NodeAnswer>, Problem> {
        let nodes = self.within(CALL_DEADLINE, self.control.nodes()).await?;
        Ok(nodes.into_iter().map(Into::into).collect())
    }

    /// `bytes` is the upload itself, so that it counts as part of the call.
    pub(crate) async fn push_plugin<F>(&self, upload: F) -> Result<PluginAnswer, Problem>
    where
        F: Future<Output = Result<Upload, Problem>> + Send,
    {
        let call = async {
            let Upload { push_as, bytes } = upload.await?;
            let push_as = match push_as.as_str() {
                "" => None,
                text => Some(exact(plugin_ref("as", text)?)?),
            };
            let record = self.control.push_plugin(push_as, bytes).await?;
            Ok::<_, Problem>(record.into())
        };
        self.within(UPLOAD_DEADLINE, call).await
    }

    pub(crate) async fn plugin(&self, plugin: &str) -> Result<PluginAnswer, Problem> {
        let call = async { self.control.plugin(&plugin_ref("plugin", plugin)?).await };
        Ok(self.within(CALL_DEADLINE, call).await?.into())
    }

    pub(crate) async fn plugins(&self) -> Result<Vec<PluginAnswer>, Problem> {
        let plugins = self.within(CALL_DEADLINE, self.control.plugins()).await?;
        Ok(plugins.into_iter().map(Into::into).collect())
    }

    pub(crate) async fn delete_plugin(&self, plugin: &str) -> Result<(), Problem> {
        let call = async {
            let (name, version) = exact(plugin_ref("plugin", plugin)?)?;
            self.control.delete_plugin(&name, &version).await
        };
        self.within(CALL_DEADLINE, call).await
    }

    /// The bytes of a plugin from an offset.
    pub(crate) async fn plugin_bytes(
        &self,
        digest: &str,
        offset: u64,
    ) -> Result<Stream<Bytes>, Problem> {
        let control = Arc::clone(&self.control);
        self.open(async {
            let digest: Digest = digest.parse().map_err(|e| spec::invalid("digest", e))?;
            let pieces = stream::try_unfold(offset, move |offset| {
                let control = Arc::clone(&control);
                async move {
                    let piece = control.plugin_piece(digest, offset).await?;
                    let next = offset + piece.len() as u64;
                    Ok((!piece.is_empty()).then_some((piece, next)))
                }
            });
            Ok(pieces.boxed())
        })
        .await
    }

    /// `after` is the position of the last item that the caller has; empty: from the first.
    pub(crate) async fn items(
        &self,
        name: &str,
        follow: bool,
        after: &str,
    ) -> Result<Stream<ItemAnswer>, Problem> {
        self.open(async {
            let after = match after {
                "" => None,
                text => Some(text.parse().map_err(|e| spec::invalid("after", e))?),
            };
            let items = self.control.items(name, follow, after).await?;
            Ok(items.map_ok(ItemAnswer::from).boxed())
        })
        .await
    }

    pub(crate) async fn logs(&self, name: &str, follow: bool) -> Result<Stream<LogLine>, Problem> {
        self.open(async {
            let name: ResourceName = resource_name(name)?;
            self.control.logs(&name, follow).await
        })
        .await
    }

    async fn within<T, E: Into<Problem>>(
        &self,
        deadline: Duration,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Problem> {
        let _permit = self.permit()?;
        bounded(deadline, call).await
    }

    /// A stream that counts as a call until it ends, and ends with an error when the master stops.
    async fn open<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<BoxStream<'static, Result<T, ControlError>>, ControlError>>,
    ) -> Result<Stream<T>, Problem> {
        let permit = self.permit()?;
        let stream = bounded(CALL_DEADLINE, call).await?;
        Ok(until(stream, self.stop.clone(), permit))
    }

    fn permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = Arc::clone(&self.calls).try_acquire_owned();
        permit.map_err(|_| {
            Problem::new(
                Code::Unavailable,
                format!("the master has {CALLS_MAX} calls in hand and takes no more"),
                "try again",
            )
        })
    }
}

/// Entries of one answer, where a caller asks for so many; 0 means as many as may be.
fn page_max(page_size: u32) -> usize {
    match usize::try_from(page_size) {
        Ok(n @ 1..PAGE_MAX) => n,
        _ => PAGE_MAX,
    }
}

/// What a caller pushes.
pub(crate) struct Upload {
    /// NAME@VERSION; empty takes what the plugin says of itself.
    pub(crate) push_as: String,
    /// The whole plugin.
    pub(crate) bytes: Bytes,
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
    permit: OwnedSemaphorePermit,
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

/// What is our fault is logged where it leaves us; the rest is the caller's to read.
fn logged(problem: Problem) -> Problem {
    if problem.code == Code::Internal {
        tracing::error!(error = %problem, "call failed");
    }
    problem
}

fn exact(plugin: PluginRef) -> Result<(PluginName, PluginVersion), ControlError> {
    match plugin.version {
        Some(version) => Ok((plugin.name, version)),
        None => Err(spec::invalid(
            "plugin",
            format!(
                "plugin {} is named without a version; write {}@VERSION",
                plugin.name, plugin.name
            ),
        )),
    }
}
