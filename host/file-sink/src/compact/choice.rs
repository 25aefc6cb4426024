//! Choice of the files of a folder that become one: of the same resource, kind and format, with columns that go together, in
//! the order of their names.

use std::collections::BTreeMap;

use crawler_model::id::ResourceId;

use super::CompactSettings;
use super::merge::Head;
use super::names::FileName;
use crate::settings::Format;
use crate::table::Table;

/// Largest number of files that become one. The log has the names of all of them.
pub(super) const MAX_INPUTS: usize = 4_000;

/// File that may become a part of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) file: FileName,
    pub(super) name: String,
    pub(super) n_bytes: u64,
}

/// Files that become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) resource: ResourceId,
    pub(super) format: Format,
    pub(super) kind: String,
    /// Columns of all files.
    pub(super) table: Table,
    /// Names of the files, in order.
    pub(super) names: Vec<String>,
    pub(super) n_bytes: u64,
    /// True if it has as much as the settings allow.
    is_full: bool,
}

/// Batches of a folder, while files are chosen.
#[derive(Debug)]
pub(super) struct Batches<'s> {
    settings: &'s CompactSettings,
    open: Vec<Batch>,
    closed: Vec<Batch>,
}

/// Drops files of which there are too few, whatever their kinds are: nobody has to read them.
pub(super) fn without_few(settings: &CompactSettings, candidates: &mut Vec<Candidate>) {
    let mut found: BTreeMap<(ResourceId, Format), (usize, u64)> = BTreeMap::new();
    for Candidate { file, n_bytes, .. } in candidates.iter() {
        let (n, sum) = found.entry((file.resource, file.format)).or_default();
        (*n, *sum) = (*n + 1, *sum + n_bytes);
    }
    candidates.retain(|Candidate { file, .. }| {
        let (n, sum) = found[&(file.resource, file.format)];
        n >= settings.min_files || (n > 1 && sum > settings.target_bytes)
    });
}

impl<'s> Batches<'s> {
    pub(super) fn new(settings: &'s CompactSettings) -> Self {
        Self {
            settings,
            open: Vec::new(),
            closed: Vec::new(),
        }
    }

    /// Adds the next file to a batch. Returns the reason if it goes together with no batch of its kind.
    pub(super) fn add(&mut self, candidate: Candidate, head: Head) -> Option<String> {
        let Candidate {
            file,
            name,
            n_bytes,
        } = candidate;
        let key = (file.resource, file.format, head.kind.as_str());
        let mut conflict = None;
        for place in 0..self.open.len() {
            let batch = &self.open[place];
            if (batch.resource, batch.format, batch.kind.as_str()) != key {
                continue;
            }
            let table = match batch.table.united(&head.table) {
                Ok(table) => table,
                Err(why) => {
                    conflict = Some(why);
                    continue;
                }
            };
            let is_full = batch.n_bytes + n_bytes > self.settings.target_bytes;
            if is_full || batch.names.len() == MAX_INPUTS {
                let batch = self.open.remove(place);
                let is_full = true;
                self.closed.push(Batch { is_full, ..batch });
            } else {
                let batch = &mut self.open[place];
                batch.table = table;
                batch.names.push(name);
                batch.n_bytes += n_bytes;
                return None;
            }
            conflict = None;
            break;
        }
        self.open.push(Batch {
            resource: file.resource,
            format: file.format,
            kind: head.kind,
            table: head.table,
            names: vec![name],
            n_bytes,
            is_full: false,
        });
        conflict
    }

    /// Returns the batches that are worth it.
    pub(super) fn finish(self) -> Vec<Batch> {
        let mut batches = self.closed;
        batches.extend(self.open);
        batches.retain(|batch| batch.is_worth_it(self.settings));
        batches
    }
}

