//! Digest of texts, by which sinks name what they write: the same texts have the same name, whoever writes them.

use sha2::{Digest as _, Sha256};

/// Number of bytes of a digest.
const N_BYTES: usize = 16;

/// Returns a digest that only these parts in this order have, in hexadecimal digits.
pub fn digest<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(&hash.finalize()[..N_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_parts_or_another_order_have_another_digest() {
        assert_eq!(digest(["a", "b"]), digest(["a", "b"]));
        assert_ne!(digest(["ab"]), digest(["a", "b"]));
        assert_ne!(digest(["a", "b"]), digest(["b", "a"]));
    }

    #[test]
    fn a_digest_is_that_of_earlier_versions() {
        // Names of files, ids of messages and keys of rows have it.
        assert_eq!(digest(["a", "b"]), "3c9d591045bc8876f9d0399bbfb05c6a");
    }
}
