//! Write operation, and the outcome of a write whose answer was lost.
//!
//! Such a write is tried again if that is harmless: if each changed key is guarded by its revision or its
//! absence, so that the second of two is refused. If the second is refused, the present value decides: the
//! write has a write id that no other write has.

use std::time::Duration;

use etcd_client::proto::{PbKeyValue, PbTxnOpResponse};
use etcd_client::{Compare, CompareOp, GetOptions, PutOptions, TxnOp, TxnResponse};
use tokio::time::Instant;

use super::endpoints::Endpoints;
use super::fault::{Fault, Kind};
use super::kv::{number, revision};
use super::settings::EtcdSettings;
use crate::{Change, Guard, Outcome, Txn};
use crawler_process::retry::Backoff;

pub(super) async fn commit(
    endpoints: &Endpoints,
    settings: &EtcdSettings,
    txn: &Txn,
) -> Result<Outcome, Fault> {
    let request = request_of(txn);
    let settle_by = Instant::now() + settings.settle_timeout;
    let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
    let mut n_left = endpoints.n_tries();
    let mut is_unknown = false;
    let mut worst = None;
    loop {
        let asked = endpoints.try_once(settings.write_timeout, |mut client| {
            let request = request.clone();
            async move { client.txn(request).await }
        });
        let fault = match asked.await {
            Ok(answer) if answer.succeeded() => return Ok(Outcome::Done(revision_of(&answer))),
            Ok(answer) if is_unknown => {
                return find_out(endpoints, txn, lost(txn, &answer)).await;
            }
            Ok(answer) => return Ok(Outcome::Lost(lost(txn, &answer))),
            Err(fault) => fault,
        };
        match fault.kind {
            Kind::Lost if !txn.may_be_repeated() => return Ok(Outcome::Unknown),
            Kind::Lost => is_unknown = true,
            // The lease is checked only if all guards hold, so nothing was changed before.
            Kind::LeaseGone => return Err(fault),
            _ if fault.is_passing() => worst = Some(Fault::more_telling(worst, fault)),
            _ if is_unknown => return Ok(Outcome::Unknown),
            _ => return Err(fault),
        }
        n_left = n_left.saturating_sub(1);
        if is_unknown {
            if Instant::now() >= settle_by {
                return Ok(Outcome::Unknown);
            }
            tokio::time::sleep(backoff.next_delay()).await;
        } else if let Some(fault) = worst.take_if(|_| n_left == 0) {
            return Err(fault);
        }
    }
}

/// Finds out the outcome of a write whose answer was lost and whose repetition was refused.
async fn find_out(endpoints: &Endpoints, txn: &Txn, lost: usize) -> Result<Outcome, Fault> {
    let keys = txn.changes.iter().map(Change::key);
    let gets: Vec<TxnOp> = keys.map(|key| TxnOp::get(key, None)).collect();
    let asked = endpoints.ask(|mut client| {
        let request = etcd_client::Txn::new().and_then(gets.clone());
        async move { client.txn(request).await }
    });
    let Ok(answer) = asked.await else {
        return Ok(Outcome::Unknown);
    };
    let there: Vec<Option<&PbKeyValue>> = found(&answer).collect();
    Ok(match written_at(txn, &there) {
        Some(written) => Outcome::Done(revision(written)),
        None if is_as_before(txn, &there) => Outcome::Lost(lost),
        None => Outcome::Unknown,
    })
}

/// Returns the revision at which all values of the transaction were put, if they are the present values.
fn written_at(txn: &Txn, there: &[Option<&PbKeyValue>]) -> Option<i64> {
    let mut written = None;
    for (change, there) in txn.changes.iter().zip(there) {
        if let Change::Put { value, .. } = change {
            let there = there.filter(|kv| kv.value == *value)?;
            if written.is_some_and(|written| written != there.mod_revision) {
                return None;
            }
            written = Some(there.mod_revision);
        }
    }
    // The same bytes may have been there before: then their revision is the guarded one.
    written.filter(|_| !is_as_before(txn, there))
}

/// True if a changed key still has the revision that it had before: nothing was carried out.
fn is_as_before(txn: &Txn, there: &[Option<&PbKeyValue>]) -> bool {
    txn.changes.iter().zip(there).any(|(change, there)| {
        let Some(there) = there else { return false };
        txn.guards.iter().any(|guard| {
            matches!(guard, Guard::RevisionIs(key, before)
                if key == change.key() && number(*before) == there.mod_revision)
        })
    })
}

