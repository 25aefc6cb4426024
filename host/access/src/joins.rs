//! Join tokens: each buys nodes certificates of the cluster's CA.
//!
//! Any master makes them, lists them and takes them back, as access tokens. To use one is one compare-and-set of its
//! record, which spends a use and keeps for whom: of two nodes that race for the last use, one gets it. A node whose
//! answer was lost comes again with the same key, and spends nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ca::CaDigest;
use super::node::NodePattern;
use super::revoked_nodes;
use super::token::SecretHash;
use crawler_model::access::TokenId;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::{Digest, NodeId};
use crawler_model::label::{LabelError, check_labels};
use crawler_model::node::Role;
use crawler_store::catalog::{Catalog, Versioned, encode};
use crawler_store::{Guard, Outcome, StoreError, TXN_MAX, Txn};

mod token;

pub use token::{JoinToken, JoinTokenError};

/// Largest number of join tokens of a cluster.
pub const JOIN_TOKENS_MAX: usize = 1_000;
/// Largest number of uses of one token. Its record keeps each of them.
pub const USES_MAX: u32 = 500;
/// Time for which a token is valid unless its maker says otherwise.
pub const DEFAULT_VALIDITY: Duration = Duration::from_secs(15 * 60);
/// Time in milliseconds by which a node that has joined may come again after the end of the token.
const LATE: UnixMillis = 15 * 60 * 1_000;
/// Longest validity of a token: 30 days.
pub const VALIDITY_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A join token that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJoinToken {
    /// Role of the nodes.
    pub role: Role,
    /// Ids of the nodes.
    pub nodes: NodePattern,
    /// Labels that each node must have.
    pub labels: BTreeMap<String, String>,
    /// Number of nodes that may join with it.
    pub uses: u32,
    /// Time for which it is valid.
    pub valid_for: Duration,
    /// Caller that asks for it.
    pub issued_by: String,
}

/// Record of a join token, under its id. The secret itself is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRecord {
    /// Role of the nodes.
    pub role: Role,
    /// Ids of the nodes.
    pub nodes: NodePattern,
    /// Labels that each node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Hash of the secret.
    pub hash: SecretHash,
    /// Number of nodes that may still join.
    pub uses_left: u32,
    /// Nodes that have joined.
    pub joined: Vec<Joined>,
    /// Time at which it was made.
    pub issued_at: UnixMillis,
    /// Time at which it stops being valid.
    pub expires_at: UnixMillis,
    /// Caller that made it: a subject, or words for a caller without a token.
    pub issued_by: String,
}

/// One use of a join token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Id of the node.
    pub id: NodeId,
    /// Digest of the public key of its certificate.
    pub key: Digest,
}

/// Node that wants to join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Role of the node.
    pub role: Role,
    /// Id of the node.
    pub id: NodeId,
    /// Labels of the node.
    pub labels: BTreeMap<String, String>,
    /// Digest of the public key for which it asks for a certificate.
    pub key: Digest,
}

