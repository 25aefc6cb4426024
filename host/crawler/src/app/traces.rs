//! Traces of a process: its tracer, and the sender of what it records, if the config file names a receiver.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use crate::config::{SecretRef, TracesConfig};
use crawler_api::client::traces::{ReceiverSettings, SpanSender};
use crawler_process::clock::Clock;
use crawler_process::task::TaskScope;
use crawler_process::traces::Tracer;

/// Time that the last spans may take to be sent after a stop. The sender itself takes less.
const GRACE: Duration = Duration::from_secs(8);

/// Traces of a process, before and after the sender begins.
#[derive(Default)]
pub(super) struct Traces {
    pub(super) tracer: Tracer,
    /// Sender that has not begun.
    sender: Option<SpanSender>,
    /// Task of the sender.
    pub(super) scope: TaskScope,
}

impl Traces {
    /// Creates the tracer, and reads the secrets of the receiver. Without an endpoint nothing is recorded.
    pub(super) fn open(config: &TracesConfig, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let Some(endpoint) = &config.endpoint else {
            return Ok(Self::default());
        };
        let headers = config.headers.iter().map(|(name, secret)| {
            let value = SecretRef::read(secret).map_err(|why| anyhow!(why));
            let value = value.with_context(|| format!("header {name} of [traces] has no value"))?;
            Ok((name.clone(), value))
        });
        let settings = ReceiverSettings {
            endpoint: endpoint.to_string(),
            headers: headers.collect::<anyhow::Result<_>>()?,
            ca: config.ca.clone(),
            timeout: config.timeout,
        };
        let (tracer, queue) = Tracer::new(config.settings, clock);
        let sender = SpanSender::new(settings, queue);
        let sender = sender.context("the receiver of [traces] cannot be used")?;
        let sample = config.settings.sample;
        tracing::info!(receiver = %endpoint, %sample, "traces are sent");
        Ok(Self {
            tracer,
            sender: Some(sender),
            scope: TaskScope::new(),
        })
    }

    /// Starts to send spans as those of this node.
    pub(super) fn begin(&mut self, node: String) {
        if let Some(sender) = self.sender.take() {
            let stop = self.scope.stop_signal();
            self.scope.spawn("traces", sender.run(node, stop));
        }
    }

    /// Sends what is left, for a few seconds at most. It is called when nothing is recorded any more.
    pub(super) async fn stop(self) {
        self.scope.stop(GRACE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_process::clock::SystemClock;

    fn open(config: &TracesConfig) -> anyhow::Result<Traces> {
        Traces::open(config, Arc::new(SystemClock))
    }

    #[tokio::test]
    async fn nothing_is_recorded_without_an_endpoint() {
        let mut traces = open(&TracesConfig::default()).unwrap();
        assert!(!traces.tracer.is_on());
        traces.begin("worker-1".to_owned());
        traces.stop().await;
    }

    #[tokio::test]
    async fn a_header_without_its_secret_is_told_before_anything_begins() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let config = TracesConfig {
            endpoint: Some("http://127.0.0.1:4317".parse().unwrap()),
            headers: vec![("authorization".to_owned(), SecretRef::File(file.clone()))],
            ..TracesConfig::default()
        };
        let missing = format!("{:#}", open(&config).err().expect("it is missing"));
        let place = file.display().to_string();
        assert!(missing.contains("header authorization") && missing.contains(&place));
        std::fs::write(&file, "Bearer t0ken\n").unwrap();
        assert!(open(&config).unwrap().tracer.is_on());
    }
}
