//! Log of the compactions of a folder. It tells which files a compaction takes, and whether it was kept.
//!
//! Compactions of a folder have numbers without a gap. Each has two small objects below `.crawler-compacted`, which are
//! created on condition that they are not there, and never change:
//!
//! ```text
//! .crawler-compacted/FOLDER/_000012.plan     the files that it takes, and the one that it makes
//! .crawler-compacted/FOLDER/_000012.end      whether it is kept or undone
//! ```
//!
//! A plan is begun by whoever has seen the end of all earlier ones. So no file is taken by two compactions that are kept:
//! of two machines that begin the same number, one is refused. A plan without an end may be that of a run that was killed.
//! Anybody may end it, and the first end counts.
//!
//! The log is kept for good. A worker that writes a file again, after a crash or late, looks here if the file was taken.

use std::collections::BTreeMap;

use futures::future::join_all;
use object_store::path::Path as ObjectPath;
use serde::{Deserialize, Serialize};

use crawler_sink::SinkError;

use super::names::{NUMBER_DIGITS, number};
use crate::place::{LOG, OpenPlace};

/// Number of objects that are read at once.
const AT_ONCE: usize = 8;

/// Files that a compaction takes, and the one that it makes. Its encoding is kept over upgrades.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Random text, by which a machine knows its own plan again if the answer to it was lost.
    pub(super) writer: String,
    /// Names of the files that are taken, in the order of their rows.
    pub(super) inputs: Vec<String>,
    /// Name of the file that has their rows.
    pub(super) output: String,
}

/// End of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    /// The output counts. The inputs are removed, whenever they are seen.
    Kept,
    /// The inputs count. The output is removed, whenever it is seen.
    Undone,
}

#[derive(Debug, Serialize, Deserialize)]
struct End {
    outcome: Outcome,
}

/// Compaction in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) n: u64,
    pub(super) plan: Plan,
    /// `None` if it has not ended.
    pub(super) outcome: Option<Outcome>,
}

/// Log of one folder.
#[derive(Debug)]
pub(crate) struct FolderLog<'p> {
    place: &'p OpenPlace,
    /// Folder of the objects.
    folder: ObjectPath,
}

impl<'p> FolderLog<'p> {
    /// Returns the log of a folder.
    pub(crate) fn new(place: &'p OpenPlace, folder: &ObjectPath) -> Self {
        let parts = std::iter::once(LOG.into()).chain(folder.parts());
        Self {
            place,
            folder: ObjectPath::from_iter(parts),
        }
    }

