//! The calls about plugins: the master that is asked admits and stores the bytes, and the leader records
//! them.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use crawler_proto as proto;
use futures::stream::{self, StreamExt as _};

use super::client::{Client, ClientError};
use super::forward::Origin;
use super::problem::{Problem, Reason};
use super::push::{PushRequest, Upload, exact};
use super::spec::{self, plugin_ref};
use super::{Api, CALL_DEADLINE, Stream, UPLOAD_DEADLINE, answer};
use crawler_master::Code;
use crawler_model::id::Digest;

/// Number of times that a push starts again because the leader does not find its bytes.
const PUSH_AGAIN: usize = 2;

impl Api {
    /// Pushes a plugin. The bytes are received in `upload`, so that the time counts as part of the call. They
    /// are admitted and stored here; the leader records them.
    pub(crate) async fn push_plugin<F>(
        &self,
        origin: &Origin,
        upload: F,
    ) -> Result<proto::Plugin, Problem>
    where
        F: Future<Output = Result<Upload, Problem>> + Send,
    {
        // The permit comes before the bytes: a few plugins need as much memory as all other requests
        // together.
        let _upload = self.uploads.begin()?;
        let call = async {
            let Upload { request, bytes } = upload.await?;
            let push = &request.checked()?;
            let mut n_gone = 0;
            loop {
                let admitted = &self.control.store_plugin(push, bytes.clone()).await?;
                let own = || async move {
                    let recorded = self.control.record_plugin(push.clone(), admitted.clone());
                    Ok(answer::plugin(recorded.await?))
                };
                let theirs = |leader: Client| async move {
                    leader.record_plugin(push, admitted.digest).await
                };
                match self.forward.change(origin, own, theirs).await {
                    // Their record was deleted, and the bytes with it, after this master's look and before
                    // the leader's.
                    Err(problem)
                        if problem.reason == Some(Reason::PluginGone) && n_gone < PUSH_AGAIN =>
                    {
                        n_gone += 1;
                    }
                    recorded => return recorded,
                }
            }
        };
        let pushed = self.within(UPLOAD_DEADLINE, Box::pin(call)).await;
        self.log_plugin_call(origin, "PushPlugin", &pushed);
        pushed
    }

    /// Logs the outcome of a call about a plugin that names itself.
    fn log_plugin_call(
        &self,
        origin: &Origin,
        method: &'static str,
        result: &Result<proto::Plugin, Problem>,
    ) {
        let name = result.as_ref().ok();
        let name = name.map(|plugin| format!("{}@{}", plugin.name, plugin.version));
        let name = name.unwrap_or_default();
        self.forward.log(origin, (method, &name), result);
    }

    /// Records bytes that another master has stored.
    pub(crate) async fn record_plugin(
        &self,
        origin: &Origin,
        request: &PushRequest,
        digest: &str,
    ) -> Result<proto::Plugin, Problem> {
        let call = async {
            let push = request.checked()?;
            let digest: Digest = digest.parse().map_err(|e| spec::invalid("digest", e))?;
            let recorded = self.control.record_stored_plugin(push, digest).await;
            recorded.map(answer::plugin)
        };
        // The leader compiles it as well.
        let recorded = self.within(UPLOAD_DEADLINE, call).await;
        self.log_plugin_call(origin, "RecordPlugin", &recorded);
        recorded
    }

    pub(crate) async fn plugin(&self, plugin: &str) -> Result<proto::Plugin, Problem> {
        let call = async { self.control.plugin(&plugin_ref("plugin", plugin)?).await };
        Ok(answer::plugin(self.within(CALL_DEADLINE, call).await?))
    }

    pub(crate) async fn plugins(&self) -> Result<proto::ListPluginsResponse, Problem> {
        let plugins = self.within(CALL_DEADLINE, self.control.plugins()).await?;
        Ok(answer::plugins(plugins))
    }

    pub(crate) async fn delete_plugin(&self, origin: &Origin, plugin: &str) -> Result<(), Problem> {
        let asked = plugin;
        let call = async {
            let plugin = &plugin_ref("plugin", plugin)?;
            let (name, version) = &exact(plugin.clone())?;
            // A deleted version leaves no record: if a leader did it and then fell silent, a second try finds
            // nothing, which is no error.
            let may_be_done = &AtomicBool::new(false);
            let is_done = |problem: &Problem| {
                problem.code == Code::NotFound && may_be_done.load(Ordering::Relaxed)
            };
            let own = || async move {
                match self
                    .control
                    .delete_plugin(name, version)
                    .await
                    .map_err(Problem::from)
                {
                    Err(problem) if is_done(&problem) => Ok(()),
                    deleted => deleted,
                }
            };
            let theirs = |leader: Client| async move {
                // The deletion may be done even if the call ends without an answer or is given up for another
                // leader.
                let was_maybe_done = may_be_done.swap(true, Ordering::Relaxed);
                let deleted = leader.delete_plugin(plugin).await;
                if let Err(ClientError::Refused(problem)) = &deleted {
                    may_be_done.store(was_maybe_done, Ordering::Relaxed);
                    if is_done(problem) {
                        return Ok(());
                    }
                }
                deleted
            };
            self.change(origin, own, theirs).await
        };
        self.logged(origin, "DeletePlugin", asked, call).await
    }

    /// Streams the bytes of a plugin from an offset.
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
}