/// Reason why an operation on join tokens was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// There is no token of this id and secret. Which of them is wrong is not told.
    #[error("the join token is not valid")]
    Invalid,
    /// The token is of another cluster, or of an earlier CA.
    #[error("join token {0} is for another cluster")]
    OtherCluster(TokenId),
    /// The certificates of the node were revoked after the token was made.
    #[error("join token {token} was made before the certificates of {node} were revoked")]
    Revoked {
        /// Id of the token.
        token: TokenId,
        /// Node that wants to join.
        node: NodeId,
    },
    /// The token has expired.
    #[error("join token {0} has expired")]
    Expired(TokenId),
    /// All uses are spent.
    #[error("join token {0} has been used by as many nodes as it is for")]
    Used(TokenId),
    /// The token is for nodes of the other role.
    #[error("join token {token} is for a {wanted}, and this node is a {found}")]
    Role {
        /// Id of the token.
        token: TokenId,
        /// Role that it is for.
        wanted: Role,
        /// Role of the node.
        found: Role,
    },
    /// The token is for nodes of other ids.
    #[error("join token {token} is for {wanted}, and this node is {found}")]
    Id {
        /// Id of the token.
        token: TokenId,
        /// Ids that it is for.
        wanted: NodePattern,
        /// Id of the node.
        found: NodeId,
    },
    /// The node lacks a label.
    #[error(
        "join token {token} is for nodes with the label {key}={value}, which this node does not have"
    )]
    Label {
        /// Id of the token.
        token: TokenId,
        /// Key of the label.
        key: String,
        /// Value of the label.
        value: String,
    },
    /// The validity is zero or too long.
    #[error("a join token is valid for a second to 30 days")]
    Validity,
    /// The number of uses is zero or too large.
    #[error("a join token is for 1 to {USES_MAX} nodes")]
    Uses,
    /// The labels are not valid.
    #[error(transparent)]
    Labels(#[from] LabelError),
    /// There are too many tokens.
    #[error(
        "there are {JOIN_TOKENS_MAX} join tokens, and no more are kept; revoke those that nobody needs"
    )]
    Full,
    /// There is no such token.
    #[error("there is no join token {0}")]
    NoToken(TokenId),
    /// The store did not carry it out.
    #[error("cannot change the join tokens")]
    Store(#[from] StoreError),
}

/// Makes a join token for the cluster of this CA, and returns it with its record. The token is nowhere else.
pub async fn issue(
    catalog: &Catalog,
    ca: CaDigest,
    new: NewJoinToken,
    now: UnixMillis,
) -> Result<(JoinToken, JoinRecord), JoinError> {
    check_labels(&new.labels)?;
    if !(1..=USES_MAX).contains(&new.uses) {
        return Err(JoinError::Uses);
    }
    if new.valid_for < Duration::from_secs(1) || new.valid_for > VALIDITY_MAX {
        return Err(JoinError::Validity);
    }
    let valid_for = u64::try_from(new.valid_for.as_millis()).unwrap_or(u64::MAX);
    let n_present = list(catalog).await?.len();
    if n_present >= JOIN_TOKENS_MAX
        && n_present - remove_expired(catalog, now).await? >= JOIN_TOKENS_MAX
    {
        return Err(JoinError::Full);
    }
    let token = JoinToken::random(ca);
    let record = JoinRecord {
        role: new.role,
        nodes: new.nodes,
        labels: new.labels,
        hash: token.hash(),
        uses_left: new.uses,
        joined: Vec::new(),
        issued_at: now,
        expires_at: now + valid_for,
        issued_by: new.issued_by,
    };
    let key = catalog.keys().join_token(token.id());
    let txn = Txn::new()
        .guard(Guard::Absent(key.clone()))
        .put(key, encode(&record));
    carried_out(catalog, txn).await?;
    Ok((token, record))
}

/// Returns all join tokens, ordered by id. Records that do not decode are left out: they admit nobody.
pub async fn list(catalog: &Catalog) -> Result<Vec<(TokenId, JoinRecord)>, StoreError> {
    let prefix = catalog.keys().join_tokens();
    let scan = catalog.scan::<JoinRecord>(&prefix).await?;
    let records = scan.records.into_iter();
    let tokens = records.filter_map(|(key, Versioned { value, .. })| {
        Some((key.strip_prefix(&prefix)?.parse().ok()?, value))
    });
    Ok(tokens.collect())
}

/// Takes a join token back, and returns its record. Certificates that it has bought stay valid.
pub async fn revoke(catalog: &Catalog, id: &TokenId) -> Result<JoinRecord, JoinError> {
    let key = catalog.keys().join_token(id);
    let present = catalog.read::<JoinRecord>(&key).await?;
    let present = present.ok_or_else(|| JoinError::NoToken(id.clone()))?;
    carried_out(catalog, Txn::new().delete(key)).await?;
    Ok(present.value)
}

