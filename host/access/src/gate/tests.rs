//! Tokens from their making to their end, as a gate sees them.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::registry::{
    NewToken, RegistryError, issue, list, node_secret, revoke, revoke_all, void_before,
};
use crawler_model::access::{GrantError, Right, Role};
use crawler_process::task::TaskScope;
use crawler_store::keys::Keys;
use crawler_store::twin::StoreTwin;
use crawler_store::{TXN_MAX, Txn};

const NOW: UnixMillis = 1_800_000_000_000;
const DEADLINE: Duration = Duration::from_secs(30);

/// A clock that tests set.
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn unix_nanos(&self) -> u64 {
        self.0.load(Ordering::Relaxed) * 1_000_000
    }
}

struct House {
    catalog: Catalog,
    clock: Arc<SetClock>,
    gate: Gate,
    _scope: TaskScope,
}

impl House {
    fn new() -> Self {
        let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
        let clock = Arc::new(SetClock(AtomicU64::new(NOW)));
        let scope = TaskScope::new();
        let (gate, task) = Gate::new(catalog.clone(), clock.clone(), scope.stop_signal());
        scope.spawn("access tokens", task);
        Self {
            catalog,
            clock,
            gate,
            _scope: scope,
        }
    }

    async fn issue(&self, subject: &str, role: Role, valid_for: Option<Duration>) -> Token {
        let new = new_token(subject, role, valid_for);
        let now = self.clock.unix_millis();
        issue(&self.catalog, new, now).await.unwrap().0
    }

    /// Waits until the gate says this of a token.
    async fn says(&self, token: &Token, expected: Result<&str, Refusal>) {
        let mut views = self.gate.view.clone();
        let said = tokio::time::timeout(DEADLINE, async {
            loop {
                let said = self.gate.admit(&token.expose());
                let said = said.as_ref().map(|admission| admission.subject.as_str());
                if said.map_err(Clone::clone) == expected {
                    return;
                }
                views.changed().await.unwrap();
            }
        });
        said.await.expect("the gate says so in time");
    }
}

