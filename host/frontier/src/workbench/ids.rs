//! Ids of hosts, and of the lanes of their URLs.

/// Id of a host: a hash of its name and port. Two hosts with the same hash share their clock and their lanes,
/// which is slower for both but correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostId(pub(crate) u64);

/// Id of a lane: the URLs of one host with the same priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LaneId {
    pub(crate) host: HostId,
    pub(crate) priority: i32,
}
