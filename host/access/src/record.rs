//! Records of tokens in the store.

use serde::{Deserialize, Serialize};

use super::token::SecretHash;
use crawler_model::access::{Grants, Subject};
use crawler_model::crawl::UnixMillis;

/// Record of a token, under its id. The secret itself is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// Subject that shows it.
    pub subject: Subject,
    /// Rights of those who show it.
    #[serde(flatten)]
    pub grants: Grants,
    /// Hash of the secret.
    pub hash: SecretHash,
    /// Time at which it was made.
    pub issued_at: UnixMillis,
    /// Time at which it stops being valid; `None` if it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixMillis>,
    /// Caller that made it: a subject, or words for a caller without a token.
    pub issued_by: String,
}

/// Time before which the tokens of a subject are void.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VoidBefore {
    pub(super) at: UnixMillis,
}
