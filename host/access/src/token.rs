//! The secret that a caller shows, and the hash that the store keeps of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;
use subtle::ConstantTimeEq as _;

use crawler_model::access::TokenId;

/// Word that every token begins with, so that programs which search texts for secrets find it.
const PREFIX: &str = "crawler";

/// A token: an id, which is known to others, and a secret. It is shown once, where it is made.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    id: TokenId,
    secret: [u8; 32],
}

/// SHA-256 of a token's secret. The secret has 256 random bits, so that no salt and no slow hash is needed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretHash(#[serde(with = "hex")] [u8; 32]);

/// Secret that the nodes of a cluster show to its masters. They find it in the store.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSecret {
    #[serde(with = "hex")]
    secret: [u8; 32],
}

/// A text that is no token. It is not quoted: it may be nearly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no access token; one looks like crawler_ID_SECRET, and is shown where it is made")]
pub struct TokenError;

impl Token {
    /// Makes a token from the random numbers of the system.
    pub fn random() -> Self {
        Self {
            id: TokenId::of(rand::random()),
            secret: rand::random(),
        }
    }

    /// Returns the id, under which the store keeps the token.
    pub fn id(&self) -> &TokenId {
        &self.id
    }

    /// Returns the text that a caller shows.
    pub fn expose(&self) -> String {
        format!("{PREFIX}_{}_{}", self.id, hex::encode(self.secret))
    }

    /// Returns the hash that the store keeps.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.secret)
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let rest = text
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_prefix('_'));
        let (id, hex) = rest
            .and_then(|rest| rest.split_once('_'))
            .ok_or(TokenError)?;
        let mut secret = [0; 32];
        hex::decode_to_slice(hex, &mut secret).map_err(|_| TokenError)?;
        Ok(Self {
            id: id.parse().map_err(|_| TokenError)?,
            secret,
        })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}, ..)", self.id)
    }
}

impl SecretHash {
    /// Returns the hash of a secret.
    pub(crate) fn of(secret: &[u8; 32]) -> Self {
        Self(sha2::Sha256::digest(secret).into())
    }

    /// True if it is the hash of this token's secret. The time taken does not depend on how much of it is right.
    pub fn is_of(&self, token: &Token) -> bool {
        self.is(&token.hash())
    }

    /// True if both are of one secret. The time taken does not depend on how much of them is the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(..)")
    }
}

impl NodeSecret {
    /// Makes a secret from the random numbers of the system.
    pub fn random() -> Self {
        Self {
            secret: rand::random(),
        }
    }

    /// Returns the text that a node shows.
    pub fn expose(&self) -> String {
        hex::encode(self.secret)
    }

    /// True if a node has shown this secret. The time taken does not depend on how much of it is right.
    pub fn is(&self, shown: &str) -> bool {
        let mut secret = [0; 32];
        let is_whole = hex::decode_to_slice(shown, &mut secret).is_ok();
        is_whole & bool::from(self.secret.ct_eq(&secret))
    }
}

impl fmt::Debug for NodeSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeSecret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_tells_nothing_when_it_is_printed() {
        let token = Token::random();
        let text = token.expose();
        assert_eq!(text.parse(), Ok(token.clone()));
        assert_eq!(text.len(), "crawler_".len() + 16 + 1 + 64);
        let secret = text.rsplit('_').next().unwrap();
        let hash = serde_json::to_string(&token.hash()).unwrap();
        assert!(!format!("{token:?} {:?} {hash}", token.hash()).contains(secret));
        assert_ne!(Token::random(), Token::random());
    }

    #[test]
    fn the_hash_tells_the_secret_from_all_others() {
        let token = Token::random();
        let hash = token.hash();
        assert!(hash.is_of(&token));
        for byte in [0, 31] {
            let mut other = token.clone();
            other.secret[byte] ^= 1;
            assert!(!hash.is_of(&other), "byte {byte}");
        }
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(serde_json::from_str::<SecretHash>(&json).unwrap(), hash);
    }

    #[test]
    fn the_secret_of_nodes_is_told_from_all_others() {
        let secret = NodeSecret::random();
        assert!(secret.is(&secret.expose()));
        let other = NodeSecret::random().expose();
        for wrong in ["", "0", &other, &secret.expose()[1..], &"0".repeat(64)] {
            assert!(!secret.is(wrong), "{wrong}");
        }
        assert_eq!(format!("{secret:?}"), "NodeSecret(..)");
    }

    #[test]
    fn other_texts_are_no_tokens_and_are_not_quoted() {
        let text = Token::random().expose();
        let id = &text["crawler_".len()..][..16];
        for wrong in [
            "",
            "crawler_",
            "secret",
            &text[..text.len() - 1],
            &format!("{text}0"),
            &text.to_uppercase(),
            &format!("crawler_{id}"),
            &format!("crawler__{}", "0".repeat(64)),
        ] {
            let error = wrong.parse::<Token>().unwrap_err().to_string();
            assert!(!error.contains(id), "{error}");
        }
    }
}