fn new_token(subject: &str, role: Role, valid_for: Option<Duration>) -> NewToken {
    NewToken {
        subject: subject.parse().unwrap(),
        grants: Grants {
            roles: [role].into(),
            ..Grants::default()
        },
        valid_for,
        issued_by: "test".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_admits_until_it_is_revoked() {
    let house = House::new();
    let alice = house.issue("alice", Role::Viewer, None).await;
    let bob = house.issue("bob", Role::Admin, None).await;
    house.says(&alice, Ok("alice")).await;
    house.says(&bob, Ok("bob")).await;
    let admission = house.gate.admit(&bob.expose()).unwrap();
    assert!(admission.grants.gives(Right::Administer));
    let record = revoke(&house.catalog, alice.id()).await.unwrap();
    assert_eq!(record.subject.as_str(), "alice");
    house.says(&alice, Err(Refusal::Invalid)).await;
    house.says(&bob, Ok("bob")).await;
    let again = revoke(&house.catalog, alice.id()).await;
    assert!(matches!(again, Err(RegistryError::NoToken(_))));
    assert_eq!(list(&house.catalog).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_secret_under_a_known_id_admits_nobody() {
    let house = House::new();
    let alice = house.issue("alice", Role::Viewer, None).await;
    house.says(&alice, Ok("alice")).await;
    let forged = format!("crawler_{}_{}", alice.id(), "0".repeat(64));
    assert_eq!(house.gate.admit(&forged), Err(Refusal::Invalid));
    let unknown = Token::random().expose();
    assert_eq!(house.gate.admit(&unknown), Err(Refusal::Invalid));
    assert_eq!(house.gate.admit("alice"), Err(Refusal::Invalid));
}

#[tokio::test(start_paused = true)]
async fn a_token_expires() {
    let house = House::new();
    let hour = Duration::from_secs(3_600);
    let token = house.issue("alice", Role::Viewer, Some(hour)).await;
    house.says(&token, Ok("alice")).await;
    let admission = house.gate.admit(&token.expose()).unwrap();
    assert_eq!(admission.expires_at, Some(NOW + 3_600_000));
    house.clock.0.store(NOW + 3_600_000 - 1, Ordering::Relaxed);
    assert!(house.gate.admit(&token.expose()).is_ok());
    house.clock.0.store(NOW + 3_600_000, Ordering::Relaxed);
    let expired = Refusal::Expired(token.id().clone());
    assert_eq!(house.gate.admit(&token.expose()), Err(expired.clone()));
    let ended = tokio::time::timeout(DEADLINE, house.gate.ended(&admission));
    assert_eq!(ended.await.expect("it ends in time"), expired);
}

#[tokio::test(start_paused = true)]
async fn all_tokens_of_a_subject_before_a_time_become_void() {
    let house = House::new();
    let old = house.issue("alice", Role::Viewer, None).await;
    let other = house.issue("bob", Role::Viewer, None).await;
    house.clock.0.store(NOW + 10, Ordering::Relaxed);
    let new = house.issue("alice", Role::Viewer, None).await;
    house.says(&new, Ok("alice")).await;
    let alice = "alice".parse().unwrap();
    let at = void_before(&house.catalog, &alice, NOW + 10).await.unwrap();
    assert_eq!(at, NOW + 10);
    house.says(&old, Err(Refusal::Void(old.id().clone()))).await;
    house.says(&new, Ok("alice")).await;
    house.says(&other, Ok("bob")).await;
    let earlier = void_before(&house.catalog, &alice, NOW).await.unwrap();
    assert_eq!(earlier, NOW + 10, "an earlier time makes none valid again");
}

#[tokio::test(start_paused = true)]
async fn whoever_is_admitted_learns_that_the_token_was_revoked() {
    let house = House::new();
    let token = house.issue("alice", Role::Viewer, None).await;
    house.says(&token, Ok("alice")).await;
    let admission = house.gate.admit(&token.expose()).unwrap();
    let gate = house.gate.clone();
    let mut ended = std::pin::pin!(gate.ended(&admission));
    let early = tokio::time::timeout(Duration::from_secs(5), ended.as_mut()).await;
    assert!(early.is_err(), "it is valid: {early:?}");
    revoke(&house.catalog, token.id()).await.unwrap();
    let refusal = tokio::time::timeout(DEADLINE, ended).await;
    assert_eq!(refusal.expect("it is told in time"), Refusal::Invalid);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_has_not_seen_the_store_admits_nobody() {
    let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
    let new = new_token("alice", Role::Viewer, None);
    let (token, _record) = issue(&catalog, new, NOW).await.unwrap();
    let clock = Arc::new(SetClock(AtomicU64::new(NOW)));
    let stop = CancellationToken::new();
    let (gate, task) = Gate::new(catalog, clock, stop.clone());
    assert_eq!(gate.admit(&token.expose()), Err(Refusal::Unsure));
    let mut task = Box::pin(task);
    let mut views = gate.view.clone();
    tokio::select! {
        biased;
        () = &mut task => panic!("the task goes on"),
        seen = views.changed() => seen.unwrap(),
    }
    assert!(gate.admit(&token.expose()).is_ok());
    // The task is not polled any more, as if the store hung.
    tokio::time::advance(TRUST).await;
    assert!(gate.admit(&token.expose()).is_ok());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(gate.admit(&token.expose()), Err(Refusal::Unsure));
}

#[tokio::test(start_paused = true)]
async fn a_time_that_does_not_decode_makes_the_tokens_of_its_subject_void() {
    let house = House::new();
    let alice = house.issue("alice", Role::Viewer, None).await;
    let bob = house.issue("bob", Role::Viewer, None).await;
    house.says(&alice, Ok("alice")).await;
    let key = house.catalog.keys().void_before(&"alice".parse().unwrap());
    let broken = Txn::new().put(key, "?");
    house.catalog.store().commit(broken).await.unwrap();
    house
        .says(&alice, Err(Refusal::Void(alice.id().clone())))
        .await;
    house.says(&bob, Ok("bob")).await;
}

#[tokio::test(start_paused = true)]
async fn all_tokens_of_a_subject_are_taken_back_whatever_the_clocks_say() {
    let house = House::new();
    let alice = house.issue("alice", Role::Viewer, None).await;
    let other = house.issue("alice", Role::Operator, None).await;
    let bob = house.issue("bob", Role::Viewer, None).await;
    house.says(&bob, Ok("bob")).await;
    let subject = "alice".parse().unwrap();
    let revoked = revoke_all(&house.catalog, &subject).await.unwrap();
    assert_eq!(revoked.len(), 2);
    for token in [&alice, &other] {
        house.says(token, Err(Refusal::Invalid)).await;
    }
    house.says(&bob, Ok("bob")).await;
    let new = house.issue("alice", Role::Viewer, None).await;
    house.says(&new, Ok("alice")).await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_does_not_decode_admits_nobody_and_hides_no_other() {
    let house = House::new();
    let alice = house.issue("alice", Role::Viewer, None).await;
    let bob = house.issue("bob", Role::Viewer, None).await;
    house.says(&alice, Ok("alice")).await;
    let key = house.catalog.keys().access_token(alice.id());
    let broken = Txn::new().put(key, "{}");
    house.catalog.store().commit(broken).await.unwrap();
    house.says(&alice, Err(Refusal::Invalid)).await;
    house.says(&bob, Ok("bob")).await;
}

#[tokio::test]
async fn no_more_tokens_are_made_than_are_kept() {
    let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
    let ids: Vec<u64> = (1..registry::TOKENS_MAX as u64).collect();
    for some in ids.chunks(TXN_MAX) {
        let ids = some.iter().map(|n| TokenId::of(n.to_be_bytes()));
        let keys = ids.map(|id| catalog.keys().access_token(&id));
        let txn = keys.fold(Txn::new(), |txn, key| txn.put(key, "{}"));
        catalog.store().commit(txn).await.unwrap();
    }
    let ask = async || issue(&catalog, new_token("alice", Role::Viewer, None), NOW).await;
    let (last, _record) = ask().await.unwrap();
    assert!(matches!(ask().await, Err(RegistryError::Full)));
    revoke(&catalog, last.id()).await.unwrap();
    assert!(ask().await.is_ok());
    // Tokens that have expired make room.
    let short = new_token("alice", Role::Viewer, Some(Duration::from_secs(1)));
    let ids = list(&catalog).await.unwrap();
    revoke(&catalog, &ids[0].0).await.unwrap();
    issue(&catalog, short, NOW - 2_000).await.unwrap();
    assert!(ask().await.is_ok());
    assert!(matches!(ask().await, Err(RegistryError::Full)));
}

#[tokio::test]
async fn nothing_that_makes_no_sense_is_issued() {
    let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
    let ask = async |new| issue(&catalog, new, NOW).await.unwrap_err();
    let mut no_role = new_token("alice", Role::Viewer, None);
    no_role.grants.roles.clear();
    assert!(matches!(
        ask(no_role).await,
        RegistryError::Grants(GrantError::NoRole)
    ));
    for time in [
        Duration::ZERO,
        registry::VALIDITY_MAX + Duration::from_secs(1),
    ] {
        let new = new_token("alice", Role::Viewer, Some(time));
        assert!(
            matches!(ask(new).await, RegistryError::Validity),
            "{time:?}"
        );
    }
    assert!(list(&catalog).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nodes_show_the_secret_that_the_store_has() {
    let house = House::new();
    assert!(house.gate.check_node("").is_err());
    let secret = node_secret(&house.catalog).await.unwrap();
    assert_eq!(node_secret(&house.catalog).await.unwrap(), secret);
    let mut views = house.gate.view.clone();
    let known = tokio::time::timeout(DEADLINE, async {
        while house.gate.check_node(&secret.expose()).is_err() {
            views.changed().await.unwrap();
        }
    });
    known.await.expect("the gate learns of it in time");
    let wrong = "0".repeat(64);
    assert_eq!(house.gate.check_node(&wrong), Err(Refusal::Invalid));
}