    /// Returns the log that tells of a file, and the name of the file.
    fn of_file<'f>(place: &'p OpenPlace, file: &'f ObjectPath) -> (Self, &'f str) {
        let name = file.filename().unwrap_or_default();
        let mut parts: Vec<_> = file.parts().collect();
        parts.pop();
        let folder = ObjectPath::from_iter(parts);
        (Self::new(place, &folder), name)
    }

    /// Hands all compactions to `each`, in order, and returns the last number that was used. No more than some of them are
    /// in memory.
    pub(super) async fn each(
        &self,
        mut each: impl FnMut(Entry) -> Result<(), SinkError>,
    ) -> Result<u64, SinkError> {
        let numbers: Vec<(u64, bool)> = self.numbers().await?.into_iter().collect();
        for some in numbers.chunks(AT_ONCE) {
            let mut entries = Vec::new();
            for (n, has_end) in some {
                entries.push(self.entry(*n, *has_end));
            }
            for entry in join_all(entries).await {
                if let Some(entry) = entry? {
                    each(entry)?;
                }
            }
        }
        Ok(numbers.last().map_or(0, |(n, _)| *n))
    }

    /// Returns the numbers of all compactions, and whether each has ended.
    async fn numbers(&self) -> Result<BTreeMap<u64, bool>, SinkError> {
        let listed = self.place.list(Some(&self.folder)).await?;
        let mut numbers = BTreeMap::new();
        for object in &listed.objects {
            let name = object.location.filename().unwrap_or_default();
            let (text, is_end) = match name.rsplit_once('.') {
                Some((text, "plan")) => (text, false),
                Some((text, "end")) => (text, true),
                _ => continue,
            };
            let text = text.strip_prefix('_').unwrap_or_default();
            if let Some(n) = number(text, NUMBER_DIGITS) {
                *numbers.entry(n).or_insert(false) |= is_end;
            }
        }
        Ok(numbers)
    }

    /// Returns a compaction; `None` if somebody has removed its plan.
    async fn entry(&self, n: u64, has_end: bool) -> Result<Option<Entry>, SinkError> {
        let Some(plan) = self.read(&self.path(n, "plan")).await? else {
            return Ok(None);
        };
        let outcome = match has_end {
            true => self.outcome(n).await?,
            false => None,
        };
        Ok(Some(Entry { n, plan, outcome }))
    }

    async fn outcome(&self, n: u64) -> Result<Option<Outcome>, SinkError> {
        let end: Option<End> = self.read(&self.path(n, "end")).await?;
        Ok(end.map(|end| end.outcome))
    }

    /// Begins the compaction of this number. Returns false if another machine has.
    pub(super) async fn begin(&self, n: u64, plan: &Plan) -> Result<bool, SinkError> {
        let path = self.path(n, "plan");
        if self.place.claim(&path, json(plan)).await? {
            return Ok(true);
        }
        let found: Option<Plan> = self.read(&path).await?;
        Ok(found.as_ref() == Some(plan))
    }

    /// Ends a compaction, unless it has ended. Returns the end that counts.
    pub(super) async fn end(&self, n: u64, outcome: Outcome) -> Result<Outcome, SinkError> {
        let path = self.path(n, "end");
        if self.place.claim(&path, json(&End { outcome })).await? {
            return Ok(outcome);
        }
        let found = self.outcome(n).await?;
        found.ok_or_else(|| SinkError::Retry {
            message: format!("{path} is there, and cannot be read yet"),
            source: None,
        })
    }

    /// Returns the path of an object of the log: the plan of a compaction, or its end.
    pub(super) fn path(&self, n: u64, ending: &str) -> ObjectPath {
        let name = format!("_{n:0NUMBER_DIGITS$}.{ending}");
        self.folder.clone().join(name)
    }

    /// Makes all that is there durable, before somebody acts on it: whoever wrote it may have ended too early. Nothing is sent
    /// to a bucket.
    pub(super) async fn sync(&self) -> Result<(), SinkError> {
        self.place.sync_folders(&self.path(0, "end")).await
    }

    async fn read<T: serde::de::DeserializeOwned>(
        &self,
        path: &ObjectPath,
    ) -> Result<Option<T>, SinkError> {
        let Some(bytes) = self.place.read(path).await? else {
            return Ok(None);
        };
        let parsed = serde_json::from_slice(&bytes);
        // A crawl goes on once the object is back.
        parsed.map(Some).map_err(|error| SinkError::Retry {
            message: format!("{path} in the log of compactions is damaged; put it back as it was"),
            source: Some(error.into()),
        })
    }
}

/// Returns true if the rows of a file are in the output of a compaction that is kept.
pub(crate) async fn was_taken(place: &OpenPlace, file: &ObjectPath) -> Result<bool, SinkError> {
    let (log, name) = FolderLog::of_file(place, file);
    let mut was_taken = false;
    let each = |entry: Entry| {
        was_taken |= entry.outcome == Some(Outcome::Kept) && entry.plan.has(name);
        Ok(())
    };
    log.each(each).await?;
    if was_taken {
        log.sync().await?;
    }
    Ok(was_taken)
}

