//! Calls that push, find and delete plugins.

use std::time::Duration;

use bytes::Bytes;

use super::{Control, MAX_TRIES};
use crate::ControlError;
use crate::lists::records;
use crate::observed::newest;
use crawler_data::DataError;
use crawler_model::id::{Digest, PluginName, PluginRef, PluginVersion};
use crawler_model::plugin::PluginRecord;
use crawler_model::resource::Resource;
use crawler_plugin::Admitted;
use crawler_store::catalog::{Versioned, encode};
use crawler_store::{Guard, Txn};

/// Bytes of one piece of a plugin.
const PIECE: usize = 1 << 20;
/// Deadline of the data root for a step that makes other calls wait.
const DATA_DEADLINE: Duration = Duration::from_secs(20);

/// Options of a push.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Push {
    /// Name and version to record. If `None`, the plugin's own description decides.
    pub name: Option<(PluginName, PluginVersion)>,
    /// True if the items may differ from those of the version before in a way that could break readers.
    pub allow_breaking: bool,
}

impl Control {
    /// Checks and stores the bytes of a plugin, which stay unused until they have a record. Any master may do
    /// so; the leader writes the record.
    pub async fn store_plugin(&self, push: &Push, bytes: Bytes) -> Result<Admitted, ControlError> {
        if bytes.len() as u64 > self.parts.max_plugin_size {
            return Err(ControlError::PluginTooLarge {
                max: self.parts.max_plugin_size,
            });
        }
        let admitted = self.parts.admission.admit(bytes.clone()).await?;
        // A push that is going to be refused is not stored.
        self.looked_at(push, &self.record_of(push, &admitted))
            .await?;
        self.parts.data.put_plugin(admitted.digest, bytes).await?;
        Ok(admitted)
    }

    /// Checks bytes that another master has stored, and records them.
    pub async fn record_stored_plugin(
        &self,
        push: Push,
        digest: Digest,
    ) -> Result<PluginRecord, ControlError> {
        // This check comes first, because compiling the plugin is expensive.
        self.leadership()?;
        let gone = ControlError::PluginGone { digest };
        let bytes = self.parts.data.plugin(digest).await?.ok_or(gone)?;
        let admitted = self.parts.admission.admit(bytes).await?;
        self.record_plugin(push, admitted).await
    }

