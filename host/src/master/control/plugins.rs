//! Pushing, finding and deleting plugins.

use std::time::Duration;

use super::*;
use crate::data::DataError;
use crate::model::id::{PluginName, PluginRef, PluginVersion};
use crate::plugin::Admitted;
use crate::store::Guard;
use crate::store::catalog::encode;

/// Bytes of one piece of a plugin.
const PIECE: usize = 1 << 20;
/// How long the data root may take for a step that holds up others.
const DATA_DEADLINE: Duration = Duration::from_secs(20);

/// How a plugin is pushed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Push {
    /// As what; none: as what it says of itself.
    pub name: Option<(PluginName, PluginVersion)>,
    /// Its items may differ from those of the version before so that readers of them stumble.
    pub allow_breaking: bool,
}

impl Control {
    /// Admits bytes and stores them, where they stay unused until they have a record. Any master may
    /// do so; the record is written by the leader.
    pub async fn store_plugin(&self, push: &Push, bytes: Bytes) -> Result<Admitted, ControlError> {
        if bytes.len() as u64 > self.parts.max_plugin_size {
            return Err(ControlError::PluginTooLarge {
                max: self.parts.max_plugin_size,
            });
        }
        let admitted = self.parts.admission.admit(bytes.clone()).await?;
        // What is going to be refused need not be stored.
        self.looked_at(push, &self.record_of(push, &admitted))
            .await?;
        self.parts.data.put_plugin(admitted.digest, bytes).await?;
        Ok(admitted)
    }

    /// Admits bytes that another master has stored, and records them.
    pub async fn record_stored_plugin(
        &self,
        push: Push,
        digest: Digest,
    ) -> Result<PluginRecord, ControlError> {
        // Compiling for nothing would be a pity.
        self.leadership()?;
        let gone = ControlError::PluginGone { digest };
        let bytes = self.parts.data.plugin(digest).await?.ok_or(gone)?;
        let admitted = self.parts.admission.admit(bytes).await?;
        self.record_plugin(push, admitted).await
    }

    /// Records a plugin that is stored under its name and version; [`ControlError::PluginGone`] where
    /// its bytes went meanwhile.
    ///
    /// Pushing the same bytes again is fine; other bytes under the same name and version are refused.
    /// So are items that readers of those of the version before could stumble over, unless the push or the
    /// version says that this is meant.
    pub async fn record_plugin(
        &self,
        push: Push,
        admitted: Admitted,
    ) -> Result<PluginRecord, ControlError> {
        let leadership = self.leadership()?;
        let record = self.record_of(&push, &admitted);
        let (name, version) = (&record.name, &record.version);
        let key = self.parts.catalog.keys().plugin(name, version);
        // Bytes are removed under the same lock: none goes between this look and the record.
        let _turn = self.turn.lock().await;
        for _try in 0..MAX_TRIES {
            let bytes = in_time(self.parts.data.plugin(record.digest)).await?;
            if bytes.is_none() {
                let digest = record.digest;
                return Err(ControlError::PluginGone { digest });
            }
            if let Some(present) = self.looked_at(&push, &record).await? {
                return Ok(present);
            }
            let txn = Txn::new()
                .guard(Guard::Absent(key.clone()))
                .put(key.clone(), encode(&record));
            if self.commit(&leadership, txn).await? {
                tracing::info!(plugin = %name, %version, digest = %record.digest, "plugin pushed");
                return Ok(record);
            }
        }
        Err(ControlError::Contended {
            what: format!("plugin {name}@{version}"),
        })
    }

    /// Stores a plugin and records it, on the leader.
    pub async fn push_plugin(
        &self,
        push: Push,
        bytes: Bytes,
    ) -> Result<PluginRecord, ControlError> {
        for _try in 0..MAX_TRIES {
            let admitted = self.store_plugin(&push, bytes.clone());
            match self.record_plugin(push.clone(), admitted.await?).await {
                Err(ControlError::PluginGone { .. }) => {}
                recorded => return recorded,
            }
        }
        Err(ControlError::Contended {
            what: "the plugin".to_owned(),
        })
    }

