//! The agent: makes this worker's crawls what the store assigns to it.
//!
//! It watches its own prefix and nothing else, and a change only makes it look again: what is
//! assigned and does not run is started, what runs and is not assigned is stopped, what has another
//! generation gets its new settings. An assignment belongs to one incarnation: one that was written
//! for an earlier process of the same id is left alone until the leader has written it anew.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Crawls;
use super::assigned::{self, Assigned};
use super::crawl::CrawlConfig;
use super::opening::OwnShard;
use crate::clock::Clock;
use crate::data::DataRoot;
use crate::fetch::Fetch;
use crate::frontier::durable::Frontiers;
use crate::model::id::{Epoch, Generation};
use crate::model::node::Node;
use crate::model::plugin::{LimitError, LimitOverrides, Limits};
use crate::model::resource::{Assignment, Resource, ResourceSpec, ShardId};
use crate::plugin::LoadRules;
use crate::retry::Backoff;
use crate::store::StoreError;
use crate::store::catalog::Catalog;
use crate::task::TaskScope;
use crate::telemetry;

/// The agent looks at its assignments at least this often, in case a watch has missed something.
const RESYNC: Duration = Duration::from_secs(60);
/// How long crawls may take to end: pages are put back at once, what is in the outbox is delivered.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// What an agent works with.
pub struct AgentParts {
    /// As registered.
    pub node: Node,
    /// Its assignments.
    pub catalog: Catalog,
    /// Where items go.
    pub data: Arc<DataRoot>,
    /// Plugins by digest.
    pub plugins: Arc<dyn LoadRules>,
    /// Shared by all crawls.
    pub fetch: Arc<dyn Fetch>,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// Whose data root it is.
    pub cluster: String,
    /// What all crawls keep their URLs in.
    pub frontiers: Arc<Frontiers>,
    /// How far resources may raise limits.
    pub limit_ceilings: LimitOverrides,
    /// Told to whoever asks.
    pub crawls: Crawls,
}

/// What an agent knows of its own doing.
#[derive(Default)]
struct Known {
    crawls: BTreeMap<ShardId, Started>,
    /// Those that were told to stop, until they have closed their frontiers: the next assignment of
    /// the shard may come later than the end of this one.
    ending: BTreeMap<ShardId, CancellationToken>,
}

/// A crawl that was started. It stays here when it is over, until the assignment goes.
struct Started {
    epoch: Epoch,
    generation: Generation,
    config: watch::Sender<CrawlConfig>,
    stop: CancellationToken,
    /// It has ended, and its frontier is closed.
    ended: CancellationToken,
}

/// Works until `stop`, then ends all crawls.
///
/// # Panics
///
/// After a crawl's task has panicked, so that whoever watches this task learns of it.
pub async fn run(parts: Arc<AgentParts>, stop: CancellationToken) {
    let scope = TaskScope::new();
    let failed = scope.failed();
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
    let mut known = Known::default();
    loop {
        let result = tokio::select! {
            result = look_on_changes(&parts, &scope, &mut known, &mut backoff) => result,
            () = stop.cancelled() => break,
            () = failed.cancelled() => panic!("a crawl's task has panicked"),
        };
        let Err(error) = result;
        tracing::warn!(
            error = telemetry::chain(&error),
            "assignments cannot be read"
        );
        tokio::select! {
            () = tokio::time::sleep(backoff.next_delay()) => {}
            () = stop.cancelled() => break,
        }
    }
    scope.stop(STOP_GRACE).await;
}

async fn look_on_changes(
    parts: &Arc<AgentParts>,
    scope: &TaskScope,
    known: &mut Known,
    backoff: &mut Backoff,
) -> Result<Infallible, StoreError> {
    let prefix = parts.catalog.keys().assignments_of(&parts.node.id);
    let revision = parts.catalog.store().list(&prefix).await?.revision;
    let mut watch = parts.catalog.store().watch(&prefix, revision).await?;
    loop {
        look(parts, scope, known).await?;
        backoff.reset();
        tokio::select! {
            event = watch.next() => { event?; }
            () = tokio::time::sleep(RESYNC) => {}
        }
        // One look serves all changes that are here already.
        while let Some(event) = watch.next().now_or_never() {
            event?;
        }
    }
}

