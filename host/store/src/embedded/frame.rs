//! Format of the log: a header, then frames, each with its length and checksums.
//!
//! ```text
//! header   12 bytes "crawlerstore", format: u32
//! frame    length: u32, checksum of the payload: u32, checksum of the 8 bytes before: u32, payload
//! payload  1, revision: u64, n_entries: u64          the first frame: as of here, all keys follow
//!          2, (key, value, created: u64, revision: u64)…    a part of these keys
//!          3, (revision: u64, n_changes: u32, change…)…     the transactions of one sync
//! change   0, key | 1, key, value, created: u64
//! ```
//!
//! Numbers are little-endian; a key or value is preceded by its length (u32). The length has its own checksum,
//! so that a flipped bit in it is not mistaken for a frame that a crash cut short. A key put under a lease is
//! written as a deletion, because leases end with the process that wrote the log.

use bytes::Bytes;

use super::state::{AppliedChange, Committed, Stored};
use crate::Revision;

/// Bytes at the start of a log.
pub(super) const MAGIC: &[u8; 12] = b"crawlerstore";
/// Format that this code writes and reads.
pub(super) const FORMAT: u32 = 1;
/// Bytes before the first frame.
pub(super) const HEADER_LEN: usize = MAGIC.len() + 4;
/// Bytes of a frame before its payload.
pub(super) const HEAD_LEN: usize = 12;

/// One frame, decoded.
#[derive(Debug)]
pub(super) enum Frame {
    /// Start of a snapshot: its revision and the number of its keys.
    Start { revision: Revision, n_entries: u64 },
    /// Some of the keys of the snapshot.
    Entries(Vec<(String, Stored)>),
    /// Transactions of one sync.
    Txns(Vec<Committed>),
}

pub(super) fn header() -> Vec<u8> {
    [MAGIC.as_slice(), &FORMAT.to_le_bytes()].concat()
}

pub(super) fn start(revision: Revision, n_entries: u64) -> Vec<u8> {
    let mut frame = open_frame(1);
    frame.extend(revision.0.to_le_bytes());
    frame.extend(n_entries.to_le_bytes());
    seal(frame)
}

pub(super) fn entries<'a>(entries: impl IntoIterator<Item = &'a (String, Stored)>) -> Vec<u8> {
    let mut frame = open_frame(2);
    for (key, stored) in entries {
        push_bytes(&mut frame, key.as_bytes());
        push_bytes(&mut frame, &stored.value);
        frame.extend(stored.created.0.to_le_bytes());
        frame.extend(stored.revision.0.to_le_bytes());
    }
    seal(frame)
}

pub(super) fn txns(txns: &[Committed]) -> Vec<u8> {
    let mut frame = open_frame(3);
    for txn in txns {
        frame.extend(txn.revision.0.to_le_bytes());
        frame.extend(len_u32(txn.made.len()).to_le_bytes());
        for made in &txn.made {
            match made {
                AppliedChange::Put(key, stored) if stored.lease.is_none() => {
                    frame.push(1);
                    push_bytes(&mut frame, key.as_bytes());
                    push_bytes(&mut frame, &stored.value);
                    frame.extend(stored.created.0.to_le_bytes());
                }
                AppliedChange::Put(key, _) | AppliedChange::Delete(key) => {
                    frame.push(0);
                    push_bytes(&mut frame, key.as_bytes());
                }
            }
        }
    }
    seal(frame)
}

/// Returns the length of the payload after a head, if the head matches its checksum.
pub(super) fn payload_len(head: &[u8; HEAD_LEN]) -> Option<u32> {
    let (checked, checksum) = head.split_at(8);
    (crc32fast::hash(checked).to_le_bytes() == checksum)
        .then(|| u32::from_le_bytes([head[0], head[1], head[2], head[3]]))
}

/// True if the payload matches the checksum in the head.
pub(super) fn is_whole(head: &[u8; HEAD_LEN], payload: &[u8]) -> bool {
    crc32fast::hash(payload).to_le_bytes() == head[4..8]
}

/// Decodes a payload whose checksum held. The error describes what is wrong with it even so.
pub(super) fn decode(payload: &[u8]) -> Result<Frame, &'static str> {
    let mut rest = Rest(payload);
    match rest.u8()? {
        1 => {
            let frame = Frame::Start {
                revision: Revision(rest.u64()?),
                n_entries: rest.u64()?,
            };
            if rest.0.is_empty() {
                Ok(frame)
            } else {
                Err("bytes after the start frame")
            }
        }
        2 => {
            let mut entries = Vec::new();
            while !rest.0.is_empty() {
                let key = rest.key()?;
                let value = Bytes::copy_from_slice(rest.bytes()?);
                let (created, revision) = (Revision(rest.u64()?), Revision(rest.u64()?));
                let stored = Stored {
                    value,
                    created,
                    revision,
                    lease: None,
                };
                entries.push((key, stored));
            }
            Ok(Frame::Entries(entries))
        }
        3 => {
            let mut txns = Vec::new();
            while !rest.0.is_empty() {
                let revision = Revision(rest.u64()?);
                let n_changes = rest.u32()?;
                let mut made = Vec::new();
                for _ in 0..n_changes {
                    made.push(rest.change(revision)?);
                }
                txns.push(Committed { revision, made });
            }
            Ok(Frame::Txns(txns))
        }
        _ => Err("a frame of an unknown kind"),
    }
}

fn open_frame(kind: u8) -> Vec<u8> {
    let mut frame = vec![0; HEAD_LEN];
    frame.push(kind);
    frame
}

fn seal(mut frame: Vec<u8>) -> Vec<u8> {
    let payload = &frame[HEAD_LEN..];
    let (len, checksum) = (len_u32(payload.len()), crc32fast::hash(payload));
    frame[..4].copy_from_slice(&len.to_le_bytes());
    frame[4..8].copy_from_slice(&checksum.to_le_bytes());
    let checksum_of_head = crc32fast::hash(&frame[..8]);
    frame[8..HEAD_LEN].copy_from_slice(&checksum_of_head.to_le_bytes());
    frame
}

fn push_bytes(frame: &mut Vec<u8>, bytes: &[u8]) {
    frame.extend(len_u32(bytes.len()).to_le_bytes());
    frame.extend(bytes);
}

fn len_u32(len: usize) -> u32 {
    u32::try_from(len).expect("a frame is closed at a few MiB and a transaction fits in memory")
}

/// The part of a payload that is not yet read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self
            .0
            .split_at_checked(n)
            .ok_or("a frame that ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, &'static str> {
        self.array().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, &'static str> {
        self.array().map(u64::from_le_bytes)
    }

    fn bytes(&mut self) -> Result<&'a [u8], &'static str> {
        let len = self.u32()?;
        self.take(usize::try_from(len).map_err(|_| "a length beyond this machine")?)
    }

    fn key(&mut self) -> Result<String, &'static str> {
        let key = std::str::from_utf8(self.bytes()?);
        key.map(str::to_owned).map_err(|_| "a key that is not text")
    }

    fn change(&mut self, revision: Revision) -> Result<AppliedChange, &'static str> {
        match self.u8()? {
            0 => Ok(AppliedChange::Delete(self.key()?)),
            1 => {
                let key = self.key()?;
                let value = Bytes::copy_from_slice(self.bytes()?);
                let created = Revision(self.u64()?);
                Ok(AppliedChange::Put(
                    key,
                    Stored {
                        value,
                        created,
                        revision,
                        lease: None,
                    },
                ))
            }
            _ => Err("a change of an unknown kind"),
        }
    }
}
