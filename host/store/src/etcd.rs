//! Store of a cluster of machines: etcd, 3.4 or newer, behind the contract of [`Store`].
//!
//! The client resumes nothing, does not fail over and has no limits of its own, so all of that is here:
//!
//! - One member is called until it fails, then the next. Every call has a deadline, and requires a member that
//!   knows of a leader.
//! - A write whose answer is lost may have been carried out. [`Store::commit`] settles that by trying again if
//!   that is safe, and otherwise returns [`Outcome::Unknown`].
//! - A watch continues over failures by itself, from the last change that it delivered. Every
//!   [`EtcdSettings::relist_interval`] it yields [`StartOver`](super::WatchEvent::StartOver): servers of this
//!   line can silently lose a deletion, which only a new listing finds.
//! - Only the answer to the renewal of that very call renews a lease; answers to earlier ones do not count.
//!
//! [`Store`]: super::Store
//! [`Store::commit`]: super::Store::commit

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use etcd_client::Client;

use self::endpoints::Endpoints;
use self::fault::Fault;
use self::watch::EtcdWatch;
use super::{
    Entry, LeaseId, Listing, ListingVisitor, Outcome, Revision, Store, StoreError, Txn, Watch,
};

mod commit;
mod endpoints;
mod fault;
mod kv;
mod lease;
mod settings;
mod watch;

pub use self::settings::{EtcdSettings, TlsSettings};

/// Oldest server version that this code is known to work with.
const VERSION_NEEDED: (u32, u32) = (3, 4);
const VERSION_NEEDED_TEXT: &str = "3.4";

/// Number of times that a connection which was closed without a reason is opened again to learn the reason.
const N_ALERT_TRIES: usize = 4;

/// State of a member of etcd, for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdHealth {
    /// Version of the server.
    pub version: String,
    /// Time of a read of the newest state.
    pub latency: Duration,
    /// Size of the database in bytes, with what a defragmentation would free.
    pub n_bytes: u64,
    /// Alarms and other errors, such as that there is no space left.
    pub errors: Vec<String>,
}

/// A store in etcd.
#[derive(Debug)]
pub struct EtcdStore {
    endpoints: Arc<Endpoints>,
    settings: EtcdSettings,
}

impl EtcdStore {
    /// Connects to a member that answers, is new enough, and has the newest state.
    pub async fn connect(settings: EtcdSettings) -> Result<Self, StoreError> {
        let endpoints = Arc::new(Endpoints::new(&settings).await?);
        let store = Self {
            endpoints,
            settings,
        };
        // Calls are large futures, and this one need not be fast.
        Box::pin(store.check_version()).await?;
        Box::pin(store.check_reading()).await?;
        Ok(store)
    }

    /// Asks the present member how it is.
    pub async fn health(&self) -> Result<EtcdHealth, StoreError> {
        let begun = Instant::now();
        Box::pin(self.check_reading()).await?;
        let latency = begun.elapsed();
        let status = |mut client: Client| async move { client.status().await };
        let asked = Box::pin(self.endpoints.ask(status)).await;
        let status = asked.map_err(|fault| self.endpoints.error(fault))?;
        Ok(EtcdHealth {
            version: status.version().to_owned(),
            latency,
            n_bytes: u64::try_from(status.db_size()).unwrap_or(0),
            errors: status.errors().to_vec(),
        })
    }

    async fn check_version(&self) -> Result<(), StoreError> {
        let ask = || {
            let status = |mut client: Client| async move { client.status().await };
            self.endpoints.ask(status)
        };
        let mut asked = ask().await;
        if self.settings.tls.is_some() {
            // A server that rejects the client certificate says so and closes the connection. Its message is
            // lost if the end of the connection is noticed first.
            for _ in 0..N_ALERT_TRIES {
                match &asked {
                    Err(fault) if fault.is_closed_connection() => asked = ask().await,
                    _ => break,
                }
            }
            asked = asked.map_err(Fault::or_certificate);
        }
        let status = asked.map_err(|fault| self.endpoints.error(fault))?;
        let version = status.version();
        if is_new_enough(version) {
            tracing::debug!(
                version,
                endpoints = self.endpoints.names(),
                "connected to etcd"
            );
            return Ok(());
        }
        Err(StoreError::VersionTooOld {
            endpoint: self.endpoints.names(),
            found: version.to_owned(),
            needed: VERSION_NEEDED_TEXT,
        })
    }

