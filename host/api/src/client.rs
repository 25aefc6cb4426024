//! The client's side of the calls: from the command line to a master, from masters to workers.
//!
//! Every call has a deadline; streams have one for their start and then live on keep-alive.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crawler_proto as proto;
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use tonic::{Response, Status, Streaming};

use super::spec::SpecRequest;
use super::tls::ClientTls;
use super::{CALL_DEADLINE, convert};
use crate::access::bearer;
use crate::secret::Secret;
use crawler_master::control::Precondition;
use crawler_model::id::{NodeId, RequestId, ResourceName};

mod access;
mod connector;
mod error;
mod frontier;
mod health;
mod joins;
mod lifecycle;
mod lists;
mod masters;
mod plugins;
mod pushes;
mod quarantine;
mod schedules;
mod tls_fault;
pub mod traces;
mod transport;
mod workers;

pub use error::ClientError;
pub use health::{Health, health};
pub use joins::{JoinRequest, NodeCertificate};
use masters::{CallMetadata, Calls, Masters};
pub use plugins::{FetchDeadlines, MasterPlugins};
pub use tls_fault::TlsFault;
pub use workers::GrpcWorkerCalls;

/// Connections to masters, one of which is asked.
#[derive(Debug, Clone)]
pub struct Client {
    masters: Arc<Masters>,
    /// Call of a client that this master hands on: the id of its request, and this master's id.
    behalf: Option<(RequestId, NodeId)>,
    /// Value of the header `Authorization`.
    authorization: Option<Secret>,
    /// Secret of the nodes, if a master hands calls on.
    node: Option<Secret>,
}

type Values<T> = BoxStream<'static, Result<T, ClientError>>;

impl Client {
    /// Connects to the plain master at this URL.
    pub async fn connect(url: &str) -> Result<Self, ClientError> {
        Self::connect_any(&[url.to_owned()], &ClientTls::default()).await
    }

    /// Connects to the first of the masters at these URLs that can be reached. A call that it does not answer
    /// is sent to the others, within the call's deadline. A call that changes something is still carried out
    /// only once. URLs with `https://` are called with the certificates in `tls`.
    pub async fn connect_any(urls: &[String], tls: &ClientTls) -> Result<Self, ClientError> {
        Ok(Self::of(Masters::connect(urls, tls).await?))
    }

    /// Creates a client that connects to the master at this URL with the first call, and again when the
    /// connection breaks. A URL with `https://` is called with the certificates in `tls`.
    pub fn lazy(url: &str, tls: &ClientTls) -> Result<Self, ClientError> {
        Ok(Self::of(Masters::lazy(url, tls)?))
    }

    fn of(masters: Masters) -> Self {
        Self {
            masters: Arc::new(masters),
            behalf: None,
            authorization: None,
            node: None,
        }
    }

    /// Returns a client that hands calls on to the leader for the client that sent this request.
    #[must_use]
    pub fn on_behalf_of(mut self, request: &RequestId, master: &NodeId) -> Self {
        self.behalf = Some((request.clone(), master.clone()));
        self
    }

    /// Returns a client that shows this access token with each call.
    #[must_use]
    pub fn with_token(self, token: &str) -> Self {
        self.showing(Some(Secret::new(bearer(token))))
    }

    /// Returns a client that sends this value of the header `Authorization` with each call.
    #[must_use]
    pub(crate) fn showing(mut self, authorization: Option<Secret>) -> Self {
        self.authorization = authorization;
        self
    }

    /// Returns a client that shows the secret of the nodes with each call.
    #[must_use]
    pub(crate) fn showing_node(mut self, secret: Option<Secret>) -> Self {
        self.node = secret;
        self
    }

    /// Makes a call that changes nothing.
    async fn read<T, Asked>(
        &self,
        deadline: Duration,
        ask: impl Fn(Calls) -> Asked,
    ) -> Result<T, ClientError>
    where
        Asked: Future<Output = Result<Response<T>, Status>>,
    {
        let metadata = CallMetadata {
            request: None,
            through: None,
            authorization: self.authorization.clone(),
            node: self.node.clone(),
        };
        self.masters.call(deadline, &metadata, ask).await
    }

