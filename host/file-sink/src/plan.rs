//! Plan of a write: the files that a range of items becomes. A frontier keeps it before the first file is written.
//!
//! The name of a file has a digest of the keys of its items. So two files of one name have the same items, whoever writes
//! them: one that is there is never written again.

use std::collections::{BTreeMap, BTreeSet};

use object_store::path::Path as ObjectPath;
use prost::Message;

use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;
use crawler_model::resource::ShardId;
use crawler_sink::SinkError;

use crate::settings::FileSettings;

/// Key of the mark.
const KEY: &str = "files";
/// Largest number of items of a write.
pub(crate) const MAX_ITEMS: usize = 50_000;
/// Largest number of files of a write. Items of a further folder are for the next one.
const MAX_FILES: usize = 64;
/// Number of digits of an item's number, with leading zeros: names sort in the order of the items.
pub(crate) const DIGITS: usize = 20;
/// Number of hexadecimal digits of the digest in a name.
pub(crate) const DIGEST_DIGITS: usize = 24;

/// Range of items, and the files that it becomes. Its encoding is kept over upgrades: fields are added, never changed.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Plan {
    /// Number of the first item.
    #[prost(uint64, tag = "1")]
    pub(crate) first: u64,
    /// Number of items; 0 if nothing is planned.
    #[prost(uint64, tag = "2")]
    pub(crate) n_items: u64,
    /// Paths of the files, below the folder of the sink.
    #[prost(string, repeated, tag = "3")]
    pub(crate) paths: Vec<String>,
    /// Digest of the conditions under which the items were chosen; empty if there were none.
    #[prost(string, tag = "4")]
    pub(crate) choice: String,
}

/// File of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedFile {
    pub(crate) path: ObjectPath,
    /// Kind of all of its items.
    pub(crate) kind: String,
    /// Places of its items among those of the plan.
    pub(crate) places: Vec<usize>,
}

impl Plan {
    /// Returns the plan of these files.
    pub(crate) fn of(
        settings: &FileSettings,
        first: u64,
        n_items: usize,
        files: &[PlannedFile],
    ) -> Self {
        Self {
            first,
            n_items: n_items as u64,
            paths: files.iter().map(|file| file.path.to_string()).collect(),
            choice: choice(settings),
        }
    }

    /// Returns true if the plan is of these files.
    pub(crate) fn is_of(&self, files: &[PlannedFile]) -> bool {
        let paths = files.iter().map(|file| -> &str { file.path.as_ref() });
        paths.eq(self.paths.iter().map(String::as_str))
    }

    /// Returns true if the frontier has dropped the items of the plan, because the resource had lost the sink meanwhile. The
    /// next item has the number `first`. Under other conditions, items of the plan may wait although it is a later one: it
    /// is the first one that is chosen now.
    pub(crate) fn is_dropped(&self, settings: &FileSettings, first: u64) -> bool {
        self.first + self.n_items <= first && self.choice == choice(settings)
    }

    /// Returns the mark that a frontier keeps.
    pub(crate) fn to_mark(&self) -> SinkMark {
        SinkMark {
            key: KEY.into(),
            value: self.encode_to_vec().into(),
        }
    }

    /// Returns the plan that a frontier has kept, if its files may be there in part.
    pub(crate) fn pending(marks: &[SinkMark]) -> Result<Option<Self>, SinkError> {
        let Some(mark) = marks.iter().find(|mark| mark.key == KEY) else {
            return Ok(None);
        };
        let plan = Self::decode(&*mark.value).map_err(|error| SinkError::Permanent {
            message: "cannot read which files were written last".to_owned(),
            source: Some(error.into()),
        })?;
        Ok(Some(plan).filter(|plan| plan.n_items > 0))
    }
}

/// Returns the number of items of the next write: as many as the settings, and the bounds of a plan, allow. There is at
/// least one.
pub(crate) fn n_planned(settings: &FileSettings, resource: &str, items: &[ItemRecord]) -> usize {
    let mut n_bytes = 0;
    let mut folders: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut n_files = 0;
    for (place, record) in items.iter().take(MAX_ITEMS).enumerate() {
        let folder = settings.partition.folder(resource, record);
        let known = folders.entry(&record.schema).or_default();
        let is_new = !known.contains(&folder);
        let is_full = n_bytes >= settings.max_file_bytes || (is_new && n_files == MAX_FILES);
        if place > 0 && is_full {
            return place;
        }
        if is_new {
            known.push(folder);
            n_files += 1;
        }
        n_bytes += record.item.get().len() as u64;
    }
    items.len().min(MAX_ITEMS)
}

/// Returns the files that items become, in the order of their paths. `first` is the number of the first item.
pub(crate) fn files(
    settings: &FileSettings,
    (shard, resource): (ShardId, &str),
    first: u64,
    items: &[ItemRecord],
) -> Result<Vec<PlannedFile>, SinkError> {
    let mut places: BTreeMap<(String, &str), Vec<usize>> = BTreeMap::new();
    for (place, record) in items.iter().enumerate() {
        let folder = settings.partition.folder(resource, record);
        let file = places.entry((folder, record.schema.as_str())).or_default();
        file.push(place);
    }
    let files = places.into_iter().map(|((folder, kind), places)| {
        let keys = places.iter().map(|place| items[*place].key.0.as_str());
        let digest = digest([kind].into_iter().chain(keys));
        let (id, shard, ending) = (shard.resource, shard.shard, settings.format);
        let path = format!("{folder}/{id}-{shard}-{first:0DIGITS$}-{digest}.{ending}");
        let path = ObjectPath::parse(&path).map_err(|error| SinkError::Permanent {
            message: format!("{path:?} is no path of a file"),
            source: Some(error.into()),
        })?;
        Ok(PlannedFile {
            path,
            kind: kind.to_owned(),
            places,
        })
    });
    files.collect()
}