    /// Checks that a read works. A member that lags behind, or has lost the others, does not answer it.
    async fn check_reading(&self) -> Result<(), StoreError> {
        let read = kv::present_revision(&self.endpoints, &self.settings.probe_key).await;
        let _present = read.map_err(|fault| self.endpoints.error(fault))?;
        Ok(())
    }
}

#[async_trait]
impl Store for EtcdStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let read = kv::get(&self.endpoints, key).await;
        read.map_err(|fault| self.endpoints.error(fault))
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        let read = kv::list(&self.endpoints, prefix).await;
        read.map_err(|fault| self.endpoints.error(fault))
    }

    async fn list_after(
        &self,
        prefix: &str,
        after: &str,
        max: usize,
    ) -> Result<Listing, StoreError> {
        let read = kv::list_after(&self.endpoints, prefix, after, max).await;
        read.map_err(|fault| self.endpoints.error(fault))
    }

    async fn list_into(
        &self,
        prefix: &str,
        visitor: &mut dyn ListingVisitor,
    ) -> Result<Revision, StoreError> {
        let read = kv::list_into(&self.endpoints, prefix, visitor).await;
        read.map_err(|fault| self.endpoints.error(fault))
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        txn.check()?;
        let committed = commit::commit(&self.endpoints, &self.settings, &txn).await;
        committed.map_err(|fault| self.endpoints.error(fault))
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        let interval = self.settings.relist_interval;
        let mut watch = EtcdWatch::new(self.endpoints.clone(), prefix, from, interval);
        watch.open().await?;
        Ok(Box::new(watch))
    }

    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        let granted = lease::grant(&self.endpoints, ttl).await;
        granted.map_err(|fault| self.endpoints.error(fault))
    }

    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        let renewed = lease::renew(&self.endpoints, self.settings.write_timeout, lease).await;
        renewed.map_err(|fault| self.endpoints.error(fault))
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        let revoked = lease::revoke(&self.endpoints, lease).await;
        revoked.map_err(|fault| self.endpoints.error(fault))
    }

    async fn compact(&self, keep: u64) -> Result<(), StoreError> {
        let compacted = kv::compact(&self.endpoints, &self.settings.probe_key, keep).await;
        compacted.map_err(|fault| self.endpoints.error(fault))
    }
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= VERSION_NEEDED,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for version in ["3.4.0", "3.4.23", "3.5.0-alpha.0", "3.10.1", "4.0.0"] {
            assert!(is_new_enough(version), "{version}");
        }
        for version in ["3.3.27", "2.3.8", "3", "", "new"] {
            assert!(!is_new_enough(version), "{version}");
        }
    }

    #[test]
    fn settings_show_no_secret() {
        let settings = EtcdSettings {
            user: Some(("me".to_owned(), "swordfish".to_owned())),
            ..EtcdSettings::default()
        };
        let shown = format!("{settings:?}");
        assert!(
            shown.contains("me") && !shown.contains("swordfish"),
            "{shown}"
        );
    }

    #[tokio::test]
    async fn an_endpoint_that_is_none_is_named_with_how_to_write_one() {
        for endpoint in ["", "ftp://host:1", "http://", "a b"] {
            let settings = EtcdSettings {
                endpoints: vec![endpoint.to_owned()],
                ..EtcdSettings::default()
            };
            let error = EtcdStore::connect(settings).await.unwrap_err();
            assert!(!error.is_transient());
            let message = error.to_string();
            assert!(
                message.starts_with(&format!("{endpoint:?} cannot be")),
                "{message}"
            );
            assert!(message.contains("--etcd"), "{message}");
        }
    }

    #[tokio::test]
    async fn nobody_who_listens_is_a_passing_error_that_names_all_endpoints() {
        let endpoints = ["http://127.0.0.1:1", "http://127.0.0.1:2"];
        let settings = EtcdSettings {
            endpoints: endpoints.map(str::to_owned).into(),
            ..EtcdSettings::default()
        };
        let error = EtcdStore::connect(settings).await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
        let message = error.to_string();
        assert!(
            message.starts_with("cannot reach etcd at http://127.0.0.1:1,http://127.0.0.1:2: "),
            "{message}"
        );
    }
}
