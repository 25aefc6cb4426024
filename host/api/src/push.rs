//! A plugin on its way from a caller to its records.

use bytes::Bytes;

use super::spec::{invalid, plugin_ref};
use crawler_master::ControlError;
use crawler_master::control::Push;
use crawler_model::id::{PluginName, PluginRef, PluginVersion};

/// Options of a push.
#[derive(Debug, Clone, Default)]
pub(crate) struct PushRequest {
    /// NAME@VERSION; if empty, the plugin's own description decides.
    pub(crate) push_as: String,
    pub(crate) allow_breaking: bool,
}

impl PushRequest {
    /// Parses the name.
    pub(super) fn checked(&self) -> Result<Push, ControlError> {
        Ok(Push {
            name: exact_or_none(&self.push_as)?,
            allow_breaking: self.allow_breaking,
        })
    }
}

/// A plugin that a caller pushes.
pub(crate) struct Upload {
    pub(crate) request: PushRequest,
    /// Bytes of the whole plugin.
    pub(crate) bytes: Bytes,
}

fn exact_or_none(push_as: &str) -> Result<Option<(PluginName, PluginVersion)>, ControlError> {
    match push_as {
        "" => Ok(None),
        text => exact(plugin_ref("as", text)?).map(Some),
    }
}

/// Returns the name and version of a plugin; refuses one without a version.
pub(super) fn exact(plugin: PluginRef) -> Result<(PluginName, PluginVersion), ControlError> {
    match plugin.version {
        Some(version) => Ok((plugin.name, version)),
        None => Err(invalid(
            "plugin",
            format!(
                "plugin {} is named without a version; write {}@VERSION",
                plugin.name, plugin.name
            ),
        )),
    }
}
