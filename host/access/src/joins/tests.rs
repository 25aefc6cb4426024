//! Join tokens from their making to their last use.

use std::sync::Arc;

use super::*;
use crate::ca::testing::{NOW, cluster};
use crawler_store::keys::Keys;
use crawler_store::racing_store::{RacingStore, Read};
use crawler_store::twin::StoreTwin;

fn ca() -> CaDigest {
    CaDigest::of(b"the CA of this cluster")
}

fn new(nodes: &str, uses: u32) -> NewJoinToken {
    NewJoinToken {
        role: Role::Worker,
        nodes: nodes.parse().unwrap(),
        labels: BTreeMap::new(),
        uses,
        valid_for: DEFAULT_VALIDITY,
        issued_by: "alice".to_owned(),
    }
}

fn candidate(id: &str, key: &[u8]) -> Candidate {
    Candidate {
        role: Role::Worker,
        id: id.parse().unwrap(),
        labels: BTreeMap::new(),
        key: Digest::of(key),
    }
}

/// Makes a token for workers of these ids.
async fn issued(catalog: &Catalog, nodes: &str, uses: u32) -> JoinToken {
    issue(catalog, ca(), new(nodes, uses), NOW).await.unwrap().0
}

async fn refused(catalog: &Catalog, token: &JoinToken, candidate: &Candidate) -> JoinError {
    redeem(catalog, ca(), token, candidate, NOW)
        .await
        .unwrap_err()
}

#[tokio::test]
async fn a_token_is_used_as_often_as_it_is_for() {
    let catalog = cluster().await;
    let token = issued(&catalog, "worker-*", 2).await;
    for id in ["worker-1", "worker-2"] {
        let candidate = candidate(id, id.as_bytes());
        redeem(&catalog, ca(), &token, &candidate, NOW)
            .await
            .unwrap();
    }
    let third = candidate("worker-3", b"worker-3");
    let error = refused(&catalog, &token, &third).await;
    assert!(matches!(error, JoinError::Used(_)), "{error}");
    let record = list(&catalog).await.unwrap().remove(0).1;
    assert_eq!((record.uses_left, record.joined.len()), (0, 2));
}

#[tokio::test]
async fn a_lost_answer_costs_no_second_use() {
    let catalog = cluster().await;
    let token = issued(&catalog, "worker-1", 1).await;
    let same = candidate("worker-1", b"key");
    for _ in 0..3 {
        redeem(&catalog, ca(), &token, &same, NOW).await.unwrap();
    }
    // Neither another key nor another id is the same node.
    let other = candidate("worker-1", b"another key");
    let error = refused(&catalog, &token, &other).await;
    assert!(matches!(error, JoinError::Used(_)), "{error}");
    // Its answer may have been lost shortly before the token's end.
    let end = NOW + 15 * 60 * 1_000;
    redeem(&catalog, ca(), &token, &same, end).await.unwrap();
    let error = redeem(&catalog, ca(), &token, &other, end).await;
    assert!(matches!(error, Err(JoinError::Expired(_))), "{error:?}");
    let master = Candidate {
        role: Role::Master,
        ..same.clone()
    };
    redeem(&catalog, ca(), &token, &master, NOW)
        .await
        .unwrap_err();
    let error = redeem(&catalog, ca(), &token, &same, end + LATE).await;
    assert!(matches!(error, Err(JoinError::Expired(_))), "{error:?}");
}

#[tokio::test]
async fn a_token_from_before_a_revocation_buys_that_node_nothing() {
    let catalog = cluster().await;
    let token = issued(&catalog, "worker-*", 3).await;
    let [first, second] = ["worker-1", "worker-2"].map(|id| candidate(id, id.as_bytes()));
    redeem(&catalog, ca(), &token, &first, NOW).await.unwrap();
    let later = NOW + 5_000;
    revoked_nodes::revoke(&catalog, &first.id, later)
        .await
        .unwrap();
    // Not even with the key with which it has joined.
    let error = refused(&catalog, &token, &first).await;
    assert!(matches!(error, JoinError::Revoked { .. }), "{error}");
    redeem(&catalog, ca(), &token, &second, NOW).await.unwrap();
    let next = issue(&catalog, ca(), new("worker-1", 1), later).await;
    let next = next.unwrap().0;
    redeem(&catalog, ca(), &next, &first, later).await.unwrap();
}

#[tokio::test]
async fn of_two_nodes_that_race_one_wins() {
    let store = Arc::new(RacingStore::new(Arc::new(StoreTwin::new())));
    let catalog = Catalog::new(store.clone(), Keys::default());
    let token = issued(&catalog, "worker-*", 1).await;
    // The other node's use is recorded between the read of the token, the second one, and the write of this node.
    let mut taken = list(&catalog).await.unwrap().remove(0).1;
    taken.uses_left = 0;
    taken.joined.push(Joined {
        id: "worker-2".parse().unwrap(),
        key: Digest::of(b"two"),
    });
    let key = catalog.keys().join_token(token.id());
    store.race_after(Read::Get, 2, Txn::new().put(key, encode(&taken)));
    let one = candidate("worker-1", b"one");
    let error = refused(&catalog, &token, &one).await;
    assert!(store.has_raced());
    assert!(matches!(error, JoinError::Used(_)), "{error}");
    let two = candidate("worker-2", b"two");
    redeem(&catalog, ca(), &token, &two, NOW).await.unwrap();
    let record = list(&catalog).await.unwrap().remove(0).1;
    assert_eq!((record.uses_left, record.joined.len()), (0, 1));
}

