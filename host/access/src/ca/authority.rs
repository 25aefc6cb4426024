//! The CA of a cluster as a master gets at it: read or made when it is first needed.

use std::fmt;
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::{CaError, CaRecord, CaSource, ClusterCa, SealingKey};
use crawler_model::crawl::UnixMillis;
use crawler_process::clock::Clock;
use crawler_store::catalog::{Catalog, encode};
use crawler_store::{Guard, Outcome, StoreError, Txn};

/// The CA of a cluster, as a master gets at it: it is read or made when it is first needed.
pub struct Authority {
    source: Option<CaSource>,
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    loaded: OnceCell<ClusterCa>,
}

impl Authority {
    /// Creates the access of this process to the CA. Without a source, it issues nothing.
    pub fn new(source: Option<CaSource>, catalog: Catalog, clock: Arc<dyn Clock>) -> Self {
        Self {
            source,
            catalog,
            clock,
            loaded: OnceCell::new(),
        }
    }

    /// True if this process was told how to get at the CA.
    pub fn issues(&self) -> bool {
        self.source.is_some()
    }

    /// Returns the CA, which is made if the store is to have it and has none.
    pub async fn ca(&self) -> Result<&ClusterCa, CaError> {
        self.loaded.get_or_try_init(|| self.load()).await
    }

    async fn load(&self) -> Result<ClusterCa, CaError> {
        let source = self.source.as_ref().ok_or(CaError::NotConfigured)?;
        let key = self.catalog.keys().cluster();
        let cluster = self.catalog.read::<String>(&key).await?;
        let no_id = || StoreError::Unavailable {
            why: "the cluster has no id yet".to_owned(),
        };
        let cluster = cluster.ok_or_else(no_id)?.value;
        let now = self.clock.unix_millis();
        match source {
            CaSource::Files { certificate, key } => ClusterCa::new(cluster, certificate, key, now),
            CaSource::Sealed(key) => {
                let record = self.record(&cluster, key, now).await?;
                let private = record.open(key)?;
                ClusterCa::new(cluster, &record.certificate, &private, now)
            }
        }
    }

    /// Returns the record of the CA, which is made if there is none.
    async fn record(
        &self,
        cluster: &str,
        key: &SealingKey,
        now: UnixMillis,
    ) -> Result<CaRecord, CaError> {
        let place = self.catalog.keys().cluster_ca();
        loop {
            if let Some(present) = self.catalog.read::<CaRecord>(&place).await? {
                return Ok(present.value);
            }
            let fresh = CaRecord::make(cluster, key, now)?;
            let txn = Txn::new()
                .guard(Guard::Absent(place.clone()))
                .put(place.clone(), encode(&fresh));
            match self.catalog.store().commit(txn).await? {
                Outcome::Done(_) => {
                    tracing::info!("made the CA of this cluster");
                    return Ok(fresh);
                }
                // Another master made it, or this one, whose answer was lost: the next look tells.
                Outcome::Lost(_) | Outcome::Unknown => {}
            }
        }
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