impl Batch {
    /// Returns true if the batch has enough files, or is as large as a file gets.
    pub(super) fn is_worth_it(&self, settings: &CompactSettings) -> bool {
        self.names.len() >= settings.min_files || (self.is_full && self.names.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::table;

    fn settings() -> CompactSettings {
        CompactSettings {
            target_bytes: 100,
            min_files: 3,
            ..CompactSettings::default()
        }
    }

    fn candidate(n: u64, n_bytes: u64) -> Candidate {
        let name = format!("7-0-{n:020}-5f0c1d3e9a7b2c4d6e8f0a1b.parquet");
        Candidate {
            file: FileName::parse(&name).unwrap(),
            name,
            n_bytes,
        }
    }

    fn head(kind: &str, fields: &str) -> Head {
        Head {
            kind: kind.to_owned(),
            table: table(&format!("{{\"properties\":{{{fields}}}}}")),
        }
    }

    /// Returns the numbers of files in the batches of these files.
    fn sizes(files: impl IntoIterator<Item = (u64, Head)>) -> Vec<usize> {
        let settings = settings();
        let mut batches = Batches::new(&settings);
        for ((n_bytes, head), n) in files.into_iter().zip(0..) {
            batches.add(candidate(n, n_bytes), head);
        }
        let batches = batches.finish().into_iter();
        batches.map(|batch| batch.names.len()).collect()
    }

    #[test]
    fn small_files_fill_a_batch_up_to_the_target() {
        let all = |sizes: &[u64]| {
            let files = sizes.iter().map(|size| (*size, head("a", "")));
            files.collect::<Vec<_>>()
        };
        assert_eq!(sizes(all(&[10; 3])), [3]);
        assert_eq!(sizes(all(&[10; 2])), [0; 0], "they are too few");
        assert_eq!(sizes(all(&[10; 25])), [10, 10, 5]);
        assert_eq!(sizes(all(&[45; 5])), [2, 2], "a full one may have fewer");
    }

    #[test]
    fn no_batch_has_more_files_than_a_plan() {
        let files = (0..MAX_INPUTS as u64 + 3).map(|_| (0, head("a", "")));
        assert_eq!(sizes(files), [MAX_INPUTS, 3]);
    }

    #[test]
    fn each_kind_has_batches_of_its_own() {
        let kinds = (0..6).map(|n| (1, head(["a", "b"][n % 2], "")));
        assert_eq!(sizes(kinds), [3, 3]);
        let many = (0..600).map(|n| (1, head(&format!("{}", n % 200), "")));
        assert_eq!(sizes(many), [3; 200]);
    }

    #[test]
    fn columns_are_united_and_other_types_stay_apart() {
        let settings = settings();
        let mut batches = Batches::new(&settings);
        let (integer, text) = (r#""p":{"type":"integer"}"#, r#""p":{"type":"string"}"#);
        let both = format!(r#"{integer},"q":{{"type":"string"}}"#);
        for (n, fields) in ["", integer, &both].into_iter().enumerate() {
            let conflict = batches.add(candidate(n as u64, 1), head("a", fields));
            assert_eq!(conflict, None, "{fields}");
        }
        let conflict = batches.add(candidate(3, 1), head("a", text));
        let why = "column \"p\" is string in it, and integer in others";
        assert_eq!(conflict.as_deref(), Some(why));
        let conflict = batches.add(candidate(4, 1), head("a", text));
        assert_eq!(conflict, None, "it is told once");
        let batches = batches.finish();
        assert_eq!(batches.len(), 1);
        assert_eq!(batches[0].names.len(), 3);
        assert_eq!(batches[0].table, head("a", &both).table);
    }

    #[test]
    fn files_that_are_too_few_are_not_looked_at() {
        let mut few = vec![candidate(0, 10), candidate(1, 10)];
        without_few(&settings(), &mut few);
        assert!(few.is_empty());
        let mut large = vec![candidate(0, 45), candidate(1, 45), candidate(2, 45)];
        without_few(&settings(), &mut large);
        assert_eq!(large.len(), 3);
    }
}