#[tokio::test]
async fn a_node_that_the_token_is_not_for_is_refused() {
    let catalog = cluster().await;
    let mut new = new("worker-1", 1);
    new.labels.insert("zone".to_owned(), "eu".to_owned());
    let issued = issue(&catalog, ca(), new, NOW).await.unwrap();
    let token = issued.0;
    let mut right = candidate("worker-1", b"key");
    right.labels.insert("zone".to_owned(), "eu".to_owned());
    right.labels.insert("gpu".to_owned(), "true".to_owned());
    let other_id = Candidate {
        id: "worker-11".parse().unwrap(),
        ..right.clone()
    };
    let error = refused(&catalog, &token, &other_id).await;
    assert!(matches!(error, JoinError::Id { .. }), "{error}");
    let other_role = Candidate {
        role: Role::Master,
        ..right.clone()
    };
    let error = refused(&catalog, &token, &other_role).await;
    assert!(matches!(error, JoinError::Role { .. }), "{error}");
    let mut other_zone = right.clone();
    other_zone.labels.insert("zone".to_owned(), "us".to_owned());
    let error = refused(&catalog, &token, &other_zone).await;
    assert!(matches!(error, JoinError::Label { .. }), "{error}");
    // None of them has spent the use.
    redeem(&catalog, ca(), &token, &right, NOW).await.unwrap();
}

#[tokio::test]
async fn a_token_of_another_secret_or_cluster_is_refused() {
    let catalog = cluster().await;
    let token = issued(&catalog, "worker-*", 1).await;
    let node = candidate("worker-1", b"key");
    let forged = format!(
        "crawler-join-{}-{}-{}",
        token.id(),
        "0".repeat(64),
        token.ca()
    );
    let error = refused(&catalog, &forged.parse().unwrap(), &node).await;
    assert!(matches!(error, JoinError::Invalid), "{error}");
    let unknown = JoinToken::random(ca());
    let error = refused(&catalog, &unknown, &node).await;
    assert!(matches!(error, JoinError::Invalid), "{error}");
    let other = CaDigest::of(b"another CA");
    let error = redeem(&catalog, other, &token, &node, NOW).await;
    assert!(
        matches!(error, Err(JoinError::OtherCluster(_))),
        "{error:?}"
    );
    let revoked = revoke(&catalog, token.id()).await.unwrap();
    assert_eq!(revoked.uses_left, 1);
    let error = refused(&catalog, &token, &node).await;
    assert!(matches!(error, JoinError::Invalid), "{error}");
    let error = revoke(&catalog, token.id()).await.unwrap_err();
    assert!(matches!(error, JoinError::NoToken(_)), "{error}");
}

#[tokio::test]
async fn a_token_that_nobody_could_use_is_not_made() {
    let catalog = cluster().await;
    for uses in [0, USES_MAX + 1] {
        let error = issue(&catalog, ca(), new("worker-*", uses), NOW).await;
        assert!(matches!(error, Err(JoinError::Uses)), "{uses}");
    }
    let beyond = VALIDITY_MAX + Duration::from_secs(1);
    for valid_for in [Duration::ZERO, beyond] {
        let wanted = NewJoinToken {
            valid_for,
            ..new("worker-*", 1)
        };
        let error = issue(&catalog, ca(), wanted, NOW).await;
        assert!(matches!(error, Err(JoinError::Validity)), "{valid_for:?}");
    }
    assert_eq!(list(&catalog).await.unwrap(), []);
}

#[tokio::test]
async fn a_record_keeps_no_secret_and_fits_into_the_store() {
    let catalog = cluster().await;
    let token = issued(&catalog, "worker-*", USES_MAX).await;
    for n in 0..USES_MAX {
        let long = format!("worker-{}{n:03}", "x".repeat(118));
        let node = candidate(&long, long.as_bytes());
        redeem(&catalog, ca(), &token, &node, NOW).await.unwrap();
    }
    let key = catalog.keys().join_token(token.id());
    let entry = catalog.store().get(&key).await.unwrap().unwrap();
    assert!(key.len() + entry.value.len() < crawler_store::VALUE_MAX);
    let text = String::from_utf8(entry.value.to_vec()).unwrap();
    let exposed = token.expose();
    let secret = exposed.split('-').nth(3).unwrap();
    assert!(!text.contains(secret));
}

#[tokio::test]
async fn no_more_join_tokens_are_made_than_are_kept() {
    let catalog = cluster().await;
    let (_, record) = issue(&catalog, ca(), new("worker-*", 1), NOW)
        .await
        .unwrap();
    // Written directly: to issue each of them would list all of those before.
    for n in 1..JOIN_TOKENS_MAX {
        let id = TokenId::of((n as u64).to_be_bytes());
        let put = Txn::new().put(catalog.keys().join_token(&id), encode(&record));
        catalog.store().commit(put).await.unwrap();
    }
    let error = issue(&catalog, ca(), new("worker-*", 1), NOW).await;
    assert!(matches!(error, Err(JoinError::Full)), "{error:?}");
    // Those that have expired make room.
    let later = NOW + 16 * 60 * 1_000;
    issue(&catalog, ca(), new("worker-*", 1), later)
        .await
        .unwrap();
    assert_eq!(list(&catalog).await.unwrap().len(), 1);
}
