//! Cache of requests that are known to be stored, so that most links need no look into the database.
//!
//! One bounded cache serves all frontiers of a process, and it is exact: a key in it is stored, and a key
//! that it has forgotten is looked up and added again. It keeps two generations; when the young one is full
//! it becomes the old one, and the previous old one is dropped. A key that is met often is not moved to the
//! young generation: that would fill it, and so evict rare keys long before there is no room.
//!
//! The key of a request is a hash of its own, which costs a fraction of a fingerprint. Its secrets are random
//! and never leave the process, so an attacker cannot make a link that is taken for another.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ahash::RandomState;

use super::workbench::HostId;
use crawler_model::canonical::canonical;
use crawler_model::crawl::Request;

/// Number of parts with a lock each, so that crawls seldom wait for each other.
const N_PARTS: usize = 16;
/// Number of keys that are looked up under the same locks: most pages have fewer links.
const AT_ONCE: usize = 512;
/// Size in bytes of a key in memory, at the worst load of the table.
const BYTES_EACH: usize = 17 * 16 / 7;

/// Cache of stored requests and hosts.
#[derive(Debug)]
pub(super) struct SeenCache {
    parts: Vec<Mutex<Generations>>,
    /// Maximum number of keys of one generation of one part.
    max: usize,
    /// Number of generations that were forgotten.
    n_forgotten: AtomicU64,
    hashes: [RandomState; 2],
}

#[derive(Debug, Default)]
struct Generations {
    young: HashSet<u128, BuildHasherDefault<FoldHasher>>,
    old: HashSet<u128, BuildHasherDefault<FoldHasher>>,
}

/// Hasher that passes a key through, because it is a hash already.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct FoldHasher(u64);

impl Hasher for FoldHasher {
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

/// One opening of one frontier. Its keys are distinct from those of all others, because what one has stored
/// says nothing about another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening {
    id: u128,
    /// Number of forgotten generations at the opening.
    n_forgotten: u64,
    /// True if nothing was stored before the opening.
    is_first: bool,
}

/// Key of a request or host under one opening.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SeenKey(u128);

impl SeenCache {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            parts: (0..N_PARTS).map(|_| Mutex::default()).collect(),
            max: (max_bytes / BYTES_EACH / N_PARTS / 2).max(1),
            n_forgotten: AtomicU64::new(0),
            hashes: [0; 2].map(|_| {
                let [a, b, c, d] = rand::random();
                RandomState::with_seeds(a, b, c, d)
            }),
        }
    }

    /// Registers an opening. `is_first` is true if nothing that it can meet was stored before it.
    pub(super) fn open(&self, is_first: bool) -> Opening {
        Opening {
            id: rand::random(),
            n_forgotten: self.n_forgotten.load(Ordering::Relaxed),
            is_first,
        }
    }

    /// Returns the key of a request, by method, canonical URL and body, like a fingerprint.
    pub(super) fn key(&self, opening: Opening, request: &Request) -> SeenKey {
        let url = canonical(&request.url);
        let body = request.body.as_deref().unwrap_or_default();
        let [high, low] = [0, 1].map(|n| {
            let mut hasher = self.hashes[n].build_hasher();
            hasher.write(url.as_bytes());
            // Nearly all links are plain, and differ by their URLs only.
            if request.method != "GET" || !body.is_empty() {
                hasher.write(request.method.as_bytes());
                hasher.write_usize(url.len());
                hasher.write(body);
            }
            u128::from(hasher.finish())
        });
        SeenKey((high << 64 | low) ^ opening.id)
    }

    /// Returns the key of a host that was met.
    pub(super) fn host_key(&self, opening: Opening, host: HostId) -> SeenKey {
        let [high, low] = [0, 1].map(|n| u128::from(self.hashes[n].hash_one(host.0)));
        SeenKey((high << 64 | low) ^ opening.id)
    }

    /// Returns true if the key is known to be stored. False means nothing unless the cache is complete.
    pub(super) fn knows(&self, SeenKey(key): SeenKey) -> bool {
        self.part(part_of(key)).knows(key)
    }

    /// Returns the places and keys of the requests that are not known to be stored, or that ask to be stored
    /// all the same.
    pub(super) fn unknown<'r>(
        &self,
        opening: Opening,
        requests: impl IntoIterator<Item = &'r Request>,
    ) -> Vec<(usize, SeenKey)> {
        let mut requests = requests.into_iter();
        let mut unknown = Vec::new();
        let mut n_before = 0;
        // The arrays are on the stack, because this is done for every page.
        let (mut keys, mut reloads) = ([SeenKey::default(); AT_ONCE], [false; AT_ONCE]);
        loop {
            let mut n = 0;
            for request in requests.by_ref().take(AT_ONCE) {
                keys[n] = self.key(opening, request);
                reloads[n] = request.reload;
                n += 1;
            }
            let known = self.knows_each(&keys[..n]);
            for place in 0..n {
                if reloads[place] || !known[place] {
                    unknown.push((n_before + place, keys[place]));
                }
            }
            if n < AT_ONCE {
                return unknown;
            }
            n_before += n;
        }
    }

    /// Calls [`knows`](Self::knows) for each of at most [`AT_ONCE`] keys. In a large cache, nearly all of the
    /// time is spent waiting for memory, and lookups under one lock wait together: a fifth of the time for a
    /// million keys.
    fn knows_each(&self, keys: &[SeenKey]) -> [bool; AT_ONCE] {
        // The keys are sorted by counting: first where the places of each part begin, then the places.
        let mut begins = [0; N_PARTS + 1];
        for key in keys {
            begins[part_of(key.0) + 1] += 1;
        }
        for n in 0..N_PARTS {
            begins[n + 1] += begins[n];
        }
        let mut ends = begins;
        let mut places = [0_u16; AT_ONCE];
        for (n, key) in (0..).zip(keys) {
            let end = &mut ends[part_of(key.0)];
            places[*end] = n;
            *end += 1;
        }
        let mut known = [false; AT_ONCE];
        for n in 0..N_PARTS {
            let places = &places[begins[n]..ends[n]];
            if places.is_empty() {
                continue;
            }
            let part = self.part(n);
            let places = || places.iter().map(|place| usize::from(*place));
            // The generations are searched one after the other: a lookup that depends on the result of
            // another would not wait together with it.
            for n in places() {
                known[n] = part.young.contains(&keys[n].0);
            }
            for n in places() {
                known[n] = known[n] || part.old.contains(&keys[n].0);
            }
        }
        known
    }

    /// Returns true if all that was stored since the opening is known, and nothing was stored before it.
    pub(super) fn is_complete(&self, opening: Opening) -> bool {
        opening.is_first && self.n_forgotten.load(Ordering::Relaxed) == opening.n_forgotten
    }

    pub(super) fn insert(&self, SeenKey(key): SeenKey) {
        let mut part = self.part(part_of(key));
        if part.young.len() >= self.max {
            let forgotten = std::mem::take(&mut part.old);
            if !forgotten.is_empty() {
                // The count rises before a lookup can miss a key, because the part is locked.
                self.n_forgotten.fetch_add(1, Ordering::Relaxed);
            }
            part.old = std::mem::take(&mut part.young);
        }
        part.young.insert(key);
    }

    /// Empties the cache and frees its memory. Stored keys are looked up after that, and added again.
    pub(super) fn forget(&self) {
        for part in &self.parts {
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            // The count rises before a lookup can miss a key, because the part is locked.
            self.n_forgotten.fetch_add(1, Ordering::Relaxed);
            *part = Generations::default();
        }
    }

    fn part(&self, n: usize) -> MutexGuard<'_, Generations> {
        let part = &self.parts[n];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn part_of(key: u128) -> usize {
    (key >> 124) as usize % N_PARTS
}

