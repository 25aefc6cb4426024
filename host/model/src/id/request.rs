//! Ids of calls that change something, so that repetitions of a call are recognised.

use std::fmt;
use std::str::FromStr;

use super::error::{IdError, REQUEST_ID_MAX};
use crate::text::as_text;

/// Id of one call that changes something. The call is carried out once, however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(String);

impl RequestId {
    /// Returns a new random id.
    pub fn random() -> Self {
        Self(hex::encode(rand::random::<[u8; 16]>()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RequestId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let n_bytes = text.len();
        let is_text = text.bytes().all(|b| b.is_ascii_graphic());
        match (1..=REQUEST_ID_MAX).contains(&n_bytes) && is_text {
            true => Ok(Self(text.to_owned())),
            false => Err(IdError::Request { n_bytes }),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text!(RequestId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_visible_text_of_some_length() {
        for good in ["1", "a-b/c:d", &"x".repeat(REQUEST_ID_MAX)] {
            assert_eq!(good.parse::<RequestId>().unwrap().as_str(), good);
        }
        for bad in ["", "a b", "é", "a\n", &"x".repeat(REQUEST_ID_MAX + 1)] {
            assert!(bad.parse::<RequestId>().is_err(), "{bad:?}");
        }
        assert_ne!(RequestId::random(), RequestId::random());
    }
}