    /// Records a stored plugin under its name and version. Returns [`ControlError::PluginGone`] if its bytes
    /// were removed meanwhile.
    ///
    /// Pushing the same bytes again succeeds, and so does another build of the same sources: the existing record
    /// is returned. Other bytes under the same name and version are refused. Items that could break readers of the
    /// version before are refused too, unless the push or the version says that this is intended.
    pub async fn record_plugin(
        &self,
        push: Push,
        admitted: Admitted,
    ) -> Result<PluginRecord, ControlError> {
        let leadership = self.leadership()?;
        let record = self.record_of(&push, &admitted);
        let (name, version) = (&record.name, &record.version);
        let key = self.parts.catalog.keys().plugin(name, version);
        // Bytes are removed under the same lock, so none disappear between this check and the record.
        let _lock = self.decision_lock.lock().await;
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

    /// Returns the record of a push.
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
            sources: admitted.sources,
            description: own.clone(),
            pushed_at: self.parts.clock.unix_millis(),
        }
    }

    /// Returns the existing record of the pushed version, if there is one. It is an error if the push is
    /// refused.
    async fn looked_at(
        &self,
        push: &Push,
        record: &PluginRecord,
    ) -> Result<Option<PluginRecord>, ControlError> {
        let present = self.recorded(&record.name, &record.version).await?;
        match &present {
            Some(present) if present.digest == record.digest => {}
            Some(present) if self.is_same_build(present, record).await? => {}
            Some(present) => return Err(other_bytes(present, record.digest)),
            None if push.allow_breaking => {}
            None => same_items(&self.plugin_versions(&record.name).await?, record)?,
        }
        Ok(present)
    }

    /// Returns true if both say that they were built from the same sources and describe themselves alike, and the bytes
    /// of the existing one are still there: those of the other are removed in time.
    async fn is_same_build(
        &self,
        present: &PluginRecord,
        pushed: &PluginRecord,
    ) -> Result<bool, ControlError> {
        let is_same = present.sources.is_some()
            && present.sources == pushed.sources
            && present.interface == pushed.interface
            && present.description == pushed.description;
        Ok(is_same
            && in_time(self.parts.data.plugin(present.digest))
                .await?
                .is_some())
    }

    async fn recorded(
        &self,
        name: &PluginName,
        version: &PluginVersion,
    ) -> Result<Option<PluginRecord>, ControlError> {
        let catalog = &self.parts.catalog;
        let record = catalog.read(&catalog.keys().plugin(name, version)).await?;
        // A caller that learns of the plugin expects the next addition to know it.
        Ok(record.map(|record| {
            self.saw(record.revision);
            record.value
        }))
    }

    /// Returns a piece of a plugin's bytes, at most 1 MiB; empty at the end.
    pub async fn plugin_piece(&self, digest: Digest, offset: u64) -> Result<Bytes, ControlError> {
        let piece = self.parts.data.plugin_piece(digest, offset, PIECE).await;
        piece.map_err(|error| match error {
            DataError::Missing { .. } => ControlError::NoPlugin {
                plugin: digest.to_string(),
            },
            error => error.into(),
        })
    }

    /// Returns the record of exactly that version, or of the highest.
    pub async fn plugin(&self, plugin: &PluginRef) -> Result<PluginRecord, ControlError> {
        let versions = self.plugin_versions(&plugin.name).await?;
        match newest(&versions, plugin) {
            Some(record) => Ok(record.clone()),
            None => Err(ControlError::NoPlugin {
                plugin: plugin.to_string(),
            }),
        }
    }

    /// Returns all versions of all plugins.
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

    /// Removes bytes that no record names and that are older than an hour: a push that was interrupted between
    /// the bytes and the record leaves them. Returns the number of removed plugins.
    pub async fn drop_orphan_plugins(&self) -> Result<usize, ControlError> {
        let leadership = self.leadership()?;
        let catalog = &self.parts.catalog;
        let keys = catalog.keys();
        let _lock = self.decision_lock.lock().await;
        let plugins = catalog.scan::<PluginRecord>(&keys.plugins()).await?;
        let resources = catalog.scan::<Resource>(&keys.resources()).await?;
        if !plugins.broken.is_empty() || !resources.broken.is_empty() {
            // The digests that those records name are not known.
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

    /// Deletes the record of a version that no resource runs. Its bytes are removed within two hours, unless
    /// another version has the same: the leader removes bytes that no record names.
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
        let _lock = self.decision_lock.lock().await;
        let catalog = &self.parts.catalog;
        let key = catalog.keys().plugin(name, version);
        let Some(present) = catalog.read::<PluginRecord>(&key).await? else {
            return Err(ControlError::NoPlugin {
                plugin: plugin.to_string(),
            });
        };
        let resources: Vec<(String, Versioned<Resource>)> =
            records(catalog, &catalog.keys().resources()).await?;
        // A resource that waits for its plugin is about to pin this one, without taking this lock.
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

/// Returns the refusal of other bytes under the same name and version.
fn other_bytes(present: &PluginRecord, pushed: Digest) -> ControlError {
    ControlError::OtherBytes {
        plugin: Box::new(PluginRef {
            name: present.name.clone(),
            version: Some(present.version.clone()),
        }),
        present: present.digest,
        pushed,
    }
}

/// Refuses items that could break readers of the version before. By Semantic Versioning, a higher first number
/// that is not 0 announces such changes.
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

/// Bounds the time of a step that other calls wait for.
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
