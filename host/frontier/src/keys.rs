//! Keys of a frontier's database; no other file spells them.
//!
//! Numbers are big-endian, so that keys sort like the values that they stand for. The first byte is the kind,
//! and the database keeps each kind in a segment of its own.
//!
//! ```text
//! m h                                  head: whose it is, its run, its roots
//! m b <n mod 16384>                    number n of a batch, with what else every batch changes
//! m k                                  cookies
//! m s <fingerprint>                    suspect: a page that had entered its rule
//! m c <sink>                           first item that the sink does not have, once another sink than lines was named
//! s <run> <host> <fingerprint>         seen in this run
//! u <host> <fingerprint>               state of a URL
//! r <run> <host> <priority> <due> <entry>   ready, or in flight
//! h <host>                             clock, and a cursor for each priority
//! n <host>                             name
//! b <host>                             robots.txt
//! o <sequence>                         item that not all sinks have yet
//! p <key>                              mark of the sink in the data root: key and value are its own
//! p <sink> / <key>                     mark of another sink
//! d <run> <host> <fingerprint>         dead letter
//! c t <run>                            totals
//! c s <run>                            statistics
//! c p <run> <pattern>                  URLs stored per pattern of paths
//! c l <number>                         line of the log
//! x <run> <shard> <sequence>           link for another shard that has not got it yet
//! m x <shard>                          the next such link of that shard, and how many there were
//! i <run> <shard>                      the last link of another shard that is stored here
//! m f                                  comparison of items: the run, and the generation of the items it compares with
//! k <generation> <name>                item that is known: the run that has seen it last, and its digest
//! v <generation> <name>                the item itself, as it was delivered last
//! e <run> <sequence>                   change of an item
//! c d <run>                            totals of the changes
//! w <number>                           item that waits for the verdict on its window
//! q <hold> <number>                    item that is held
//! m q                                  numbers that were given to them, and to holds
//! m w <hold>                           hold: whose items it has, why, and how many
//! m p b, m p r                         profile of the items of the last good run, and of this run
//! ```

use std::ops::Range;

use bytes::Bytes;
use slatedb::{PrefixExtractor, PrefixTarget};
use url::Url;

use super::workbench::{HostId, LaneId, QueuePosition};
use crawler_model::changes::ItemName;
use crawler_model::crawl::{Fingerprint, Request};
use crawler_model::id::{Run, Shard};
use crawler_model::links::host_hash;
use crawler_model::settings::SinkName;

/// Number of batch numbers that are kept.
pub(super) const RING: u64 = 16_384;

pub(super) const HEAD: &[u8] = b"mh";
pub(super) const BATCHES: &[u8] = b"mb";
pub(super) const COOKIES: &[u8] = b"mk";
pub(super) const SUSPECTS: &[u8] = b"ms";
pub(super) const CURSORS: &[u8] = b"mc";
pub(super) const PEERS: &[u8] = b"mx";
pub(super) const READY: &[u8] = b"r";
pub(super) const STATES: &[u8] = b"u";
pub(super) const HOSTS: &[u8] = b"h";
pub(super) const NAMES: &[u8] = b"n";
pub(super) const ROBOTS: &[u8] = b"b";
pub(super) const OUTBOX: &[u8] = b"o";
pub(super) const MARKS: &[u8] = b"p";
pub(super) const LINES: &[u8] = b"cl";
pub(super) const COMPARISON: &[u8] = b"mf";
pub(super) const KNOWN: &[u8] = b"k";
pub(super) const KNOWN_ITEMS: &[u8] = b"v";
pub(super) const CHANGES: &[u8] = b"e";
pub(super) const CHANGE_COUNTS: &[u8] = b"cd";
pub(super) const WAITING: &[u8] = b"w";
pub(super) const QUARANTINE: &[u8] = b"mq";
pub(super) const HOLDS: &[u8] = b"mw";
pub(super) const BASELINE_PROFILE: &[u8] = b"mpb";
pub(super) const RUN_PROFILE: &[u8] = b"mpr";
/// Byte between the name of a sink and the key of its mark.
const MARK_END: &[u8] = b"/";

/// Extractor of the segment of a key, which is its kind.
pub(super) struct Kinds;

impl PrefixExtractor for Kinds {
    fn name(&self) -> &str {
        "kind"
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let bytes = match target {
            PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes) => bytes,
        };
        (!bytes.is_empty()).then_some(1)
    }
}

/// Returns the host of a request, as used in keys.
pub(super) fn host_of(request: &Request) -> HostId {
    host_of_url(&request.url)
}

