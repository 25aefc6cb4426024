//! The error about a setting.

/// Reason why a setting makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {setting} {why}")]
pub struct SettingError {
    /// Name of the setting on the command line.
    pub setting: &'static str,
    /// Fault, as the end of a sentence that starts with the setting's name.
    pub why: String,
}
