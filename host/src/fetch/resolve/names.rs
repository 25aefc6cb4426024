//! Addresses of names: asked for once by many, and remembered for the time that their records say.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use moka::Expiry;
use moka::future::Cache;
use moka::policy::EvictionPolicy;

use super::ResolveError;

mod dns;
mod of_files;
mod system;

/// Names whose addresses are remembered.
const MAX_REMEMBERED: u64 = 50_000;

/// A name is looked up before the first page of its host is fetched, and has to be known by then.
const SHORTEST: Duration = Duration::from_secs(1);

/// The resolver that is asked for the addresses of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resolver {
    /// The name servers of `/etc/resolv.conf`, after `/etc/hosts`. Any number of lookups wait at once.
    #[default]
    Dns,
    /// Whatever `/etc/nsswitch.conf` names, through the system's library. Each lookup takes a thread.
    System,
}

/// Settings of the lookup of names.
#[derive(Debug, Clone)]
pub struct NameSettings {
    /// Setting `resolver` of `[fetch]`.
    pub resolver: Resolver,
    /// The shortest time for which addresses count: setting `dns-min-ttl` of `[fetch]`.
    pub min_ttl: Duration,
    /// The longest such time: setting `dns-ttl` of `[fetch]`. Zero: each connection asks.
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

/// Asks for the addresses of a name.
pub(super) type LookUp = Arc<dyn Fn(String) -> BoxFuture<'static, Found> + Send + Sync>;
pub(super) type Found = Result<Known, ResolveError>;

/// The addresses of a name.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) addresses: Vec<IpAddr>,
    /// The time for which they count, as their records say.
    pub(super) ttl: Duration,
}

/// The addresses of all names that are asked for.
#[derive(Clone)]
pub(super) struct Names {
    look_up: LookUp,
    /// None: each connection asks.
    remembered: Option<Cache<String, Known>>,
}

impl Names {
    /// Names as the settings have them looked up.
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

    /// Remembers so many of the names that were found.
    pub(super) fn remembering(look_up: LookUp, settings: &NameSettings, max: u64) -> Self {
        let (least, most) = (settings.min_ttl.max(SHORTEST), settings.max_ttl);
        let within = Within(least.min(most), most);
        let cache = || {
            // Whoever was just looked up is kept: its first page comes after its robots.txt.
            let cache = Cache::builder().eviction_policy(EvictionPolicy::lru());
            cache.max_capacity(max).expire_after(within).build()
        };
        Self {
            look_up,
            remembered: (!most.is_zero()).then(cache),
        }
    }

    /// All addresses of a name. Whoever asks for one that is being asked for waits for that answer; a
    /// name that was not found is asked for again.
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

    /// True if what was found counts for a time.
    pub(super) fn are_remembered(&self) -> bool {
        self.remembered.is_some()
    }

    /// All addresses of a name, where they are remembered.
    pub(super) async fn known(&self, name: &str) -> Option<Vec<IpAddr>> {
        let known = self.remembered.as_ref()?.get(name).await?;
        Some(known.addresses)
    }

    /// True if the addresses of a name are remembered, or never are.
    pub(super) fn is_known(&self, name: &str) -> bool {
        let remembered = self.remembered.as_ref();
        remembered.is_none_or(|remembered| remembered.contains_key(name))
    }
}

/// The shortest and the longest time for which addresses count.
struct Within(Duration, Duration);

impl Expiry<String, Known> for Within {
    fn expire_after_create(&self, _name: &String, known: &Known, _at: Instant) -> Option<Duration> {
        Some(known.ttl.clamp(self.0, self.1))
    }
}
