//! Calls that add and change resources.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::MutexGuard;

use super::new_resource::{created, new_resource_txn, placed};
use super::{Asked, Control, MAX_TRIES, reads};
use crate::lists::records;
use crate::observed::newest;
use crate::{ControlError, ResourceView};
use crawler_model::crawl::NO_RULE;
use crawler_model::event::{Event, EventKind, changed_settings};
use crawler_model::id::{Generation, NodeId, PluginRef, RequestId, ResourceName, Run};
use crawler_model::node::Role;
use crawler_model::plugin::PluginRecord;
use crawler_model::resource::{
    Assignment, PinnedPlugin, Redrive, Resource, ResourceSpec, RestartField, ShardId, ShardRecord,
    ShardState,
};
use crawler_store::catalog::{Versioned, encode};
use crawler_store::election::Leadership;
use crawler_store::keys::Subject;
use crawler_store::{Guard, Txn};

/// Treatment of a resource whose plugin does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingPlugin {
    /// The resource is refused: a user waits for the answer.
    Refuse,
    /// The resource waits: it comes from a file, and the plugin may come later.
    Wait,
}

/// State of the records before a resource is added.
enum PriorState {
    /// An earlier try of this call has added the resource.
    Added,
    /// The name is free; the plugin is given if it exists.
    Free(Option<Box<PluginRecord>>),
}

/// Plugin that a resource runs after a change.
pub(super) struct Pinning<'a> {
    pub(super) pinned: Option<PinnedPlugin>,
    /// Condition that must hold when the change is written.
    pub(super) guard: Option<Guard>,
    /// Lock that is held until the change is made, so that the plugin is not deleted meanwhile.
    pub(super) decision_lock: Option<MutexGuard<'a, ()>>,
}

