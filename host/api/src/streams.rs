//! The calls that answer with a stream.

use bytes::Bytes;
use crawler_proto as proto;
use futures::FutureExt as _;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use tokio_util::sync::CancellationToken;

use super::access::Caller;
use super::caller_limits::OpenStream;
use super::calls::Permit;
use super::event_versions::EventVersions;
use super::problem::Problem;
use super::spec;
use super::{Api, CALL_DEADLINE, Stream, answer, bounded, convert, logged};
use crawler_master::control::events::EventQuery;
use crawler_master::control::items::ItemQuery;
use crawler_master::control::resource_watch::WatchQuery;
use crawler_master::{Code, ControlError};
use crawler_model::id::Run;

impl Api {
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
            let checked = self.resource_name(&name)?;
            if let Some(position) = query
                .after
                .as_ref()
                .filter(|_| !self.caller.grants().covers_all())
            {
                // A position names a resource by its id, which tells nothing of its namespace.
                let present = self.control.resource(&checked).await?;
                if present.resource.id != position.resource {
                    return Err(Problem::new(
                        Code::PermissionDenied,
                        format!("the position is one of another resource than {name}"),
                        "use a position from the items of this resource",
                    ));
                }
            }
            let items = self.control.items(&name, query).await?;
            Ok(items.map_ok(answer::item).boxed())
        })
        .await
    }

    /// Streams a kept file of a resource.
    pub(crate) async fn file(&self, name: &str, digest: &str) -> Result<Stream<Bytes>, Problem> {
        self.open(async {
            let digest = digest.parse().map_err(|e| spec::invalid("digest", e))?;
            self.resource_name(name)?;
            Ok(self.control.file(name, digest).await?)
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

    /// Streams the resources that the caller may see, and their changes.
    pub(crate) async fn resource_events(
        &self,
        request: proto::WatchResourcesRequest,
    ) -> Result<Stream<proto::ResourceEvent>, Problem> {
        self.open(async {
            let mut query = WatchQuery {
                name_prefix: request.name_prefix,
                after: None,
                grants: self.caller.grants().clone(),
            };
            let versions = EventVersions::of(&query, self.control.store_id().await?);
            query.after = versions.parse(&request.after)?;
            let events = self.control.resource_events(query);
            let events = events.map_ok(move |event| answer::resource_event(event, versions));
            Ok(events.boxed())
        })
        .await
    }

    /// Streams what happened to a resource.
    pub(crate) async fn history(
        &self,
        request: proto::ReadEventsRequest,
    ) -> Result<Stream<proto::PastEvent>, Problem> {
        self.open(async {
            let proto::ReadEventsRequest {
                name,
                follow,
                since,
                after,
            } = request;
            let name = self.resource_name(&name)?;
            let id = self.control.resource_id(&name).await?;
            let versions = EventVersions::of_history(id, self.control.store_id().await?);
            let query = EventQuery {
                follow,
                since: (since > 0).then_some(since),
                after: versions.parse(&after)?,
            };
            let events = self.control.events(&name, id, query).await?;
            let events = events.map_ok(move |event| answer::past_event(event, versions));
            Ok(events.boxed())
        })
        .await
    }

    /// Streams what happened to a node, or to all nodes.
    pub(crate) async fn node_history(
        &self,
        request: proto::ReadNodeEventsRequest,
    ) -> Result<Stream<proto::PastEvent>, Problem> {
        self.open(async {
            let proto::ReadNodeEventsRequest {
                node,
                follow,
                since,
                after,
            } = request;
            let node = match node.as_str() {
                "" => None,
                id => Some(spec::node_id(id)?),
            };
            let node = node.as_ref();
            let versions = EventVersions::of_nodes(node, self.control.store_id().await?);
            let query = EventQuery {
                follow,
                since: (since > 0).then_some(since),
                after: versions.parse(&after)?,
            };
            let events = self.control.node_history(node, query).await?;
            let events = events.map_ok(move |event| answer::past_event(event, versions));
            Ok(events.boxed())
        })
        .await
    }

    pub(crate) async fn logs(
        &self,
        name: &str,
        follow: bool,
    ) -> Result<Stream<proto::LogLine>, Problem> {
        self.open(async {
            let name = self.resource_name(name)?;
            let lines = self.control.logs(&name, follow).await?;
            Ok(lines.map_ok(convert::crawl::line_message).boxed())
        })
        .await
    }

    /// Opens a stream. It counts as a call, and as a stream of its caller, until it ends, and ends with an error when the
    /// master stops.
    pub(super) async fn open<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<BoxStream<'static, Result<T, ControlError>>, Problem>>,
    ) -> Result<Stream<T>, Problem> {
        let key = self.caller.limit_key();
        let of_caller = key.map(|key| self.limiter.begin_stream(key)).transpose()?;
        let permit = (self.calls.stream()?, of_caller);
        let stream = bounded(CALL_DEADLINE, call).await?;
        let (stop, caller) = (self.stop.clone(), self.caller.clone());
        Ok(until(stream, stop, caller, permit))
    }
}

/// Hands a stream on until the master stops or the caller's token is not valid any more.
fn until<T: Send + 'static>(
    stream: BoxStream<'static, Result<T, ControlError>>,
    stop: CancellationToken,
    caller: Caller,
    permit: (Permit, Option<OpenStream>),
) -> Stream<T> {
    let end = async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => Problem::new(Code::Unavailable, "the master is stopping", "try again"),
            problem = caller.loses_access() => problem,
        }
    };
    let state = Some((stream, end.boxed(), permit));
    stream::unfold(state, |state| async {
        let (mut stream, mut end, permit) = state?;
        let next = tokio::select! {
            biased;
            problem = &mut end => return Some((Err(problem), None)),
            next = stream.next() => next?,
        };
        Some(match next {
            Ok(value) => (Ok(value), Some((stream, end, permit))),
            Err(error) => (Err(logged(error.into())), None),
        })
    })
    .boxed()
}
