//! Contract of a store about leases.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{Done, changed, done, keys};
use crate::{Change, Store, StoreError, Txn};

pub async fn the_keys_of_a_revoked_lease_vanish_together(store: Arc<dyn Store>) -> Done {
    let lease = store.grant_lease(Duration::from_secs(60)).await?;
    let other = store.grant_lease(Duration::from_secs(60)).await?;
    done(
        &store,
        Txn::new().put_leased("/t/a", "1", lease).put("/t/b", "1"),
    )
    .await?;
    done(
        &store,
        Txn::new()
            .put_leased("/t/c", "1", lease)
            .put_leased("/t/d", "1", other),
    )
    .await?;
    store.renew_lease(lease).await?;
    let from = store.list("/t/").await?.revision;
    let mut watch = store.watch("/t/", from).await?;
    store.revoke_lease(lease).await?;
    assert_eq!(keys(&store, "/t/").await?, ["/t/b", "/t/d"]);
    let (first, second) = (changed(&mut *watch).await?, changed(&mut *watch).await?);
    assert_eq!((first.0.as_str(), second.0.as_str()), ("/t/a", "/t/c"));
    assert_eq!(first.1, second.1);
    assert!(matches!(
        store.renew_lease(lease).await,
        Err(StoreError::LeaseGone)
    ));
    store.revoke_lease(lease).await
}

pub async fn the_keys_of_a_lease_that_is_not_renewed_vanish(store: Arc<dyn Store>) -> Done {
    let lease = store.grant_lease(Duration::from_secs(1)).await?;
    let revision = done(
        &store,
        Txn::new().put_leased("/t/a", "1", lease).put("/t/b", "1"),
    )
    .await?;
    let mut watch = store.watch("/t/", revision).await?;
    assert_eq!(changed(&mut *watch).await?.0, "/t/a");
    assert_eq!(keys(&store, "/t/").await?, ["/t/b"]);
    assert!(matches!(
        store.renew_lease(lease).await,
        Err(StoreError::LeaseGone)
    ));
    Ok(())
}

pub async fn a_key_belongs_to_the_lease_of_its_last_write(store: Arc<dyn Store>) -> Done {
    let first = store.grant_lease(Duration::from_secs(60)).await?;
    let second = store.grant_lease(Duration::from_secs(60)).await?;
    done(
        &store,
        Txn::new()
            .put_leased("/t/a", "1", first)
            .put_leased("/t/b", "1", first),
    )
    .await?;
    done(
        &store,
        Txn::new().put_leased("/t/a", "2", second).put("/t/b", "2"),
    )
    .await?;
    store.revoke_lease(first).await?;
    assert_eq!(keys(&store, "/t/").await?, ["/t/a", "/t/b"]);
    store.revoke_lease(second).await?;
    assert_eq!(keys(&store, "/t/").await?, ["/t/b"]);
    Ok(())
}

pub async fn nothing_is_put_under_a_lease_that_has_ended(store: Arc<dyn Store>) -> Done {
    let lease = store.grant_lease(Duration::from_secs(60)).await?;
    store.revoke_lease(lease).await?;
    let mut txn = Txn::new().put("/t/b", "1");
    txn.changes.push(Change::Put {
        key: "/t/a".to_owned(),
        value: Bytes::new(),
        lease: Some(lease),
    });
    let answer = store.commit(txn).await;
    assert!(matches!(answer, Err(StoreError::LeaseGone)), "{answer:?}");
    assert_eq!(keys(&store, "/t/").await?, [""; 0]);
    Ok(())
}