/// Returns a digest of the conditions by which items are chosen, in any order; empty if there are none.
fn choice(settings: &FileSettings) -> String {
    let only: BTreeSet<&str> = settings.only.iter().map(String::as_str).collect();
    match only.is_empty() {
        true => String::new(),
        false => digest(only.into_iter()),
    }
}

/// Returns a digest that only these texts in this order have.
pub(crate) fn digest<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut digest = crawler_sink::digest::digest(texts);
    digest.truncate(DIGEST_DIGITS);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::record;
    use crawler_model::id::ResourceId;

    fn settings(partition: &str) -> FileSettings {
        FileSettings {
            partition: partition.parse().unwrap(),
            ..FileSettings::default()
        }
    }

    fn of_kind(n: u32, kind: &str) -> ItemRecord {
        ItemRecord {
            schema: kind.to_owned(),
            ..record(n, "{}")
        }
    }

    fn paths(partition: &str, items: &[ItemRecord]) -> Vec<(String, Vec<usize>)> {
        let shard = ShardId::only(ResourceId(7));
        let files = files(&settings(partition), (shard, "books"), 12, items).unwrap();
        let files = files.into_iter();
        files
            .map(|file| (file.path.to_string(), file.places))
            .collect()
    }

    #[test]
    fn each_kind_and_folder_has_a_file() {
        let items = [of_kind(1, "b"), of_kind(2, "a"), of_kind(3, "b")];
        let found = paths("{kind}/dt={date}", &items);
        let places: Vec<&[usize]> = found.iter().map(|(_, places)| &places[..]).collect();
        assert_eq!(places, [&[1][..], &[0, 2]]);
        let start = "a/dt=2026-11-28/7-0-00000000000000000012-";
        assert!(found[0].0.starts_with(start), "{found:?}");
        assert!(found[0].0.ends_with(".jsonl"), "{found:?}");
        // Files of two kinds in one folder have two names.
        let found = paths("all", &items[..2]);
        assert_eq!(found.len(), 2);
        assert_ne!(found[0].0, found[1].0);
    }

    #[test]
    fn a_name_tells_the_items_of_its_file() {
        let path = |items: &[ItemRecord]| paths("all", items)[0].0.clone();
        let all = [record(1, "{}"), record(2, "{}")];
        assert_eq!(path(&all), path(&all));
        assert_ne!(path(&all), path(&all[..1]));
        assert_ne!(path(&all[..1]), path(&all[1..]));
    }

    #[test]
    fn a_plan_ends_at_its_bounds() {
        let n_planned = |partition: &str, max_file_bytes, items: &[ItemRecord]| {
            let settings = FileSettings {
                max_file_bytes,
                ..settings(partition)
            };
            n_planned(&settings, "books", items)
        };
        let items: Vec<ItemRecord> = (0..5).map(|n| record(n, "{}")).collect();
        assert_eq!(n_planned("all", 4, &items), 2);
        assert_eq!(n_planned("all", 1, &items), 1);
        assert_eq!(n_planned("all", 99, &items), 5);
        let kinds = (0..MAX_FILES as u32 + 9).map(|n| of_kind(n, &format!("kind-{n}")));
        let mut kinds: Vec<ItemRecord> = kinds.collect();
        assert_eq!(n_planned("{kind}", 1 << 20, &kinds), MAX_FILES);
        // Two kinds in one folder are two files.
        assert_eq!(n_planned("all", 1 << 20, &kinds), MAX_FILES);
        kinds.truncate(MAX_FILES);
        kinds.push(of_kind(99, "kind-1"));
        assert_eq!(n_planned("{kind}", 1 << 20, &kinds), MAX_FILES + 1);
    }

    #[test]
    fn a_plan_is_dropped_only_under_its_own_conditions() {
        let settings = |only: &[&str]| FileSettings {
            only: only.iter().map(|text| (*text).to_owned()).collect(),
            ..FileSettings::default()
        };
        let plan = |only: &[&str]| Plan::of(&settings(only), 4, 2, &[]);
        assert!(!plan(&[]).is_dropped(&settings(&[]), 5));
        assert!(plan(&[]).is_dropped(&settings(&[]), 6));
        let both = plan(&["kind=a", "kind=b"]);
        assert!(both.is_dropped(&settings(&["kind=b", "kind=a"]), 6));
        assert!(!both.is_dropped(&settings(&["kind=b"]), 6));
        assert!(!both.is_dropped(&settings(&[]), 6));
        assert!(!plan(&[]).is_dropped(&settings(&["kind=b"]), 6));
    }

    #[test]
    fn a_mark_is_encoded_as_earlier_versions_did() {
        let plan = Plan {
            first: 300,
            n_items: 2,
            paths: vec!["a/b".to_owned()],
            choice: String::new(),
        };
        let mark = plan.to_mark();
        assert_eq!(mark.key, "files");
        assert_eq!(*mark.value, [8, 0xac, 2, 16, 2, 26, 3, b'a', b'/', b'b']);
        assert_eq!(Plan::pending(&[mark]).unwrap(), Some(plan));
        assert_eq!(Plan::pending(&[Plan::default().to_mark()]).unwrap(), None);
        assert_eq!(Plan::pending(&[]).unwrap(), None);
        let broken = SinkMark {
            key: KEY.into(),
            value: "?".into(),
        };
        let error = Plan::pending(&[broken]).unwrap_err();
        assert!(matches!(error, SinkError::Permanent { .. }), "{error}");
    }
}
