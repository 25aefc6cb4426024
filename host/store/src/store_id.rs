//! Id of a store. A reader that comes back shows it to be told whether its revisions are those of this store.
//!
//! A backup leaves the id out, so a store that a backup is restored into has another one. A copy of the files of a store
//! has the same.

use super::catalog::{Catalog, encode};
use super::{Guard, Outcome, StoreError, Txn};

/// Returns the id of the store, which the first caller makes.
pub async fn store_id(catalog: &Catalog) -> Result<String, StoreError> {
    let key = catalog.keys().store_id();
    if let Some(present) = catalog.read::<String>(&key).await? {
        return Ok(present.value);
    }
    let fresh = format!("{:032x}", rand::random::<u128>());
    let txn = Txn::new()
        .guard(Guard::Absent(key.clone()))
        .put(key.clone(), encode(&fresh));
    if let Outcome::Done(_) = catalog.store().commit(txn).await? {
        return Ok(fresh);
    }
    // Another caller was faster, or the answer of the write was lost.
    let present = catalog.read::<String>(&key).await?;
    present
        .map(|id| id.value)
        .ok_or_else(|| StoreError::Unavailable {
            why: "the store has no id yet".to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::keys::Keys;
    use crate::racing_store::{RacingStore, Read};
    use crate::twin::StoreTwin;

    #[tokio::test]
    async fn a_store_has_one_id_of_its_own() {
        let [one, other] =
            [(); 2].map(|()| Catalog::new(Arc::new(StoreTwin::new()), Keys::default()));
        let id = store_id(&one).await.unwrap();
        assert_eq!(store_id(&one).await.unwrap(), id);
        assert_ne!(store_id(&other).await.unwrap(), id);
    }

    #[tokio::test]
    async fn of_two_that_make_an_id_the_slower_one_takes_the_other() {
        let store = RacingStore::new(Arc::new(StoreTwin::new()));
        let put = Txn::new().put(Keys::default().store_id(), encode(&"first"));
        store.race_after(Read::Get, 1, put);
        let catalog = Catalog::new(Arc::new(store), Keys::default());
        assert_eq!(store_id(&catalog).await.unwrap(), "first");
    }
}
