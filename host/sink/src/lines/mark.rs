//! The mark of a line file: how much of the file counts.
//!
//! Frontiers keep marks as they are, also over an upgrade of the crawler. The key of a mark is the name of its
//! file, and the value is a message of Protocol Buffers: fields are added to it, never changed.

use std::path::Path;

use prost::Message;

use super::super::SinkError;
use super::names::{self, FileId};
use crawler_model::frontier::SinkMark;
use crawler_model::id::Run;

/// Length up to which a line file counts; the rest of it was never delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineMark {
    pub(super) file: FileId,
    /// Number of committed bytes.
    pub(super) length: u64,
    /// First and last run of the items in the file.
    pub(super) runs: (Run, Run),
}

/// Value of a mark.
#[derive(Clone, Copy, PartialEq, Message)]
struct Value {
    #[prost(uint64, tag = "1")]
    length: u64,
    #[prost(uint64, tag = "2")]
    first_run: u64,
    #[prost(uint64, tag = "3")]
    last_run: u64,
}

impl LineMark {
    pub(super) fn encode(&self) -> SinkMark {
        let value = Value {
            length: self.length,
            first_run: self.runs.0.0,
            last_run: self.runs.1.0,
        };
        SinkMark {
            key: names::file(self.file.storage_epoch, self.file.n).into(),
            value: value.encode_to_vec().into(),
        }
    }

    /// Decodes a mark that the frontier of this folder's shard keeps.
    pub(super) fn decode(mark: &SinkMark, folder: &Path) -> Result<Self, SinkError> {
        let name = String::from_utf8_lossy(&mark.key);
        let unreadable = |source| SinkError::Permanent {
            message: format!("cannot read the mark of {}", folder.join(&*name).display()),
            source,
        };
        let file = names::parse_file(&name)
            .ok_or_else(|| unreadable(Some("it is not the name of a line file".into())))?;
        let value = Value::decode(&*mark.value).map_err(|e| unreadable(Some(e.into())))?;
        Ok(Self {
            file,
            length: value.length,
            runs: (Run(value.first_run), Run(value.last_run)),
        })
    }

    /// Decodes all marks that the frontier of this folder's shard keeps.
    pub(super) fn decode_all(marks: &[SinkMark], folder: &Path) -> Result<Vec<Self>, SinkError> {
        marks
            .iter()
            .map(|mark| Self::decode(mark, folder))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: LineMark = LineMark {
        file: FileId {
            storage_epoch: 1,
            n: 0,
        },
        length: 321,
        runs: (Run(1), Run(2)),
    };

    #[test]
    fn a_mark_is_encoded_as_earlier_versions_did() {
        let mark = MARK.encode();
        assert_eq!(mark.key, "1-0.jsonl");
        assert_eq!(*mark.value, [8, 0xc1, 2, 16, 1, 24, 2]);
        assert_eq!(LineMark::decode(&mark, Path::new("0")).unwrap(), MARK);
    }

    #[test]
    fn a_mark_of_something_else_is_named() {
        for (key, value) in [("rows", &[8, 1][..]), ("1-0.jsonl", &[0xff])] {
            let mark = SinkMark {
                key: key.into(),
                value: bytes::Bytes::copy_from_slice(value),
            };
            let error = LineMark::decode(&mark, Path::new("items/7/0")).unwrap_err();
            assert!(matches!(error, SinkError::Permanent { .. }), "{error:?}");
            let expected = format!("cannot read the mark of items/7/0/{key}");
            assert_eq!(error.to_string(), expected);
        }
    }
}