    /// The record of a push.
    fn record_of(&self, push: &Push, admitted: &Admitted) -> PluginRecord {
        let own = &admitted.description;
        let own_name = || (own.name.clone(), own.version.clone());
        let (name, version) = push.name.clone().unwrap_or_else(own_name);
        PluginRecord {
            name,
            version,
            digest: admitted.digest,
            size: admitted.size,
            interface: admitted.interface.clone(),
            description: own.clone(),
            pushed_at: self.parts.clock.unix_millis(),
        }
    }

    /// What is there already of a push; an error where the push is refused.
    async fn looked_at(
        &self,
        push: &Push,
        record: &PluginRecord,
    ) -> Result<Option<PluginRecord>, ControlError> {
        let present = self.recorded(&record.name, &record.version).await?;
        match &present {
            Some(present) => same_bytes(present, record.digest)?,
            None if push.allow_breaking => {}
            None => same_items(&self.plugin_versions(&record.name).await?, record)?,
        }
        Ok(present)
    }

    async fn recorded(
        &self,
        name: &PluginName,
        version: &PluginVersion,
    ) -> Result<Option<PluginRecord>, ControlError> {
        let catalog = &self.parts.catalog;
        let record = catalog.read(&catalog.keys().plugin(name, version)).await?;
        // Whoever is told that it is there expects the next addition to know it.
        Ok(record.map(|record| {
            self.saw(record.revision);
            record.value
        }))
    }

    /// A piece of a plugin's bytes, at most 1 MiB; empty at the end.
    pub async fn plugin_piece(&self, digest: Digest, offset: u64) -> Result<Bytes, ControlError> {
        let piece = self.parts.data.plugin_piece(digest, offset, PIECE).await;
        piece.map_err(|error| match error {
            DataError::Missing { .. } => ControlError::NoPlugin {
                plugin: digest.to_string(),
            },
            error => error.into(),
        })
    }

    /// Exactly that version, or the highest.
    pub async fn plugin(&self, plugin: &PluginRef) -> Result<PluginRecord, ControlError> {
        let versions = self.plugin_versions(&plugin.name).await?;
        match newest(&versions, plugin) {
            Some(record) => Ok(record.clone()),
            None => Err(ControlError::NoPlugin {
                plugin: plugin.to_string(),
            }),
        }
    }

    /// All versions of all plugins.
    pub async fn plugins(&self) -> Result<Vec<PluginRecord>, ControlError> {
        let catalog = &self.parts.catalog;
        let plugins = records(catalog, &catalog.keys().plugins()).await?;
        let mut plugins: Vec<PluginRecord> = plugins
            .into_iter()
            .map(|(_, plugin)| plugin.value)
            .collect();
        plugins.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        Ok(plugins)
    }

    pub(super) async fn plugin_versions(
        &self,
        name: &PluginName,
    ) -> Result<Vec<PluginRecord>, ControlError> {
        let catalog = &self.parts.catalog;
        let versions = records(catalog, &catalog.keys().plugin_versions(name)).await?;
        Ok(versions
            .into_iter()
            .map(|(_, plugin)| plugin.value)
            .collect())
    }

    /// Removes bytes that no record names and that are older than an hour: a push that was cut off
    /// between writing the one and the other leaves them. Returns how many plugins went.
    pub async fn drop_orphan_plugins(&self) -> Result<usize, ControlError> {
        let leadership = self.leadership()?;
        let catalog = &self.parts.catalog;
        let keys = catalog.keys();
        let _turn = self.turn.lock().await;
        let plugins = catalog.scan::<PluginRecord>(&keys.plugins()).await?;
        let resources = catalog.scan::<Resource>(&keys.resources()).await?;
        if !plugins.broken.is_empty() || !resources.broken.is_empty() {
            // Nobody knows which bytes those records name.
            return Ok(0);
        }
        let named = plugins.records.iter().map(|(_, p)| p.value.digest);
        let run = resources
            .records
            .iter()
            .filter_map(|(_, r)| r.value.pinned.as_ref());
        let kept = named.chain(run.map(|pinned| pinned.digest)).collect();
        let now = self.parts.clock.unix_millis();
        let swept = self
            .parts
            .data
            .keep_plugins(&kept, now, || leadership.is_held());
        in_time(swept).await
    }

