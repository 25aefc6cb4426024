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
use super::spec;
use super::{Api, CALL_DEADLINE, Stream, UPLOAD_DEADLINE, answer};
use crawler_master::Code;
use crawler_master::control::Push;
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
            self.check_push(push)?;
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
                match self
                    .forward
                    .change((origin, &self.caller), own, theirs)
                    .await
                {
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
        let call = self.within(UPLOAD_DEADLINE, Box::pin(call));
        self.plugin_call(origin, "PushPlugin", "", call).await
    }

    /// Carries out a call about a plugin that may name itself, and records its outcome.
    async fn plugin_call(
        &self,
        origin: &Origin,
        method: &'static str,
        asked: &str,
        call: impl Future<Output = Result<proto::Plugin, Problem>>,
    ) -> Result<proto::Plugin, Problem> {
        let mut unfinished = self.forward.begin((origin, &self.caller), method, asked);
        let result = self.with_access(call).await;
        if let Ok(plugin) = &result {
            unfinished.name(&format!("{}@{}", plugin.name, plugin.version));
        }
        unfinished.end(&result, "");
        result
    }

    /// Checks that the caller may push a plugin of this name. A name that only the plugin itself tells is known too
    /// late.
    fn check_push(&self, push: &Push) -> Result<(), Problem> {
        match &push.name {
            Some((name, _)) => self.caller.check_name(name.as_str()),
            None if self.caller.grants().covers_all() => Ok(()),
            None => Err(Problem::new(
                Code::PermissionDenied,
                format!(
                    "this token is {}, and the push names no plugin",
                    self.caller.grants()
                ),
                "push it as NAMESPACE/NAME@VERSION",
            )),
        }
    }

    /// Checks that a plugin which the caller may see has this digest.
    async fn check_digest(&self, digest: Digest) -> Result<(), Problem> {
        let grants = self.caller.grants();
        if grants.covers_all() {
            return Ok(());
        }
        let plugins = self.control.plugins().await?;
        let mut covered = plugins
            .iter()
            .filter(|plugin| grants.covers(plugin.name.as_str()));
        match covered.any(|plugin| plugin.digest == digest) {
            true => Ok(()),
            false => Err(Problem::new(
                Code::PermissionDenied,
                format!("no plugin that this token is for has digest {digest}"),
                "use the digest of a plugin in one of its namespaces",
            )),
        }
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
            self.check_push(&push)?;
            // A master that hands a push on has had the bytes. Others may know a digest only.
            if !self.caller.grants().covers_all() && !self.caller.is_through_node() {
                let hint = match origin.is_forwarded {
                    true => {
                        "push the plugin to the leader, or let the master that was called join the cluster: it shows no certificate of a master"
                    }
                    false => "push the plugin",
                };
                return Err(Problem::new(
                    Code::PermissionDenied,
                    "only masters record plugins by their digest for a token of a namespace",
                    hint,
                ));
            }
            let digest: Digest = digest.parse().map_err(|e| spec::invalid("digest", e))?;
            let recorded = self.control.record_stored_plugin(push, digest).await?;
            Ok::<_, Problem>(answer::plugin(recorded))
        };
        // The leader compiles it as well.
        let call = Box::pin(self.within(UPLOAD_DEADLINE, call));
        Box::pin(self.plugin_call(origin, "RecordPlugin", &request.push_as, call)).await
    }

    pub(crate) async fn plugin(&self, plugin: &str) -> Result<proto::Plugin, Problem> {
        let call = async {
            let plugin = self.plugin_ref(plugin)?;
            Ok::<_, Problem>(self.control.plugin(&plugin).await?)
        };
        Ok(answer::plugin(self.within(CALL_DEADLINE, call).await?))
    }

    pub(crate) async fn delete_plugin(&self, origin: &Origin, plugin: &str) -> Result<(), Problem> {
        let asked = plugin;
        let call = async {
            let plugin = &self.plugin_ref(plugin)?;
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
            self.check_digest(digest).await?;
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