impl Control {
    /// Adds a resource, and places it if a worker takes it.
    pub async fn add_resource<'a>(
        &self,
        spec: ResourceSpec,
        asked: impl Into<Asked<'a>>,
    ) -> Result<ResourceView, ControlError> {
        self.add(spec, MissingPlugin::Refuse, asked.into()).await
    }

    /// Adds a resource of the config file if there is none of its name. Without its plugin, the resource waits.
    pub async fn seed_resource(&self, spec: ResourceSpec) -> Result<bool, ControlError> {
        let request = RequestId::random();
        let asked = Asked::from(&request);
        match self.add(spec, MissingPlugin::Wait, asked).await {
            Ok(_) => Ok(true),
            Err(ControlError::ResourceExists { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    async fn add(
        &self,
        spec: ResourceSpec,
        missing: MissingPlugin,
        Asked { request, by }: Asked<'_>,
    ) -> Result<ResourceView, ControlError> {
        let leadership = self.leadership()?;
        self.check(&spec)?;
        self.check_sinks(&spec, None)?;
        let catalog = &self.parts.catalog;
        let keys = catalog.keys();
        let _lock = self.decision_lock.lock().await;
        let mut gone = BTreeSet::new();
        let mut foreseen = self.foreseen(&spec, &leadership).await;
        for _try in 0..MAX_TRIES {
            let plugin = match foreseen.take() {
                Some(plugin) => Some(plugin),
                None => match self.before_addition(&spec, request).await? {
                    PriorState::Added => return self.resource(&spec.name).await,
                    PriorState::Free(plugin) => plugin.map(|plugin| *plugin),
                },
            };
            if plugin.is_none() && missing == MissingPlugin::Refuse {
                return Err(ControlError::NoPluginFor {
                    plugin: spec.plugin,
                    resource: spec.name,
                });
            }
            if let Some(plugin) = &plugin {
                check_params(plugin, &spec)?;
            }
            let id = ShardId::only(self.parts.ids.next(leadership.since()).await?);
            let resource = Resource {
                id: id.resource,
                assigned_node: String::new(),
                creation_time: self.parts.clock.unix_nanos(),
                generation: Generation(1),
                run: Run(1),
                resharded_at: Run(1),
                run_started_at: Some(self.parts.clock.unix_millis()),
                paused: false,
                pinned: plugin.as_ref().map(PinnedPlugin::of),
                requests: vec![request.clone()],
                spec: spec.clone(),
            };
            let mut candidates = self.candidates().await?;
            for node in &gone {
                candidates.absent(node);
            }
            let (txn, resource, shards) = new_resource_txn(catalog, resource, &candidates);
            // An earlier try of this call may have added the resource, which may have been deleted meanwhile.
            let mut txn = txn.guard(Guard::Absent(keys.ended(&spec.name, request)));
            if let Some(plugin) = plugin {
                txn = txn.guard(Guard::Exists(keys.plugin(&plugin.name, &plugin.version)));
            }
            let added = Event::of(EventKind::Added, resource.run).by(by);
            let placed = placed(&shards, &resource, self.parts.strategy);
            let txn = self.tell(
                txn,
                resource.id,
                [added].into_iter().chain(placed).collect(),
            );
            if self.commit(&leadership, txn).await? {
                let worker = shards.values().find_map(|shard| shard.owner.as_ref());
                let worker = worker.map(|owner| owner.node.as_str());
                tracing::info!(resource = %spec.name, id = %id.resource, worker, "resource added");
                // The view shows the records as written: the resource may be deleted already, and its worker
                // has no numbers yet.
                let shards = shards.into_iter();
                let shards = shards.map(|(id, shard)| (id, created(shard))).collect();
                return Ok(reads::view(resource, shards, &candidates, &BTreeMap::new()));
            }
            gone.extend(self.gone_among(shards.values()).await?);
        }
        Err(Self::contended(&spec.name))
    }

    /// Reads the state before a resource is added. It is an error if that state forbids the addition.
    async fn before_addition(
        &self,
        spec: &ResourceSpec,
        request: &RequestId,
    ) -> Result<PriorState, ControlError> {
        let (present, has_ended, plugins) = tokio::try_join!(
            self.present(&spec.name),
            self.has_ended_with(&spec.name, request),
            self.plugin_versions(&spec.plugin.name),
        )?;
        let name = spec.name.clone();
        match present {
            Some(present) if present.value.has_seen(request) => Ok(PriorState::Added),
            Some(_) | None if has_ended => Err(ControlError::DeletedSince { name }),
            Some(_) => Err(ControlError::ResourceExists { name }),
            None => Ok(PriorState::Free(
                newest(&plugins, &spec.plugin).cloned().map(Box::new),
            )),
        }
    }

    /// Returns the plugin of a resource whose addition is very likely to succeed, from the replica alone. The
    /// guards of the addition catch a resource or a deletion that came since. If `None`, the records must be
    /// read.
    ///
    /// A guard cannot express which version is the highest. But all pushes of earlier leaders were written
    /// before this one led, and its own pushes count as decided.
    async fn foreseen(&self, spec: &ResourceSpec, leadership: &Leadership) -> Option<PluginRecord> {
        let known = self.decided().max(leadership.since());
        let observed = self.parts.replica.with(known).await?;
        if observed.resources.contains_key(&spec.name) {
            return None;
        }
        observed.newest_plugin(&spec.plugin).cloned()
    }

    /// Returns the owners that are no longer registered, though the replica has not seen them go.
    async fn gone_among(
        &self,
        shards: impl Iterator<Item = &ShardRecord>,
    ) -> Result<BTreeSet<NodeId>, ControlError> {
        let owners = shards.filter_map(|shard| Some(&shard.owner.as_ref()?.node));
        let mut gone: BTreeSet<NodeId> = owners.cloned().collect();
        let catalog = &self.parts.catalog;
        let nodes = catalog.keys().nodes(Role::Worker);
        for entry in catalog.store().list(&nodes).await?.entries {
            if let Some(Subject::Worker(id)) = catalog.keys().subject(&entry.key) {
                gone.remove(&id);
            }
        }
        Ok(gone)
    }

    /// Changes limits, crawl and placement settings, with which the crawl continues. Plugin and params stay.
    ///
    /// `change` makes the new spec out of the present resource. It is called again if another change came first, so
    /// that no change undoes another.
    pub async fn update_resource<'a>(
        &self,
        name: &ResourceName,
        change: impl Fn(&Resource) -> Result<ResourceSpec, ControlError>,
        asked: impl Into<Asked<'a>>,
    ) -> Result<ResourceView, ControlError> {
        let Asked { request, by } = asked.into();
        let leadership = self.leadership()?;
        let keys = self.parts.catalog.keys();
        for _try in 0..MAX_TRIES {
            let present = self.existing(name).await?;
            if present.value.has_seen(request) {
                return self.resource(name).await;
            }
            self.check_first_life(name, request).await?;
            let spec = ResourceSpec {
                name: name.clone(),
                ..change(&present.value)?
            };
            self.check(&spec)?;
            self.check_sinks(&spec, Some(&present.value.spec))?;
            if let Some((field, argument)) = only_by_restart(&present.value.spec, &spec) {
                let name = name.clone();
                return Err(ControlError::NeedsRestart {
                    name,
                    field,
                    argument,
                });
            }
            let generation = present.value.generation.next();
            let Pinning {
                pinned,
                guard,
                decision_lock: _lock,
            } = self.pinned_after(&present.value, &spec).await?;
            let is_other_plugin = pinned != present.value.pinned;
            let changed = changed_settings(&present.value.spec, &spec);
            let resource = Resource {
                generation,
                requests: present.value.requests_with(request),
                spec,
                pinned,
                ..present.value
            };
            let key = keys.resource(name);
            let mut resource = resource;
            let mut txn = Txn::new().guard(Guard::RevisionIs(key.clone(), present.revision));
            txn.guards.extend(guard);
            for (id, shard) in self.whole_shards(&resource).await? {
                let is_over = matches!(
                    shard.value.state,
                    ShardState::Finished | ShardState::Failed { .. }
                );
                if is_other_plugin && !is_over {
                    // The new epoch keeps the version before from recording anything after this. The new
                    // version may have rules that the version before lacked.
                    let no_rule = Redrive::of(Some(NO_RULE));
                    let record = ShardRecord {
                        state: ShardState::Free,
                        redrive: Some(match shard.value.redrive.clone() {
                            Some(earlier) => earlier.or(no_rule),
                            None => no_rule,
                        }),
                        ..shard.value.clone()
                    };
                    txn = self.freed(txn, id, &shard, record);
                    resource.assigned_node.clear();
                    continue;
                }
                txn = txn.guard(Guard::RevisionIs(keys.shard(id), shard.revision));
                let order = shard.value.state.order();
                if let (Some(order), Some(owner)) = (order, &shard.value.owner) {
                    let epoch = shard.value.epoch;
                    let mirror = Assignment::of(&resource, epoch, owner.incarnation, order);
                    txn = txn.put(keys.assignment(&owner.node, id), encode(&mirror));
                }
            }
            let updated = Event {
                generation: Some(generation),
                ..Event::of(EventKind::Updated, resource.run)
            };
            let updated = updated.by(by).because(changed);
            let txn = self.tell(txn.put(key, encode(&resource)), resource.id, vec![updated]);
            if self.commit(&leadership, txn).await? {
                tracing::info!(resource = %name, %generation, "resource updated");
                return self.resource(name).await;
            }
        }
        Err(Self::contended(name))
    }

    /// Returns the plugin that a resource runs with another spec.
    pub(super) async fn pinned_after(
        &self,
        present: &Resource,
        spec: &ResourceSpec,
    ) -> Result<Pinning<'_>, ControlError> {
        if spec.plugin == present.spec.plugin {
            if spec.params != present.spec.params
                && let Some(pinned) = &present.pinned
            {
                let plugins = self.plugin_versions(&spec.plugin.name).await?;
                let plugin = plugins.iter().find(|plugin| plugin.digest == pinned.digest);
                plugin.map_or(Ok(()), |plugin| check_params(plugin, spec))?;
            }
            return Ok(Pinning {
                pinned: present.pinned.clone(),
                guard: None,
                decision_lock: None,
            });
        }
        let decision_lock = self.decision_lock.lock().await;
        let plugins = self.plugin_versions(&spec.plugin.name).await?;
        let Some(plugin) = newest(&plugins, &spec.plugin) else {
            return Err(ControlError::NoPluginFor {
                plugin: spec.plugin.clone(),
                resource: spec.name.clone(),
            });
        };
        check_params(plugin, spec)?;
        let keys = self.parts.catalog.keys();
        let key = keys.plugin(&plugin.name, &plugin.version);
        Ok(Pinning {
            pinned: Some(PinnedPlugin::of(plugin)),
            guard: Some(Guard::Exists(key)),
            decision_lock: Some(decision_lock),
        })
    }

    /// Returns the shards of one life of a resource. It is an error if a record does not decode, because the
    /// effect of a change on it would not be known.
    pub(super) async fn whole_shards(
        &self,
        resource: &Resource,
    ) -> Result<BTreeMap<ShardId, Versioned<ShardRecord>>, ControlError> {
        let keys = self.parts.catalog.keys();
        let scan = self
            .parts
            .catalog
            .scan(&keys.shards_of(resource.id))
            .await?;
        if let Some(broken) = scan.broken.into_iter().next() {
            return Err(broken.into());
        }
        let records = scan.records.into_iter();
        let shards = records.filter_map(|(key, shard)| Some((keys.parse_shard(&key)?, shard)));
        Ok(shards.collect())
    }

    /// Returns the shards of one life of a resource whose records decode.
    pub(super) async fn shards(
        &self,
        resource: &Resource,
    ) -> Result<BTreeMap<ShardId, Versioned<ShardRecord>>, ControlError> {
        let catalog = &self.parts.catalog;
        let shards = records(catalog, &catalog.keys().shards_of(resource.id)).await?;
        Ok(shards
            .into_iter()
            .filter_map(|(key, shard)| Some((catalog.keys().parse_shard(&key)?, shard)))
            .collect())
    }
}

/// Refuses params that do not fit what the plugin of a resource declares.
fn check_params(plugin: &PluginRecord, spec: &ResourceSpec) -> Result<(), ControlError> {
    let checked = plugin.description.check_params(&spec.params);
    let (name, version) = (plugin.name.clone(), Some(plugin.version.clone()));
    checked.map_err(|error| ControlError::Params {
        plugin: Box::new(PluginRef { name, version }),
        error: Box::new(error),
    })
}

/// Returns a change that needs a new run: the field, and the command-line argument for it.
fn only_by_restart(present: &ResourceSpec, spec: &ResourceSpec) -> Option<(&'static str, String)> {
    let field = present.only_by_restart(spec)?;
    let argument = match field {
        RestartField::Plugin => format!("--plugin {}", spec.plugin),
        RestartField::Params => {
            let mut others = spec.params.iter();
            let other = others.find(|(key, value)| present.params.get(*key) != Some(*value));
            let mut gone = present.params.keys();
            let gone = gone.find(|key| !spec.params.contains_key(*key));
            let argument = other.map(|(key, value)| format!("--param {key}={value}"));
            argument.or_else(|| Some(format!("--no-param {}", gone?)))?
        }
        RestartField::Shards => format!("--shards {}", spec.placement.shards),
    };
    Some((field.as_str(), argument))
}