/// Returns the host of a URL, as used in keys.
pub(super) fn host_of_url(url: &Url) -> HostId {
    HostId(host_hash(url))
}

fn key(parts: &[&[u8]]) -> Bytes {
    parts.concat().into()
}

pub(super) fn batch(n: u64) -> Bytes {
    key(&[BATCHES, &((n % RING) as u16).to_be_bytes()])
}

pub(super) fn suspect(fingerprint: Fingerprint) -> Bytes {
    key(&[SUSPECTS, &fingerprint.0])
}

/// Parses the fingerprint of a suspect key.
pub(super) fn parse_suspect(key: &[u8]) -> Option<Fingerprint> {
    let fingerprint = key.get(SUSPECTS.len()..)?.try_into().ok()?;
    Some(Fingerprint(fingerprint))
}

pub(super) fn seen(run: Run, host: HostId, fingerprint: Fingerprint) -> Bytes {
    key(&[&seen_of(run), &host.0.to_be_bytes(), &fingerprint.0])
}

pub(super) fn seen_of(run: Run) -> Bytes {
    key(&[b"s", &run.0.to_be_bytes()])
}

pub(super) fn state(host: HostId, fingerprint: Fingerprint) -> Bytes {
    key(&[STATES, &host.0.to_be_bytes(), &fingerprint.0])
}

pub(super) fn ready(run: Run, lane: LaneId, position: QueuePosition) -> Bytes {
    let (due, entry) = (position.due.to_be_bytes(), position.entry.to_be_bytes());
    key(&[&ready_of_lane(run, lane), &due, &entry])
}

pub(super) fn ready_of(run: Run) -> Bytes {
    key(&[b"r", &run.0.to_be_bytes()])
}

pub(super) fn ready_of_host(run: Run, host: HostId) -> Bytes {
    key(&[&ready_of(run), &host.0.to_be_bytes()])
}

/// Returns the prefix of a lane's ready keys. Higher priorities sort first.
pub(super) fn ready_of_lane(run: Run, lane: LaneId) -> Bytes {
    let priority = (i64::from(i32::MAX) - i64::from(lane.priority)) as u32;
    key(&[&ready_of_host(run, lane.host), &priority.to_be_bytes()])
}

/// Parses host, priority and position of a ready key.
pub(super) fn parse_ready(key: &[u8]) -> Option<(LaneId, QueuePosition)> {
    let rest = key.get(9..)?;
    let (host, rest) = rest.split_first_chunk::<8>()?;
    let (priority, rest) = rest.split_first_chunk::<4>()?;
    let (due, rest) = rest.split_first_chunk::<8>()?;
    let (entry, _) = rest.split_first_chunk::<8>()?;
    let lane = LaneId {
        host: HostId(u64::from_be_bytes(*host)),
        priority: (i64::from(i32::MAX) - i64::from(u32::from_be_bytes(*priority))) as i32,
    };
    let position = QueuePosition {
        due: u64::from_be_bytes(*due),
        entry: u64::from_be_bytes(*entry),
    };
    Some((lane, position))
}

/// Returns the range of a lane's keys that come after one position.
pub(super) fn ready_behind(run: Run, lane: LaneId, after: QueuePosition) -> Range<Bytes> {
    let next = QueuePosition {
        entry: after.entry.saturating_add(1),
        ..after
    };
    ready(run, lane, next)..end_of(&ready_of_lane(run, lane))
}

pub(super) fn host(host: HostId) -> Bytes {
    key(&[HOSTS, &host.0.to_be_bytes()])
}

pub(super) fn host_name(host: HostId) -> Bytes {
    key(&[NAMES, &host.0.to_be_bytes()])
}

pub(super) fn robots(host: HostId) -> Bytes {
    key(&[ROBOTS, &host.0.to_be_bytes()])
}

/// Parses the host of a key of hosts, of names, of robots.txt, or of states.
pub(super) fn parse_host(key: &[u8]) -> Option<HostId> {
    let (host, _) = key.get(1..)?.split_first_chunk::<8>()?;
    Some(HostId(u64::from_be_bytes(*host)))
}

pub(super) fn item(sequence: u64) -> Bytes {
    key(&[OUTBOX, &sequence.to_be_bytes()])
}

pub(super) fn cursor(sink: &SinkName) -> Bytes {
    key(&[CURSORS, sink.as_str().as_bytes()])
}

/// Parses the sink of the key of a cursor.
pub(super) fn parse_cursor(key: &[u8]) -> Option<SinkName> {
    let name = str::from_utf8(key.get(CURSORS.len()..)?).ok()?;
    name.parse().ok()
}

