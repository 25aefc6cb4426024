//! Seals the private key of the cluster's CA with a key that the masters share, so that whoever reads the store cannot
//! issue certificates.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};

use super::CaError;

/// Smallest number of bytes of a file with a sealing key.
pub const SEALING_KEY_MIN: usize = 32;

/// Salt by which other uses of the same file give other keys.
const SALT: &[u8] = b"crawler cluster CA";
/// Use of the derived key.
const PURPOSE: &[u8] = b"seal the private key of the CA, version 1";

/// Key that seals the private key of the CA. It is derived from a file that the masters share.
#[derive(Clone)]
pub struct SealingKey(LessSafeKey);

impl SealingKey {
    /// Derives the key from the bytes of the file, all of which count.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, CaError> {
        if bytes.len() < SEALING_KEY_MIN {
            return Err(CaError::ShortKey {
                n_bytes: bytes.len(),
            });
        }
        let extracted = Salt::new(HKDF_SHA256, SALT).extract(bytes);
        let purpose = [PURPOSE];
        let derived = extracted.expand(&purpose, &AES_256_GCM);
        let derived = derived.expect("the key of the cipher is shorter than what HKDF gives");
        Ok(Self(LessSafeKey::new(UnboundKey::from(derived))))
    }

    /// Returns the nonce and the sealed secret. They open with the same context only.
    pub(super) fn seal(&self, secret: &[u8], context: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut sealed = secret.to_vec();
        let done = self.0.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(context),
            &mut sealed,
        );
        done.expect("a private key is shorter than what the cipher takes");
        [&nonce[..], &sealed[..]].concat()
    }

    /// Returns the secret, or `None` if the key or the context is another one or a byte was changed.
    pub(super) fn open(&self, sealed: &[u8], context: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut secret = sealed.to_vec();
        let opened = self.0.open_in_place(nonce, Aad::from(context), &mut secret);
        let n_bytes = opened.ok()?.len();
        secret.truncate(n_bytes);
        Some(secret)
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> SealingKey {
        SealingKey::of_bytes(&[byte; SEALING_KEY_MIN]).unwrap()
    }

    #[test]
    fn a_secret_opens_with_its_key_and_context_only() {
        let sealed = key(1).seal(b"secret", b"certificate");
        assert_eq!(
            key(1).open(&sealed, b"certificate").as_deref(),
            Some(&b"secret"[..])
        );
        assert_eq!(key(2).open(&sealed, b"certificate"), None);
        assert_eq!(key(1).open(&sealed, b"another"), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(key(1).open(&changed, b"certificate"), None, "byte {at}");
        }
        assert_eq!(key(1).open(&sealed[..NONCE_LEN - 1], b"certificate"), None);
        assert_ne!(sealed, key(1).seal(b"secret", b"certificate"));
    }

    #[test]
    fn a_short_key_is_refused() {
        let error = SealingKey::of_bytes(&[1; SEALING_KEY_MIN - 1]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the sealing key has 31 bytes, and needs at least 32"
        );
    }

    #[test]
    fn a_sealing_key_is_not_printed() {
        assert_eq!(format!("{:?}", key(7)), "SealingKey(..)");
    }
}
