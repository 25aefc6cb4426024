//! Tests of contenders on one store: the leader, the others, and what a deposed leader may still do.

use async_trait::async_trait;
use futures::future::pending;

use super::*;
use crate::embedded::{EmbeddedStore, Settings};
use crate::keys::Keys;
use crate::twin::StoreTwin;
use crate::{Entry, Listing, Watch, WatchEvent};

const TTL: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(30);

fn catalog(folder: &tempfile::TempDir) -> Catalog {
    let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
    Catalog::new(Arc::new(store), Keys::default())
}

struct Master {
    election_status: watch::Receiver<ElectionStatus>,
    scope: TaskScope,
}

impl Master {
    fn start(catalog: &Catalog, id: &str) -> Self {
        let contender = Contender {
            id: id.parse().unwrap(),
            address: format!("{id}:9091"),
            tls: false,
        };
        let (election, election_status) = Election::new(catalog.clone(), contender, TTL);
        let scope = TaskScope::new();
        scope.spawn(id.to_owned(), election.run(scope.stop_signal()));
        Self {
            election_status,
            scope,
        }
    }

    async fn until(&mut self, wanted: impl FnMut(&ElectionStatus) -> bool) -> ElectionStatus {
        let election_status =
            tokio::time::timeout(PATIENCE, self.election_status.wait_for(wanted)).await;
        election_status.expect("in time").unwrap().clone()
    }

    async fn leads(&mut self) -> Leadership {
        self.until(|s| s.leadership().is_some()).await.own.unwrap()
    }

    async fn follows(&mut self, leader: &str) {
        let is_leader =
            |s: &ElectionStatus| s.leader.as_ref().is_some_and(|l| l.id.as_str() == leader);
        let election_status = self.until(is_leader).await;
        assert!(election_status.own.is_none());
        assert_eq!(
            election_status.leader.unwrap().address,
            format!("{leader}:9091")
        );
    }

    async fn stop(self) {
        assert!(self.scope.stop(PATIENCE).await.is_empty());
    }
}

/// A store that may fall silent: calls and watches then get no answer.
#[derive(Clone)]
struct Muted {
    store: StoreTwin,
    silent: watch::Receiver<bool>,
}

impl Muted {
    async fn speaks(&self) {
        let mut silent = self.silent.clone();
        if silent.wait_for(|silent| !silent).await.is_err() {
            pending().await
        }
    }
}

#[async_trait]
impl Store for Muted {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.speaks().await;
        self.store.get(key).await
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.speaks().await;
        self.store.list(prefix).await
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        self.speaks().await;
        self.store.commit(txn).await
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        self.speaks().await;
        let watch = self.store.watch(prefix, from).await?;
        let line = self.clone();
        Ok(Box::new(MutedWatch {
            line,
            watch,
            came: None,
        }))
    }

    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        self.speaks().await;
        self.store.grant_lease(ttl).await
    }

    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.speaks().await;
        self.store.renew_lease(lease).await
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.speaks().await;
        self.store.revoke_lease(lease).await
    }

    async fn compact(&self, keep: u64) -> Result<(), StoreError> {
        self.speaks().await;
        self.store.compact(keep).await
    }
}

struct MutedWatch {
    line: Muted,
    watch: Box<dyn Watch>,
    /// Event that has not been delivered yet, so that a cancelled wait loses nothing.
    came: Option<WatchEvent>,
}

#[async_trait]
impl Watch for MutedWatch {
    async fn next(&mut self) -> Result<WatchEvent, StoreError> {
        if self.came.is_none() {
            self.came = Some(self.watch.next().await?);
        }
        self.line.speaks().await;
        Ok(self.came.take().expect("it has come"))
    }
}