pub(super) fn mark(sink: &SinkName, of_sink: &[u8]) -> Bytes {
    key(&[&marks_of(sink), of_sink])
}

/// Returns the prefix of the marks of a sink. Those of the sink in the data root have none of their own, and are the
/// marks without a slash: their keys are names of files.
pub(super) fn marks_of(sink: &SinkName) -> Bytes {
    match sink.is_lines() {
        true => Bytes::from_static(MARKS),
        false => key(&[MARKS, sink.as_str().as_bytes(), MARK_END]),
    }
}

/// Parses the key that a sink has given a mark. Returns `None` for the mark of another sink.
pub(super) fn parse_mark(sink: &SinkName, mark: &Bytes) -> Option<Bytes> {
    let prefix = marks_of(sink);
    let key = mark
        .starts_with(&prefix)
        .then(|| mark.slice(prefix.len()..))?;
    let is_of_other = sink.is_lines() && key.contains(&MARK_END[0]);
    (!is_of_other).then_some(key)
}

pub(super) fn dead_letter(run: Run, host: HostId, fingerprint: Fingerprint) -> Bytes {
    key(&[&dead_letters_of(run), &host.0.to_be_bytes(), &fingerprint.0])
}

pub(super) fn dead_letters_of(run: Run) -> Bytes {
    key(&[b"d", &run.0.to_be_bytes()])
}

pub(super) fn totals(run: Run) -> Bytes {
    key(&[b"ct", &run.0.to_be_bytes()])
}

pub(super) fn statistics(run: Run) -> Bytes {
    key(&[b"cs", &run.0.to_be_bytes()])
}

pub(super) fn line(number: u64) -> Bytes {
    key(&[LINES, &number.to_be_bytes()])
}

/// Parses the number of the key of a line.
pub(super) fn parse_line(key: &[u8]) -> Option<u64> {
    let number = key.get(LINES.len()..)?.try_into().ok()?;
    Some(u64::from_be_bytes(number))
}

pub(super) fn pattern(run: Run, pattern: [u8; 8]) -> Bytes {
    key(&[&patterns_of(run), &pattern])
}

pub(super) fn patterns_of(run: Run) -> Bytes {
    key(&[b"cp", &run.0.to_be_bytes()])
}

pub(super) fn link(run: Run, to: Shard, sequence: u64) -> Bytes {
    let (to, sequence) = (to.0.to_be_bytes(), sequence.to_be_bytes());
    key(&[&links_of(run), &to, &sequence])
}

pub(super) fn links_of(run: Run) -> Bytes {
    key(&[b"x", &run.0.to_be_bytes()])
}

pub(super) fn peer(to: Shard) -> Bytes {
    key(&[PEERS, &to.0.to_be_bytes()])
}

pub(super) fn applied(run: Run, from: Shard) -> Bytes {
    key(&[&applied_of(run), &from.0.to_be_bytes()])
}

pub(super) fn applied_of(run: Run) -> Bytes {
    key(&[b"i", &run.0.to_be_bytes()])
}

pub(super) fn known(generation: u64, name: ItemName) -> Bytes {
    key(&[&known_of(generation), &name.0])
}

pub(super) fn known_of(generation: u64) -> Bytes {
    key(&[KNOWN, &generation.to_be_bytes()])
}

pub(super) fn known_item(generation: u64, name: ItemName) -> Bytes {
    key(&[&known_items_of(generation), &name.0])
}

pub(super) fn known_items_of(generation: u64) -> Bytes {
    key(&[KNOWN_ITEMS, &generation.to_be_bytes()])
}

/// Parses the name that the key of a known item ends with.
pub(super) fn parse_known(key: &[u8]) -> Option<ItemName> {
    let (_, name) = key.split_last_chunk::<16>()?;
    Some(ItemName(*name))
}

pub(super) fn change(run: Run, sequence: u64) -> Bytes {
    key(&[&changes_of(run), &sequence.to_be_bytes()])
}

pub(super) fn changes_of(run: Run) -> Bytes {
    key(&[CHANGES, &run.0.to_be_bytes()])
}

/// Parses the number that the key of a change ends with.
pub(super) fn parse_change(key: &[u8]) -> Option<u64> {
    let (_, sequence) = key.split_last_chunk::<8>()?;
    Some(u64::from_be_bytes(*sequence))
}

pub(super) fn change_counts(run: Run) -> Bytes {
    key(&[CHANGE_COUNTS, &run.0.to_be_bytes()])
}

pub(super) fn waiting(number: u64) -> Bytes {
    key(&[WAITING, &number.to_be_bytes()])
}

