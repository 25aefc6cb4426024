//! `crawler plugin diff`: two plugins, loaded into one sandbox.

use std::path::PathBuf;
use std::slice;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;

use super::calls::call_names;
use crate::app::parts;
use crate::cli::devtools::{ComparedCall, DiffOptions, Side, diff_report};
use crate::cli::plugin::{build_plugin, refused};
use crawler_api::UPLOAD_DEADLINE;
use crawler_api::client::Client;
use crawler_devtools::saved::{self, SavedCall};
use crawler_devtools::side_by_side::side_by_side;
use crawler_devtools::trial::Trial;
use crawler_model::id::{Digest, PluginRef};
use crawler_plugin::Rules;
use crawler_plugin::engine::Engine;

pub(super) async fn run(options: &DiffOptions) -> anyhow::Result<()> {
    let engine = parts::engine(&options.engine).await?;
    let before = rules(&engine, &options.before, options).await?;
    let after = rules(&engine, &options.after, options).await?;
    let trial = |rules: &Arc<dyn Rules>| Trial {
        rules: rules.clone(),
        limits: options.limits.clone(),
        params: options.params.clone(),
        n_times: options.n_times,
    };
    let trials = [trial(&before), trial(&after)];
    let mut all = Vec::new();
    let folder = folder(options)?;
    if let Some(folder) = &folder {
        for name in call_names(folder, &options.calls)? {
            let call = SavedCall::read(folder, &name)?;
            all.push(ComparedCall {
                rule: call.called.name().to_owned(),
                made: side_by_side(&trials[0], &trials[1], folder, &call).await,
                name,
            });
        }
    }
    let descriptions = [before.description(), after.description()];
    diff_report(options, descriptions, folder.as_deref(), &all)
}

/// Returns the folder of saved calls: the one that was named, or else one with the second plugin, with the
/// first, or in the current folder.
fn folder(options: &DiffOptions) -> anyhow::Result<Option<PathBuf>> {
    if let Some(folder) = &options.pages {
        return Ok(Some(folder.clone()));
    }
    for folder in &options.likely_pages {
        if folder.is_dir() && !saved::names(folder)?.is_empty() {
            return Ok(Some(folder.clone()));
        }
    }
    anyhow::ensure!(
        options.calls.is_empty(),
        "there are no saved calls with either plugin: name their folder with --pages"
    );
    Ok(None)
}

async fn rules(
    engine: &Engine,
    side: &Side,
    options: &DiffOptions,
) -> anyhow::Result<Arc<dyn Rules>> {
    let bytes = match side {
        Side::Path(path) => parts::read(&build_plugin(path).await?).await?,
        Side::Pushed(plugin) => pushed(plugin, options).await?,
        Side::Digest(digest) => {
            let client = options.masters.connect().await?;
            bytes(&client, *digest, options.engine.plugin_size).await?
        }
    };
    let rules = engine.load(Digest::of(&bytes), bytes).await;
    let sources: &[PathBuf] = match side {
        Side::Path(path) => slice::from_ref(path),
        Side::Pushed(_) | Side::Digest(_) => &[],
    };
    Ok(rules.map_err(|error| refused(error, sources, format!("cannot load {side}")))?)
}

async fn pushed(plugin: &PluginRef, options: &DiffOptions) -> anyhow::Result<Bytes> {
    let client = options.masters.connect().await?;
    let digest = client.plugin(plugin).await?.digest;
    let digest = digest.parse();
    let digest = digest.with_context(|| format!("what the master says of {plugin}"))?;
    bytes(&client, digest, options.engine.plugin_size).await
}

/// Returns all bytes of a plugin, within a deadline and up to the largest size that a plugin may have.
async fn bytes(client: &Client, digest: Digest, max: u64) -> anyhow::Result<Bytes> {
    let gathered = async {
        let mut pieces = client.plugin_bytes(digest).await?;
        let mut bytes = BytesMut::new();
        while let Some(piece) = pieces.next().await {
            bytes.extend_from_slice(&piece?);
            anyhow::ensure!(
                bytes.len() as u64 <= max,
                "the master sends more than {max} bytes, the limit set by --plugin-size"
            );
        }
        Ok(bytes.freeze())
    };
    let bytes = tokio::time::timeout(UPLOAD_DEADLINE, gathered).await;
    let bytes = bytes.with_context(|| {
        let deadline = humantime::format_duration(UPLOAD_DEADLINE);
        format!("the master did not send plugin {digest} within {deadline}")
    })??;
    anyhow::ensure!(
        Digest::of(&bytes) == digest,
        "the master sends other bytes than those of plugin {digest}"
    );
    Ok(bytes)
}
