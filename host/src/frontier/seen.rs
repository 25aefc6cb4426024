//! Fingerprints that are known to be stored, so that most links need no look into the database.
//!
//! One cache for all frontiers of a process, bounded, and exact: what it knows is stored, and what it
//! has forgotten is looked up, and noted again. It keeps two generations; when the young one is full
//! it becomes the old one, and the old one is forgotten. What is met often is not moved to the young
//! one: that would fill it, and so forget what is met seldom long before there is no room.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

use crate::model::crawl::Fingerprint;

/// Parts with a lock each, so that crawls seldom wait for each other.
const N_PARTS: usize = 16;
/// What a fingerprint takes, at the worst load of the table.
const BYTES_EACH: usize = 17 * 16 / 7;

/// The cache.
#[derive(Debug)]
pub(super) struct SeenCache {
    parts: Vec<Mutex<Generations>>,
    /// Fingerprints of one generation of one part.
    max: usize,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashSet<u128, BuildHasherDefault<Folded>>,
    old: HashSet<u128, BuildHasherDefault<Folded>>,
}

/// A fingerprint is a hash already.
#[derive(Debug, Default, Clone, Copy)]
struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, n: u128) {
        self.0 = n as u64 ^ (n >> 64) as u64;
    }
}

/// One opening of one frontier: what it has stored says nothing about another's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening(u128);

impl Opening {
    pub(super) fn new() -> Self {
        Self(rand::random())
    }

    fn key(self, fingerprint: Fingerprint) -> u128 {
        u128::from_be_bytes(fingerprint.0) ^ self.0
    }
}

impl SeenCache {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            parts: (0..N_PARTS).map(|_| Mutex::default()).collect(),
            max: (max_bytes / BYTES_EACH / N_PARTS / 2).max(1),
        }
    }

    /// Whether it is known to be stored. False says nothing.
    pub(super) fn knows(&self, opening: Opening, fingerprint: Fingerprint) -> bool {
        let key = opening.key(fingerprint);
        let part = self.part(key);
        part.young.contains(&key) || part.old.contains(&key)
    }

    pub(super) fn insert(&self, opening: Opening, fingerprint: Fingerprint) {
        let key = opening.key(fingerprint);
        self.part(key).insert(key, self.max);
    }

    fn part(&self, key: u128) -> std::sync::MutexGuard<'_, Generations> {
        let part = &self.parts[(key >> 60) as usize % N_PARTS];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn insert(&mut self, key: u128, max: usize) {
        if self.young.len() >= max {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_forgets_and_never_makes_up() {
        let cache = SeenCache::new(64 << 10);
        let (one, other) = (Opening::new(), Opening::new());
        let fingerprint = |n: u32| Fingerprint(rand_bytes(n));
        for n in 0..20_000 {
            cache.insert(one, fingerprint(n));
            assert!(cache.knows(one, fingerprint(n)));
            assert!(!cache.knows(other, fingerprint(n)));
        }
        let n_known = (0..20_000)
            .filter(|n| cache.knows(one, fingerprint(*n)))
            .count();
        assert!(n_known < 3_500, "{n_known} are kept in 64 KiB");
        assert!(n_known > 500, "{n_known}");
        assert!((20_000..30_000).all(|n| !cache.knows(one, fingerprint(n))));
    }

    fn rand_bytes(n: u32) -> [u8; 16] {
        use sha2::Digest as _;
        let digest: [u8; 32] = sha2::Sha256::digest(n.to_be_bytes()).into();
        digest[..16].try_into().unwrap()
    }
}
