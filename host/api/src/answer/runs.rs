//! Answers about runs: their list, and the comparison of two of them.

use crawler_proto as proto;

use crate::changes::totals;
use crawler_master::ResourceView;
use crawler_master::control::{RunView, RunsDiff, RunsView};
use crawler_model::crawl::Counts;
use crawler_model::resource::Phase;
use crawler_model::runs::{EndedRun, RunSpec, dead_reasons, outcomes};

/// Returns the runs of a resource, the latest first.
pub(crate) fn runs(view: RunsView) -> proto::ListRunsResponse {
    let earlier = view.earlier.into_iter().rev().map(ended_run);
    let present = [present_run(view.present, view.spec)];
    proto::ListRunsResponse {
        runs: present.into_iter().chain(earlier).collect(),
    }
}

/// Returns what differs between two runs.
pub(crate) fn runs_diff(diff: RunsDiff) -> proto::RunsDiff {
    proto::RunsDiff {
        before: Some(run(diff.before)),
        after: Some(run(diff.after)),
        settings_known: diff.settings.is_some(),
        settings: diff.settings.unwrap_or_default(),
        changes: diff.changes.totals.map(totals),
        compared: diff.changes.n_compared,
        uncompared: diff.changes.n_uncompared,
    }
}

fn run(view: RunView) -> proto::RunSummary {
    match view {
        RunView::Present(present) => {
            let (view, spec) = *present;
            present_run(view, spec)
        }
        RunView::Ended(ended) => ended_run(*ended),
    }
}

fn present_run(view: ResourceView, spec: RunSpec) -> proto::RunSummary {
    let mut counts = Counts::default();
    for shard in &view.shards {
        counts.add(&shard.record.counts);
    }
    let is_over = matches!(view.phase, Phase::Finished | Phase::Failed(_));
    let summary = proto::RunSummary {
        run: view.resource.run.0,
        started_at: view.resource.run_started_at.unwrap_or_default(),
        ended_at: if is_over { counts.ended_at } else { 0 },
        outcome: view.phase.as_str().to_lowercase(),
        reason: view.phase.reason().to_owned(),
        pages: counts.pages(),
        items: counts.items,
        dead: counts.dead,
        bytes: counts.bytes,
        outcomes: outcomes(&counts),
        dead_by_reason: dead_reasons(&counts),
        ..proto::RunSummary::default()
    };
    with_spec(summary, Some(spec))
}

fn ended_run(ended: EndedRun) -> proto::RunSummary {
    let summary = proto::RunSummary {
        run: ended.run.0,
        started_at: ended.started_at,
        ended_at: ended.ended_at,
        outcome: ended.outcome.as_str().to_owned(),
        reason: ended.outcome.reason().to_owned(),
        pages: ended.pages,
        items: ended.items,
        dead: ended.dead,
        bytes: ended.bytes,
        outcomes: ended.outcomes,
        dead_by_reason: ended.dead_by_reason,
        ..proto::RunSummary::default()
    };
    with_spec(summary, ended.spec)
}

fn with_spec(summary: proto::RunSummary, spec: Option<RunSpec>) -> proto::RunSummary {
    let Some(spec) = spec else {
        return summary;
    };
    proto::RunSummary {
        generation: spec.generation.0,
        plugin: spec.plugin.to_string(),
        plugin_digest: spec
            .digest
            .map(|digest| digest.to_string())
            .unwrap_or_default(),
        ..summary
    }
}
