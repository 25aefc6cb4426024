//! Line files in a folder of the operator, which programs read that know no frontier.
//!
//! The files are those of [`LineFolders`](super::LineFolders). Readers of the data root know by the marks how much of
//! a file counts; readers of this folder see all of it. So a file is reserved, by a mark of length 0, before it gets its
//! first line, and what an earlier opening wrote behind its marks is cut off before the next one writes. A reader then
//! sees each item once. While a crash is not repaired yet, or a worker that has lost its lease still writes, items may
//! be there twice, under the same keys.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::super::{CheckSink, Delivery, OpenSinks, Sink, SinkCheck, SinkError};
use super::disk::{blocking, failed};
use super::mark::LineMark;
use super::{LineFiles, LineSettings, names, truncate};
use crawler_model::frontier::SinkMark;

/// Line files of all shards, below a folder that the operator has made.
#[derive(Debug, Clone)]
pub struct ExportedLines {
    folder: PathBuf,
    settings: LineSettings,
}

impl ExportedLines {
    /// Creates sinks below a folder, with one folder for each resource and in it one for each shard. The folder itself
    /// is never made: it may be a disk that is not mounted.
    pub fn new(folder: PathBuf, settings: LineSettings) -> Self {
        Self { folder, settings }
    }
}

#[async_trait]
impl OpenSinks for ExportedLines {
    async fn open(&self, delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError> {
        let shard = delivery.shard;
        let folder = self.folder.join(shard.resource.to_string());
        let folder = folder.join(shard.shard.to_string());
        cut_to_marks(&folder, delivery.marks.clone()).await?;
        let files = LineFiles::open(folder, delivery.storage_epoch, self.settings.clone());
        Ok(Box::new(files.reserving()))
    }
}

#[async_trait]
impl CheckSink for ExportedLines {
    async fn check(&self) -> Result<SinkCheck, SinkError> {
        let folder = self.folder.clone();
        blocking(&self.folder, move || {
            let path = folder.join(format!(".crawler-check-{}", std::process::id()));
            let tried = File::create_new(&path).and_then(|file| file.sync_all());
            let removed = fs::remove_file(&path);
            tried.and(removed).map_err(failed("write in", &folder))
        })
        .await?;
        let file = self.folder.join("RESOURCE-ID/SHARD/EPOCH-N.jsonl");
        Ok(SinkCheck {
            would_create: vec![format!("files of JSON lines: {}", file.display())],
        })
    }
}

/// Cuts each file to its mark. Files without a mark are another cluster's, or were delivered by a frontier that is gone:
/// they stay.
async fn cut_to_marks(folder: &Path, marks: Vec<SinkMark>) -> Result<(), SinkError> {
    let shard = folder.to_owned();
    blocking(folder, move || {
        // A sink of this name may have been of another kind, before a change of the config file.
        let is_of_file =
            |mark: &SinkMark| names::parse_file(&String::from_utf8_lossy(&mark.key)).is_some();
        let marks: Vec<SinkMark> = marks.into_iter().filter(is_of_file).collect();
        for mark in LineMark::decode_all(&marks, &shard)? {
            let path = shard.join(names::file(mark.file.storage_epoch, mark.file.n));
            match truncate::cut_if_longer(&path, mark.length) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(failed("cut", &path)(error));
                }
                // Whoever uses the items may have taken the file away.
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::super::tests::record;
    use super::*;
    use crate::Written;
    use crawler_model::crawl::ItemRecord;
    use crawler_model::id::{ResourceId, Run};
    use crawler_model::resource::ShardId;

    struct Bench {
        folder: tempfile::TempDir,
        lines: ExportedLines,
        /// Marks that the frontier keeps.
        marks: Vec<SinkMark>,
    }

    impl Bench {
        fn new(max_file_bytes: u64) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let settings = LineSettings { max_file_bytes };
            Self {
                lines: ExportedLines::new(folder.path().to_owned(), settings),
                folder,
                marks: Vec::new(),
            }
        }

        async fn open(&self, storage_epoch: u64) -> Box<dyn Sink> {
            let delivery = Delivery {
                sink: "out".parse().unwrap(),
                shard: ShardId::only(ResourceId(7)),
                cluster: "c1".to_owned(),
                run: Run(1),
                storage_epoch,
                spec: serde_json::from_str(r#"{"name":"books","plugin":"books"}"#).unwrap(),
                schemas: Vec::new(),
                other_kinds: None,
                marks: self.marks.clone(),
            };
            self.lines.open(&delivery).await.unwrap()
        }

        fn keep(&mut self, written: &Written) {
            let mark = written.mark.clone().unwrap();
            self.marks.retain(|known| known.key != mark.key);
            self.marks.push(mark);
        }

        /// Writes items and keeps all marks, as a crawl does.
        async fn write(&mut self, sink: &mut Box<dyn Sink>, items: &[ItemRecord]) {
            let mut n_written = 0;
            while n_written < items.len() {
                let rest = &items[n_written..];
                let written = sink.write(0, rest).await.unwrap();
                self.keep(&written);
                n_written += written.n_items as usize;
            }
        }

        fn path(&self, file: &str) -> PathBuf {
            self.folder.path().join("7/0").join(file)
        }

        /// Returns the keys in all files, as a program sees them that knows no marks.
        fn read(&self) -> Vec<String> {
            let mut keys = Vec::new();
            for file in names::files(&self.folder.path().join("7/0")).unwrap() {
                let path = self.path(&names::file(file.storage_epoch, file.n));
                for line in fs::read_to_string(path).unwrap().lines() {
                    keys.push(serde_json::from_str::<ItemRecord>(line).unwrap().key.0);
                }
            }
            keys
        }
    }

    fn records(range: std::ops::Range<u32>) -> Vec<ItemRecord> {
        range.map(|n| record(n, "{\n\"a\": 1}")).collect()
    }

    fn keys(range: std::ops::Range<u32>) -> Vec<String> {
        range.map(|n| format!("key-{n}")).collect()
    }

    #[tokio::test]
    async fn f33_whoever_knows_no_marks_reads_each_item_once() {
        let mut bench = Bench::new(1 << 20);
        let mut first = bench.open(9).await;
        bench.write(&mut first, &records(0..2)).await;
        // The frontier never heard of these items: the process ended in between.
        first.write(0, &records(2..5)).await.unwrap();
        assert_eq!(bench.read(), keys(0..5));
        let mut second = bench.open(10).await;
        assert_eq!(bench.read(), keys(0..2));
        bench.write(&mut second, &records(2..6)).await;
        assert_eq!(bench.read(), keys(0..6));
        // It ended before the first line of its file had a mark of its own.
        let mut third = bench.open(11).await;
        let reserved = third.write(0, &records(6..7)).await.unwrap();
        assert_eq!(reserved.n_items, 0);
        bench.keep(&reserved);
        third.write(0, &records(6..7)).await.unwrap();
        let mut fourth = bench.open(12).await;
        bench.write(&mut fourth, &records(6..8)).await;
        assert_eq!(bench.read(), keys(0..8));
    }

    #[tokio::test]
    async fn a_write_that_is_given_up_is_cut_off_at_the_next_opening() {
        let mut bench = Bench::new(1 << 20);
        let mut first = bench.open(1).await;
        bench.write(&mut first, &records(0..1)).await;
        assert!(first.is_cancel_safe());
        let given_up = records(1..3);
        let _nothing_comes_of_it = first.write(0, &given_up).now_or_never();
        let n_lines = || {
            let text = fs::read_to_string(bench.path("1-0.jsonl")).unwrap();
            text.matches('\n').count()
        };
        let written = async {
            while n_lines() < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let written = tokio::time::timeout(Duration::from_secs(20), written);
        written.await.expect("the thread goes on with it");
        let mut second = bench.open(2).await;
        assert_eq!(bench.read(), keys(0..1));
        bench.write(&mut second, &given_up).await;
        assert_eq!(bench.read(), keys(0..3));
    }

    #[tokio::test]
    async fn a_batch_larger_than_a_file_is_written_into_the_next() {
        let mut bench = Bench::new(1);
        let mut sink = bench.open(1).await;
        bench.write(&mut sink, &records(0..3)).await;
        bench.write(&mut sink, &records(3..4)).await;
        assert_eq!(bench.read(), keys(0..4));
        assert!(bench.path("1-1.jsonl").exists());
    }

    #[tokio::test]
    async fn files_of_others_and_files_that_are_gone_do_no_harm() {
        let mut bench = Bench::new(1 << 20);
        fs::create_dir_all(bench.path("")).unwrap();
        fs::write(bench.path("1-0.jsonl"), "not ours").unwrap();
        let mut first = bench.open(1).await;
        bench.write(&mut first, &records(0..2)).await;
        fs::rename(bench.path("1-1.jsonl"), bench.path("taken")).unwrap();
        let mut second = bench.open(2).await;
        bench.write(&mut second, &records(2..3)).await;
        let other = fs::read_to_string(bench.path("1-0.jsonl"));
        assert_eq!(other.unwrap(), "not ours");
        fs::remove_file(bench.path("1-0.jsonl")).unwrap();
        assert_eq!(bench.read(), keys(2..3));
    }

    #[tokio::test]
    async fn marks_of_another_kind_of_sink_are_passed_over() {
        let mut bench = Bench::new(1 << 20);
        bench.marks.push(SinkMark {
            key: "files".into(),
            value: "of a sink that was there before".into(),
        });
        let mut sink = bench.open(1).await;
        bench.write(&mut sink, &records(0..2)).await;
        assert_eq!(bench.read(), keys(0..2));
    }

    #[tokio::test]
    async fn a_check_leaves_nothing_and_tells_what_is_missing() {
        let bench = Bench::new(1);
        let check = bench.lines.check().await.unwrap();
        assert!(
            check.would_create[0].ends_with("EPOCH-N.jsonl"),
            "{check:?}"
        );
        assert_eq!(fs::read_dir(bench.folder.path()).unwrap().count(), 0);
        let gone = ExportedLines::new(bench.path("gone"), LineSettings::default());
        let error = gone.check().await.unwrap_err().to_string();
        assert!(error.starts_with("cannot write in "), "{error}");
        assert!(error.ends_with("/7/0/gone"), "{error}");
        let delivery = Delivery {
            sink: "out".parse().unwrap(),
            shard: ShardId::only(ResourceId(7)),
            cluster: "c1".to_owned(),
            run: Run(1),
            storage_epoch: 1,
            spec: serde_json::from_str(r#"{"name":"books","plugin":"books"}"#).unwrap(),
            schemas: Vec::new(),
            other_kinds: None,
            marks: Vec::new(),
        };
        let mut sink = gone.open(&delivery).await.unwrap();
        let error = sink.write(0, &records(0..1)).await.unwrap_err().to_string();
        assert!(error.starts_with("cannot create "), "{error}");
        assert!(
            !bench.path("gone").exists(),
            "a folder that is away stays away"
        );
    }
}
