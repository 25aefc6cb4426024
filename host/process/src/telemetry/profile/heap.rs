//! Profiles of the heap of this process.
//!
//! While a profile is in progress, the allocator records the stack of one allocation in each 512 KiB or so, until the
//! memory is freed. The profile has what was allocated in its time and is in use at its end: what grows, and what leaks.
//! Memory from before is not in it, and neither is memory that libraries in C or compiled rules have.
//!
//! jemalloc takes samples only if it was told so when the program started, by [`SETTINGS`]. Without a profile in
//! progress, a thread then draws a random number for each 512 KiB that it allocates, and frees memory at addresses of whole
//! pages in a slower way. After a profile, blocks that were recorded stay at such addresses until they are freed, and the
//! names of functions that were read stay in memory.

use std::collections::HashMap;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, BufReader};
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::flame::Flame;
use super::message::{Place, ProfileMessage};
use super::{ProfileError, ProfileForm};
use crate::memory::jemalloc;

mod dump;

use dump::Dump;

/// Settings that jemalloc reads when the program starts, from a static variable of the program: samples may be taken, one
/// for each 2^19 bytes, and none are until a profile begins.
pub const SETTINGS: &CStr = c"prof:true,prof_active:false,lg_prof_sample:19";

/// Beginning of the names of the functions of jemalloc.
const OWN: &str = "_rjem_";

/// True while a profile is in progress: the allocator has one set of samples.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// A profile in progress; dropping it ends it.
#[derive(Debug)]
pub(super) struct HeapProfile {
    begun: Instant,
}

impl HeapProfile {
    /// Begins a profile.
    pub(super) fn begin() -> Result<Self, ProfileError> {
        if IS_TAKEN.swap(true, Ordering::Acquire) {
            return Err(ProfileError::Busy);
        }
        let profile = Self {
            begun: Instant::now(),
        };
        if jemalloc::forget_samples() && jemalloc::take_samples(true) {
            Ok(profile)
        } else {
            Err(ProfileError::NoHeap)
        }
    }

    /// Ends the profile, and writes it.
    pub(super) fn end(self, form: ProfileForm) -> Result<Vec<u8>, ProfileError> {
        jemalloc::take_samples(false);
        let length = self.begun.elapsed();
        let file = written().map_err(ProfileError::Unread)?;
        // The next profile may begin before the samples are read.
        drop(self);
        // The file, which is in memory, is gone before names are looked up.
        let dump = Dump::read(BufReader::new(file)).map_err(ProfileError::Unread)?;
        let stacks = Stacks::of(dump);
        Ok(match form {
            ProfileForm::Pprof => stacks.encode(length),
            ProfileForm::FlameGraph => stacks.draw(length).into_bytes(),
        })
    }
}

impl Drop for HeapProfile {
    fn drop(&mut self) {
        // An allocator that takes no samples refuses it, and there is nothing to end then.
        jemalloc::take_samples(false);
        IS_TAKEN.store(false, Ordering::Release);
    }
}

/// Returns a file with the samples of memory in use, as jemalloc writes them. It is in memory: a confined process can make no
/// other one.
#[cfg(target_os = "linux")]
fn written() -> io::Result<File> {
    use std::ffi::CString;
    use std::os::fd::AsRawFd as _;

    use rustix::fs::{MemfdFlags, memfd_create};

    let file = File::from(memfd_create(c"heap-profile", MemfdFlags::CLOEXEC)?);
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    if !jemalloc::write_samples(&path) {
        let why = "the allocator cannot write them into a file of this process in /proc";
        return Err(io::Error::other(why));
    }
    // The allocator has opened it by its path, so that this handle is still at its beginning.
    Ok(file)
}

/// Fails: elsewhere the allocator is built without samples, and no profile begins.
#[cfg(not(target_os = "linux"))]
fn written() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Stacks with the names of their functions.
struct Stacks {
    dump: Dump,
    /// Places at each address, innermost first: functions that are compiled into one another have one address.
    places: HashMap<usize, Vec<Place>>,
}

impl Stacks {
    fn of(dump: Dump) -> Self {
        let mut places = HashMap::new();
        for address in dump.stacks.iter().flat_map(|stack| &stack.addresses) {
            places
                .entry(*address)
                .or_insert_with(|| places_at(*address));
        }
        Self { dump, places }
    }

    /// Returns the places of a stack, innermost first, without those of the allocator itself.
    fn of_stack(&self, addresses: &[usize]) -> Vec<&Place> {
        let at = addresses
            .iter()
            .filter_map(|address| self.places.get(address));
        let places: Vec<&Place> = at.flatten().collect();
        let own = places.iter().rposition(|place| place.name.starts_with(OWN));
        places[own.map_or(0, |last| last + 1)..].to_vec()
    }

    fn encode(&self, length: Duration) -> Vec<u8> {
        let types = [("inuse_objects", "count"), ("inuse_space", "bytes")];
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let mut message = ProfileMessage::new(types, number(self.dump.period));
        for stack in &self.dump.stacks {
            let values = [number(stack.n_objects), number(stack.n_bytes)];
            message.add(self.of_stack(&stack.addresses), values, None);
        }
        message.encode(Duration::ZERO, length)
    }

