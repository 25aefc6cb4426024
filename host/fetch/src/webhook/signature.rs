//! Signatures of webhooks: `v1,` and the base64 of an HMAC-SHA256 over id, time and body, which points separate.

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// Beginning of a secret that names its purpose. It may be left out.
const PREFIX: &str = "whsec_";
/// Bytes of a secret, as the specification bounds them.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// Key that calls of a webhook are signed with. It is never printed.
#[derive(Clone)]
pub struct SigningKey(hmac::Key);

/// Reason why a text is no secret of a webhook. The text is not quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the secret of a webhook is the base64 of 24 to 64 random bytes, with or without whsec_ before it; make one with: openssl rand -base64 32"
)]
pub struct SigningKeyError;

impl SigningKey {
    /// Returns the signature of a call, as its header has it.
    pub fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let mut signing = hmac::Context::with_key(&self.0);
        signing.update(format!("{id}.{timestamp}.").as_bytes());
        signing.update(body);
        format!("v1,{}", STANDARD.encode(signing.sign().as_ref()))
    }
}

impl FromStr for SigningKey {
    type Err = SigningKeyError;

    fn from_str(text: &str) -> Result<Self, SigningKeyError> {
        let text = text.strip_prefix(PREFIX).unwrap_or(text);
        let bytes = STANDARD.decode(text).map_err(|_| SigningKeyError)?;
        match LENGTHS.contains(&bytes.len()) {
            true => Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes))),
            false => Err(SigningKeyError),
        }
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    /// The example that the libraries of the specification are tested with.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        for secret in [SECRET.to_owned(), format!("whsec_{SECRET}")] {
            let key: SigningKey = secret.parse().unwrap();
            let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
            let body = br#"{"test": 2432232314}"#;
            let signature = key.sign(id, 1_614_265_330, body);
            let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
            assert_eq!(signature, expected);
        }
    }

    #[test]
    fn short_and_other_texts_are_no_secrets_and_none_is_printed() {
        for text in ["", "whsec_", "AAAA", "not base64!"] {
            assert_eq!(text.parse::<SigningKey>().unwrap_err(), SigningKeyError);
        }
        let long = STANDARD.encode([7; 65]);
        assert!(long.parse::<SigningKey>().is_err());
        let key: SigningKey = SECRET.parse().unwrap();
        assert_eq!(format!("{key:?}"), "SigningKey(..)");
    }
}
