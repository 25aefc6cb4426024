//! The store: small, strongly consistent records that masters and workers coordinate by.
//!
//! One contract, kept by every backend and checked by one suite (`conformance`):
//!
//! - every write increases one revision, and a value carries the revision of its write;
//! - [`Store::list`] returns the revision it saw, and a watch from there misses nothing;
//! - [`Store::commit`] is the only write operation: all guards hold and all changes are made, or none;
//! - a watch yields changes in order, or [`WatchEvent::StartOver`], after which the reader lists again;
//! - the keys of a lease vanish together, when it is revoked or not renewed in time.
//!
//! The store never holds pages, URLs or plugin bytes. A key and its value have at most [`VALUE_MAX`] bytes
//! together; a transaction has at most [`TXN_MAX`] guards and as many changes, and [`TXN_BYTES_MAX`] bytes in
//! all.

use std::time::Duration;

use async_trait::async_trait;

pub mod breaker;
pub mod catalog;
pub mod changes;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod conformance;
pub mod counting_store;
pub mod election;
pub mod embedded;
mod entry;
mod error;
pub mod etcd;
pub mod ids;
pub mod keys;
pub mod lease;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod racing_store;
pub mod store_id;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod twin;
mod txn;

pub use self::entry::{Entry, LeaseId, Listing, Revision, VALUE_MAX, WatchEvent};
pub use self::error::StoreError;
pub use self::txn::{Change, Guard, Outcome, TXN_BYTES_MAX, TXN_MAX, Txn};

/// Changes below one prefix, in order. Dropping it ends the watch.
#[async_trait]
pub trait Watch: Send {
    /// Returns the next change. Waits until there is one; cancelling the wait loses nothing.
    async fn next(&mut self) -> Result<WatchEvent, StoreError>;
}

/// Receiver of a listing, entry by entry.
pub trait ListingVisitor: Send {
    /// Begins the listing, again if the store had to start over. Earlier entries are void.
    fn begin(&mut self);

    /// Takes an entry. Entries come in the order of their keys.
    fn entry(&mut self, entry: Entry);
}

/// Operations of a store, with the contract described at the top of this crate.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Returns the newest value of a key.
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError>;

    /// Lists all keys that start with `prefix`, at one revision.
    async fn list(&self, prefix: &str) -> Result<Listing, StoreError>;

    /// Lists the first `max` keys with `prefix` that come after the key `after`.
    async fn list_after(
        &self,
        prefix: &str,
        after: &str,
        max: usize,
    ) -> Result<Listing, StoreError> {
        let mut listing = self.list(prefix).await?;
        listing.entries.retain(|entry| entry.key.as_str() > after);
        listing.entries.truncate(max);
        Ok(listing)
    }

    /// Passes all keys with `prefix` to `visitor`, without holding them all at the same time. Returns the
    /// revision.
    async fn list_into(
        &self,
        prefix: &str,
        visitor: &mut dyn ListingVisitor,
    ) -> Result<Revision, StoreError> {
        let listing = self.list(prefix).await?;
        visitor.begin();
        for entry in listing.entries {
            visitor.entry(entry);
        }
        Ok(listing.revision)
    }

    /// Carries the transaction out if all guards hold. It is durable when the answer comes.
    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError>;

    /// Watches the changes below `prefix` that come after `from`.
    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError>;

    /// Grants a new lease that lives for `ttl` unless renewed.
    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError>;

    /// Gives the lease its full time again. Returns [`StoreError::LeaseGone`] if it has ended.
    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError>;

    /// Ends the lease and deletes its keys. Succeeds if it has already ended.
    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError>;

    /// Forgets the changes that are more than `keep` revisions old. Records stay; a watch that begins before
    /// them is told to start over.
    async fn compact(&self, keep: u64) -> Result<(), StoreError>;
}
