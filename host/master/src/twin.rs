//! Workers from a master's point of view, for its tests.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;

use super::{WorkerCallError, WorkerCalls};
use crawler_model::id::{ResourceId, ResourceName};
use crawler_model::node::Node;
use crawler_model::status::{CrawlStatus, LogLine};

/// Behaviour of all workers when they are asked for their crawls.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The workers report these crawls.
    Crawls(Vec<CrawlStatus>),
    /// The workers refuse.
    Away,
    /// The workers never answer.
    Mute,
}

#[derive(Debug)]
pub(crate) struct Workers {
    answer: Mutex<Answer>,
    /// Lines of the logs of workers, by their addresses.
    logs: Mutex<BTreeMap<String, Vec<LogLine>>>,
    n_asked: AtomicUsize,
}

impl Workers {
    pub(crate) fn new(answer: Answer) -> Self {
        Self {
            answer: Mutex::new(answer),
            logs: Mutex::default(),
            n_asked: AtomicUsize::default(),
        }
    }

    /// Creates workers that crawl nothing.
    pub(crate) fn at_rest() -> Self {
        Self::new(Answer::Crawls(Vec::new()))
    }

    pub(crate) fn set(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    /// Sets the log that the worker at this address has.
    pub(crate) fn set_log(&self, address: &str, lines: Vec<LogLine>) {
        let mut logs = self.logs.lock().unwrap();
        logs.insert(address.to_owned(), lines);
    }

    /// Returns the number of calls so far.
    pub(crate) fn n_asked(&self) -> usize {
        self.n_asked.load(Ordering::Relaxed)
    }

    async fn answer(&self, address: &str) -> Result<Vec<CrawlStatus>, WorkerCallError> {
        self.n_asked.fetch_add(1, Ordering::Relaxed);
        let answer = self.answer.lock().unwrap().clone();
        match answer {
            Answer::Crawls(crawls) => Ok(crawls),
            Answer::Away => Err(WorkerCallError {
                address: address.to_owned(),
                why: "away".into(),
            }),
            Answer::Mute => std::future::pending().await,
        }
    }
}

#[async_trait]
impl WorkerCalls for Workers {
    async fn status(
        &self,
        worker: &Node,
        _name: Option<&ResourceName>,
    ) -> Result<Vec<CrawlStatus>, WorkerCallError> {
        self.answer(&worker.address).await
    }

    async fn logs(
        &self,
        worker: &Node,
        _resource: ResourceId,
        _follow: bool,
    ) -> Result<BoxStream<'static, Result<LogLine, WorkerCallError>>, WorkerCallError> {
        self.answer(&worker.address).await?;
        let lines = self.logs.lock().unwrap().get(&worker.address).cloned();
        let lines = lines.unwrap_or_default().into_iter();
        Ok(Box::pin(futures::stream::iter(
            lines.map(Ok::<_, WorkerCallError>),
        )))
    }
}
