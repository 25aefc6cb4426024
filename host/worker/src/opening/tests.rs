//! Tests of a shard that goes to another worker while its previous owner opens the frontier.

use std::sync::Mutex;

use async_trait::async_trait;
use object_store::memory::InMemory;

use super::*;
use crawler_frontier::durable::{DurableSettings, Frontiers};
use crawler_frontier::suite::new;
use crawler_model::id::{Incarnation, ResourceId};
use crawler_model::resource::{Owner, ShardState};
use crawler_store::embedded::{EmbeddedStore, Settings};
use crawler_store::keys::Keys;

fn shard() -> ShardId {
    ShardId::only(ResourceId(7))
}

fn as_of(epoch: Epoch) -> impl FnOnce(u64, bool) -> OpenOptions {
    move |storage_epoch, created| OpenOptions {
        epoch,
        created,
        storage_epoch,
        ..OpenOptions::first(shard())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    StorageEpoch,
    Open,
}

/// Frontiers whose reader sleeps before one call, until another worker has the shard and its frontier.
struct RacingFrontiers {
    frontiers: Arc<Frontiers>,
    catalog: Catalog,
    before: Call,
    next_owner: Mutex<Option<Arc<dyn OpenFrontier>>>,
}

impl RacingFrontiers {
    async fn pass(&self, call: Call) {
        if call != self.before {
            return;
        }
        let epoch = Epoch(2);
        assign(&self.catalog, "worker-2", epoch).await;
        let next = own(&self.catalog, epoch);
        let frontiers: Arc<dyn OpenFrontiers> = self.frontiers.clone();
        let frontier = next.open(&frontiers, as_of(epoch)).await.unwrap();
        *self.next_owner.lock().unwrap() = Some(frontier);
    }
}

#[async_trait]
impl OpenFrontiers for RacingFrontiers {
    async fn storage_epoch(&self, shard: ShardId) -> Result<u64, FrontierError> {
        self.pass(Call::StorageEpoch).await;
        OpenFrontiers::storage_epoch(&*self.frontiers, shard).await
    }

    async fn open(
        self: Arc<Self>,
        options: OpenOptions,
    ) -> Result<Arc<dyn OpenFrontier>, FrontierError> {
        self.pass(Call::Open).await;
        OpenFrontiers::open(self.frontiers.clone(), options).await
    }
}

fn own(catalog: &Catalog, epoch: Epoch) -> OwnShard {
    OwnShard {
        catalog: catalog.clone(),
        id: shard(),
        epoch,
    }
}

async fn assign(catalog: &Catalog, worker: &str, epoch: Epoch) {
    let record = ShardRecord {
        owner: Some(Owner {
            node: worker.parse().unwrap(),
            incarnation: Incarnation(1),
        }),
        epoch,
        state: ShardState::Assigned,
        ..ShardRecord::new("books".parse().unwrap())
    };
    let txn = Txn::new().put(catalog.keys().shard(shard()), encode(&record));
    catalog.store().commit(txn).await.unwrap();
}

#[tokio::test]
async fn f06_who_wakes_in_the_middle_of_opening_ends_no_writing_of_the_next_owner() {
    for before in [Call::StorageEpoch, Call::Open] {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
        let catalog = Catalog::new(Arc::new(store), Keys::default());
        assign(&catalog, "worker-1", Epoch(1)).await;
        let objects = Arc::new(InMemory::new());
        let racing = Arc::new(RacingFrontiers {
            frontiers: Arc::new(Frontiers::new(objects, DurableSettings::default())),
            catalog: catalog.clone(),
            before,
            next_owner: Mutex::default(),
        });
        let frontiers: Arc<dyn OpenFrontiers> = racing.clone();
        let woken = own(&catalog, Epoch(1));
        let error = woken.open(&frontiers, as_of(Epoch(1))).await.err();
        let is_overtaken = match before {
            Call::StorageEpoch => matches!(error, Some(StepError::Lost)),
            Call::Open => {
                let error = error.as_ref();
                error.is_some_and(|error| {
                    matches!(error, StepError::Frontier(FrontierError::Fenced { .. }))
                })
            }
        };
        let next_owner = racing.next_owner.lock().unwrap().take().unwrap();
        let seeded = next_owner.seed(vec![new("http://a/1")]).await;
        let settled = next_owner.settle().await;
        assert!(
            seeded.is_ok() && settled.is_ok(),
            "before {before:?}: {seeded:?}, {settled:?}"
        );
        assert!(is_overtaken, "before {before:?}: {error:?}");
        next_owner.close().await.unwrap();
    }
}
