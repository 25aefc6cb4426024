//! Pushes plugins and adds resources of a config file that are not there yet.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::{master_node, parts};
use crate::cli::plugin::{build_plugin, refused};
use crate::config::FileConfig;
use crawler_master::ControlError;
use crawler_master::control::{Control, Push};
use crawler_process::retry::Backoff;

/// Pauses between two tries, at first and at the most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Runs [`seed`] while this master leads, and again if the lead is lost meanwhile.
pub(super) async fn seed_as_leader(control: &Control, config: &FileConfig) -> anyhow::Result<()> {
    loop {
        master_node::until_leading(control).await;
        match seed(control, config).await {
            Err(error) if is_not_leading(&error) => {}
            seeded => return seeded,
        }
    }
}

/// Adds what the config file asks for whenever this master begins to lead.
pub(super) async fn seed_when_leading(control: Arc<Control>, config: FileConfig) {
    if config.plugins.is_empty() && config.resources.is_empty() {
        return;
    }
    let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
    loop {
        let leadership = master_node::until_leading(&control).await;
        match seed(&control, &config).await {
            Ok(()) => {
                backoff.reset();
                leadership.lost().cancelled().await;
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "what the config file asks for is not there yet");
                tokio::time::sleep(backoff.next_delay()).await;
            }
        }
    }
}

fn is_not_leading(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<ControlError>();
    error.is_some_and(|error| matches!(error, ControlError::NotLeading { .. }))
}

/// Pushes the plugins and adds the resources of a config file that are not there yet, on the leader.
pub(super) async fn seed(control: &Control, config: &FileConfig) -> anyhow::Result<()> {
    for plugin in &config.plugins {
        let wasm = build_plugin(&plugin.path).await?;
        let bytes = parts::read(&wasm).await?;
        let pushed = control.push_plugin(Push::default(), bytes).await;
        let what = || format!("cannot push {}", plugin.path.display());
        pushed.map_err(|error| refused(error, &plugin.sources, what()))?;
    }
    for spec in &config.resources {
        let name = &spec.name;
        let added = control.seed_resource(spec.clone()).await;
        if added.with_context(|| format!("cannot add resource {name}"))? {
            tracing::info!(resource = %name, "resource of the config file added");
        }
    }
    Ok(())
}
