//! The calls about plugins: whoever is asked admits and stores the bytes, and the leader records them.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};

use super::answer::PluginAnswer;
use super::client::{Client, ClientError};
use super::forward::Origin;
use super::problem::{Problem, Reason};
use super::spec::{self, plugin_ref};
use super::{Api, CALL_DEADLINE, Stream, UPLOAD_DEADLINE};
use crate::master::control::Push;
use crate::master::{Code, ControlError};
use crate::model::id::{Digest, PluginName, PluginRef, PluginVersion};

/// How often a push is begun again whose bytes the leader does not find.
const PUSH_AGAIN: usize = 2;

/// How a caller pushes.
#[derive(Debug, Clone, Default)]
pub(crate) struct PushSaid {
    /// NAME@VERSION; empty takes what the plugin says of itself.
    pub(crate) push_as: String,
    pub(crate) allow_breaking: bool,
}

impl PushSaid {
    fn checked(&self) -> Result<Push, ControlError> {
        Ok(Push {
            name: exact_or_none(&self.push_as)?,
            allow_breaking: self.allow_breaking,
        })
    }
}

/// What a caller pushes.
pub(crate) struct Upload {
    pub(crate) said: PushSaid,
    /// The whole plugin.
    pub(crate) bytes: Bytes,
}

impl Api {
    /// `upload` brings the bytes, so that it counts as part of the call. They are admitted and stored
    /// here; the leader records them.
    pub(crate) async fn push_plugin<F>(
        &self,
        origin: &Origin,
        upload: F,
    ) -> Result<PluginAnswer, Problem>
    where
        F: Future<Output = Result<Upload, Problem>> + Send,
    {
        // Before the bytes are read: those of a few plugins are as much as all other requests have.
        let _upload = self.uploads.begin()?;
        let call = async {
            let Upload { said, bytes } = upload.await?;
            let push = &said.checked()?;
            let mut n_gone = 0;
            loop {
                let admitted = &self.control.store_plugin(push, bytes.clone()).await?;
                let own = || async move {
                    let recorded = self.control.record_plugin(push.clone(), admitted.clone());
                    Ok(recorded.await?.into())
                };
                let theirs = |leader: Client| async move {
                    leader.record_plugin(push, admitted.digest).await
                };
                match self.forward.change(origin, own, theirs).await {
                    // Their record went, and they with it, between our look and the leader's.
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
        self.tell_of_plugin(origin, "PushPlugin", &pushed);
        pushed
    }

    /// Writes into the log what became of a plugin whose name it has told itself.
    fn tell_of_plugin(
        &self,
        origin: &Origin,
        method: &'static str,
        result: &Result<PluginAnswer, Problem>,
    ) {
        let name = result.as_ref().ok();
        let name = name.map(|plugin| format!("{}@{}", plugin.name, plugin.version));
        let name = name.unwrap_or_default();
        self.forward.tell(origin, (method, &name), result);
    }

    /// Records bytes that another master has stored.
    pub(crate) async fn record_plugin(
        &self,
        origin: &Origin,
        said: &PushSaid,
        digest: &str,
    ) -> Result<PluginAnswer, Problem> {
        let call = async {
            let push = said.checked()?;
            let digest: Digest = digest.parse().map_err(|e| spec::invalid("digest", e))?;
            let recorded = self.control.record_stored_plugin(push, digest).await;
            recorded.map(PluginAnswer::from)
        };
        // The leader compiles it as well.
        let recorded = self.within(UPLOAD_DEADLINE, call).await;
        self.tell_of_plugin(origin, "RecordPlugin", &recorded);
        recorded
    }

    pub(crate) async fn plugin(&self, plugin: &str) -> Result<PluginAnswer, Problem> {
        let call = async { self.control.plugin(&plugin_ref("plugin", plugin)?).await };
        Ok(self.within(CALL_DEADLINE, call).await?.into())
    }

    pub(crate) async fn plugins(&self) -> Result<Vec<PluginAnswer>, Problem> {
        let plugins = self.within(CALL_DEADLINE, self.control.plugins()).await?;
        Ok(plugins.into_iter().map(Into::into).collect())
    }

    pub(crate) async fn delete_plugin(&self, origin: &Origin, plugin: &str) -> Result<(), Problem> {
        let asked = plugin;
        let call = async {
            let plugin = &plugin_ref("plugin", plugin)?;
            let (name, version) = &exact(plugin.clone())?;
            // No record tells of it afterwards: what a leader that fell silent has done is not an error.
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
                // However this ends without an answer, also where it is given up for another leader.
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
        self.told(origin, "DeletePlugin", asked, call).await
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
}

fn exact_or_none(push_as: &str) -> Result<Option<(PluginName, PluginVersion)>, ControlError> {
    match push_as {
        "" => Ok(None),
        text => exact(plugin_ref("as", text)?).map(Some),
    }
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
