//! Pushing, finding and deleting plugins.

use super::*;
use crate::data::DataError;
use crate::model::id::{PluginName, PluginRef, PluginVersion};
use crate::store::Guard;
use crate::store::catalog::encode;

/// Bytes of one piece of a plugin.
const PIECE: usize = 1 << 20;

impl Control {
    /// Admits bytes, stores them, and records them under their name and version.
    ///
    /// Pushing the same bytes again is fine; other bytes under the same name and version are refused.
    pub async fn push_plugin(
        &self,
        push_as: Option<(PluginName, PluginVersion)>,
        bytes: Bytes,
    ) -> Result<PluginRecord, ControlError> {
        if bytes.len() as u64 > self.parts.max_plugin_size {
            return Err(ControlError::PluginTooLarge {
                max: self.parts.max_plugin_size,
            });
        }
        let admitted = self.parts.admission.admit(bytes.clone()).await?;
        let (name, version) = push_as.unwrap_or_else(|| {
            (
                admitted.description.name.clone(),
                admitted.description.version.clone(),
            )
        });
        let record = PluginRecord {
            name: name.clone(),
            version: version.clone(),
            digest: admitted.digest,
            size: admitted.size,
            interface: admitted.interface,
            description: admitted.description,
            pushed_at: self.parts.clock.unix_millis(),
        };
        let catalog = &self.parts.catalog;
        let key = catalog.keys().plugin(&name, &version);
        // Plugins are deleted under the same lock: nobody takes these bytes away before they have
        // their record.
        let _turn = self.turn.lock().await;
        for _try in 0..MAX_TRIES {
            if let Some(present) = catalog.read::<PluginRecord>(&key).await? {
                let present = present.value;
                if present.digest != record.digest {
                    return Err(ControlError::OtherBytes {
                        plugin: Box::new(PluginRef {
                            name,
                            version: Some(version),
                        }),
                        present: present.digest,
                        pushed: record.digest,
                    });
                }
                // Bytes that were lost or damaged are there again.
                self.parts.data.put_plugin(record.digest, bytes).await?;
                return Ok(present);
            }
            // Bytes before the record: a record never names bytes that are not there.
            self.parts
                .data
                .put_plugin(record.digest, bytes.clone())
                .await?;
            let txn = Txn::new()
                .guard(Guard::Absent(key.clone()))
                .put(key.clone(), encode(&record));
            if self.commit(txn).await? {
                tracing::info!(plugin = %name, %version, digest = %record.digest, "plugin pushed");
                return Ok(record);
            }
        }
        Err(ControlError::Contended {
            what: format!("plugin {name}@{version}"),
        })
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

    /// Removes bytes that no record names: a process that ends between writing the one and the other
    /// leaves them. Call it before calls are served; returns how many plugins went.
    pub async fn drop_orphan_plugins(&self) -> Result<usize, ControlError> {
        let catalog = &self.parts.catalog;
        let keys = catalog.keys();
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
        Ok(self.parts.data.keep_plugins(&kept).await?)
    }

    /// Forgets a version that no resource runs. Its bytes go unless another version has the same.
    pub async fn delete_plugin(
        &self,
        name: &PluginName,
        version: &PluginVersion,
    ) -> Result<(), ControlError> {
        let plugin = PluginRef {
            name: name.clone(),
            version: Some(version.clone()),
        };
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
        if !self.commit(txn).await? {
            return Err(ControlError::Contended {
                what: format!("plugin {plugin}"),
            });
        }
        let digest = present.value.digest;
        let plugins = self.plugins().await?;
        if plugins.iter().all(|other| other.digest != digest) {
            self.parts.data.delete_plugin(digest).await?;
        }
        tracing::info!(%plugin, "plugin deleted");
        Ok(())
    }
}

#[cfg(test)]
mod tests;
