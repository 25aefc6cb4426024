//! Tests of what readers see of files that are compacted, whenever a run is killed or meets another one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::TryStreamExt as _;
use object_store::memory::InMemory;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};

use super::*;
use crate::FileSettings;
use crate::encode::Contents;
use crate::settings::Format;
use crate::table::Table;
use crate::table::tests::table;
use crate::tests::record;
use steps::{Meanwhile, Steps};

pub(crate) mod steps;

/// Time at which all files are old.
pub(crate) const LATER: UnixMillis = 4_000_000_000_000;
const FOLDER: &str = "books/thing";

pub(crate) fn settings() -> CompactSettings {
    CompactSettings {
        min_files: 2,
        ..CompactSettings::default()
    }
}

/// Returns the name of a file as a worker writes it.
fn name(n: u32, format: Format) -> String {
    format!("7-0-{n:020}-5f0c1d3e9a7b2c4d6e8f0a1b.{format}")
}

/// Returns a file with two items; the first has this number.
fn bytes(n: u32, format: Format, table: &Table) -> Vec<u8> {
    let contents = Contents {
        resource: "books".to_owned(),
        table: table.clone(),
        records: vec![record(n, r#"{"a":1}"#), record(n + 1, "{}")],
    };
    contents.encode(format).unwrap()
}

async fn put(objects: &dyn ObjectStore, path: &str, bytes: Vec<u8>) {
    let path = ObjectPath::parse(path).unwrap();
    objects.put(&path, bytes.into()).await.unwrap();
}

/// Returns a bucket with the items of a range in files of two.
async fn bucket(n_files: u32) -> Arc<InMemory> {
    let objects = Arc::new(InMemory::new());
    for n in 0..n_files {
        let path = format!("{FOLDER}/{}", name(2 * n, Format::Lines));
        let bytes = bytes(2 * n, Format::Lines, &Table::default());
        put(&*objects, &path, bytes).await;
    }
    objects
}

/// Compacts a bucket, and returns what was told, too.
pub(crate) async fn compact_with(
    objects: Arc<dyn ObjectStore>,
    settings: &CompactSettings,
    now: UnixMillis,
) -> (Result<Compacted, SinkError>, Vec<String>) {
    let of_files = FileSettings::default();
    let sinks = FileSinks::in_bucket(objects, "s3://b".to_owned(), of_files).unwrap();
    let told = Mutex::new(Vec::new());
    let tell = |notice: Notice<'_>| {
        let text = match notice {
            Notice::Progress(_) => return,
            Notice::Made(made) => format!("made of {} in {}", made.n_inputs, made.folder),
            Notice::Done(text) | Notice::LeftAlone(text) => text,
            Notice::Failed(error) => error.to_string(),
        };
        told.lock().unwrap().push(text);
    };
    let compacted = Box::pin(sinks.compact(settings, now, &tell)).await;
    (compacted, told.into_inner().unwrap())
}

pub(crate) async fn compact(objects: Arc<dyn ObjectStore>) -> Result<Compacted, SinkError> {
    compact_with(objects, &settings(), LATER).await.0
}

/// Returns the numbers of files that were compacted, were too young, and were too few.
fn numbers(compacted: &Compacted) -> (u64, u64, u64) {
    (compacted.n_inputs, compacted.n_young, compacted.n_few)
}

/// Returns the paths of files that readers see.
async fn seen(objects: &InMemory) -> Vec<ObjectPath> {
    let all: Vec<ObjectMeta> = objects.list(None).try_collect().await.unwrap();
    let all = all.into_iter().map(|object| object.location);
    let is_hidden = |path: &ObjectPath| path.as_ref().split('/').any(|part| part.starts_with('.'));
    all.filter(|path| !is_hidden(path)).collect()
}

/// Returns how many times each key of lines is there, as readers see it.
pub(crate) async fn keys(objects: &InMemory) -> BTreeMap<String, u32> {
    let mut keys = BTreeMap::new();
    for path in seen(objects).await {
        let bytes = objects.get(&path).await.unwrap().bytes().await.unwrap();
        let lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        for line in lines {
            let record: crawler_model::crawl::ItemRecord = serde_json::from_slice(line).unwrap();
            *keys.entry(record.key.0).or_default() += 1;
        }
    }
    keys
}

fn once(n_items: u32) -> BTreeMap<String, u32> {
    (0..n_items).map(|n| (format!("key-{n}"), 1)).collect()
}

#[tokio::test]
async fn small_files_become_one_in_order() {
    let objects = bucket(5).await;
    let before = seen(&objects).await;
    let compacted = compact(objects.clone()).await.unwrap();
    let after = seen(&objects).await;
    let [path] = &after[..] else {
        panic!("{after:?}");
    };
    let output = path.filename().unwrap();
    assert!(output.starts_with("7-c000001-"), "{output}");
    assert_eq!(compacted.n_inputs, 5);
    assert_eq!((compacted.n_outputs, compacted.n_failed), (1, 0));
    let content = objects.get(path).await.unwrap().bytes().await.unwrap();
    assert_eq!(compacted.input_bytes, content.len() as u64);
    let text = String::from_utf8(content.to_vec()).unwrap();
    let in_order = text
        .lines()
        .map(|line| line.split('"').nth(3).unwrap().to_owned());
    let expected: Vec<String> = (0..10).map(|n| format!("key-{n}")).collect();
    assert_eq!(in_order.collect::<Vec<_>>(), expected);
    // The output may become a part of the next one.
    put(&*objects, before[0].as_ref(), Vec::new()).await;
    for n in [10, 12] {
        let path = format!("{FOLDER}/{}", name(n, Format::Lines));
        put(&*objects, &path, bytes(n, Format::Lines, &Table::default())).await;
    }
    let compacted = compact(objects.clone()).await.unwrap();
    assert_eq!((compacted.n_inputs, compacted.n_removed), (3, 1));
    assert_eq!(keys(&objects).await, once(14));
    assert_eq!(seen(&objects).await.len(), 1);
    let compacted = compact(objects).await.unwrap();
    assert_eq!(compacted.n_inputs, 0, "one file stays as it is");
}

#[tokio::test]
async fn a_kill_at_any_step_loses_and_repeats_nothing() {
    for dies_after in [false, true] {
        for n in 0.. {
            let objects = bucket(4).await;
            let steps = Steps::new(objects.clone(), n, Meanwhile::Die { dies_after });
            let _killed = compact(Arc::new(steps.clone())).await;
            let there = keys(&objects).await;
            assert_eq!(
                there.len(),
                8,
                "a reader misses nothing: step {n}, {dies_after}"
            );
            let compacted = compact(objects.clone()).await.unwrap();
            assert_eq!(keys(&objects).await, once(8), "step {n}, {dies_after}");
            assert_eq!(compacted.n_failed, 0);
            assert_eq!(seen(&objects).await.len(), 1, "step {n}, {dies_after}");
            if steps.is_untouched() {
                assert!(n > 10, "there are more steps than {n}");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_lost_answer_at_any_step_loses_and_repeats_nothing() {
    for after in [false, true] {
        for n in 0.. {
            let objects = bucket(4).await;
            let steps = Steps::new(objects.clone(), n, Meanwhile::FailOnce { after });
            let _told = compact(Arc::new(steps.clone())).await;
            let there = keys(&objects).await;
            assert_eq!(there.len(), 8, "a reader misses nothing: step {n}, {after}");
            let compacted = compact(objects.clone()).await.unwrap();
            assert_eq!(keys(&objects).await, once(8), "step {n}, {after}");
            assert_eq!(compacted.n_failed, 0);
            if steps.is_untouched() {
                assert!(n > 10, "there are more steps than {n}");
                break;
            }
        }
    }
}

#[tokio::test]
async fn trouble_of_the_place_is_blamed_on_no_file_of_a_batch() {
    // The steps before are four listings, and the heads.
    for n in 0.. {
        let objects = bucket(9).await;
        let steps = Steps::new(objects.clone(), n, Meanwhile::Die { dies_after: false });
        let (compacted, told) = compact_with(Arc::new(steps.clone()), &settings(), LATER).await;
        let Ok(compacted) = compacted else {
            continue;
        };
        // Heads fail one by one, until there are too many.
        let is_head = n < 4 + 9;
        assert!(is_head || compacted.n_failed <= 1, "step {n}: {told:?}");
        if steps.is_untouched() {
            break;
        }
    }
}

#[tokio::test]
async fn folders_that_fail_in_a_row_end_the_work_and_are_counted() {
    let objects = bucket(0).await;
    for n in 0..12 {
        let path = format!("books/kind-{n:02}/{}", name(0, Format::Lines));
        put(&*objects, &path, Vec::new()).await;
    }
    // The root and `books` are listed.
    let steps = Steps::new(objects, 2, Meanwhile::Die { dies_after: false });
    let (compacted, told) = compact_with(Arc::new(steps), &settings(), LATER).await;
    let compacted = compacted.unwrap();
    assert_eq!((compacted.n_folders, compacted.n_failed), (11, 10));
    let last = told.last().unwrap();
    let expected =
        "10 folders of s3://b have failed one after the other; the rest is left as it is";
    assert_eq!(last, expected);
}

#[tokio::test]
async fn another_compaction_at_any_step_harms_nothing() {
    for n in 0.. {
        let objects = bucket(4).await;
        let other = objects.clone();
        let run = Meanwhile::run(move || {
            let other = other.clone();
            Box::pin(async move {
                assert_eq!(compact(other).await.unwrap().n_failed, 0);
            })
        });
        let steps = Steps::new(objects.clone(), n, run);
        let compacted = compact(Arc::new(steps.clone())).await.unwrap();
        assert_eq!(compacted.n_failed, 0, "step {n}");
        assert_eq!(keys(&objects).await, once(8), "step {n}");
        assert_eq!(seen(&objects).await.len(), 1, "step {n}");
        if steps.is_untouched() {
            break;
        }
    }
}

#[tokio::test]
async fn two_compactions_at_once_harm_nothing() {
    for _ in 0..20 {
        let objects = bucket(9).await;
        let (one, other) = tokio::join!(compact(objects.clone()), compact(objects.clone()));
        one.unwrap();
        other.unwrap();
        compact(objects.clone()).await.unwrap();
        assert_eq!(keys(&objects).await, once(18));
        assert_eq!(seen(&objects).await.len(), 1);
    }
}

#[tokio::test]
async fn files_of_others_and_new_ones_are_left_alone() {
    let objects = bucket(3).await;
    let foreign = [
        "books/thing/notes.jsonl",
        "books/thing/part-1.jsonl",
        "_tmp/x/y.jsonl",
    ];
    for path in foreign {
        put(&*objects, path, Vec::new()).await;
    }
    let hidden = format!("_tmp/x/{}", name(0, Format::Lines));
    put(&*objects, &hidden, Vec::new()).await;
    let (compacted, _) = compact_with(objects.clone(), &settings(), 1_000).await;
    assert_eq!(numbers(&compacted.unwrap()), (0, 3, 0), "they are too new");
    let many = CompactSettings {
        min_files: 4,
        ..settings()
    };
    let (compacted, _) = compact_with(objects.clone(), &many, LATER).await;
    assert_eq!(numbers(&compacted.unwrap()), (0, 0, 3), "they are too few");
    let (compacted, told) = compact_with(objects.clone(), &settings(), LATER).await;
    assert_eq!(numbers(&compacted.unwrap()), (3, 0, 0));
    assert_eq!(told, [format!("made of 3 in {FOLDER}")]);
    for path in foreign.into_iter().chain([hidden.as_str()]) {
        objects
            .head(&ObjectPath::parse(path).unwrap())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_dry_run_tells_and_changes_nothing() {
    let objects = bucket(3).await;
    let before = seen(&objects).await;
    let dry = CompactSettings {
        is_dry: true,
        ..settings()
    };
    let (compacted, told) = compact_with(objects.clone(), &dry, LATER).await;
    assert_eq!(compacted.unwrap().n_outputs, 1);
    assert_eq!(told, [format!("made of 3 in {FOLDER}")]);
    assert_eq!(seen(&objects).await, before);
    let all: Vec<ObjectMeta> = objects.list(None).try_collect().await.unwrap();
    assert_eq!(all.len(), 3, "there is no log");
}

#[tokio::test]
async fn a_damaged_file_stays_and_others_go_on() {
    let objects = Arc::new(InMemory::new());
    let a = table(r#"{"properties":{"a":{"type":"integer"}}}"#);
    for folder in ["books/thing", "books/thing-2"] {
        for n in [0, 2, 4] {
            let path = format!("{folder}/{}", name(n, Format::Parquet));
            put(&*objects, &path, bytes(n, Format::Parquet, &a)).await;
        }
    }
    let broken = format!("{FOLDER}/{}", name(6, Format::Parquet));
    put(&*objects, &broken, b"PAR1 is no table".to_vec()).await;
    let (compacted, told) = compact_with(objects.clone(), &settings(), LATER).await;
    let compacted = compacted.unwrap();
    assert_eq!((compacted.n_inputs, compacted.n_outputs), (6, 2));
    assert_eq!(compacted.n_failed, 1);
    let expected = format!("cannot read s3://b/{broken}, which is left as it is");
    assert!(told.contains(&expected), "{told:?}");
    let left = seen(&objects).await;
    assert!(left.iter().any(|path| path.as_ref() == broken));
    assert_eq!(left.len(), 3);
}

#[tokio::test]
async fn columns_grow_and_other_types_stay_apart() {
    let objects = Arc::new(InMemory::new());
    let integer = r#""a":{"type":"integer"}"#;
    let grown = r#""a":{"type":"integer"},"b":{"type":"string"}"#;
    let text = r#""a":{"type":"string"}"#;
    for (fields, n) in [integer, grown, text].into_iter().zip([0, 2, 4]) {
        let table = table(&format!("{{\"properties\":{{{fields}}}}}"));
        let path = format!("{FOLDER}/{}", name(n, Format::Parquet));
        put(&*objects, &path, bytes(n, Format::Parquet, &table)).await;
    }
    let (compacted, told) = compact_with(objects.clone(), &settings(), LATER).await;
    assert_eq!(compacted.unwrap().n_inputs, 2);
    let apart = format!(
        "{FOLDER}/{} stays apart from files before it: column \"a\" is string in it, and integer in others",
        name(4, Format::Parquet)
    );
    assert_eq!(told, [apart, format!("made of 2 in {FOLDER}")]);
}

#[tokio::test]
async fn an_input_that_goes_meanwhile_undoes_its_compaction() {
    let gone = ObjectPath::from(format!("{FOLDER}/{}", name(2, Format::Lines)));
    for n in 0.. {
        let objects = bucket(3).await;
        let (other, path) = (objects.clone(), gone.clone());
        let run = Meanwhile::run(move || {
            let (other, path) = (other.clone(), path.clone());
            Box::pin(async move {
                let _gone = other.delete(&path).await;
            })
        });
        let steps = Steps::new(objects.clone(), n, run);
        let _told = compact(Arc::new(steps.clone())).await;
        let there = keys(&objects).await;
        assert!(there.values().all(|n| *n == 1), "step {n}: {there:?}");
        assert!(there.len() >= 4, "step {n}: {there:?}");
        if steps.is_untouched() {
            break;
        }
    }
}

/// Returns a bucket whose files were compacted twice, the second time the output and another file, and the files as they
/// were at first.
async fn compacted_twice() -> (Arc<InMemory>, Vec<(String, Vec<u8>)>) {
    let objects = bucket(3).await;
    let first = (0..3).map(|n| {
        let path = format!("{FOLDER}/{}", name(2 * n, Format::Lines));
        (path, bytes(2 * n, Format::Lines, &Table::default()))
    });
    let first = first.collect();
    compact(objects.clone()).await.unwrap();
    let path = format!("{FOLDER}/{}", name(6, Format::Lines));
    put(&*objects, &path, bytes(6, Format::Lines, &Table::default())).await;
    compact(objects.clone()).await.unwrap();
    (objects, first)
}

#[tokio::test]
async fn files_brought_back_go_while_their_rows_are_elsewhere() {
    let (objects, first) = compacted_twice().await;
    for (path, bytes) in first {
        put(&*objects, &path, bytes).await;
    }
    let compacted = compact(objects.clone()).await.unwrap();
    assert_eq!((compacted.n_removed, compacted.n_failed), (3, 0));
    assert_eq!(keys(&objects).await, once(8));
}

#[tokio::test]
async fn files_brought_back_stay_if_their_output_is_gone() {
    let (objects, first) = compacted_twice().await;
    let [output] = &seen(&objects).await[..] else {
        panic!("there is one file");
    };
    let bytes_of_output = objects.get(output).await.unwrap().bytes().await.unwrap();
    objects.delete(output).await.unwrap();
    for (path, bytes) in &first {
        put(&*objects, path, bytes.clone()).await;
    }
    let (compacted, told) = compact_with(objects.clone(), &settings(), LATER).await;
    let compacted = compacted.unwrap();
    assert_eq!((compacted.n_removed, compacted.n_inputs), (0, 0));
    assert_eq!(compacted.n_failed, 1);
    assert_eq!(keys(&objects).await, once(6));
    let start = format!(
        "s3://b/{}, like 2 files beside it, was taken by compaction 1, ",
        first[0].0
    );
    let end = format!("remove s3://b/.crawler-compacted/{FOLDER}/_000001.plan");
    let [told] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(told.starts_with(&start) && told.ends_with(&end), "{told}");
    // Either way out.
    let plan = format!(".crawler-compacted/{FOLDER}/_000001.plan");
    let plan = ObjectPath::parse(&plan).unwrap();
    let kept = objects.get(&plan).await.unwrap().bytes().await.unwrap();
    objects.delete(&plan).await.unwrap();
    let dry = CompactSettings {
        is_dry: true,
        ..settings()
    };
    let (compacted, _) = compact_with(objects.clone(), &dry, LATER).await;
    assert_eq!(compacted.unwrap().n_inputs, 3);
    put(&*objects, plan.as_ref(), kept.to_vec()).await;
    put(&*objects, output.as_ref(), bytes_of_output.to_vec()).await;
    assert_eq!(compact(objects.clone()).await.unwrap().n_removed, 3);
    assert_eq!(keys(&objects).await, once(8));
}

#[tokio::test]
async fn large_outputs_of_a_folder_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join(FOLDER);
    std::fs::create_dir_all(&inner).unwrap();
    let text = "x".repeat(5 << 20);
    for n in 0..4 {
        let contents = Contents {
            resource: "books".to_owned(),
            table: Table::default(),
            records: vec![record(n, &format!("{{\"a\":\"{text}\"}}"))],
        };
        let bytes = contents.encode(Format::Lines).unwrap();
        std::fs::write(inner.join(name(n, Format::Lines)), bytes).unwrap();
    }
    let sinks = FileSinks::in_folder(folder.path().to_owned(), FileSettings::default());
    let compacted = sinks.unwrap().compact(&settings(), LATER, &|_| ()).await;
    assert_eq!(compacted.unwrap().n_inputs, 4);
    let files: Vec<_> = std::fs::read_dir(&inner).unwrap().collect();
    assert_eq!(files.len(), 1);
    let text = std::fs::read_to_string(files[0].as_ref().unwrap().path()).unwrap();
    let keys = text.lines().map(|line| line[..14].to_owned());
    let expected: Vec<String> = (0..4).map(|n| format!("{{\"key\":\"key-{n}\"")).collect();
    assert_eq!(keys.collect::<Vec<_>>(), expected);
    let unfinished = folder.path().join(".crawler-unfinished");
    assert_eq!(std::fs::read_dir(unfinished).unwrap().count(), 0);
}

#[tokio::test]
async fn a_link_to_a_folder_is_not_followed() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for n in 0..3 {
        let bytes = bytes(n, Format::Lines, &Table::default());
        std::fs::write(elsewhere.path().join(name(n, Format::Lines)), bytes).unwrap();
    }
    std::fs::create_dir(folder.path().join("books")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(FOLDER)).unwrap();
    let sinks = FileSinks::in_folder(folder.path().to_owned(), FileSettings::default()).unwrap();
    let told = Mutex::new(Vec::new());
    let tell = |notice: Notice<'_>| {
        if let Notice::LeftAlone(text) = notice {
            told.lock().unwrap().push(text);
        }
    };
    let compacted = sinks.compact(&settings(), LATER, &tell).await.unwrap();
    assert_eq!((compacted.n_folders, compacted.n_inputs), (1, 0));
    let told = told.into_inner().unwrap();
    assert_eq!(
        told,
        ["books/thing is a symbolic link, and is not followed"]
    );
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 3);
}

#[tokio::test]
async fn a_folder_that_is_gone_is_no_link_and_other_errors_are_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("books"), "no folder").unwrap();
    let sinks = FileSinks::in_folder(folder.path().to_owned(), FileSettings::default()).unwrap();
    let place = sinks.place.open().await.unwrap();
    assert!(!place.is_link(&ObjectPath::from("gone")).await.unwrap());
    let error = place.is_link(&ObjectPath::from(FOLDER)).await.unwrap_err();
    let shown = folder.path().display();
    assert_eq!(
        error.to_string(),
        format!("cannot look at {shown}/{FOLDER}")
    );
}

#[test]
fn a_number_out_of_its_range_is_named() {
    let default = CompactSettings::default();
    default.check().unwrap();
    for (settings, why) in [
        (
            CompactSettings {
                target_bytes: 1,
                ..default
            },
            "--target is 1; it goes from 1MiB to 1GiB",
        ),
        (
            CompactSettings {
                min_files: 1,
                ..default
            },
            "--min-files is 1; it goes from 2 to 4000",
        ),
        (
            CompactSettings {
                min_age: Duration::from_secs(31 * 86_400),
                ..default
            },
            "--min-age is 31days; it goes from 0s to 30days",
        ),
    ] {
        assert_eq!(settings.check().unwrap_err().to_string(), why);
    }
}