/// Sees to it that no compaction takes a file that was removed just now. Returns false if one has taken it before.
///
/// A compaction looks for its inputs after it has begun. So either it misses the file, or it is found here and undone.
pub(crate) async fn take_back(place: &OpenPlace, file: &ObjectPath) -> Result<bool, SinkError> {
    let (log, name) = FolderLog::of_file(place, file);
    let mut found = Vec::new();
    let each = |entry: Entry| {
        if entry.plan.has(name) {
            found.push((entry.n, entry.outcome));
        }
        Ok(())
    };
    log.each(each).await?;
    for (n, outcome) in found {
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => log.end(n, Outcome::Undone).await?,
        };
        if outcome == Outcome::Kept {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Plan {
    fn has(&self, name: &str) -> bool {
        self.inputs.iter().any(|input| input == name)
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts are JSON")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::place::Place;
    use crate::place::tests::unsynced;

    async fn place() -> OpenPlace {
        let place = Place::Bucket(Arc::new(InMemory::new()), "s3://b".to_owned());
        place.open().await.unwrap()
    }

    fn plan(writer: &str) -> Plan {
        Plan {
            writer: writer.to_owned(),
            inputs: vec!["a".to_owned(), "b".to_owned()],
            output: "c".to_owned(),
        }
    }

    #[tokio::test]
    async fn one_machine_begins_and_the_first_end_counts() {
        let place = place().await;
        let log = FolderLog::new(&place, &ObjectPath::from("x/y"));
        assert!(log.begin(1, &plan("one")).await.unwrap());
        assert!(log.begin(1, &plan("one")).await.unwrap(), "it is its own");
        assert!(!log.begin(1, &plan("other")).await.unwrap());
        let end = log.end(1, Outcome::Undone).await.unwrap();
        assert_eq!(end, Outcome::Undone);
        let end = log.end(1, Outcome::Kept).await.unwrap();
        assert_eq!(end, Outcome::Undone);
    }

    #[tokio::test]
    async fn a_file_is_taken_once_its_compaction_is_kept() {
        let place = place().await;
        let log = FolderLog::new(&place, &ObjectPath::from("x/y"));
        let [file, other] = ["x/y/a", "x/a"].map(ObjectPath::from);
        assert!(!was_taken(&place, &file).await.unwrap());
        log.begin(1, &plan("one")).await.unwrap();
        assert!(!was_taken(&place, &file).await.unwrap());
        log.end(1, Outcome::Kept).await.unwrap();
        assert!(was_taken(&place, &file).await.unwrap());
        assert!(!take_back(&place, &file).await.unwrap());
        assert!(!was_taken(&place, &other).await.unwrap());
    }

    #[tokio::test]
    async fn a_file_counts_as_taken_once_that_is_durable() {
        let objects = Arc::new(InMemory::new());
        let place = unsynced(Arc::clone(&objects));
        let log = FolderLog::new(&place, &ObjectPath::from("x"));
        log.begin(1, &plan("one")).await.unwrap();
        log.end(1, Outcome::Kept).await.unwrap();
        let [file, other] = ["x/a", "x/z"].map(ObjectPath::from);
        was_taken(&place, &file).await.unwrap_err();
        assert!(!was_taken(&place, &other).await.unwrap());
    }

    #[tokio::test]
    async fn a_file_that_is_taken_back_stays_free() {
        let place = place().await;
        let log = FolderLog::new(&place, &ObjectPath::from("x"));
        log.begin(1, &plan("one")).await.unwrap();
        let file = ObjectPath::from("x/b");
        assert!(take_back(&place, &file).await.unwrap());
        let end = log.end(1, Outcome::Kept).await.unwrap();
        assert_eq!(end, Outcome::Undone);
        assert!(!was_taken(&place, &file).await.unwrap());
    }

    #[tokio::test]
    async fn entries_come_in_order_and_a_damaged_one_is_named() {
        let place = place().await;
        let log = FolderLog::new(&place, &ObjectPath::from("x"));
        for n in 1..20 {
            log.begin(n, &plan("one")).await.unwrap();
        }
        let mut numbers = Vec::new();
        let each = |entry: Entry| {
            numbers.push(entry.n);
            Ok(())
        };
        assert_eq!(log.each(each).await.unwrap(), 19);
        assert_eq!(numbers, (1..20).collect::<Vec<_>>());
        // A number without its plan is not used again: its end would count.
        log.end(30, Outcome::Kept).await.unwrap();
        assert_eq!(log.each(|_| Ok(())).await.unwrap(), 30);
        let path = ObjectPath::from(".crawler-compacted/x/_000020.plan");
        place.claim(&path, b"?".to_vec()).await.unwrap();
        let error = log.each(|_| Ok(())).await.unwrap_err();
        assert!(matches!(error, SinkError::Retry { .. }), "a crawl goes on");
        let error = error.to_string();
        let why = "/x/_000020.plan in the log of compactions is damaged; put it back as it was";
        assert!(error.ends_with(why), "{error}");
    }

    #[test]
    fn a_log_is_encoded_as_earlier_versions_did() {
        let text = r#"{"writer":"one","inputs":["a","b"],"output":"c"}"#;
        assert_eq!(json(&plan("one")), text.as_bytes());
        let outcome = Outcome::Kept;
        assert_eq!(json(&End { outcome }), br#"{"outcome":"kept"}"#);
    }
}
