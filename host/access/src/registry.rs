//! Gives tokens out, lists them and takes them back.
//!
//! Any master may do so: each operation is one transaction of the store, and needs no leader.

use std::time::Duration;

use super::record::{TokenRecord, VoidBefore};
use super::token::{NodeSecret, Token};
use crawler_model::access::{GrantError, Grants, Subject, TokenId};
use crawler_model::crawl::UnixMillis;
use crawler_store::catalog::{Catalog, Versioned, encode};
use crawler_store::{Guard, Outcome, StoreError, TXN_MAX, Txn};

/// Largest number of tokens of a cluster.
pub const TOKENS_MAX: usize = 10_000;

/// Longest validity of a token: ten years. Without one, a token does not expire.
pub const VALIDITY_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Subject of the first token.
const FIRST_SUBJECT: &str = "admin";

/// A token that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Subject that will show it.
    pub subject: Subject,
    /// Rights of those who show it.
    pub grants: Grants,
    /// Time for which it is valid. If `None`, until it is revoked.
    pub valid_for: Option<Duration>,
    /// Caller that asks for it.
    pub issued_by: String,
}

/// Reason why an operation on tokens was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The grants contradict themselves.
    #[error(transparent)]
    Grants(#[from] GrantError),
    /// The validity is zero or too long.
    #[error("a token is valid for a second to ten years, or until it is revoked")]
    Validity,
    /// There are too many tokens.
    #[error("there are {TOKENS_MAX} tokens, and no more are kept; revoke those that nobody needs")]
    Full,
    /// There is no such token.
    #[error("there is no token {0}")]
    NoToken(TokenId),
    /// The store did not carry it out.
    #[error("cannot change the access tokens")]
    Store(#[from] StoreError),
}

/// Makes a token, and returns it with its record. The token is nowhere else.
pub async fn issue(
    catalog: &Catalog,
    new: NewToken,
    now: UnixMillis,
) -> Result<(Token, TokenRecord), RegistryError> {
    new.grants.check()?;
    let expires_at = match new.valid_for {
        None => None,
        Some(time) if time < Duration::from_secs(1) || time > VALIDITY_MAX => {
            return Err(RegistryError::Validity);
        }
        Some(time) => Some(now + u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    };
    let keys = catalog.keys();
    let n_present = catalog
        .store()
        .list(&keys.access_tokens())
        .await?
        .entries
        .len();
    if n_present >= TOKENS_MAX && n_present - remove_expired(catalog, now).await? >= TOKENS_MAX {
        return Err(RegistryError::Full);
    }
    let token = Token::random();
    let record = TokenRecord {
        subject: new.subject,
        grants: new.grants,
        hash: token.hash(),
        issued_at: now,
        expires_at,
        issued_by: new.issued_by,
    };
    let key = keys.access_token(token.id());
    // With any token, the first one has been given out.
    let txn = Txn::new()
        .guard(Guard::Absent(key.clone()))
        .put(key.clone(), encode(&record))
        .put(keys.first_token(), encode(token.id()));
    carried_out(catalog, txn).await?;
    Ok((token, record))
}

/// Outcome of making the first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstToken {
    /// This token is the first.
    Issued,
    /// The cluster has had another one.
    IsThere,
}

/// True if the cluster has had a first token.
pub async fn has_had_tokens(catalog: &Catalog) -> Result<bool, StoreError> {
    Ok(catalog
        .store()
        .get(&catalog.keys().first_token())
        .await?
        .is_some())
}

/// Makes the first token of a cluster, with the role admin, unless it has had one.
pub async fn issue_first(
    catalog: &Catalog,
    token: &Token,
    now: UnixMillis,
) -> Result<FirstToken, StoreError> {
    let record = TokenRecord {
        subject: FIRST_SUBJECT.parse().expect("it is a name"),
        grants: Grants::all(),
        hash: token.hash(),
        issued_at: now,
        expires_at: None,
        issued_by: "the first start".to_owned(),
    };
    let keys = catalog.keys();
    let first = keys.first_token();
    let txn = Txn::new()
        .guard(Guard::Absent(first.clone()))
        .put(first.clone(), encode(token.id()))
        .put(keys.access_token(token.id()), encode(&record));
    match catalog.store().commit(txn).await? {
        Outcome::Done(_) => Ok(FirstToken::Issued),
        Outcome::Lost(_) | Outcome::Unknown => match catalog.read::<TokenId>(&first).await? {
            Some(present) if present.value == *token.id() => Ok(FirstToken::Issued),
            Some(_) => Ok(FirstToken::IsThere),
            None => Err(StoreError::Unavailable {
                why: "the answer was lost".to_owned(),
            }),
        },
    }
}

/// Returns all tokens, ordered by id. Records that do not decode are left out: they admit nobody.
pub async fn list(catalog: &Catalog) -> Result<Vec<(TokenId, TokenRecord)>, StoreError> {
    let prefix = catalog.keys().access_tokens();
    let scan = catalog.scan::<TokenRecord>(&prefix).await?;
    let records = scan.records.into_iter();
    let tokens = records.filter_map(|(key, Versioned { value, .. })| {
        Some((key.strip_prefix(&prefix)?.parse().ok()?, value))
    });
    Ok(tokens.collect())
}

/// Takes a token back, and returns its record.
pub async fn revoke(catalog: &Catalog, id: &TokenId) -> Result<TokenRecord, RegistryError> {
    let key = catalog.keys().access_token(id);
    let no_token = || RegistryError::NoToken(id.clone());
    let present = catalog
        .read::<TokenRecord>(&key)
        .await?
        .ok_or_else(no_token)?;
    carried_out(catalog, Txn::new().delete(key)).await?;
    Ok(present.value)
}

/// Takes all tokens back that a subject has now, and returns their ids.
pub async fn revoke_all(catalog: &Catalog, subject: &Subject) -> Result<Vec<TokenId>, StoreError> {
    let tokens = list(catalog).await?.into_iter();
    let of_subject = tokens.filter(|(_, record)| record.subject == *subject);
    let ids: Vec<TokenId> = of_subject.map(|(id, _)| id).collect();
    remove(catalog, &ids).await?;
    Ok(ids)
}

/// Removes the tokens that have expired, and returns their number.
async fn remove_expired(catalog: &Catalog, now: UnixMillis) -> Result<usize, StoreError> {
    let tokens = list(catalog).await?.into_iter();
    let expired = tokens.filter(|(_, record)| record.expires_at.is_some_and(|at| at <= now));
    let ids: Vec<TokenId> = expired.map(|(id, _)| id).collect();
    remove(catalog, &ids).await?;
    Ok(ids.len())
}

async fn remove(catalog: &Catalog, ids: &[TokenId]) -> Result<(), StoreError> {
    for ids in ids.chunks(TXN_MAX) {
        let keys = ids.iter().map(|id| catalog.keys().access_token(id));
        carried_out(catalog, keys.fold(Txn::new(), Txn::delete)).await?;
    }
    Ok(())
}

/// Makes all tokens of a subject void that were issued before this time. An earlier time than the present one changes
/// nothing. Returns the time that holds now.
pub async fn void_before(
    catalog: &Catalog,
    subject: &Subject,
    at: UnixMillis,
) -> Result<UnixMillis, StoreError> {
    let key = catalog.keys().void_before(subject);
    loop {
        let present = catalog.read::<VoidBefore>(&key).await?;
        let guard = match present {
            Some(present) if present.value.at >= at => return Ok(present.value.at),
            Some(present) => Guard::RevisionIs(key.clone(), present.revision),
            None => Guard::Absent(key.clone()),
        };
        let txn = Txn::new()
            .guard(guard)
            .put(key.clone(), encode(&VoidBefore { at }));
        match catalog.store().commit(txn).await? {
            Outcome::Done(_) => return Ok(at),
            // Another master wrote it, or this one, whose answer was lost: the next look tells.
            Outcome::Lost(_) | Outcome::Unknown => {}
        }
    }
}

/// Returns the secret that the nodes of the cluster show to masters; it is made when the store has none. Whoever can
/// read the store knows it.
pub async fn node_secret(catalog: &Catalog) -> Result<NodeSecret, StoreError> {
    let key = catalog.keys().node_secret();
    if let Some(present) = catalog.read(&key).await? {
        return Ok(present.value);
    }
    let fresh = NodeSecret::random();
    let txn = Txn::new()
        .guard(Guard::Absent(key.clone()))
        .put(key.clone(), encode(&fresh));
    match catalog.store().commit(txn).await? {
        Outcome::Done(_) => Ok(fresh),
        Outcome::Lost(_) | Outcome::Unknown => {
            let present = catalog.read(&key).await?;
            let unknown = || StoreError::Unavailable {
                why: "the secret of the nodes is not there yet".to_owned(),
            };
            Ok(present.ok_or_else(unknown)?.value)
        }
    }
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
