//! Tests of the time for which a lease may be counted on: renewals that are answered, late, lost or refused.

use std::sync::Mutex;

use async_trait::async_trait;

use super::super::{Entry, Listing, Outcome, Revision, Txn, Watch};
use super::*;

const TTL: Duration = Duration::from_secs(9);

/// Treatment of renewals by the network.
#[derive(Debug, Clone, Copy)]
enum Network {
    Prompt,
    /// The renewal arrives and is answered after this time.
    Slow(Duration),
    Silent,
    Refusing,
    Gone,
}

/// A store that only has leases, behind a network.
struct Leases {
    network: Mutex<Network>,
    renewed: Mutex<Vec<Instant>>,
    revoked: Mutex<Vec<LeaseId>>,
}

impl Leases {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            network: Mutex::new(Network::Prompt),
            renewed: Mutex::default(),
            revoked: Mutex::default(),
        })
    }

    fn turns(&self, network: Network) {
        *self.network.lock().unwrap() = network;
    }
}

#[async_trait]
impl Store for Leases {
    async fn get(&self, _key: &str) -> Result<Option<Entry>, StoreError> {
        unreachable!("only leases are used")
    }

    async fn list(&self, _prefix: &str) -> Result<Listing, StoreError> {
        unreachable!("only leases are used")
    }

    async fn commit(&self, _txn: Txn) -> Result<Outcome, StoreError> {
        unreachable!("only leases are used")
    }

    async fn watch(&self, _prefix: &str, _from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        unreachable!("only leases are used")
    }

    async fn grant_lease(&self, _ttl: Duration) -> Result<LeaseId, StoreError> {
        Ok(LeaseId(7))
    }

    async fn renew_lease(&self, _lease: LeaseId) -> Result<(), StoreError> {
        let network = *self.network.lock().unwrap();
        match network {
            Network::Prompt => {}
            Network::Slow(delay) => tokio::time::sleep(delay).await,
            Network::Silent => std::future::pending().await,
            Network::Refusing => {
                return Err(StoreError::Unavailable {
                    why: "for a test".to_owned(),
                });
            }
            Network::Gone => return Err(StoreError::LeaseGone),
        }
        self.renewed.lock().unwrap().push(Instant::now());
        Ok(())
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.revoked.lock().unwrap().push(lease);
        Ok(())
    }

    async fn compact(&self, _keep: u64) -> Result<(), StoreError> {
        unreachable!("only leases are used")
    }
}

