//! Agent that keeps this worker's crawls in line with its assignments in the store.
//!
//! The agent watches its own prefix only, and a change only makes it look again. A shard that is assigned and
//! does not run is started, one that runs and is not assigned is stopped, one that is to be given back is
//! stopped and given back, and one with another generation gets its new settings. Under a new lease no crawl
//! fetches before such a look has shown that it is still assigned; crawls that are go on with their frontiers
//! open. An assignment belongs to one incarnation: one that was written for an earlier process of the same id
//! is ignored until the leader has written it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use super::assigned::Assigned;
use super::crawl_state::CrawlState;
use super::end_reason;
use super::lease_permit::{LeasePermit, Registered};
use super::lifecycle;
use super::opening::OwnShard;
use super::parts::AgentParts;
use super::release::{self, EndingCrawl};
use super::snapshot::AssignmentSnapshot;
use super::totals;
use crawler_crawl::pacing::Pacing;
use crawler_crawl::permit::FetchPermit;
use crawler_crawl::{CrawlConfig, spans};
use crawler_model::id::{Epoch, Generation};
use crawler_model::plugin::{LimitError, LimitOverrides, Limits};
use crawler_model::resource::{Assignment, Order, Resource, ResourceSpec, ShardId};
use crawler_process::retry::Backoff;
use crawler_process::task::TaskScope;
use crawler_process::telemetry;
use crawler_store::StoreError;
use crawler_store::changes::Changes;
use crawler_store::lease::Term;

/// Maximum time between two looks at the assignments, in case a watch has missed something. It is half a usual lease: a
/// shard that somebody else has meanwhile is crawled on for no longer than if the lease had been lost. Commits to its
/// frontier are refused anyway, but a crawl that waits for a host makes none.
const RESYNC: Duration = Duration::from_secs(5);
/// Time that crawls have to end: pages are put back at once, and items in the outbox are delivered.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// State of an agent.
struct AgentState {
    registered: Registered,
    /// Lease under which it last looked at its assignments; all crawls have their permit by it.
    granted: watch::Sender<Option<Term>>,
    /// Records that could not be used at the last look; each is logged once.
    logged: BTreeSet<String>,
    crawls: BTreeMap<ShardId, Started>,
    /// Crawls that were told to stop and have not closed their frontiers yet. The next assignment of a shard
    /// waits for that.
    ending: BTreeMap<ShardId, EndingCrawl>,
    /// Shards that are being given back, with their epochs.
    giving_back: BTreeMap<ShardId, Epoch>,
}

/// A crawl that was started. It stays here after its end, until the assignment is gone.
struct Started {
    /// Span of its log lines.
    span: Span,
    epoch: Epoch,
    generation: Generation,
    config: watch::Sender<CrawlConfig>,
    stop: CancellationToken,
    /// Cancelled once it has ended and its frontier is closed.
    ended: CancellationToken,
    crawl_state: CrawlState,
}

impl AgentState {
    fn new(registered: Registered) -> Self {
        Self {
            registered,
            granted: watch::Sender::new(None),
            logged: BTreeSet::new(),
            crawls: BTreeMap::new(),
            ending: BTreeMap::new(),
            giving_back: BTreeMap::new(),
        }
    }
}

/// Works until `stop`, then ends all crawls.
///
/// # Panics
///
/// Panics after a crawl's task has panicked, so that the supervisor of this task learns of it.
pub async fn run(parts: Arc<AgentParts>, stop: CancellationToken) {
    let scope = TaskScope::new();
    let failed = scope.failed();
    let totals = totals::run(parts.clone(), scope.stop_signal());
    scope.spawn("totals", totals);
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
    let mut state = AgentState::new(parts.registered.clone());
    loop {
        let result = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = failed.cancelled() => panic!("a crawl's task has panicked"),
            result = reconcile_on_changes(&parts, &scope, &mut state, &mut backoff) => result,
        };
        let Err(error) = result;
        tracing::warn!(
            error = telemetry::chain(&error),
            "assignments cannot be read"
        );
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = changed(&mut state.registered) => {}
            () = tokio::time::sleep(backoff.next_delay()) => {}
        }
    }
    scope.stop(STOP_GRACE).await;
}