    /// Makes a call that changes something, with the same request id however often it is sent.
    async fn change<T, Asked>(
        &self,
        deadline: Duration,
        ask: impl Fn(Calls) -> Asked,
    ) -> Result<T, ClientError>
    where
        Asked: Future<Output = Result<Response<T>, Status>>,
    {
        let (request, through) = self.behalf.clone().unzip();
        let metadata = CallMetadata {
            request: Some(request.unwrap_or_else(RequestId::random)),
            through,
            authorization: self.authorization.clone(),
            node: self.node.clone(),
        };
        self.masters.call(deadline, &metadata, ask).await
    }

    /// Adds a resource.
    pub async fn add_resource(&self, request: SpecRequest) -> Result<proto::NodeSpec, ClientError> {
        let message = convert::spec_message(request);
        self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.add_resource(message).await }
        })
        .await
    }

    /// Changes a resource.
    pub async fn update_resource(
        &self,
        request: SpecRequest,
    ) -> Result<proto::Resource, ClientError> {
        let message = convert::spec_message(request);
        self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.update_resource(message).await }
        })
        .await
    }

    /// Deletes a resource that meets the condition; with `purge`, its items and kept files too.
    pub async fn delete_resource(
        &self,
        name: &ResourceName,
        purge: bool,
        precondition: Precondition,
    ) -> Result<(), ClientError> {
        let request = SpecRequest {
            precondition,
            ..SpecRequest::named(name.clone())
        };
        let message = proto::ResourceSpec {
            purge,
            ..convert::spec_message(request)
        };
        self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.delete_resource(message).await }
        })
        .await
    }

    /// Returns one resource.
    pub async fn resource(&self, name: &ResourceName) -> Result<proto::Resource, ClientError> {
        let name = name.to_string();
        let message = proto::ResourceRequest { name };
        self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.get_resource(message).await }
        })
        .await
    }

    /// Returns items of a resource. Fields that are empty or 0 ask for nothing.
    pub async fn items(
        &self,
        message: proto::ReadItemsRequest,
    ) -> Result<Values<proto::Item>, ClientError> {
        let items = self
            .read(CALL_DEADLINE, |mut calls| {
                let message = message.clone();
                async move { calls.read_items(message).await }
            })
            .await?;
        Ok(self.values(items))
    }

    /// Streams a kept file of a resource.
    pub async fn file(
        &self,
        message: proto::ReadFileRequest,
    ) -> Result<Values<proto::FileChunk>, ClientError> {
        let chunks = self
            .read(CALL_DEADLINE, |mut calls| {
                let message = message.clone();
                async move { calls.read_file(message).await }
            })
            .await?;
        Ok(self.values(chunks))
    }

    /// Streams the nodes: first a join event for each that is there, then an event for each that joins,
    /// leaves or changes.
    pub async fn node_events(&self) -> Result<Values<proto::NodeEvent>, ClientError> {
        let events = self
            .read(CALL_DEADLINE, |mut calls| async move {
                calls.watch_nodes(proto::WatchNodesRequest {}).await
            })
            .await?;
        Ok(self.values(events))
    }

    /// Streams the log of a resource.
    pub async fn logs(
        &self,
        name: &ResourceName,
        follow: bool,
    ) -> Result<Values<proto::LogLine>, ClientError> {
        let name = name.to_string();
        let message = proto::ReadLogsRequest { name, follow };
        let lines = self
            .read(CALL_DEADLINE, |mut calls| {
                let message = message.clone();
                async move { calls.read_logs(message).await }
            })
            .await?;
        Ok(self.values(lines))
    }

    /// Streams the events of a resource.
    pub async fn events(
        &self,
        message: proto::ReadEventsRequest,
    ) -> Result<Values<proto::PastEvent>, ClientError> {
        let events = self
            .read(CALL_DEADLINE, |mut calls| {
                let message = message.clone();
                async move { calls.read_events(message).await }
            })
            .await?;
        Ok(self.values(events))
    }

    /// Streams the events of a node, or of all nodes.
    pub async fn node_history(
        &self,
        message: proto::ReadNodeEventsRequest,
    ) -> Result<Values<proto::PastEvent>, ClientError> {
        let events = self
            .read(CALL_DEADLINE, |mut calls| {
                let message = message.clone();
                async move { calls.read_node_events(message).await }
            })
            .await?;
        Ok(self.values(events))
    }

    fn values<T: 'static>(&self, messages: Streaming<T>) -> Values<T> {
        let masters = Arc::clone(&self.masters);
        messages
            .map_err(move |status| masters.error(&status))
            .boxed()
    }
}
