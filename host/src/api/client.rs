//! The calls from the other side: of the command line to a master, of masters to workers.
//!
//! Every call has a deadline; streams have one for their start and then live on keep-alive.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use crawler_proto as proto;
use futures::stream::{self, BoxStream, StreamExt as _};
use proto::crawler_master_client::CrawlerMasterClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

use super::answer::{
    ItemAnswer, NodeAnswer, Placed, PluginAnswer, ResourceAnswer, ResourcesAnswer,
};
use super::problem::Problem;
use super::spec::SpecRequest;
use super::{CALL_DEADLINE, PIECE_MAX, UPLOAD_DEADLINE, convert};
use crate::master::Code;
use crate::model::id::{PluginRef, ResourceName};
use crate::model::status::LogLine;
use crate::telemetry::chain;

mod frontier;
mod workers;

pub use workers::GrpcWorkerCalls;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Bytes of one answer; a page of resources can be large.
const ANSWER_MAX: usize = 64 << 20;

/// A connection to a master.
#[derive(Debug, Clone)]
pub struct Client {
    url: String,
    calls: CrawlerMasterClient<Channel>,
}

/// Why a call from here has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// Not an address of a master.
    #[error("{url:?} is not the URL of a master: {why}")]
    Url {
        /// As given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nobody answers there.
    #[error("cannot reach the master at {url}: {why}")]
    Unreachable {
        /// As given.
        url: String,
        /// What was seen.
        why: String,
    },
    /// The master said no.
    #[error("{0}")]
    Refused(Problem),
}

impl ClientError {
    /// What to do, in a sentence; empty where the message says it all.
    pub fn hint(&self) -> &str {
        match self {
            ClientError::Url { .. } => "write it like http://127.0.0.1:9091",
            ClientError::Unreachable { .. } => {
                "start one with `crawler up`, or name another with --master URL"
            }
            ClientError::Refused(problem) => &problem.hint,
        }
    }

    /// Whether the same call may succeed later without anybody's help.
    pub fn is_transient(&self) -> bool {
        match self {
            ClientError::Url { .. } => false,
            ClientError::Unreachable { .. } => true,
            ClientError::Refused(problem) => problem.code == Code::Unavailable,
        }
    }
}

type Values<T> = BoxStream<'static, Result<T, ClientError>>;

impl Client {
    /// Connects to the master at this URL.
    pub async fn connect(url: &str) -> Result<Self, ClientError> {
        let wrong = |why: String| ClientError::Url {
            url: url.to_owned(),
            why,
        };
        if !url.starts_with("http://") {
            return Err(wrong("it does not start with http://".to_owned()));
        }
        let endpoint = endpoint(url.to_owned()).map_err(|e| wrong(chain(&e)))?;
        let channel = endpoint.connect().await;
        let channel = channel.map_err(|e| ClientError::Unreachable {
            url: url.to_owned(),
            why: root_cause(&e),
        })?;
        Ok(Self {
            url: url.to_owned(),
            calls: CrawlerMasterClient::new(channel).max_decoding_message_size(ANSWER_MAX),
        })
    }

    /// Adds a resource.
    pub async fn add_resource(&self, request: SpecRequest) -> Result<Placed, ClientError> {
        let message = convert::spec_message(request);
        let mut calls = self.calls.clone();
        let node = self
            .call(CALL_DEADLINE, calls.add_resource(message))
            .await?;
        Ok(node.into())
    }

    /// Changes a resource.
    pub async fn update_resource(
        &self,
        request: SpecRequest,
    ) -> Result<ResourceAnswer, ClientError> {
        let message = convert::spec_message(request);
        let mut calls = self.calls.clone();
        let resource = self
            .call(CALL_DEADLINE, calls.update_resource(message))
            .await?;
        self.resource_of(resource)
    }

    /// Deletes a resource, with `purge` its items too.
    pub async fn delete_resource(
        &self,
        name: &ResourceName,
        purge: bool,
    ) -> Result<(), ClientError> {
        let message = proto::ResourceSpec {
            name: name.to_string(),
            purge,
            ..proto::ResourceSpec::default()
        };
        let mut calls = self.calls.clone();
        self.call(CALL_DEADLINE, calls.delete_resource(message))
            .await
    }

    /// Begins a new run.
    pub async fn restart_resource(
        &self,
        name: &ResourceName,
    ) -> Result<ResourceAnswer, ClientError> {
        let name = name.to_string();
        let mut calls = self.calls.clone();
        let call = calls.restart_resource(proto::ResourceRequest { name });
        let resource = self.call(CALL_DEADLINE, call).await?;
        self.resource_of(resource)
    }

    /// One resource.
    pub async fn resource(&self, name: &ResourceName) -> Result<ResourceAnswer, ClientError> {
        let name = name.to_string();
        let mut calls = self.calls.clone();
        let call = calls.get_resource(proto::ResourceRequest { name });
        let resource = self.call(CALL_DEADLINE, call).await?;
        self.resource_of(resource)
    }

    /// Part of the list of resources; an empty token is its beginning.
    pub async fn resources(
        &self,
        page_size: u32,
        page_token: String,
    ) -> Result<ResourcesAnswer, ClientError> {
        let mut calls = self.calls.clone();
        let request = proto::ListResourcesRequest {
            page_size,
            page_token,
        };
        let page = self
            .call(CALL_DEADLINE, calls.list_resources(request))
            .await?;
        let resources = page.resources.into_iter();
        let resources = resources.map(|resource| self.resource_of(resource));
        Ok(ResourcesAnswer {
            resources: resources.collect::<Result<_, _>>()?,
            next_page_token: page.next_page_token,
        })
    }