    /// Forgets a version that no resource runs. Its bytes go within two hours, unless another version
    /// has the same: the leader sweeps away what no record names.
    pub async fn delete_plugin(
        &self,
        name: &PluginName,
        version: &PluginVersion,
    ) -> Result<(), ControlError> {
        let plugin = PluginRef {
            name: name.clone(),
            version: Some(version.clone()),
        };
        let leadership = self.leadership()?;
        let _turn = self.turn.lock().await;
        let catalog = &self.parts.catalog;
        let key = catalog.keys().plugin(name, version);
        let Some(present) = catalog.read::<PluginRecord>(&key).await? else {
            return Err(ControlError::NoPlugin {
                plugin: plugin.to_string(),
            });
        };
        let resources: Vec<(String, Versioned<Resource>)> =
            records(catalog, &catalog.keys().resources()).await?;
        // One that waits for its plugin is about to pin this one, without waiting for our turn.
        let uses = |resource: &Resource| {
            let wanted = &resource.spec.plugin;
            wanted.name == *name
                && match &resource.pinned {
                    Some(pinned) => pinned.version == *version,
                    None => wanted.version.as_ref().is_none_or(|v| v == version),
                }
        };
        if let Some((_, user)) = resources.iter().find(|(_, resource)| uses(&resource.value)) {
            return Err(ControlError::PluginInUse {
                plugin,
                resource: user.value.spec.name.clone(),
            });
        }
        let txn = Txn::new()
            .guard(Guard::RevisionIs(key.clone(), present.revision))
            .delete(key);
        // A write whose answer was lost may have been carried out.
        if !self.commit(&leadership, txn).await? && self.recorded(name, version).await?.is_some() {
            return Err(ControlError::Contended {
                what: format!("plugin {plugin}"),
            });
        }
        tracing::info!(%plugin, "plugin deleted");
        Ok(())
    }
}

/// A name and version never change their bytes.
fn same_bytes(present: &PluginRecord, pushed: Digest) -> Result<(), ControlError> {
    if present.digest == pushed {
        return Ok(());
    }
    Err(ControlError::OtherBytes {
        plugin: Box::new(PluginRef {
            name: present.name.clone(),
            version: Some(present.version.clone()),
        }),
        present: present.digest,
        pushed,
    })
}

/// Refuses items that readers of those of the version before could stumble over. By Semantic Versioning, a
/// higher first number that is not 0 says that they may.
fn same_items(versions: &[PluginRecord], pushed: &PluginRecord) -> Result<(), ControlError> {
    let released = versions.iter().filter(|v| !v.version.is_preview());
    let lower = released.filter(|v| v.version < pushed.version);
    let Some(before) = lower.max_by_key(|version| &version.version) else {
        return Ok(());
    };
    if !before.version.promises(&pushed.version) {
        return Ok(());
    }
    let changes = before.description.item_changes(&pushed.description);
    if changes.is_empty() {
        return Ok(());
    }
    Err(ControlError::ItemsDiffer {
        plugin: Box::new(PluginRef {
            name: pushed.name.clone(),
            version: Some(pushed.version.clone()),
        }),
        before: before.version.clone(),
        changes,
    })
}

/// Bounds what holds up others: all that need the turn.
async fn in_time<T>(work: impl Future<Output = Result<T, DataError>>) -> Result<T, ControlError> {
    match tokio::time::timeout(DATA_DEADLINE, work).await {
        Ok(done) => Ok(done?),
        Err(_elapsed) => Err(ControlError::DataSlow {
            seconds: DATA_DEADLINE.as_secs(),
        }),
    }
}

#[cfg(test)]
mod tests;
