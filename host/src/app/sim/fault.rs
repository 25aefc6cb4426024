//! What goes wrong, by its kind: a history in which a kind never occurs shows nothing about it.

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// A process stands still, for up to two leases and more.
    Stop,
    /// The same, and another is started in its place.
    StopAndReplace,
    /// A process is gone from one step to the next.
    Kill,
    /// A process is told to end.
    End,
    /// A process does not get to the store.
    CutRequests,
    /// The store carries out what a process asks for, and the answer does not get there.
    CutAnswers,
    /// Nobody gets to the store.
    StoreAway,
    /// A clock steps, ahead or back.
    ClockStep,
    /// The store forgets old revisions.
    Compaction,
    /// A worker is told to drain, and told otherwise later.
    Drain,
    /// All watches of a process say nothing.
    Silence,
    /// One message takes seconds.
    Delay,
    /// A request gets to the store long after its sender has stopped to wait.
    LateRequest,
    /// A request does not get there.
    LostRequest,
    /// What was asked for is done, and nobody is told.
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
    /// A sink does not take items.
    SinkRefuses,
    /// It takes them and does not say so.
    SinkSilent,
    /// A write of a frontier does not get to the object store.
    LostWrite,
    /// It does, and the answer is lost.
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
        Self::Silence,
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