async fn time_until_lost(keeper: &LeaseKeeper) -> Duration {
    let started = Instant::now();
    let lost = tokio::time::timeout(TTL * 10, keeper.lost().cancelled_owned()).await;
    lost.expect("lost within ten times the lease");
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_at_a_third_and_held() {
    let (leases, scope) = (Leases::new(), TaskScope::new());
    let started = Instant::now();
    let keeper = LeaseKeeper::grant(leases.clone(), TTL, &scope)
        .await
        .unwrap();
    tokio::time::sleep(TTL * 5 + TTL / 6).await;
    assert!(!keeper.lost().is_cancelled());
    let renewed = leases.renewed.lock().unwrap().clone();
    assert_eq!(renewed.len(), 15);
    for (n, at) in (1..).zip(renewed) {
        let late = at - started - TTL / 3 * n;
        assert!(
            late < Duration::from_millis(100),
            "renewal {n} {late:?} late"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_holder_stops_at_two_thirds_without_an_answer() {
    for network in [Network::Silent, Network::Refusing] {
        let (leases, scope) = (Leases::new(), TaskScope::new());
        leases.turns(network);
        let keeper = LeaseKeeper::grant(leases, TTL, &scope).await.unwrap();
        let held = time_until_lost(&keeper).await;
        let late = held
            .checked_sub(TTL * 2 / 3)
            .expect("not before two thirds");
        assert!(late < Duration::from_millis(100), "{network:?}: {held:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_from_when_it_was_asked_for() {
    let (leases, scope) = (Leases::new(), TaskScope::new());
    let delay = TTL / 8;
    leases.turns(Network::Slow(delay));
    let keeper = LeaseKeeper::grant(leases.clone(), TTL, &scope)
        .await
        .unwrap();
    tokio::time::sleep(TTL / 3 + delay + Duration::from_millis(100)).await;
    assert_eq!(leases.renewed.lock().unwrap().len(), 1);
    leases.turns(Network::Silent);
    let held = TTL / 3 + delay + Duration::from_millis(100) + time_until_lost(&keeper).await;
    let late = held
        .checked_sub(TTL)
        .expect("two thirds from the asking at one third");
    assert!(late < Duration::from_millis(100), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn one_lost_answer_costs_no_lease() {
    let (leases, scope) = (Leases::new(), TaskScope::new());
    leases.turns(Network::Silent);
    let keeper = LeaseKeeper::grant(leases.clone(), TTL, &scope)
        .await
        .unwrap();
    tokio::time::sleep(TTL / 3 + TTL / 12).await;
    leases.turns(Network::Prompt);
    tokio::time::sleep(TTL * 3).await;
    assert!(!keeper.lost().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_gone_is_lost_at_once() {
    let (leases, scope) = (Leases::new(), TaskScope::new());
    leases.turns(Network::Gone);
    let keeper = LeaseKeeper::grant(leases, TTL, &scope).await.unwrap();
    let held = time_until_lost(&keeper).await;
    assert!(held < TTL / 3 + Duration::from_millis(100), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_revoked_and_not_renewed() {
    let (leases, scope) = (Leases::new(), TaskScope::new());
    let keeper = LeaseKeeper::grant(leases.clone(), TTL, &scope)
        .await
        .unwrap();
    let lost = keeper.lost();
    keeper.release().await.unwrap();
    assert!(lost.is_cancelled());
    assert_eq!(*leases.revoked.lock().unwrap(), [LeaseId(7)]);
    tokio::time::sleep(TTL * 3).await;
    assert!(leases.renewed.lock().unwrap().is_empty());
    assert!(scope.stop(Duration::from_secs(1)).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_stops_takes_the_lease_with_it() {
    let (leases, scope) = (Leases::new(), TaskScope::new());
    let keeper = LeaseKeeper::grant(leases, TTL, &scope).await.unwrap();
    assert!(scope.stop(Duration::from_secs(1)).await.is_empty());
    assert!(keeper.lost().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn f08_a_term_is_over_at_its_deadline_before_any_timer_tells() {
    let now = Instant::now();
    let held = |until| Held {
        until,
        suspended: suspended(),
    };
    let term = |until| Term {
        id: LeaseId(7),
        lost: CancellationToken::new(),
        held: Arc::new(Mutex::new(held(until))),
    };
    assert!(term(now + Duration::from_millis(1)).is_held());
    let over = term(now);
    assert!(!over.is_held());
    assert!(!over.extend(held(now + TTL)), "what is over stays so");
    assert!(over.lost.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn f08_a_time_for_which_the_machine_was_suspended_counts() {
    let now = Instant::now();
    let suspended = Duration::from_secs(600);
    let held = Held {
        until: now + Duration::from_secs(5),
        suspended,
    };
    let after = |slept| held.is_over(now, suspended + slept);
    assert!(!after(Duration::ZERO) && !after(Duration::from_millis(4_999)));
    assert!(after(Duration::from_secs(5)));
    assert!(
        !held.is_over(now, Duration::ZERO),
        "clocks are not looked at together"
    );
}

#[tokio::test(start_paused = true)]
async fn a_term_lasts_as_long_as_its_lease_is_renewed() {
    let (leases, scope) = (Leases::new(), TaskScope::new());
    let keeper = LeaseKeeper::grant(leases.clone(), TTL, &scope)
        .await
        .unwrap();
    let term = keeper.term();
    tokio::time::sleep(TTL * 5).await;
    assert!(term.is_held());
    leases.turns(Network::Silent);
    tokio::time::timeout(TTL, term.ended()).await.unwrap();
    assert!(!term.is_held());
}