pub(super) fn held(hold: u64, number: u64) -> Bytes {
    key(&[b"q", &hold.to_be_bytes(), &number.to_be_bytes()])
}

pub(super) fn hold(number: u64) -> Bytes {
    key(&[HOLDS, &number.to_be_bytes()])
}

/// Parses the number that the key of an item ends with: one that waits, or is held.
pub(super) fn parse_number(key: &[u8]) -> Option<u64> {
    let (_, number) = key.split_last_chunk::<8>()?;
    Some(u64::from_be_bytes(*number))
}

/// Parses the shard that a key ends with: that of a peer, or of a last link applied.
pub(super) fn parse_shard(key: &[u8]) -> Option<Shard> {
    let (_, shard) = key.split_last_chunk::<4>()?;
    Some(Shard(u32::from_be_bytes(*shard)))
}

/// Returns the first key after this one.
pub(super) fn after(key: &[u8]) -> Bytes {
    self::key(&[key, &[0]])
}

/// Returns the first key that does not start with this prefix. Prefixes here never consist of 0xff bytes only.
pub(super) fn end_of(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(priority: i32) -> LaneId {
        LaneId {
            host: HostId(7),
            priority,
        }
    }

    #[test]
    fn ready_keys_sort_by_priority_then_due_time_then_age_and_are_read_back() {
        let position = |due, entry| QueuePosition { due, entry };
        let order = [
            (lane(i32::MAX), position(900, 9)),
            (lane(3), position(0, 2)),
            (lane(3), position(1, 1)),
            (lane(0), position(0, 4)),
            (lane(-5), position(0, 3)),
            (lane(i32::MIN), position(u64::MAX, 5)),
        ];
        let keys: Vec<Bytes> = order.iter().map(|(l, t)| ready(Run(1), *l, *t)).collect();
        assert!(keys.is_sorted());
        for (key, (lane, position)) in keys.iter().zip(order) {
            assert_eq!(parse_ready(key), Some((lane, position)));
            assert!(ready_behind(Run(1), lane, position).start > *key);
        }
        let behind = ready_behind(Run(1), lane(3), position(0, 2));
        assert!(behind.contains(&keys[2]) && !behind.contains(&keys[3]));
    }

    #[test]
    fn marks_and_cursors_are_those_of_their_sinks() {
        let (lines, db) = (SinkName::lines(), "db".parse().unwrap());
        let dbs: SinkName = "dbs".parse().unwrap();
        let of_lines = mark(&lines, b"1-0.jsonl");
        assert_eq!(of_lines, "p1-0.jsonl", "as earlier versions wrote it");
        let of_db = mark(&db, b"1-0.jsonl");
        for (sink, key, expected) in [
            (&lines, &of_lines, true),
            (&lines, &of_db, false),
            (&db, &of_db, true),
            (&db, &of_lines, false),
            (&dbs, &of_db, false),
        ] {
            let found = parse_mark(sink, key);
            assert_eq!(found, expected.then(|| "1-0.jsonl".into()), "{sink}");
        }
        for sink in [lines, db, dbs] {
            assert_eq!(parse_cursor(&cursor(&sink)), Some(sink));
        }
        assert_eq!(parse_cursor(b"mc"), None);
    }

    #[test]
    fn known_items_and_changes_are_found_by_their_keys() {
        let name = ItemName([u8::MAX; 16]);
        for key in [known(7, name), known_item(7, name)] {
            assert_eq!(parse_known(&key), Some(name));
        }
        assert!(known(7, name) < known_of(8) && known_of(8) < end_of(KNOWN));
        let last = change(Run(3), u64::MAX);
        assert_eq!(parse_change(&last), Some(u64::MAX));
        assert!(changes_of(Run(3)) < last && last < changes_of(Run(4)));
    }

    #[test]
    fn held_items_sort_by_their_hold_and_number() {
        let keys = [held(1, 0), held(1, u64::MAX), held(2, 7), held(256, 0)];
        assert!(keys.is_sorted());
        assert_eq!(parse_number(&keys[2]), Some(7));
        assert_eq!(parse_number(&waiting(9)), Some(9));
        assert_eq!(parse_number(b"w"), None);
    }

    #[test]
    fn a_run_ends_where_the_next_begins() {
        let last = seen(Run(255), HostId(u64::MAX), Fingerprint([u8::MAX; 16]));
        assert!(last < end_of(&seen_of(Run(255))));
        assert!(end_of(&seen_of(Run(255))) <= seen_of(Run(256)));
        assert_eq!(end_of(b"a\xff"), Bytes::from_static(b"b"));
    }
}