async fn reconcile_on_changes(
    parts: &Arc<AgentParts>,
    scope: &TaskScope,
    state: &mut AgentState,
    backoff: &mut Backoff,
) -> Result<Infallible, StoreError> {
    let prefix = parts.catalog.keys().assignments_of(&parts.node.id);
    let mut changes = Changes::below(&parts.catalog, &prefix, RESYNC).await?;
    loop {
        reconcile(parts, scope, state).await?;
        backoff.reset();
        tokio::select! {
            biased;
            news = changes.next() => news?,
            () = changed(&mut state.registered) => changes.drain()?,
        }
    }
}

async fn changed(registered: &mut Registered) {
    if registered.changed().await.is_err() {
        std::future::pending().await
    }
}

/// Compares assignments with crawls, and starts, stops and changes crawls.
async fn reconcile(
    parts: &Arc<AgentParts>,
    scope: &TaskScope,
    state: &mut AgentState,
) -> Result<(), StoreError> {
    // The term is read first, so that what is read below is no older than this registration.
    let term = state.registered.borrow_and_update().clone();
    let mut snapshot = AssignmentSnapshot::begin(parts).await?;
    state.stop_all_but(&snapshot);
    state.grant(term);
    state.release(parts, scope, &snapshot);
    snapshot.assigned.retain(|_, a| a.order == Order::Crawl);
    for (id, assignment) in std::mem::take(&mut snapshot.assigned) {
        let generation = state.crawls.get(&id).map(|started| started.generation);
        if generation == Some(assignment.generation) {
            continue;
        }
        let Some(resource) = snapshot.resource_of(id, &assignment).await? else {
            continue;
        };
        match state.crawls.get_mut(&id) {
            Some(started) => started.change(id, &resource, parts),
            None => {
                let after = state.ending.remove(&id).map(|ending| ending.ended);
                let permit = Arc::new(LeasePermit(state.granted.subscribe()));
                let started = start(parts, scope, id, &assignment, resource, permit, after);
                state.crawls.insert(id, started);
            }
        }
    }
    for why in snapshot.broken.difference(&state.logged) {
        tracing::error!(why, "passing over a record");
    }
    state.logged = snapshot.broken;
    Ok(())
}

impl AgentState {
    /// Stops crawls that are not assigned any more, or under another epoch.
    fn stop_all_but(&mut self, snapshot: &AssignmentSnapshot<'_>) {
        self.ending.retain(|_, ending| !ending.ended.is_cancelled());
        let goes = self.crawls.iter().filter(|(id, started)| {
            let assigned = snapshot.assigned.get(id);
            let is_ours =
                assigned.is_some_and(|a| a.epoch == started.epoch && a.order == Order::Crawl);
            // An assignment that does not decode is not known to be gone.
            !is_ours && !snapshot.unreadable.contains(id)
        });
        let goes: Vec<ShardId> = goes.map(|(id, _)| *id).collect();
        for id in goes {
            self.end(id);
        }
    }

    /// Tells a crawl to stop; the next assignment of the shard waits for its end.
    fn end(&mut self, id: ShardId) {
        if let Some(started) = self.crawls.remove(&id) {
            tracing::info!(parent: &started.span, "no longer assigned; the crawl is to end");
            started.stop.cancel();
            let Started {
                ended, crawl_state, ..
            } = started;
            self.ending.insert(id, EndingCrawl { ended, crawl_state });
        }
    }

    /// Begins to give back the shards that the leader asks for, each once.
    fn release(
        &mut self,
        parts: &AgentParts,
        scope: &TaskScope,
        snapshot: &AssignmentSnapshot<'_>,
    ) {
        let asked = snapshot.assigned.iter();
        let asked = asked.filter(|(_, assignment)| assignment.order == Order::GiveBack);
        let epochs: BTreeMap<ShardId, Epoch> =
            asked.clone().map(|(id, a)| (*id, a.epoch)).collect();
        let before = std::mem::replace(&mut self.giving_back, epochs);
        for (id, Assignment { name, epoch, .. }) in asked {
            if before.get(id) == Some(epoch) {
                continue;
            }
            let shard = OwnShard {
                catalog: parts.catalog.clone(),
                id: *id,
                epoch: *epoch,
            };
            // The next assignment of the shard waits for the same end.
            let (worker, crawl) = (parts.node.id.clone(), self.ending.get(id).cloned());
            let release = release::run(shard, worker, crawl, scope.stop_signal());
            let span = release::span(name, *id, *epoch);
            scope.spawn(format!("giving back {id}"), release.instrument(span));
        }
    }

