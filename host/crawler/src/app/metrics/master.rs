//! Metrics of a master: the election, placement, the cluster as its records tell it, and the calls of clients.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use super::families as f;
use super::writer::Writer;
use crawler_api::CallCounts;
use crawler_master::metrics::{ClusterView, MasterMetrics};
use crawler_store::election::ElectionStatus;

/// Parts of a master that metrics are read from.
pub(in crate::app) struct Master {
    pub(in crate::app) parts: MasterMetrics,
    pub(in crate::app) election_status: watch::Receiver<ElectionStatus>,
    pub(in crate::app) calls: Arc<CallCounts>,
}

impl Master {
    pub(super) fn write(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let election_status = self.election_status.borrow().clone();
        let is_leader = election_status.leadership().is_some();
        writer.number(&f::IS_LEADER, u64::from(is_leader))?;
        let has_leader = election_status.leader.is_some();
        writer.number(&f::HAS_LEADER, u64::from(has_leader))?;
        let counts = &self.parts.counts;
        writer.number(&f::TERMS, counts.terms.read())?;
        let results = [
            ("done", counts.done.read()),
            ("lost", counts.lost.read()),
            ("failed", counts.failed.read()),
        ];
        let actions = results.iter().flat_map(|(result, actions)| {
            let actions = actions.iter();
            actions.map(move |(action, n)| (vec![action.as_str(), *result], *n))
        });
        writer.numbers(&f::ACTIONS, actions)?;
        writer.durations(&f::PASSES, [(Vec::new(), counts.passes.read())])?;
        match self.parts.replica.cluster_view() {
            Some(view) => write_cluster(&view, writer)?,
            // Nothing has been read yet.
            None => writer.number(&f::FOLLOWED, 0_u64)?,
        }
        self.write_calls(writer)
    }

    fn write_calls(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let calls = self.calls.read();
        let codes = calls.iter().flat_map(|call| {
            let results = call.results.iter();
            results.map(move |(code, n)| (vec![call.method, *code], *n))
        });
        writer.numbers(&f::API_CALLS, codes)?;
        let durations = calls.iter();
        let durations = durations.map(|call| (vec![call.method], call.durations.clone()));
        writer.durations(&f::API_DURATIONS, durations)
    }
}

fn write_cluster(view: &ClusterView, writer: &mut Writer<'_>) -> fmt::Result {
    writer.number(&f::FOLLOWED, u64::from(view.is_followed))?;
    let workers = [
        (vec!["ready"], view.workers),
        (vec!["draining"], view.draining),
    ];
    writer.numbers(&f::WORKERS, workers)?;
    let resources = view.resources.iter();
    writer.numbers(
        &f::RESOURCES,
        resources.map(|(phase, n)| (vec![*phase], *n)),
    )?;
    let shards = view.shards.iter();
    writer.numbers(&f::SHARDS, shards.map(|(state, n)| (vec![*state], *n)))?;
    writer.number(&f::UNREADABLE, view.unreadable)?;
    writer.number(&f::DELETIONS, view.deletions)
}