impl Generations {
    fn knows(&self, key: u128) -> bool {
        self.young.contains(&key) || self.old.contains(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(n: u32) -> Request {
        let url = format!("http://a.test/{n}").parse().unwrap();
        Request::get(url, "page")
    }

    #[test]
    fn it_forgets_and_never_makes_up() {
        let cache = SeenCache::new(64 << 10);
        let (one, other) = (cache.open(true), cache.open(true));
        for n in 0..20_000 {
            cache.insert(cache.key(one, &request(n)));
            assert!(cache.knows(cache.key(one, &request(n))));
            assert!(!cache.knows(cache.key(other, &request(n))));
        }
        let knows = |n: &u32| cache.knows(cache.key(one, &request(*n)));
        let n_known = (0..20_000).filter(knows).count();
        assert!(n_known < 3_500, "{n_known} are kept in 64 KiB");
        assert!(n_known > 500, "{n_known}");
        assert!((20_000..30_000).all(|n| !knows(&n)));
        // These are all numbers of interest: none, one, a full look, and many looks.
        for n_requests in [0, 1, AT_ONCE as u32, 30_000] {
            let requests: Vec<_> = (0..n_requests).map(request).collect();
            let keys = requests.iter().map(|request| cache.key(one, request));
            let unknown: Vec<_> = keys
                .enumerate()
                .filter(|(_, key)| !cache.knows(*key))
                .collect();
            assert_eq!(cache.unknown(one, &requests), unknown);
        }
        let some = [
            (19_999, false),
            (19_998, true),
            (30_000, false),
            (30_001, true),
        ];
        let some = some.map(|(n, reload)| Request {
            reload,
            ..request(n)
        });
        let unknown = cache.unknown(one, &some);
        let places: Vec<_> = unknown.iter().map(|(place, _)| *place).collect();
        assert_eq!(
            places,
            [1, 2, 3],
            "only the first is known and asks for nothing"
        );
    }

    #[test]
    fn it_is_complete_until_it_forgets_and_only_for_who_has_stored_all() {
        let cache = SeenCache::new(64 << 10);
        let (first, later) = (cache.open(true), cache.open(false));
        let mut n = 0;
        while cache.is_complete(first) {
            assert!(!cache.is_complete(later));
            assert!((0..n).all(|n| cache.knows(cache.key(first, &request(n)))));
            for _ in 0..50 {
                cache.insert(cache.key(first, &request(n)));
                n += 1;
            }
        }
        assert!(n > 500, "{n}");
        let next = cache.open(true);
        assert!(cache.is_complete(next));
        cache.insert(cache.key(next, &request(1)));
        cache.forget();
        assert!(!cache.is_complete(next) && !cache.knows(cache.key(next, &request(1))));
    }

    #[test]
    fn requests_are_one_where_their_fingerprints_are() {
        let cache = SeenCache::new(64 << 10);
        let opening = cache.open(true);
        let plain = request(1);
        let other_url = |url: &str| Request {
            url: url.parse().unwrap(),
            ..plain.clone()
        };
        let body = |body: &'static str| Request {
            body: Some(body.into()),
            ..plain.clone()
        };
        let all = [
            plain.clone(),
            other_url("http://A.test/%31?#part"),
            other_url("http://a.test/12"),
            Request {
                method: "POST".into(),
                ..plain.clone()
            },
            body("2"),
            body("3"),
            Request {
                rule: "other".into(),
                reload: true,
                ..plain.clone()
            },
        ];
        for one in &all {
            for other in &all {
                let is_one = cache.key(opening, one) == cache.key(opening, other);
                assert_eq!(
                    is_one,
                    one.fingerprint() == other.fingerprint(),
                    "{one:?} {other:?}"
                );
            }
        }
    }
}
