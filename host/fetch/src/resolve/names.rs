//! Addresses of names: looked up once for many requests, and remembered for the time that their records say.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::future::Cache;
use moka::policy::EvictionPolicy;

use super::error::ResolveError;
use lookup::{LookUp, Resolved};
pub use settings::{NameSettings, Resolver};

mod dns;
mod file_backed;
pub(super) mod lookup;
mod settings;
mod system;

/// Maximum number of names whose addresses are remembered.
const MAX_REMEMBERED: u64 = 50_000;

/// Minimum time for which addresses are remembered: a name is looked up before the first page of its host is
/// fetched, and has to be known by then.
const SHORTEST: Duration = Duration::from_secs(1);

/// Addresses of all names that are looked up.
#[derive(Clone)]
pub(super) struct Names {
    look_up: LookUp,
    /// Addresses that are remembered. If `None`, each connection looks the name up.
    remembered: Option<Cache<String, Resolved>>,
}

impl Names {
    /// Creates a lookup of names as the settings say.
    pub(super) fn new(settings: &NameSettings) -> Self {
        let look_up = match settings.resolver {
            Resolver::Dns => dns::look_up(settings).unwrap_or_else(|why| {
                tracing::warn!(
                    why,
                    "the name servers are not known; names are looked up as with resolver = \"system\" of [fetch]"
                );
                system::look_up()
            }),
            Resolver::System => system::look_up(),
        };
        Self::remembering(look_up, settings, MAX_REMEMBERED)
    }

    /// Creates a lookup that remembers up to `max` of the names that were found.
    pub(super) fn remembering(look_up: LookUp, settings: &NameSettings, max: u64) -> Self {
        let within = TtlBounds::of(settings);
        let cache = || {
            // A name that was just looked up is kept: its first page comes after its robots.txt.
            let cache = Cache::builder().eviction_policy(EvictionPolicy::lru());
            cache.max_capacity(max).expire_after(within).build()
        };
        Self {
            look_up,
            remembered: (!settings.max_ttl.is_zero()).then(cache),
        }
    }

    /// Returns all addresses of a name. A call for a name that is being looked up waits for that answer; a
    /// name that was not found is looked up again.
    pub(super) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let looked_up = (self.look_up)(name.to_owned());
        let found = match &self.remembered {
            Some(remembered) => {
                let found = remembered.try_get_with_by_ref(name, looked_up).await;
                found.map_err(|error: Arc<ResolveError>| ResolveError::clone(&error))
            }
            None => looked_up.await,
        };
        found.map(|known| known.addresses)
    }

    /// Returns true if addresses are remembered for a time.
    pub(super) fn are_remembered(&self) -> bool {
        self.remembered.is_some()
    }

    /// Returns all addresses of a name, if they are remembered.
    pub(super) async fn known(&self, name: &str) -> Option<Vec<IpAddr>> {
        let known = self.remembered.as_ref()?.get(name).await?;
        Some(known.addresses)
    }

    /// Returns true if the addresses of a name are remembered, or never are.
    pub(super) fn is_known(&self, name: &str) -> bool {
        let remembered = self.remembered.as_ref();
        remembered.is_none_or(|remembered| remembered.contains_key(name))
    }
}

/// The shortest and the longest time for which addresses are valid.
struct TtlBounds(Duration, Duration);

impl TtlBounds {
    /// Returns the bounds that the settings ask for.
    fn of(settings: &NameSettings) -> Self {
        let (least, most) = (settings.min_ttl.max(SHORTEST), settings.max_ttl);
        Self(least.min(most), most)
    }
}

impl Expiry<String, Resolved> for TtlBounds {
    fn expire_after_create(
        &self,
        _name: &String,
        known: &Resolved,
        _at: Instant,
    ) -> Option<Duration> {
        Some(known.ttl.clamp(self.0, self.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_of_nothing_and_one_of_a_year_keep_to_their_bounds() {
        const MINUTE: u64 = 60;
        const YEAR: u64 = 365 * 24 * 60 * MINUTE;
        for (min_ttl, max_ttl, ttl, expected) in [
            (30, 60 * MINUTE, 0, 30),
            (30, 60 * MINUTE, MINUTE, MINUTE),
            (30, 60 * MINUTE, YEAR, 60 * MINUTE),
            // An address counts until the first page of its host can be asked for.
            (0, 60 * MINUTE, 0, 1),
            (90, MINUTE, 0, MINUTE),
        ] {
            let [min_ttl, max_ttl, ttl, expected] =
                [min_ttl, max_ttl, ttl, expected].map(Duration::from_secs);
            let bounds = TtlBounds::of(&NameSettings {
                min_ttl,
                max_ttl,
                ..NameSettings::default()
            });
            let resolved = Resolved {
                addresses: Vec::new(),
                ttl,
            };
            let kept = bounds.expire_after_create(&String::new(), &resolved, Instant::now());
            assert_eq!(
                kept,
                Some(expected),
                "{ttl:?} in {min_ttl:?} to {max_ttl:?}"
            );
        }
    }
}
