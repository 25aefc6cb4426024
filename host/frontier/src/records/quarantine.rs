//! Records of items that are not in the outbox. A hold is stored as JSON, like a profile.

use bytes::Bytes;
use prost::Message;

use crawler_model::changes::ItemIdentity;

/// Numbers that were given to items and to holds.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Quarantine {
    /// Number of the next item that waits for a verdict.
    #[prost(uint64, tag = "1")]
    pub(crate) next: u64,
    /// Number of the last hold.
    #[prost(uint64, tag = "2")]
    pub(crate) last_hold: u64,
    /// Last run of which held items were dropped while it was under way; 0 if there is none.
    #[prost(uint64, tag = "3")]
    pub(crate) dropped_in: u64,
}

/// An item that waits for a verdict, or is held.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeptItem {
    /// Item record as JSON.
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) json: Bytes,
    #[prost(uint32, tag = "2")]
    pub(crate) plugin: u32,
    /// Entry of the page that it is from.
    #[prost(uint64, tag = "3")]
    pub(crate) page: u64,
    /// Kind and key by which it is compared when it enters the outbox. There is none if items are not compared.
    #[prost(message, optional, tag = "4")]
    pub(crate) identity: Option<Identity>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Identity {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "2")]
    key: String,
    #[prost(bool, tag = "3")]
    lacks_key: bool,
}

/// Profile of the items of a run.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StoredProfile {
    /// Run of the items; 0 for the profile of the last good run.
    #[prost(uint64, tag = "1")]
    pub(crate) run: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) json: Bytes,
}

impl From<ItemIdentity> for Identity {
    fn from(identity: ItemIdentity) -> Self {
        let ItemIdentity {
            kind,
            key,
            lacks_key,
        } = identity;
        Self {
            kind,
            key,
            lacks_key,
        }
    }
}

impl From<Identity> for ItemIdentity {
    fn from(identity: Identity) -> Self {
        let Identity {
            kind,
            key,
            lacks_key,
        } = identity;
        Self {
            kind,
            key,
            lacks_key,
        }
    }
}