    /// Lets the crawls that are still assigned fetch for as long as this lease is held.
    fn grant(&self, term: Option<Term>) {
        let id = |term: &Option<Term>| term.as_ref().map(Term::id);
        let is_back = self.granted.borrow().is_some() && term.is_some();
        let is_other = self.granted.send_if_modified(|granted| {
            let is_other = id(granted) != id(&term);
            *granted = term;
            is_other
        });
        if is_other && is_back {
            let n_crawls = self.crawls.len();
            tracing::info!(
                n_crawls,
                "registered again; crawls go on that are still assigned"
            );
        }
    }
}

impl Started {
    /// Gives the crawl the settings of its resource; unchanged settings wake no task. Limits that this worker
    /// does not allow stay as they were: a running crawl is not ended for them.
    fn change(&mut self, id: ShardId, resource: &Resource, parts: &AgentParts) {
        self.generation = resource.generation;
        let span = self.span.clone();
        let _crawl = span.enter();
        let config = match config_of(&resource.spec, &parts.limit_ceilings) {
            Ok(config) => config,
            Err(error) => {
                tracing::error!(%error, "new limits are refused");
                let why = format!("the limits stay as they were: {error}");
                parts.crawls.note(id, "error", why);
                CrawlConfig {
                    limits: self.config.borrow().limits,
                    settings: resource.spec.crawl.clone(),
                }
            }
        };
        let is_other = self.config.send_if_modified(|present| {
            let is_other = *present != config;
            *present = config;
            is_other
        });
        if is_other {
            tracing::info!("settings changed");
        }
    }
}

fn start(
    parts: &Arc<AgentParts>,
    scope: &TaskScope,
    id: ShardId,
    assignment: &Assignment,
    resource: Resource,
    permit: Arc<dyn FetchPermit>,
    after: Option<CancellationToken>,
) -> Started {
    let config = config_of(&resource.spec, &parts.limit_ceilings);
    let (sender, receiver) = watch::channel(config.clone().unwrap_or_default());
    let stop = scope.stop_signal().child_token();
    let ended = CancellationToken::new();
    let generation = resource.generation;
    let span = spans::of_crawl(&resource.spec.name, id, assignment.epoch, resource.run);
    let crawl_state = parts.crawls.crawl_state(&resource);
    let crawl = Assigned {
        parts: parts.clone(),
        shard: OwnShard {
            catalog: parts.catalog.clone(),
            id,
            epoch: assignment.epoch,
        },
        resource,
        config: receiver,
        permit,
        refused: config.err(),
        after,
        crawl_state: crawl_state.clone(),
        pacing: Pacing::default(),
        crawl_memory: parts.memory.for_crawl(),
        stop: stop.clone(),
    };
    let over = ended.clone().drop_guard();
    let run = async move {
        let end = lifecycle::run(&crawl).await;
        // Tasks that wait for its end do not wait for the log.
        drop(over);
        end_reason::log(&crawl, &end).await;
    };
    let name = format!("crawl of {}", assignment.name);
    scope.spawn(name, run.instrument(span.clone()));
    Started {
        span,
        epoch: assignment.epoch,
        generation,
        config: sender,
        stop,
        ended,
        crawl_state,
    }
}

fn config_of(spec: &ResourceSpec, ceilings: &LimitOverrides) -> Result<CrawlConfig, LimitError> {
    let limits = Limits::default().with(&spec.limits, ceilings)?;
    Ok(CrawlConfig {
        limits,
        settings: spec.crawl.clone(),
    })
}

#[cfg(test)]
mod tests;