    fn draw(&self, length: Duration) -> String {
        let mut flame = Flame::default();
        for stack in &self.dump.stacks {
            let places = self.of_stack(&stack.addresses);
            let names = places.iter().rev().map(|place| place.name.as_str());
            flame.add(names, stack.n_bytes);
        }
        let n_bytes: u64 = self.dump.stacks.iter().map(|stack| stack.n_bytes).sum();
        let head = format!(
            "memory that was allocated in {:.1} s and is in use: about {} MiB, by a sample for each {} KiB",
            length.as_secs_f64(),
            n_bytes >> 20,
            self.dump.period >> 10
        );
        flame.draw(&head, "bytes")
    }
}

/// Returns the places at an address, which has at least one.
fn places_at(address: usize) -> Vec<Place> {
    let mut places = Vec::new();
    backtrace::resolve(without_provenance_mut(address), |symbol| {
        let Some(name) = symbol.name() else {
            return;
        };
        let file = symbol.filename().map(|file| file.to_string_lossy());
        places.push(Place {
            name: format!("{name:#}"),
            system_name: name.as_str().unwrap_or_default().to_owned(),
            file: file.unwrap_or_default().into_owned(),
            line: symbol.lineno().unwrap_or_default(),
        });
    });
    if places.is_empty() {
        places.push(Place {
            name: format!("{address:#x}"),
            ..Place::default()
        });
    }
    places
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::ffi::c_void;

    use prost::Message as _;

    use super::super::format;
    use super::*;

    /// The program of these tests has the settings of the crawler's own.
    #[expect(unsafe_code, reason = "jemalloc knows the variable by its name")]
    #[unsafe(export_name = "_rjem_malloc_conf")]
    static SETTINGS_OF_TESTS: &u8 = &SETTINGS.to_bytes_with_nul()[0];

    const MIB: usize = 1 << 20;

    /// Memory of jemalloc, which is not the allocator of tests.
    struct Held(Vec<*mut c_void>);

    impl Drop for Held {
        #[expect(unsafe_code, reason = "allocators offer it to C only")]
        fn drop(&mut self) {
            for allocated in &self.0 {
                // SAFETY: it was allocated by jemalloc, and is freed once.
                unsafe { tikv_jemalloc_sys::free(*allocated) };
            }
        }
    }

    #[expect(unsafe_code, reason = "allocators offer it to C only")]
    fn allocate(n_bytes: usize) -> *mut c_void {
        // SAFETY: any size may be asked for.
        let allocated = unsafe { tikv_jemalloc_sys::malloc(n_bytes) };
        assert!(!allocated.is_null());
        allocated
    }

    /// Allocates memory in pieces of a mebibyte; the test looks for its name in the profile.
    #[inline(never)]
    fn keeps_for_a_profile(n_pieces: usize) -> Held {
        Held((0..n_pieces).map(|_| allocate(MIB)).collect())
    }

    #[inline(never)]
    fn frees_for_a_profile(n_pieces: usize) {
        drop(Held((0..n_pieces).map(|_| allocate(MIB)).collect()));
    }

    /// Ends a profile. Returns the bytes of stacks that have a function with this name.
    fn bytes_of(profile: HeapProfile, name: &str) -> i64 {
        let bytes = profile.end(ProfileForm::Pprof).unwrap();
        let profile = format::Profile::decode(bytes.as_slice()).unwrap();
        let types = profile.sample_type.iter();
        let types: Vec<_> = types
            .map(|t| (profile.text(t.kind), profile.text(t.unit)))
            .collect();
        let expected = [("inuse_objects", "count"), ("inuse_space", "bytes")];
        assert_eq!(types, expected);
        assert_eq!(profile.period, 512 << 10);
        let samples = profile.sample.iter().filter(|sample| {
            let names = profile.names(sample);
            assert!(!names.iter().any(|name| name.starts_with(OWN)), "{names:?}");
            names.iter().any(|found| found.contains(name))
        });
        samples.map(|sample| sample.value[1]).sum()
    }

    // It is one test, because a process has one profile of its heap at a time.
    #[test]
    fn a_heap_profile_has_what_was_allocated_and_not_freed() {
        let profile = HeapProfile::begin().unwrap();
        let second = HeapProfile::begin().unwrap_err();
        assert!(matches!(second, ProfileError::Busy), "{second:?}");
        let held = keeps_for_a_profile(64);
        frees_for_a_profile(64);
        let n_bytes = bytes_of(profile, "keeps_for_a_profile");
        // The number is an estimate, which is off by 3 MiB or so.
        let about = 40 * MIB as i64..88 * MIB as i64;
        assert!(about.contains(&n_bytes), "{n_bytes}");

        let profile = HeapProfile::begin().unwrap();
        frees_for_a_profile(64);
        assert_eq!(bytes_of(profile, "for_a_profile"), 0);

        // A profile that is given up makes room for the next.
        drop(HeapProfile::begin().unwrap());
        let profile = HeapProfile::begin().unwrap();
        let seen = keeps_for_a_profile(64);
        let svg = profile.end(ProfileForm::FlameGraph).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        assert!(svg.contains("keeps_for_a_profile"), "{svg}");
        assert!(svg.contains(" bytes</title>"), "{svg}");
        drop((held, seen));
    }
}
