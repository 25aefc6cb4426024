//! What a reader sees, whatever happened to the writer.

use super::*;
use crate::model::crawl::ItemKey;

pub(crate) fn record(n: u32, json: &str) -> ItemRecord {
    ItemRecord {
        key: ItemKey(format!("key-{n}")),
        url: "http://a.test/".into(),
        rule: "page".into(),
        schema: "thing".into(),
        run: Run(1),
        fetched_at: 7,
        item: serde_json::value::RawValue::from_string(json.into()).unwrap(),
    }
}

fn records(range: std::ops::Range<u32>) -> Vec<ItemRecord> {
    range.map(|n| record(n, "{\n\"a\": 1}")).collect()
}

fn keys(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| format!("key-{n}")).collect()
}

async fn open(folder: &Path, shard: u32) -> LineFiles {
    let folder = folder.join(shard.to_string());
    LineFiles::open(folder, Run(1), LineSettings::default())
        .await
        .unwrap()
}

async fn read(reader: &mut LineReader, max: usize) -> Vec<String> {
    let items = reader.read(max).await.unwrap();
    items.into_iter().map(|item| item.key.0).collect()
}

fn reader(folder: &Path) -> LineReader {
    LineReader::new(folder.to_owned(), Run(1))
}

#[tokio::test]
async fn what_is_written_is_read_in_order_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut reader = reader(folder.path());
    assert_eq!(read(&mut reader, 9).await, keys(0..0));
    let mut files = open(folder.path(), 0).await;
    assert_eq!(read(&mut reader, 9).await, keys(0..0));
    files.write(&records(0..3)).await.unwrap();
    assert_eq!(read(&mut reader, 2).await, keys(0..2));
    files.write(&records(3..5)).await.unwrap();
    assert_eq!(read(&mut reader, 9).await, keys(2..5));
    assert_eq!(read(&mut reader, 9).await, keys(0..0));
    let text = std::fs::read_to_string(folder.path().join("0/1-0.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 5);
}

#[tokio::test]
async fn a_torn_tail_is_never_read_and_is_cut_off_on_open() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), 0)
        .await
        .write(&records(0..2))
        .await
        .unwrap();
    let path = folder.path().join("0/1-0.jsonl");
    let mut torn = OpenOptions::new().append(true).open(&path).unwrap();
    torn.write_all(b"{\"key\":\"torn\",\n{\"ke").unwrap();
    let mut reader = reader(folder.path());
    assert_eq!(read(&mut reader, 9).await, keys(0..2));
    open(folder.path(), 0)
        .await
        .write(&records(2..3))
        .await
        .unwrap();
    assert_eq!(read(&mut reader, 9).await, keys(2..3));
}

#[tokio::test]
async fn f33_a_batch_that_failed_half_way_is_written_whole_and_once_on_the_next_try() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = open(folder.path(), 0).await;
    files.write(&records(0..1)).await.unwrap();
    // The lines are appended, and then their length cannot be committed.
    let in_the_way = folder.path().join("0/1-0.jsonl.len.tmp");
    std::fs::create_dir(&in_the_way).unwrap();
    let error = files.write(&records(1..3)).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot write"), "{error}");
    let mut reader = reader(folder.path());
    assert_eq!(read(&mut reader, 9).await, keys(0..1));
    std::fs::remove_dir(&in_the_way).unwrap();
    files.write(&records(1..4)).await.unwrap();
    assert_eq!(read(&mut reader, 9).await, keys(1..4));
}

#[tokio::test]
async fn a_batch_whose_folder_could_not_be_synced_is_not_doubled() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = open(folder.path(), 0).await;
    files.write(&records(0..2)).await.unwrap();
    let written = std::fs::read(folder.path().join("0/1-0.jsonl")).unwrap();
    files.writer.lock().unwrap().unsynced = Some(written);
    files.write(&records(0..3)).await.unwrap();
    assert_eq!(read(&mut reader(folder.path()), 9).await, keys(0..3));
}

#[tokio::test]
async fn a_file_is_followed_by_the_next_at_its_bound_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let settings = LineSettings {
        max_file_bytes: 300,
    };
    for n in 0..4 {
        let mut files = LineFiles::open(folder.path().join("0"), Run(1), settings.clone())
            .await
            .unwrap();
        files.write(&records(3 * n..3 * n + 1)).await.unwrap();
        files.write(&records(3 * n + 1..3 * n + 3)).await.unwrap();
    }
    assert!(folder.path().join("0/1-3.jsonl").exists());
    let mut reader = reader(folder.path());
    assert_eq!(read(&mut reader, 5).await, keys(0..5));
    assert_eq!(read(&mut reader, 99).await, keys(5..12));
}

#[tokio::test]
async fn shards_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    for shard in [2, 10] {
        let first = shard * 10;
        let mut files = open(folder.path(), shard).await;
        files.write(&records(first..first + 2)).await.unwrap();
    }
    let mut reader = reader(folder.path());
    for n in [20, 100, 21, 101] {
        assert_eq!(read(&mut reader, 1).await, keys(n..n + 1));
    }
}

#[tokio::test]
async fn runs_are_apart_and_the_newest_is_known_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    assert_eq!(newest_run(path.join("none")).await.unwrap(), None);
    for run in [9, 10] {
        let mut files = LineFiles::open(path.join("0"), Run(run), LineSettings::default())
            .await
            .unwrap();
        let n = u32::try_from(run).unwrap();
        files.write(&records(n..n + 1)).await.unwrap();
    }
    assert_eq!(newest_run(path.clone()).await.unwrap(), Some(Run(10)));
    let mut reader = LineReader::new(path, Run(9));
    assert_eq!(read(&mut reader, 9).await, keys(9..10));
}

#[tokio::test]
async fn a_file_that_lost_committed_bytes_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = open(folder.path(), 0).await;
    files.write(&records(0..1)).await.unwrap();
    let path = folder.path().join("0/1-0.jsonl");
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(10).unwrap();
    reader(folder.path()).read(9).await.unwrap_err();
    LineFiles::open(folder.path().join("0"), Run(1), LineSettings::default())
        .await
        .unwrap_err();
}
