//! Errors of this machine, not of a plugin.

use super::PluginError;

/// Returns a conversion of an error of `doing`, such as "start the epoch ticker".
pub(crate) fn host_error<E: std::fmt::Display>(
    doing: &'static str,
) -> impl FnOnce(E) -> PluginError {
    move |error| PluginError::Host {
        doing,
        why: format!("{error:#}"),
    }
}
