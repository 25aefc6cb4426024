//! Reads of keys, and the compaction of their history.

use etcd_client::{Client, Error, GetOptions, GetResponse, KeyValue};

use super::endpoints::Endpoints;
use super::fault::{Fault, Kind};
use crate::{Entry, Listing, ListingVisitor, Revision};

/// Number of keys in one answer. The server counts the rest of the range for each answer, so that smaller ones
/// cost more: 500 keys at a time take three times as long.
const PAGE: i64 = 2_000;

/// Largest number of bytes of one answer; the client's own limit of 4 MiB is less than some pages have.
pub(super) const ANSWER_MAX: usize = 16 << 20;

/// Largest number of tries of a listing, which begins anew if its revision is compacted away while it is read.
const LIST_TRIES: usize = 3;

pub(super) async fn get(endpoints: &Endpoints, key: &str) -> Result<Option<Entry>, Fault> {
    let mut answer = endpoints
        .ask(|client| range(client, key.as_bytes().to_vec(), None))
        .await?;
    Ok(answer.take_kvs().pop().and_then(entry))
}

pub(super) async fn list(endpoints: &Endpoints, prefix: &str) -> Result<Listing, Fault> {
    let mut entries = Entries::default();
    let revision = list_into(endpoints, prefix, &mut entries).await?;
    Ok(Listing {
        entries: entries.0,
        revision,
    })
}

#[derive(Default)]
struct Entries(Vec<Entry>);

impl ListingVisitor for Entries {
    fn begin(&mut self) {
        self.0.clear();
    }

    fn entry(&mut self, entry: Entry) {
        self.0.push(entry);
    }
}

/// Lists the first `max` keys after `after`.
pub(super) async fn list_after(
    endpoints: &Endpoints,
    prefix: &str,
    after: &str,
    max: usize,
) -> Result<Listing, Fault> {
    let (from, end) = range_of(prefix);
    let from = from.max([after.as_bytes(), &[0]].concat());
    let mut entries = Entries::default();
    if max == 0 || (end != [0] && from >= end) {
        let revision = present_revision(endpoints, prefix).await?;
        return Ok(Listing {
            entries: entries.0,
            revision: self::revision(revision),
        });
    }
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let revision = list_range(endpoints, (from, end), max, &mut entries).await?;
    Ok(Listing {
        entries: entries.0,
        revision,
    })
}

pub(super) async fn list_into(
    endpoints: &Endpoints,
    prefix: &str,
    visitor: &mut dyn ListingVisitor,
) -> Result<Revision, Fault> {
    list_range(endpoints, range_of(prefix), i64::MAX, visitor).await
}

/// Lists at most `max` keys of a range, from its first key to before its end.
async fn list_range(
    endpoints: &Endpoints,
    range: (Vec<u8>, Vec<u8>),
    max: i64,
    visitor: &mut dyn ListingVisitor,
) -> Result<Revision, Fault> {
    let mut n_left = LIST_TRIES;
    loop {
        n_left -= 1;
        visitor.begin();
        match list_pages(endpoints, range.clone(), PAGE, max, visitor).await {
            Err(fault) if fault.kind == Kind::Compacted && n_left > 0 => {}
            revision => return revision,
        }
    }
}

async fn list_pages(
    endpoints: &Endpoints,
    (mut from, end): (Vec<u8>, Vec<u8>),
    page: i64,
    mut max: i64,
    visitor: &mut dyn ListingVisitor,
) -> Result<Revision, Fault> {
    let mut limit = page;
    let mut pinned = 0;
    loop {
        let options = GetOptions::new()
            .with_range(end.clone())
            .with_limit(limit.min(max))
            .with_revision(pinned);
        let asked = endpoints.ask(|client| range(client, from.clone(), Some(options.clone())));
        let mut answer = match asked.await {
            Err(fault) if fault.kind == Kind::AnswerTooLarge && limit > 1 => {
                limit /= 2;
                continue;
            }
            answer => answer?,
        };
        if pinned == 0 {
            // Later headers carry the present revision, not that of the page.
            pinned = revision_of(&answer);
        }
        let is_last = !answer.more();
        let kvs = answer.take_kvs();
        if let Some(last) = kvs.last() {
            from = [last.key(), &[0]].concat();
        }
        max -= i64::try_from(kvs.len()).unwrap_or(i64::MAX);
        let is_last = is_last || kvs.is_empty() || max == 0;
        for entry in kvs.into_iter().filter_map(entry) {
            visitor.entry(entry);
        }
        if is_last {
            return Ok(revision(pinned));
        }
    }
}

/// Returns the revision of the last write of all, by a read of this key, which a lagging member does not
/// answer.
pub(super) async fn present_revision(endpoints: &Endpoints, key: &str) -> Result<i64, Fault> {
    let options = GetOptions::new().with_keys_only();
    let asked = endpoints.ask(|client| {
        let options = Some(options.clone());
        range(client, key.as_bytes().to_vec(), options)
    });
    Ok(revision_of(&asked.await?))
}

pub(super) async fn compact(
    endpoints: &Endpoints,
    probe_key: &str,
    keep: u64,
) -> Result<(), Fault> {
    let present = present_revision(endpoints, probe_key).await?;
    let up_to = present.saturating_sub(i64::try_from(keep).unwrap_or(i64::MAX));
    if up_to <= 0 {
        return Ok(());
    }
    let asked = endpoints.ask(|mut client| async move { client.compact(up_to, None).await });
    match asked.await {
        Err(fault) if fault.kind == Kind::Compacted => Ok(()),
        answer => answer.map(|_| ()),
    }
}

async fn range(
    client: Client,
    key: Vec<u8>,
    options: Option<GetOptions>,
) -> Result<GetResponse, Error> {
    let mut client = client.kv_client().max_decoding_message_size(ANSWER_MAX);
    client.get(key, options).await
}

fn revision_of(answer: &GetResponse) -> i64 {
    answer.header().map_or(0, |header| header.revision())
}

/// Returns the first key and the end of all keys that start with `prefix`, as etcd writes a range.
pub(super) fn range_of(prefix: &str) -> (Vec<u8>, Vec<u8>) {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return (prefix.as_bytes().to_vec(), end);
        }
    }
    // A zero byte stands for the first possible key, and for an open end.
    (vec![0], vec![0])
}

/// Converts a key with its value. Returns `None` if the key is not text: this program did not write it.
pub(super) fn entry(kv: KeyValue) -> Option<Entry> {
    let (created, changed) = (kv.create_revision(), kv.mod_revision());
    let (key, value) = kv.into_key_value();
    match String::from_utf8(key) {
        Ok(key) => Some(Entry {
            key,
            value: value.into(),
            created: revision(created),
            revision: revision(changed),
        }),
        Err(error) => {
            tracing::warn!(%error, "a key in etcd is no text; it is left out");
            None
        }
    }
}

/// Converts a revision to etcd's number.
pub(super) fn number(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

/// Converts etcd's number to a revision.
pub(super) fn revision(number: i64) -> Revision {
    Revision(u64::try_from(number).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_before_the_first_key_that_has_another_beginning() {
        assert_eq!(range_of("/a/"), (b"/a/".to_vec(), b"/a0".to_vec()));
        assert_eq!(range_of(""), (vec![0], vec![0]));
        let (from, end) = range_of("/é");
        let keys = ["/éa", "/é\u{10ffff}", "/ê"].map(str::as_bytes);
        assert!(*from < *keys[0] && *keys[1] < *end && *end <= *keys[2]);
    }
}
