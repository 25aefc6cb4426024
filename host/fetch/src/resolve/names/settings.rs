//! Settings for looking up names.

use std::time::Duration;

/// Resolver that is asked for the addresses of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resolver {
    /// The name servers of `/etc/resolv.conf`, after `/etc/hosts`. Any number of lookups can wait at once.
    #[default]
    Dns,
    /// The sources that `/etc/nsswitch.conf` names, through the system's library. Each lookup takes a thread.
    System,
}

/// Settings for looking up names.
#[derive(Debug, Clone)]
pub struct NameSettings {
    /// Setting `resolver` of `[fetch]`.
    pub resolver: Resolver,
    /// The shortest time for which addresses are valid: setting `dns-min-ttl` of `[fetch]`.
    pub min_ttl: Duration,
    /// The longest such time: setting `dns-ttl` of `[fetch]`. If zero, each connection looks the name up.
    pub max_ttl: Duration,
}

impl Default for NameSettings {
    fn default() -> Self {
        Self {
            resolver: Resolver::default(),
            min_ttl: Duration::from_secs(30),
            max_ttl: Duration::from_secs(60 * 60),
        }
    }
}
