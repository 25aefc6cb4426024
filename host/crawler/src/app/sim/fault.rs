//! The kinds of faults: a history in which a kind never occurs shows nothing about it.

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// A process stands still, for up to two leases and more.
    Stop,
    /// A process stands still, and another is started in its place.
    StopAndReplace,
    /// A process is killed between two steps.
    Kill,
    /// A process is told to end.
    End,
    /// Requests of a process do not reach the store.
    CutRequests,
    /// The store carries out the requests of a process, and the answers do not reach it.
    CutAnswers,
    /// No process reaches the store.
    StoreAway,
    /// A clock steps, ahead or back.
    ClockStep,
    /// The store forgets old revisions.
    Compaction,
    /// A worker is told to drain, and told otherwise later.
    Drain,
    /// The watches of a process are silent.
    NoAnswer,
    /// One message takes seconds.
    Delay,
    /// A request reaches the store long after its sender has stopped waiting.
    LateRequest,
    /// A request does not reach the store.
    LostRequest,
    /// The store carries out a request, and the answer is lost.
    LostAnswer,
    /// A watch breaks.
    BrokenWatch,
    /// The changes of one revision come in another order.
    Reordered,
    /// The changes of one revision come twice.
    Duplicate,
    /// A worker is not reached by another process.
    Unreached,
    /// A worker takes links from another, which does not hear of it.
    LostGive,
    /// A sink cannot be opened, or does not take items.
    SinkRefuses,
    /// A sink takes items, and the answer is lost.
    SinkSilent,
    /// A write of a frontier does not reach the object store.
    LostWrite,
    /// A write of a frontier reaches the object store, and the answer is lost.
    UnknownWrite,
    /// A page takes longer than it may.
    SlowPage,
    /// A connection to a site is reset.
    Reset,
    /// A name has no address.
    NoAddress,
    /// A host takes no connection.
    NoConnection,
    /// No master has a plugin at this moment.
    NoPlugin,
}

impl Fault {
    pub(super) const ALL: [Self; 29] = [
        Self::Stop,
        Self::StopAndReplace,
        Self::Kill,
        Self::End,
        Self::CutRequests,
        Self::CutAnswers,
        Self::StoreAway,
        Self::ClockStep,
        Self::Compaction,
        Self::Drain,
        Self::NoAnswer,
        Self::Delay,
        Self::LateRequest,
        Self::LostRequest,
        Self::LostAnswer,
        Self::BrokenWatch,
        Self::Reordered,
        Self::Duplicate,
        Self::Unreached,
        Self::LostGive,
        Self::SinkRefuses,
        Self::SinkSilent,
        Self::LostWrite,
        Self::UnknownWrite,
        Self::SlowPage,
        Self::Reset,
        Self::NoAddress,
        Self::NoConnection,
        Self::NoPlugin,
    ];
}