/// True if the store accepts a leader's write.
async fn writes(catalog: &Catalog, leadership: &Leadership) -> bool {
    let txn = Txn::new().put("/w", "1");
    match leadership.commit(&**catalog.store(), txn).await {
        Ok(outcome) => matches!(outcome, Outcome::Done(_)),
        Err(StoreError::Deposed) => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn s01_the_first_leads_and_an_end_passes_the_lead_on_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let mut first = Master::start(&catalog, "master-1");
    let first_lead = first.leads().await;
    let mut second = Master::start(&catalog, "master-2");
    second.follows("master-1").await;
    let mut third = Master::start(&catalog, "master-3");
    third.follows("master-1").await;
    let leader = current_leader(&catalog).await.unwrap().unwrap();
    assert_eq!(leader.id.as_str(), "master-1");
    first.stop().await;
    assert!(first_lead.lost().is_cancelled());
    let second_lead = second.leads().await;
    third.follows("master-2").await;
    assert!(writes(&catalog, &second_lead).await);
    assert!(!writes(&catalog, &first_lead).await);
    second.stop().await;
    third.leads().await;
    third.stop().await;
    assert_eq!(current_leader(&catalog).await.unwrap(), None);
}

#[tokio::test]
async fn f08_f09_a_leader_whose_lease_is_gone_is_refused_stops_and_contends_anew() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let mut first = Master::start(&catalog, "master-1");
    let lead = first.leads().await;
    let mut second = Master::start(&catalog, "master-2");
    second.follows("master-1").await;
    let lease = u64::from_str_radix(lead.key.rsplit('/').next().unwrap(), 16).unwrap();
    let store = catalog.store();
    store.revoke_lease(LeaseId(lease)).await.unwrap();
    // The leader may or may not know yet that it is deposed.
    assert!(!writes(&catalog, &lead).await);
    tokio::time::timeout(PATIENCE, lead.lost().cancelled())
        .await
        .expect("it stops");
    second.leads().await;
    first.follows("master-2").await;
    second.stop().await;
    let again = first.leads().await;
    assert_ne!(again.guard(), lead.guard());
    first.stop().await;
}

#[tokio::test(start_paused = true)]
async fn f09_a_leader_that_hears_nothing_from_the_store_stops_at_two_thirds_of_its_lease() {
    let silent = watch::Sender::new(false);
    let store = Muted {
        store: StoreTwin::new(),
        silent: silent.subscribe(),
    };
    let catalog = Catalog::new(Arc::new(store), Keys::default());
    let mut only = Master::start(&catalog, "master-1");
    let lead = only.leads().await;
    // This is some renewals later and between two of them, so the last answer is a while ago.
    tokio::time::sleep(TTL + TTL / 6).await;
    assert!(!lead.lost().is_cancelled());
    silent.send_replace(true);
    // The leader writes nothing, so no refusal tells it.
    tokio::time::timeout(TTL * 2 / 3, async {
        lead.lost().cancelled().await;
        let election_status = only
            .election_status
            .wait_for(|election_status| election_status.own.is_none());
        assert_eq!(election_status.await.unwrap().leader, None);
    })
    .await
    .expect("it stops in time");
    silent.send_replace(false);
    let again = only.leads().await;
    assert_ne!(again.guard(), lead.guard());
    only.stop().await;
}

#[tokio::test]
async fn f09_a_leader_that_lost_a_write_steps_down_and_leads_again_under_a_fresh_lease() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let mut only = Master::start(&catalog, "master-1");
    let lead = only.leads().await;
    // The store has another contender first in the queue now.
    let key = lead.key.to_string();
    let txn = Txn::new().delete(key);
    catalog.store().commit(txn).await.unwrap();
    assert!(!writes(&catalog, &lead).await);
    let again = only
        .until(|s| s.leadership().is_some_and(|l| l.guard() != lead.guard()))
        .await;
    assert!(!writes(&catalog, &lead).await);
    assert!(writes(&catalog, &again.own.unwrap()).await);
    only.stop().await;
}

#[tokio::test]
async fn f12_an_address_of_any_form_is_told_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let mut only = Master::start(&catalog, "master-a-b-2");
    only.leads().await;
    let leader = current_leader(&catalog).await.unwrap().unwrap();
    assert_eq!(leader.address, "master-a-b-2:9091");
    only.stop().await;
}

#[tokio::test]
async fn f20_a_contender_that_does_not_decode_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let foreign = format!("{}foreign", catalog.keys().election());
    let txn = Txn::new().put(foreign, "what is this");
    catalog.store().commit(txn).await.unwrap();
    let mut only = Master::start(&catalog, "master-1");
    only.leads().await;
    only.stop().await;
}
