//! Profiles of this process, in the format of pprof or as a flame graph: of its processor time and of its heap.
//!
//! ```text
//! processors   where processor time goes: a timer interrupts whatever runs
//! heap         what takes memory: the allocator records a sample of allocations
//! message      a profile as a message of pprof
//! format       the messages of pprof
//! flame        a profile as a picture
//! ```
//!
//! There is one of each subject at a time.

use std::io;

mod flame;
mod format;
pub mod heap;
mod message;
mod processors;

use heap::HeapProfile;
use processors::ProcessorProfile;

/// Reason why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A profile of this subject is in progress.
    #[error("a profile is being taken already")]
    Busy,
    /// The system does not allow it.
    #[error("cannot take a profile")]
    Failed(#[source] pprof::Error),
    /// The allocator takes no samples.
    #[error("this process takes no samples of its heap")]
    NoHeap,
    /// The allocator has samples that cannot be read.
    #[error("cannot read the samples of the heap")]
    Unread(#[source] io::Error),
}

/// Subject of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileSubject {
    /// Processor time.
    Processors,
    /// Memory that was allocated while the profile was in progress, and is in use at its end.
    Heap,
}

/// Form in which a profile is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileForm {
    /// Message of pprof, which `go tool pprof` reads.
    Pprof,
    /// Flame graph: a picture in SVG.
    FlameGraph,
}

/// A profile in progress; dropping it ends it.
#[derive(Debug)]
pub struct Profile {
    running: Running,
}

#[derive(Debug)]
enum Running {
    Processors(ProcessorProfile),
    Heap(HeapProfile),
}

impl Profile {
    /// Begins a profile.
    pub fn begin(subject: ProfileSubject) -> Result<Self, ProfileError> {
        let running = match subject {
            ProfileSubject::Processors => Running::Processors(ProcessorProfile::begin()?),
            ProfileSubject::Heap => Running::Heap(HeapProfile::begin()?),
        };
        Ok(Self { running })
    }

    /// Ends the profile, and writes it. The first call looks up names, which takes seconds: call it on a thread that
    /// may block.
    pub fn end(self, form: ProfileForm) -> Result<Vec<u8>, ProfileError> {
        match self.running {
            Running::Processors(profile) => profile.end(form),
            Running::Heap(profile) => profile.end(form),
        }
    }
}
