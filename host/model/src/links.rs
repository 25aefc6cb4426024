//! Division of the URLs of a resource among its shards.
//!
//! All URLs of one host belong to one shard, so that requests to a host can be spaced without
//! coordination. The result must be the same in every version for as long as a frontier lives:
//! shards of one run may be crawled by workers of different versions, and what is stored is never
//! moved.

use std::num::NonZeroU32;

use sha2::Digest as _;
use url::Url;

use super::id::{Run, Shard};

/// Division of the hosts of a resource among its shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Division {
    /// First run with this division. A frontier that was last opened in an earlier run may have received hosts
    /// that belonged to another shard.
    pub first_run: Run,
    /// Number of shards.
    pub n_shards: NonZeroU32,
}

/// Returns the hash of a host's name and port, under which its URLs are stored.
pub fn host_hash(url: &Url) -> u64 {
    let mut hash = sha2::Sha256::new();
    hash.update(url.host_str().unwrap_or_default());
    let port = url.port_or_known_default().unwrap_or_default();
    hash.update(port.to_be_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let (head, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
    u64::from_be_bytes(*head)
}

/// Returns the shard that a URL belongs to, in a resource with `n_shards` shards.
pub fn shard_of(url: &Url, n_shards: NonZeroU32) -> Shard {
    match n_shards.get() {
        1 => Shard(0),
        _ => shard_of_host(host_hash(url), n_shards),
    }
}

/// Returns the shard that all URLs of a host belong to, given its [hash](host_hash).
pub fn shard_of_host(host: u64, n_shards: NonZeroU32) -> Shard {
    let shard = host % u64::from(n_shards.get());
    Shard(shard as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str, n_shards: u32) -> u32 {
        let n_shards = NonZeroU32::new(n_shards).unwrap();
        shard_of(&url.parse().unwrap(), n_shards).0
    }

    /// These numbers are stored: they never change.
    #[test]
    fn the_shard_of_a_url_is_the_same_in_every_version() {
        let golden: [(&str, u64, [u32; 5]); 5] = [
            ("http://a.test/", 0xf2acd9ad07a3616d, [0, 1, 1, 2, 13]),
            ("https://a.test/x?y=1", 0xbec3942032796f7f, [0, 1, 3, 2, 31]),
            (
                "http://books.example:8080/",
                0xbb882535cac97a57,
                [0, 1, 3, 4, 23],
            ),
            ("http://[::1]/", 0x458579e0b8efb4e3, [0, 1, 3, 6, 3]),
            (
                "http://xn--bcher-kva.example/",
                0x9960d389898c6f93,
                [0, 1, 3, 5, 19],
            ),
        ];
        for (url, hash, shards) in golden {
            assert_eq!(host_hash(&url.parse().unwrap()), hash, "{url}");
            assert_eq!([1, 2, 4, 7, 32].map(|n| of(url, n)), shards, "{url}");
        }
    }

    #[test]
    fn a_host_is_in_one_shard_and_hosts_are_spread_over_all() {
        for n_shards in [1, 2, 5, 32] {
            let mut hosts = vec![0; n_shards as usize];
            for n in 0..3_200 {
                let shard = of(&format!("http://{n}.test/"), n_shards);
                assert_eq!(of(&format!("http://{n}.TEST:80/x?y#z"), n_shards), shard);
                hosts[shard as usize] += 1;
            }
            let even = 3_200 / n_shards;
            let is_even = |n: &u32| (even / 2..=even * 2).contains(n);
            assert!(hosts.iter().all(is_even), "{hosts:?}");
        }
    }

    #[test]
    fn another_port_is_another_host() {
        let shards: std::collections::BTreeSet<u32> = (1_000..1_100)
            .map(|port| of(&format!("http://a.test:{port}/"), 32))
            .collect();
        assert!(shards.len() > 16, "{shards:?}");
    }
}
