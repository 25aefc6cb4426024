//! The calls about plugins.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use crawler_proto as proto;
use futures::stream::{self, StreamExt as _};

use super::{Client, ClientError, Values};
use crate::{CALL_DEADLINE, PIECE_MAX, UPLOAD_DEADLINE};
use crawler_master::Code;
use crawler_master::control::Push;
use crawler_model::id::{Digest, PluginRef};

impl Client {
    /// Pushes a plugin under the name and version of `push_as`; parts that it lacks come from the plugin's
    /// own description. With `allow_breaking`, items may differ from those of the version before.
    pub async fn push_plugin(
        &self,
        push_as: Option<&PluginRef>,
        allow_breaking: bool,
        bytes: Bytes,
    ) -> Result<proto::Plugin, ClientError> {
        let first = proto::PushPluginRequest {
            r#as: push_as.map(ToString::to_string).unwrap_or_default(),
            allow_breaking,
            chunk: Vec::new(),
        };
        self.change(UPLOAD_DEADLINE, |mut calls| {
            let pieces = stream::iter(pieces(first.clone(), bytes.clone()));
            async move { calls.push_plugin(pieces).await }
        })
        .await
    }

    /// Has the leader record bytes that are in the data root.
    pub(crate) async fn record_plugin(
        &self,
        push: &Push,
        digest: Digest,
    ) -> Result<proto::Plugin, ClientError> {
        let push_as = push.name.as_ref();
        let push_as = push_as.map(|(name, version)| format!("{name}@{version}"));
        let message = proto::RecordPluginRequest {
            r#as: push_as.unwrap_or_default(),
            allow_breaking: push.allow_breaking,
            digest: digest.to_string(),
        };
        self.change(UPLOAD_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.record_plugin(message).await }
        })
        .await
    }

    /// Returns one plugin version.
    pub async fn plugin(&self, plugin: &PluginRef) -> Result<proto::Plugin, ClientError> {
        let plugin = plugin.to_string();
        let message = proto::PluginRequest { plugin };
        self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.get_plugin(message).await }
        })
        .await
    }

    /// Streams the bytes of a plugin, in pieces.
    pub async fn plugin_bytes(&self, digest: Digest) -> Result<Values<Vec<u8>>, ClientError> {
        let message = proto::FetchPluginRequest {
            digest: digest.to_string(),
            offset: 0,
        };
        let pieces = self
            .read(CALL_DEADLINE, |mut calls| {
                let message = message.clone();
                async move { calls.fetch_plugin(message).await }
            })
            .await?;
        let masters = Arc::clone(&self.masters);
        let pieces = pieces.map(move |piece| match piece {
            Ok(piece) => Ok(piece.chunk),
            Err(status) => Err(masters.error(&status)),
        });
        Ok(pieces.boxed())
    }

    /// Deletes one plugin version.
    pub async fn delete_plugin(&self, plugin: &PluginRef) -> Result<(), ClientError> {
        let plugin = plugin.to_string();
        let message = proto::PluginRequest { plugin };
        // A deleted version leaves no record: if the answer of a master was lost, a second try finds nothing,
        // which is no error.
        let n_asked = AtomicUsize::new(0);
        let deleted = self
            .change(CALL_DEADLINE, |mut calls| {
                n_asked.fetch_add(1, Ordering::Relaxed);
                let message = message.clone();
                async move { calls.delete_plugin(message).await }
            })
            .await;
        match deleted {
            Err(ClientError::Refused(problem))
                if problem.code == Code::NotFound && n_asked.load(Ordering::Relaxed) > 1 =>
            {
                Ok(())
            }
            other => other,
        }
    }
}

/// Returns the messages of a push: first how it is pushed, then the bytes.
fn pieces(
    first: proto::PushPluginRequest,
    bytes: Bytes,
) -> impl Iterator<Item = proto::PushPluginRequest> {
    let pieces = (0..bytes.len()).step_by(PIECE_MAX).map(move |start| {
        let end = bytes.len().min(start + PIECE_MAX);
        proto::PushPluginRequest {
            chunk: bytes[start..end].to_vec(),
            ..proto::PushPluginRequest::default()
        }
    });
    std::iter::once(first).chain(pieces)
}
