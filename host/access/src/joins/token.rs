//! The text of a join token: its id, its secret, and the digest of the certificate of the CA, by which a node that
//! has nothing yet knows the masters of its cluster.

use std::fmt;
use std::str::FromStr;

use crate::ca::CaDigest;
use crate::token::SecretHash;
use crawler_model::access::TokenId;

/// Words that every join token begins with, so that programs which search texts for secrets find it.
const PREFIX: &str = "crawler-join-";

/// A join token. It is shown once, where it is made.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    id: TokenId,
    secret: [u8; 32],
    ca: CaDigest,
}

/// A text that is no join token. It is not quoted: it may be nearly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no join token; one looks like crawler-join-ID-SECRET-CA, and is shown where it is made"
)]
pub struct JoinTokenError;

impl JoinToken {
    /// Makes a token from the random numbers of the system, for nodes that join the cluster of this CA.
    pub fn random(ca: CaDigest) -> Self {
        Self {
            id: TokenId::of(rand::random()),
            secret: rand::random(),
            ca,
        }
    }

    /// Returns the id, under which the store keeps the token.
    pub fn id(&self) -> &TokenId {
        &self.id
    }

    /// Returns the digest of the certificate of the CA.
    pub fn ca(&self) -> CaDigest {
        self.ca
    }

    /// Returns the text that a node shows.
    pub fn expose(&self) -> String {
        format!(
            "{PREFIX}{}-{}-{}",
            self.id,
            hex::encode(self.secret),
            self.ca
        )
    }

    /// Returns the hash that the store keeps.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.secret)
    }
}

impl FromStr for JoinToken {
    type Err = JoinTokenError;

    fn from_str(text: &str) -> Result<Self, JoinTokenError> {
        let rest = text.strip_prefix(PREFIX).ok_or(JoinTokenError)?;
        let mut parts = rest.split('-');
        let mut part = || parts.next().ok_or(JoinTokenError);
        let (id, digits, ca) = (part()?, part()?, part()?);
        if parts.next().is_some() {
            return Err(JoinTokenError);
        }
        let mut secret = [0; 32];
        hex::decode_to_slice(digits, &mut secret).map_err(|_| JoinTokenError)?;
        Ok(Self {
            id: id.parse().map_err(|_| JoinTokenError)?,
            secret,
            ca: ca.parse().map_err(|_| JoinTokenError)?,
        })
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken({}, ..)", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_token_is_read_back_and_is_not_printed() {
        let token = JoinToken::random(CaDigest::of(b"ca"));
        let text = token.expose();
        assert_eq!(text.parse(), Ok(token.clone()));
        assert_eq!(
            format!("{token:?}"),
            format!("JoinToken({}, ..)", token.id())
        );
        let secret = text.split('-').nth(3).unwrap();
        assert!(!format!("{token:?} {:?}", token.hash()).contains(secret));
    }

    #[test]
    fn other_texts_are_no_join_tokens_and_are_not_quoted() {
        let text = JoinToken::random(CaDigest::of(b"ca")).expose();
        let id = text.split('-').nth(2).unwrap();
        for wrong in [
            "",
            "crawler-join-",
            &text[..text.len() - 1],
            &format!("{text}-"),
            &format!("{text}0"),
            &format!("crawler-join-{id}"),
            &text.replacen("crawler-join", "crawler", 1),
        ] {
            let error = wrong.parse::<JoinToken>().unwrap_err().to_string();
            assert!(!error.contains(id), "{error}");
        }
    }
}