/// Uses a join token of the cluster of this CA for a node. If this returns `Ok`, the node is to get its certificate: a
/// use is spent and recorded, by this call or by an earlier one with the same key.
pub async fn redeem(
    catalog: &Catalog,
    ca: CaDigest,
    token: &JoinToken,
    candidate: &Candidate,
    now: UnixMillis,
) -> Result<(), JoinError> {
    let key = catalog.keys().join_token(token.id());
    let void_before = revoked_nodes::void_before(catalog, &candidate.id).await?;
    loop {
        let present = catalog.read::<JoinRecord>(&key).await?;
        let Versioned {
            value: mut record,
            revision,
            ..
        } = present.ok_or(JoinError::Invalid)?;
        let is_token = record.hash.is(&token.hash());
        if is_token && revoked_nodes::is_before(record.issued_at, void_before) {
            let (token, node) = (token.id().clone(), candidate.id.clone());
            return Err(JoinError::Revoked { token, node });
        }
        let joined = Joined {
            id: candidate.id.clone(),
            key: candidate.key,
        };
        let has_joined = is_token
            && token.ca() == ca
            && record.role == candidate.role
            && record.joined.contains(&joined);
        // Its answer may have been lost shortly before the end of the token.
        if has_joined && now < record.expires_at + LATE {
            return Ok(());
        }
        judge(&record, ca, token, candidate, now)?;
        let uses_left = record.uses_left.checked_sub(1);
        record.uses_left = uses_left.ok_or_else(|| JoinError::Used(token.id().clone()))?;
        record.joined.push(joined);
        let txn = Txn::new()
            .guard(Guard::RevisionIs(key.clone(), revision))
            .put(key.clone(), encode(&record));
        match catalog.store().commit(txn).await? {
            Outcome::Done(_) => return Ok(()),
            // Another node was faster, or the answer was lost: the next look tells.
            Outcome::Lost(_) | Outcome::Unknown => {}
        }
    }
}

/// Refuses a node that the token is not for.
fn judge(
    record: &JoinRecord,
    ca: CaDigest,
    token: &JoinToken,
    candidate: &Candidate,
    now: UnixMillis,
) -> Result<(), JoinError> {
    let id = || token.id().clone();
    if !record.hash.is(&token.hash()) {
        return Err(JoinError::Invalid);
    }
    if token.ca() != ca {
        return Err(JoinError::OtherCluster(id()));
    }
    if record.expires_at <= now {
        return Err(JoinError::Expired(id()));
    }
    if record.role != candidate.role {
        return Err(JoinError::Role {
            token: id(),
            wanted: record.role,
            found: candidate.role,
        });
    }
    if !record.nodes.matches(&candidate.id) {
        return Err(JoinError::Id {
            token: id(),
            wanted: record.nodes.clone(),
            found: candidate.id.clone(),
        });
    }
    let missing = record
        .labels
        .iter()
        .find(|(key, value)| candidate.labels.get(*key) != Some(*value));
    match missing {
        Some((key, value)) => Err(JoinError::Label {
            token: id(),
            key: key.clone(),
            value: value.clone(),
        }),
        None => Ok(()),
    }
}

/// Removes the tokens that have expired, and returns their number.
async fn remove_expired(catalog: &Catalog, now: UnixMillis) -> Result<usize, StoreError> {
    let tokens = list(catalog).await?.into_iter();
    let expired = tokens.filter(|(_, record)| record.expires_at <= now);
    let keys: Vec<String> = expired
        .map(|(id, _)| catalog.keys().join_token(&id))
        .collect();
    for keys in keys.chunks(TXN_MAX) {
        let txn = keys.iter().cloned().fold(Txn::new(), Txn::delete);
        carried_out(catalog, txn).await?;
    }
    Ok(keys.len())
}

/// Commits a transaction whose guards cannot fail otherwise than by its own first try.
async fn carried_out(catalog: &Catalog, txn: Txn) -> Result<(), StoreError> {
    match catalog.store().commit(txn).await? {
        Outcome::Done(_) => Ok(()),
        Outcome::Lost(_) | Outcome::Unknown => Err(StoreError::Unavailable {
            why: "the answer was lost; it may have been carried out".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests;