/// Compares what is assigned with what runs, and starts, stops and changes crawls.
async fn look(
    parts: &Arc<AgentParts>,
    scope: &TaskScope,
    known: &mut Known,
) -> Result<(), StoreError> {
    let Known { crawls, ending } = known;
    ending.retain(|_, ended| !ended.is_cancelled());
    let keys = parts.catalog.keys();
    let scan = parts
        .catalog
        .scan::<Assignment>(&keys.assignments_of(&parts.node.id))
        .await?;
    for error in &scan.broken {
        tracing::error!(
            error = telemetry::chain(error),
            "passing over an assignment"
        );
    }
    let assigned: BTreeMap<ShardId, Assignment> = scan
        .records
        .into_iter()
        .filter_map(|(key, record)| Some((keys.parse_assignment(&key)?.1, record.value)))
        .filter(|(_, assignment)| assignment.incarnation == parts.node.incarnation)
        .collect();
    crawls.retain(|id, started| {
        let stays = assigned
            .get(id)
            .is_some_and(|assignment| assignment.epoch == started.epoch);
        if !stays {
            tracing::info!(shard = %id, epoch = %started.epoch, "no longer assigned");
            started.stop.cancel();
            ending.insert(*id, started.ended.clone());
        }
        stays
    });
    for (id, assignment) in assigned {
        match crawls.get_mut(&id) {
            Some(started) if started.generation == assignment.generation => {}
            Some(started) => {
                if let Some(resource) = resource_of(parts, id, &assignment).await? {
                    started.generation = resource.generation;
                    match config_of(&resource.spec, &parts.limit_ceilings) {
                        Ok(config) => {
                            started.config.send_replace(config);
                            tracing::info!(resource = %assignment.name, "settings changed");
                        }
                        Err(error) => {
                            tracing::error!(%error, resource = %assignment.name, "settings refused")
                        }
                    }
                }
            }
            None => {
                if let Some(resource) = resource_of(parts, id, &assignment).await? {
                    let after = ending.remove(&id);
                    crawls.insert(id, start(parts, scope, id, &assignment, resource, after));
                }
            }
        }
    }
    Ok(())
}

/// The resource that an assignment is of; none where its name has another life by now.
async fn resource_of(
    parts: &AgentParts,
    id: ShardId,
    assignment: &Assignment,
) -> Result<Option<Resource>, StoreError> {
    let key = parts.catalog.keys().resource(&assignment.name);
    let record = parts.catalog.read::<Resource>(&key).await?;
    Ok(record
        .map(|record| record.value)
        .filter(|resource| resource.id == id.resource))
}

fn start(
    parts: &Arc<AgentParts>,
    scope: &TaskScope,
    id: ShardId,
    assignment: &Assignment,
    resource: Resource,
    after: Option<CancellationToken>,
) -> Started {
    let config = config_of(&resource.spec, &parts.limit_ceilings);
    let (sender, receiver) = watch::channel(config.clone().unwrap_or_default());
    let stop = scope.stop_signal().child_token();
    let ended = CancellationToken::new();
    let generation = resource.generation;
    let crawl = Assigned {
        parts: parts.clone(),
        shard: OwnShard {
            catalog: parts.catalog.clone(),
            id,
            epoch: assignment.epoch,
        },
        resource,
        config: receiver,
        refused: config.err(),
        after,
        stop: stop.clone(),
    };
    let over = ended.clone().drop_guard();
    scope.spawn(format!("crawl of {}", assignment.name), async move {
        let _over = over;
        assigned::run(crawl).await;
    });
    Started {
        epoch: assignment.epoch,
        generation,
        config: sender,
        stop,
        ended,
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