    /// All nodes.
    pub async fn nodes(&self) -> Result<Vec<NodeAnswer>, ClientError> {
        let mut calls = self.calls.clone();
        let call = calls.list_nodes(proto::ListNodesRequest {});
        let answer = self.call(CALL_DEADLINE, call).await?;
        Ok(answer.nodes.into_iter().map(Into::into).collect())
    }

    /// Pushes a plugin; without a version in `push_as`, or without it, what the plugin says of itself.
    pub async fn push_plugin(
        &self,
        push_as: Option<&PluginRef>,
        bytes: Bytes,
    ) -> Result<PluginAnswer, ClientError> {
        let first = proto::PushPluginRequest {
            r#as: push_as.map(ToString::to_string).unwrap_or_default(),
            chunk: Vec::new(),
        };
        let pieces = (0..bytes.len()).step_by(PIECE_MAX).map(move |start| {
            let end = bytes.len().min(start + PIECE_MAX);
            proto::PushPluginRequest {
                r#as: String::new(),
                chunk: bytes[start..end].to_vec(),
            }
        });
        let pieces = stream::iter(std::iter::once(first).chain(pieces));
        let mut calls = self.calls.clone();
        let plugin = self
            .call(UPLOAD_DEADLINE, calls.push_plugin(pieces))
            .await?;
        Ok(plugin.into())
    }

    /// One plugin version.
    pub async fn plugin(&self, plugin: &PluginRef) -> Result<PluginAnswer, ClientError> {
        let plugin = plugin.to_string();
        let mut calls = self.calls.clone();
        let call = calls.get_plugin(proto::PluginRequest { plugin });
        Ok(self.call(CALL_DEADLINE, call).await?.into())
    }

    /// All plugin versions.
    pub async fn plugins(&self) -> Result<Vec<PluginAnswer>, ClientError> {
        let mut calls = self.calls.clone();
        let call = calls.list_plugins(proto::ListPluginsRequest {});
        let answer = self.call(CALL_DEADLINE, call).await?;
        Ok(answer.plugins.into_iter().map(Into::into).collect())
    }

    /// Deletes one plugin version.
    pub async fn delete_plugin(&self, plugin: &PluginRef) -> Result<(), ClientError> {
        let plugin = plugin.to_string();
        let mut calls = self.calls.clone();
        let call = calls.delete_plugin(proto::PluginRequest { plugin });
        self.call(CALL_DEADLINE, call).await
    }

    /// The items of a resource, by its name or id; those behind the position `after`, or all where
    /// it is empty.
    pub async fn items(
        &self,
        name: String,
        follow: bool,
        after: String,
    ) -> Result<Values<ItemAnswer>, ClientError> {
        let mut calls = self.calls.clone();
        let call = calls.read_items(proto::ReadItemsRequest {
            name,
            follow,
            after,
        });
        let items = self.call(CALL_DEADLINE, call).await?;
        let client = self.clone();
        let items = items.map(move |item| match item {
            Ok(item) => ItemAnswer::try_from(item).map_err(|e| ClientError::Refused(e.into())),
            Err(status) => Err(client.error(&status)),
        });
        Ok(items.boxed())
    }

    /// The log of a resource.
    pub async fn logs(
        &self,
        name: &ResourceName,
        follow: bool,
    ) -> Result<Values<LogLine>, ClientError> {
        let name = name.to_string();
        let mut calls = self.calls.clone();
        let call = calls.read_logs(proto::ReadLogsRequest { name, follow });
        let lines = self.call(CALL_DEADLINE, call).await?;
        let client = self.clone();
        let lines = lines.map(move |line| match line {
            Ok(line) => Ok(LogLine::from(line)),
            Err(status) => Err(client.error(&status)),
        });
        Ok(lines.boxed())
    }

    async fn call<T>(
        &self,
        deadline: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, ClientError> {
        match tokio::time::timeout(deadline, call).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(self.error(&status)),
            Err(_elapsed) => Err(ClientError::Unreachable {
                url: self.url.clone(),
                why: format!("no answer within {} s", deadline.as_secs()),
            }),
        }
    }

    fn error(&self, status: &Status) -> ClientError {
        match transport_failure(status) {
            Some(why) => ClientError::Unreachable {
                url: self.url.clone(),
                why,
            },
            None => ClientError::Refused(Problem::from_status(status)),
        }
    }

    fn resource_of(&self, message: proto::Resource) -> Result<ResourceAnswer, ClientError> {
        ResourceAnswer::try_from(message).map_err(|e| ClientError::Refused(e.into()))
    }
}

fn endpoint(url: String) -> Result<Endpoint, tonic::transport::Error> {
    Ok(Endpoint::from_shared(url)?
        .connect_timeout(CONNECT_DEADLINE)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true))
}

/// What broke on the way, where the status was made here and not by the other side.
fn transport_failure(status: &Status) -> Option<String> {
    std::error::Error::source(status).map(root_cause)
}

/// The innermost cause: what a person can act on, such as "connection refused".
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut error: &dyn std::error::Error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}