fn request_of(txn: &Txn) -> etcd_client::Txn {
    let compares: Vec<Compare> = txn.guards.iter().map(compare_of).collect();
    let changes = txn.changes.iter().map(|change| match change {
        Change::Put { key, value, lease } => {
            let lease = lease.map(|lease| PutOptions::new().with_lease(lease.0.cast_signed()));
            TxnOp::put(key.as_str(), value.to_vec(), lease)
        }
        Change::Delete { key } => TxnOp::delete(key.as_str(), None),
    });
    let changes: Vec<TxnOp> = changes.collect();
    // The present value of each guard's key shows which guard did not hold.
    let guarded = txn.guards.iter().map(|guard| {
        let (Guard::Absent(key)
        | Guard::Exists(key)
        | Guard::RevisionIs(key, _)
        | Guard::CreatedAt(key, _)) = guard;
        TxnOp::get(key.as_str(), Some(GetOptions::new().with_keys_only()))
    });
    let guarded: Vec<TxnOp> = guarded.collect();
    etcd_client::Txn::new()
        .when(compares)
        .and_then(changes)
        .or_else(guarded)
}

fn compare_of(guard: &Guard) -> Compare {
    // An absent key has revision 0, and a guard of 0 never holds.
    let never = |key: &str| Compare::create_revision(key, CompareOp::Less, 0);
    match guard {
        Guard::Absent(key) => Compare::create_revision(key.as_str(), CompareOp::Equal, 0),
        Guard::Exists(key) => Compare::create_revision(key.as_str(), CompareOp::Greater, 0),
        Guard::RevisionIs(key, seen) => match number(*seen) {
            0 => never(key),
            seen => Compare::mod_revision(key.as_str(), CompareOp::Equal, seen),
        },
        Guard::CreatedAt(key, created) => match number(*created) {
            0 => never(key),
            created => Compare::create_revision(key.as_str(), CompareOp::Equal, created),
        },
    }
}

/// Returns the position of the first guard that does not hold for the present value of its key.
fn lost(txn: &Txn, answer: &TxnResponse) -> usize {
    let holds = |(guard, there): (&Guard, Option<&PbKeyValue>)| match guard {
        Guard::Absent(_) => there.is_none(),
        Guard::Exists(_) => there.is_some(),
        Guard::RevisionIs(_, seen) => there.is_some_and(|kv| kv.mod_revision == number(*seen)),
        Guard::CreatedAt(_, created) => {
            there.is_some_and(|kv| kv.create_revision == number(*created))
        }
    };
    let mut guards = txn.guards.iter().zip(found(answer));
    let first = guards.position(|guarded| !holds(guarded));
    first.expect("a transaction is refused for a guard that does not hold at the same moment")
}

/// Returns the result of each get in an answer.
fn found(answer: &TxnResponse) -> impl Iterator<Item = Option<&PbKeyValue>> {
    answer.0.responses.iter().map(|op| match &op.response {
        Some(PbTxnOpResponse::ResponseRange(range)) => range.kvs.first(),
        _ => None,
    })
}

fn revision_of(answer: &TxnResponse) -> crate::Revision {
    revision(answer.header().map_or(0, |header| header.revision()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Revision;

    fn kv(value: &str, mod_revision: i64) -> PbKeyValue {
        PbKeyValue {
            value: value.into(),
            mod_revision,
            ..PbKeyValue::default()
        }
    }

    #[test]
    fn what_is_there_tells_whether_a_write_was_ours() {
        let txn = Txn::new()
            .guard(Guard::RevisionIs("/a".to_owned(), Revision(3)))
            .guard(Guard::Absent("/b".to_owned()))
            .put("/a", "mine")
            .put("/b", "mine");
        let (ours, theirs, before) = (kv("mine", 7), kv("theirs", 7), kv("old", 3));
        let same_bytes = kv("mine", 3);
        assert_eq!(written_at(&txn, &[Some(&ours), Some(&ours)]), Some(7));
        assert_eq!(written_at(&txn, &[Some(&ours), Some(&theirs)]), None);
        assert_eq!(written_at(&txn, &[Some(&ours), None]), None);
        assert_eq!(written_at(&txn, &[Some(&kv("mine", 8)), Some(&ours)]), None);
        assert!(is_as_before(&txn, &[Some(&before), None]));
        assert!(!is_as_before(&txn, &[Some(&theirs), None]));
        let only_a = Txn::new()
            .guard(Guard::RevisionIs("/a".to_owned(), Revision(3)))
            .put("/a", "mine");
        assert_eq!(written_at(&only_a, &[Some(&same_bytes)]), None);
        let deletion = Txn::new()
            .guard(Guard::RevisionIs("/a".to_owned(), Revision(3)))
            .delete("/a");
        assert_eq!(written_at(&deletion, &[None]), None);
    }
}
