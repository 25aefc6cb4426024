//! Tests of archives as a whole: what was written is read, whatever happened to the writer and to the files.

use std::fs::{self, File};
use std::io::{self, BufRead, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;

use super::adopt::{Readable, adopt_runs, names_in, readable};
use super::names::FileId;
use super::read::{Head, Records};
use super::record::{Record, new_id};
use super::source::Source;
use super::*;
use crawler_model::exchange::{BodyForm, Exchange, Redirects};
use crawler_model::id::{ResourceId, Run, Shard};
use crawler_model::page::FetchRecord;
use crawler_model::settings::CrawlSettings;
use crawler_process::clock::Clock;
use crawler_process::memory::Account;

#[derive(Debug)]
struct StoppedClock;

impl Clock for StoppedClock {
    fn unix_nanos(&self) -> u64 {
        1_764_343_320_123 * 1_000_000
    }
}

pub(crate) fn exchange(path: &str, body: &str) -> Exchange {
    let header = |name: &str, value: &str| (name.to_owned(), Bytes::from(value.to_owned()));
    Exchange {
        url: format!("http://a.test{path}").parse().unwrap(),
        method: "GET".to_owned(),
        request_headers: vec![header("host", "a.test")],
        request_body: Bytes::new(),
        status: 200,
        headers: vec![
            header("content-type", "text/html; charset=utf-8"),
            header("transfer-encoding", "chunked"),
        ],
        body: Bytes::from(body.to_owned()),
        body_form: BodyForm::Sent,
        began_at: 1_764_343_320_444,
        ended_at: 1_764_343_320_456,
        record: FetchRecord {
            first_byte: Duration::from_millis(12),
            n_received: body.len() as u64,
            address: Some("192.0.2.1:80".parse().unwrap()),
            version: Some("1.1"),
            ..FetchRecord::default()
        },
    }
}

pub(crate) fn page(exchange: Exchange) -> Arc<PageRecord> {
    held(exchange, &Account::default())
}

/// Returns a page whose memory counts in an account.
pub(crate) fn held(exchange: Exchange, account: &Account) -> Arc<PageRecord> {
    page_of(vec![exchange], account)
}

fn page_of(exchanges: Vec<Exchange>, account: &Account) -> Arc<PageRecord> {
    let about = About {
        rule: "page".into(),
        depth: 1,
        attempt: 1,
        state: Bytes::from_static(b"\0state"),
        referrer: Some("http://a.test/list".into()),
        ..About::default()
    };
    Arc::new(PageRecord {
        exchanges,
        about,
        held: account.reserve(100),
    })
}

/// A folder for archives, with the settings of one life.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    settings: ArchiveSettings,
    run: Run,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = ArchiveSettings {
            base: folder.path().to_owned(),
            folder: folder.path().join("7/1/0"),
            epoch: 3,
            is_exclusive: true,
            size: 1 << 30,
        };
        Self {
            folder,
            settings,
            run: Run(1),
        }
    }

    pub(crate) fn archive(&self) -> Archive {
        let info = RunInfo {
            name: "books".to_owned(),
            resource: ResourceId(7),
            run: self.run,
            shard: Shard(0),
            started_at: 1_764_343_320_000,
            settings: CrawlSettings {
                cookie_seeds: vec!["a.test:secret=1".parse().unwrap()],
                ..CrawlSettings::default()
            },
        };
        Archive::new(self.settings.clone(), info, Arc::new(StoppedClock))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = names_in(&self.settings.folder).unwrap();
        names.sort();
        names
    }

    fn path(&self, name: &str) -> PathBuf {
        self.settings.folder.join(name)
    }

    pub(crate) fn pages(&self) -> RecordedPages {
        RecordedPages::open(&[self.folder.path().to_owned()], 1_000, "--urls").unwrap()
    }
}

/// Returns the whole text of a file.
fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    let mut decoder = MultiGzDecoder::new(File::open(path).unwrap());
    decoder.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Checks a file that has to be whole, and returns the numbers of its records: warcinfo, response, request, metadata and
/// revisit.
#[track_caller]
fn counts(path: &Path) -> [u64; 5] {
    let checked = check(path, DEFAULT_MAX_RECORD).unwrap();
    assert!(checked.faults.is_empty(), "{:?}", checked.faults);
    assert!(checked.n_digests > 0);
    ["warcinfo", "response", "request", "metadata", "revisit"]
        .map(|kind| checked.records.get(kind).copied().unwrap_or(0))
}

pub(crate) fn body_of(pages: &RecordedPages, path: &str) -> Option<String> {
    let url = format!("http://a.test{path}").parse().unwrap();
    let exchange = pages.answer("GET", &url, None, 1 << 20).unwrap();
    exchange.map(|exchange| String::from_utf8(exchange.body.to_vec()).unwrap())
}

#[tokio::test]
async fn what_was_written_is_read() {
    let bench = Bench::new();
    let archive = bench.archive();
    let written = exchange("/1?x", "<p>one");
    archive.append(page(written.clone())).await.unwrap();
    // It is there before the file is complete.
    assert_eq!(bench.names(), ["3-1.warc.gz.open"]);
    assert_eq!(body_of(&bench.pages(), "/1?x").as_deref(), Some("<p>one"));
    archive.finish().await.unwrap();
    assert_eq!(bench.names(), ["3-1.warc.gz"]);
    let file = bench.path("3-1.warc.gz");
    assert_eq!(counts(&file), [1, 1, 1, 1, 0]);
    let text = text(&file);
    for part in [
        "WARC/1.1\r\nWARC-Type: warcinfo\r\n",
        "crawler-resource: books (7)\r\n",
        "WARC-Target-URI: http://a.test/1?x\r\n",
        "WARC-Date: 2025-11-28T15:22:00.444Z\r\n",
        "WARC-IP-Address: 192.0.2.1\r\n",
        "\r\n\r\nGET /1?x HTTP/1.1\r\nhost: a.test\r\n\r\n",
        "\r\n\r\nHTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nx-orig-transfer-encoding: chunked\r\n\r\n<p>one\r\n\r\n",
        "via: http://a.test/list\r\n",
        "crawler-rule: page\r\n",
        "crawler-state: AHN0YXRl\r\n",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("secret"), "{text}");
    let pages = bench.pages();
    assert_eq!(pages.run_started_at(), Some(1_764_343_320_000));
    assert_eq!((pages.n_answers(), pages.damage().len()), (1, 0));
    let found = pages.answer("GET", &written.url, None, 9).unwrap().unwrap();
    assert_eq!(found.headers, written.headers);
    assert_eq!((found.status, &found.body), (200, &written.body));
    assert_eq!(found.body_form, BodyForm::Sent);
    let times = |exchange: &Exchange| (exchange.began_at, exchange.ended_at);
    assert_eq!(times(&found), times(&written));
    assert_eq!(
        format!("{:?}", found.record),
        format!("{:?}", written.record)
    );
    let other = Bytes::from_static(b"q=1");
    let posted = pages.answer("POST", &written.url, Some(&other), 9).unwrap();
    assert!(posted.is_none(), "a form is another request");
}

#[tokio::test]
async fn a_posted_form_and_a_cut_body_are_read_as_such() {
    let bench = Bench::new();
    let archive = bench.archive();
    let header = ("content-encoding".to_owned(), Bytes::from_static(b"br"));
    let posted = Exchange {
        method: "POST".to_owned(),
        request_body: Bytes::from_static(b"q=1"),
        headers: vec![header],
        body_form: BodyForm::Cut,
        ..exchange("/search", "fou")
    };
    archive.append(page(posted.clone())).await.unwrap();
    archive.finish().await.unwrap();
    let text = text(&bench.path("3-1.warc.gz"));
    assert!(text.contains("WARC-Truncated: length\r\n"), "{text}");
    assert!(text.contains("x-orig-content-encoding: br\r\n"), "{text}");
    let pages = bench.pages();
    let body = Some(&posted.request_body);
    let found = pages.answer("POST", &posted.url, body, 9).unwrap().unwrap();
    assert_eq!(
        (found.body_form, &found.body[..]),
        (BodyForm::Cut, &b"fou"[..])
    );
    assert_eq!(found.header("content-encoding"), Some("br"));
    assert_eq!(body_of(&pages, "/search"), None);
}

#[tokio::test]
async fn the_same_payload_and_an_unmodified_page_are_revisits() {
    let bench = Bench::new();
    let archive = bench.archive();
    for path in ["/1", "/2", "/1"] {
        archive.append(page(exchange(path, "same"))).await.unwrap();
    }
    let unmodified = Exchange {
        status: 304,
        ended_at: 1_764_343_329_999,
        ..exchange("/1", "")
    };
    archive.append(page(unmodified)).await.unwrap();
    archive.finish().await.unwrap();
    let file = bench.path("3-1.warc.gz");
    assert_eq!(counts(&file), [1, 1, 4, 4, 3]);
    let text = text(&file);
    for part in [
        "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n",
        "WARC-Refers-To-Target-URI: http://a.test/1\r\n",
        "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified\r\n",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let pages = bench.pages();
    for path in ["/1", "/2"] {
        assert_eq!(body_of(&pages, path).as_deref(), Some("same"));
    }
}

#[tokio::test]
async fn the_later_record_of_a_page_counts_whatever_clocks_say() {
    let mut bench = Bench::new();
    let archive = bench.archive();
    archive.append(page(exchange("/1", "first"))).await.unwrap();
    // The clock was put back, and so is that of the next worker.
    let dated = |at, body| Exchange {
        began_at: at,
        ended_at: at,
        ..exchange("/1", body)
    };
    archive.append(page(dated(9_000, "second"))).await.unwrap();
    archive.finish().await.unwrap();
    assert_eq!(body_of(&bench.pages(), "/1").as_deref(), Some("second"));
    // By their names, 10 is before 3.
    bench.settings.epoch = 10;
    let next = bench.archive();
    next.append(page(dated(5_000, "third"))).await.unwrap();
    assert_eq!(body_of(&bench.pages(), "/1").as_deref(), Some("third"));
}

/// An answer after redirects of its page, in the place of one to a request that began a page.
#[tokio::test]
async fn a_redirect_to_a_page_does_not_answer_for_it() {
    let posted = Exchange {
        method: "POST".to_owned(),
        request_body: Bytes::from_static(b"user=1"),
        status: 303,
        ..exchange("/login", "")
    };
    let moved = Exchange {
        status: 302,
        ..exchange("/b", "")
    };
    for first in [posted, moved] {
        let mut bench = Bench::new();
        let redirects = Redirects {
            method: first.method.clone(),
            url: first.url.clone(),
            body: first.request_body.clone(),
            n: 1,
        };
        let archive = bench.archive();
        archive.append(page(exchange("/", "page"))).await.unwrap();
        // The next life, whose answers count before those of earlier ones.
        archive.finish().await.unwrap();
        bench.settings.epoch += 1;
        let failed = Exchange {
            status: 503,
            ..exchange("/", "later")
        };
        let pages = page_of(vec![first, failed], &Account::default());
        bench.archive().append(pages).await.unwrap();
        let pages = bench.pages();
        assert_eq!(pages.n_answers(), 2);
        assert_eq!(body_of(&pages, "/").as_deref(), Some("page"));
        let url = "http://a.test/".parse().unwrap();
        let after = |redirects: &Redirects| {
            let found = pages.answer_after(Some(redirects), "GET", &url, None, 9);
            let found = found.unwrap().unwrap();
            (found.status, found.body)
        };
        assert_eq!(after(&redirects), (503, Bytes::from_static(b"later")));
        // No page of the archive came here by two redirects.
        let other = Redirects { n: 2, ..redirects };
        assert_eq!(after(&other), (200, Bytes::from_static(b"page")));
    }
}

/// A redirect whose target was in its page at first, and had to wait later, by an attempt or by a run.
#[tokio::test]
async fn a_redirect_leads_to_what_its_last_page_led_to() {
    let moved = || Exchange {
        status: 302,
        ..exchange("/a", "")
    };
    let redirects = Redirects {
        method: "GET".to_owned(),
        url: moved().url,
        body: Bytes::new(),
        n: 1,
    };
    for is_next_run in [false, true] {
        let mut bench = Bench::new();
        let mut archive = bench.archive();
        let early = Exchange {
            status: 503,
            ..exchange("/b", "early")
        };
        let first = page_of(vec![moved(), early], &Account::default());
        archive.append(first).await.unwrap();
        if is_next_run {
            archive.finish().await.unwrap();
            bench.run = Run(2);
            bench.settings.folder = bench.folder.path().join("7/2/0");
            archive = bench.archive();
        }
        archive.append(page(moved())).await.unwrap();
        archive.append(page(exchange("/b", "late"))).await.unwrap();
        archive.finish().await.unwrap();
        let pages = bench.pages();
        let url = "http://a.test/b".parse().unwrap();
        let found = pages.answer_after(Some(&redirects), "GET", &url, None, 9);
        let found = found.unwrap().unwrap();
        let expected = (200, Bytes::from_static(b"late"));
        assert_eq!((found.status, found.body), expected, "{is_next_run}");
    }
}

#[tokio::test]
async fn another_spelling_of_a_url_finds_its_page() {
    let bench = Bench::new();
    let archive = bench.archive();
    archive
        .append(page(exchange("/%7eann", "ann")))
        .await
        .unwrap();
    assert_eq!(body_of(&bench.pages(), "/~ann").as_deref(), Some("ann"));
}

#[tokio::test]
async fn a_file_is_followed_by_the_next_at_its_size() {
    let mut bench = Bench::new();
    bench.settings.size = 1;
    let archive = bench.archive();
    for n in 0..3 {
        let page = page(exchange(&format!("/{n}"), "same"));
        archive.append(page).await.unwrap();
    }
    archive.finish().await.unwrap();
    archive.append(page(exchange("/3", "x"))).await.unwrap();
    let names = [
        "3-1.warc.gz",
        "3-2.warc.gz",
        "3-3.warc.gz",
        "3-4.warc.gz.open",
    ];
    assert_eq!(bench.names(), names);
    let pages = bench.pages();
    for n in 0..3 {
        assert_eq!(body_of(&pages, &format!("/{n}")).as_deref(), Some("same"));
    }
}

#[tokio::test]
async fn two_archives_of_one_life_do_not_share_a_file() {
    let bench = Bench::new();
    for n in 0..2 {
        let archive = bench.archive();
        let page = page(exchange(&format!("/{n}"), "x"));
        archive.append(page).await.unwrap();
        archive.finish().await.unwrap();
    }
    assert_eq!(bench.names(), ["3-1.warc.gz", "3-2.warc.gz"]);
}

#[tokio::test]
async fn pages_that_come_at_once_are_all_written() {
    let bench = Bench::new();
    let archive = bench.archive();
    let mut waiting = Vec::new();
    for n in 0..50 {
        let mut append = Box::pin(archive.append(page(exchange(&format!("/{n}"), "x"))));
        let first_poll = tokio::time::timeout(Duration::ZERO, &mut append).await;
        if first_poll.is_err() {
            waiting.push((n, append));
        }
    }
    // A page that stops waiting keeps no other from being written.
    let dropped = waiting.pop().map(|(n, _)| n);
    for (_, append) in waiting {
        append.await.unwrap();
    }
    archive.append(page(exchange("/50", "x"))).await.unwrap();
    let found = bench.pages();
    for n in (0..=50).filter(|n| dropped != Some(*n)) {
        assert!(body_of(&found, &format!("/{n}")).is_some(), "{n}");
    }
}

/// Writes two pages and leaves the file as a kill would, with only these bytes of it.
async fn killed(cut: impl Fn(u64) -> u64) -> Bench {
    let mut bench = Bench::new();
    let archive = bench.archive();
    for n in 0..2 {
        let page = page(exchange(&format!("/{n}"), &format!("page {n}")));
        archive.append(page).await.unwrap();
    }
    drop(archive);
    let path = bench.path("3-1.warc.gz.open");
    let length = fs::metadata(&path).unwrap().len();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(cut(length)).unwrap();
    bench.settings.epoch = 4;
    bench
}

#[tokio::test]
async fn a_file_that_a_kill_has_cut_is_completed_by_the_next_life() {
    let bench = killed(|length| length - 1).await;
    let archive = bench.archive();
    // Copies that were not ended, by this life and by an earlier one.
    for name in ["3-1.warc.gz#4", "2-1.warc.gz#3"] {
        fs::write(bench.path(name), "cut").unwrap();
    }
    archive.adopt().await.unwrap();
    archive
        .append(page(exchange("/2", "page 2")))
        .await
        .unwrap();
    archive.finish().await.unwrap();
    assert_eq!(bench.names(), ["3-1.warc.gz", "4-1.warc.gz"]);
    // The metadata record of the second page was cut, and nothing else.
    assert_eq!(counts(&bench.path("3-1.warc.gz")), [1, 2, 2, 1, 0]);
    let pages = bench.pages();
    for n in 0..3 {
        let body = format!("page {n}");
        assert_eq!(body_of(&pages, &format!("/{n}")), Some(body));
    }
}

#[tokio::test]
async fn a_file_of_an_earlier_run_is_completed() {
    let mut bench = killed(|length| length).await;
    let left = bench.settings.folder.clone();
    // A file beside the folders of runs, and a folder of another shard.
    fs::write(bench.folder.path().join("7/notes"), "").unwrap();
    let other = bench.folder.path().join("7/1/1");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("3-1.warc.gz.open"), "").unwrap();
    bench.settings.folder = bench.folder.path().join("7/2/0");
    let archive = bench.archive();
    archive.append(page(exchange("/2", "x"))).await.unwrap();
    archive.adopt().await.unwrap();
    assert_eq!(names_in(&left).unwrap(), ["3-1.warc.gz"]);
    assert_eq!(counts(&left.join("3-1.warc.gz")), [1, 2, 2, 2, 0]);
    assert_eq!(names_in(&other).unwrap(), ["3-1.warc.gz.open"]);
    assert_eq!(bench.names(), ["4-1.warc.gz.open"]);
}

#[test]
fn work_that_is_not_wanted_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let shard = folder.path().join("1/0");
    fs::create_dir_all(&shard).unwrap();
    for name in ["2-1.warc.gz#3", "2-1.warc.gz#4"] {
        fs::write(shard.join(name), "").unwrap();
    }
    adopt_runs(&shard, 4, &|| false).unwrap();
    assert_eq!(names_in(&shard).unwrap().len(), 2);
    // The copy that this life makes may be under way.
    adopt_runs(&shard, 4, &|| true).unwrap();
    assert_eq!(names_in(&shard).unwrap(), ["2-1.warc.gz#4"]);
}

#[tokio::test]
async fn any_cut_leaves_whole_records_or_no_file() {
    let whole = killed(|length| length).await;
    let length = fs::metadata(whole.path("3-1.warc.gz.open")).unwrap().len();
    for cut in (0..length).step_by(97) {
        let bench = killed(|_| cut).await;
        bench.archive().adopt().await.unwrap();
        let path = bench.path("3-1.warc.gz");
        match path.exists() {
            true => assert!(counts(&path)[0] == 1, "{cut}"),
            false => assert_eq!(bench.names(), [""; 0], "{cut}"),
        }
    }
}

#[tokio::test]
async fn a_file_with_both_of_its_names_is_read_once() {
    let bench = killed(|length| length).await;
    let complete = bench.path("3-1.warc.gz");
    fs::hard_link(bench.path("3-1.warc.gz.open"), &complete).unwrap();
    assert_eq!(
        files(std::slice::from_ref(&bench.settings.folder)).unwrap(),
        [complete]
    );
    bench.archive().adopt().await.unwrap();
    assert_eq!(bench.names(), ["3-1.warc.gz"]);
}

#[tokio::test]
async fn a_file_is_read_that_became_complete_after_it_was_listed() {
    let bench = killed(|length| length).await;
    let folder = std::slice::from_ref(&bench.settings.folder);
    let listed = files(folder).unwrap();
    assert_eq!(listed, [bench.path("3-1.warc.gz.open")]);
    bench.archive().adopt().await.unwrap();
    assert_eq!(bench.names(), ["3-1.warc.gz"]);
    assert_eq!(counts(&listed[0]), [1, 2, 2, 2, 0]);
    let pages = RecordedPages::open(&listed, 1_000, "--urls").unwrap();
    assert_eq!(body_of(&pages, "/1").as_deref(), Some("page 1"));
    let to = bench.folder.path().join("books.wacz");
    let packed = pack_files(&listed, &to, "books", 7).unwrap();
    assert_eq!((packed.n_files, packed.n_open), (1, 0));
    let gone = bench.path("4-1.warc.gz.open");
    assert!(check(&gone, DEFAULT_MAX_RECORD).is_err());
}

/// Returns the places of the records of a file: type, offset and length.
fn places(path: &Path) -> Vec<(String, u64, u64)> {
    let mut records = Records::of(&Source::of_file(path).unwrap(), 1 << 20).unwrap();
    let mut places = Vec::new();
    while let Some(read) = records.next(|head, _| Ok(head.kind().to_owned())).unwrap() {
        places.push((read.value, read.offset, read.length));
    }
    places
}

/// Changes the checksum of a record.
fn damage(path: &Path, (_, offset, length): &(String, u64, u64)) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    let at = usize::try_from(offset + length - 8).unwrap();
    bytes[at] ^= 1;
    fs::write(path, &bytes).unwrap();
    bytes
}

#[tokio::test]
async fn what_is_behind_a_damaged_record_is_kept_and_so_is_the_file() {
    for (n_record, n_kept) in [(2, 6), (0, 6), (6, 6)] {
        let bench = killed(|length| length).await;
        let open = bench.path("3-1.warc.gz.open");
        let damaged = damage(&open, &places(&open)[n_record]);
        bench.archive().adopt().await.unwrap();
        let names = ["3-1.warc.gz", "3-1.warc.gz.damaged.open"];
        assert_eq!(bench.names(), names, "{n_record}");
        assert_eq!(fs::read(bench.path(names[1])).unwrap(), damaged);
        let n_records: u64 = counts(&bench.path(names[0])).iter().sum();
        assert_eq!(n_records, n_kept, "{n_record}");
        let last = body_of(&bench.pages(), "/1");
        assert_eq!(last.as_deref(), Some("page 1"), "{n_record}");
        // It is not completed again.
        bench.archive().adopt().await.unwrap();
        assert_eq!(bench.names(), names, "{n_record}");
    }
}

#[test]
fn a_body_that_looks_like_a_record_is_not_taken_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("3-1.warc.gz.open");
    let info = new_id();
    let written = |kind: &str, id: &str, info: &str| {
        let record = Record::new(kind, id, 7, "text/plain", vec![Bytes::from_static(b"x")]);
        let mut bytes = Vec::new();
        let record = record.with("WARC-Warcinfo-ID", info);
        record.write(&mut bytes).unwrap();
        bytes
    };
    let first = written("warcinfo", &info, &info);
    let forged = written("response", &new_id(), &new_id());
    let own = written("response", &new_id(), &info);
    fs::write(
        &path,
        [&first[..], &b"damaged"[..], &forged[..], &own[..]].concat(),
    )
    .unwrap();
    let found = readable(&Source::of_file(&path).unwrap(), &|| true);
    let ends = [first.len(), 7, forged.len(), own.len()].map(|n| n as u64);
    let begin = ends[0] + ends[1] + ends[2];
    let expected = Readable {
        ranges: vec![0..ends[0], begin..begin + ends[3]],
        is_damaged: true,
    };
    assert_eq!(found.unwrap(), Some(expected));
    let unwanted = readable(&Source::of_file(&path).unwrap(), &|| false);
    assert_eq!(unwanted.unwrap(), None);
}

#[tokio::test]
async fn a_posted_form_never_becomes_a_plain_page() {
    let posted = Exchange {
        method: "POST".to_owned(),
        request_body: Bytes::from_static(b"q=1"),
        ..exchange("/form", "found")
    };
    let bench = Bench::new();
    let archive = bench.archive();
    archive.append(page(posted)).await.unwrap();
    let open = bench.path("3-1.warc.gz.open");
    let whole = fs::read(&open).unwrap();
    for cut in 0..whole.len() {
        fs::write(&open, &whole[..cut]).unwrap();
        assert_eq!(body_of(&bench.pages(), "/form"), None, "{cut}");
    }
    // Its request is damaged, and its answer is not.
    fs::write(&open, &whole).unwrap();
    damage(&open, &places(&open)[1]);
    let mut next = bench;
    next.settings.epoch = 4;
    next.archive().adopt().await.unwrap();
    assert_eq!(counts(&next.path("3-1.warc.gz")), [1, 1, 0, 1, 0]);
    let pages = next.pages();
    assert_eq!(body_of(&pages, "/form"), None);
    assert!(pages.damage()[0].contains("the request of an answer is missing"));
}

#[tokio::test]
async fn a_life_that_only_slept_cannot_harm_what_the_next_one_has() {
    let mut bench = Bench::new();
    let asleep = bench.archive();
    asleep.append(page(exchange("/0", "page 0"))).await.unwrap();
    bench.settings.epoch = 4;
    let next = bench.archive();
    next.adopt().await.unwrap();
    next.append(page(exchange("/1", "page 1"))).await.unwrap();
    let taken = fs::read(bench.path("3-1.warc.gz")).unwrap();
    // It writes to a file that has no name any more.
    asleep.append(page(exchange("/2", "page 2"))).await.unwrap();
    asleep.finish().await.unwrap();
    assert_eq!(fs::read(bench.path("3-1.warc.gz")).unwrap(), taken);
    assert_eq!(bench.names(), ["3-1.warc.gz", "4-1.warc.gz.open"]);
}

#[tokio::test]
async fn nothing_is_written_where_the_data_root_was_taken_away() {
    let bench = Bench::new();
    let archive = bench.archive();
    let away = bench.folder.path().with_extension("away");
    fs::rename(bench.folder.path(), &away).unwrap();
    let refused = archive.append(page(exchange("/0", "x"))).await;
    assert!(refused.is_err());
    let why = archive.stalled().unwrap();
    assert!(why.contains("cannot create"), "{why}");
    assert!(!bench.folder.path().exists());
    fs::rename(&away, bench.folder.path()).unwrap();
    archive.append(page(exchange("/0", "x"))).await.unwrap();
    assert_eq!(archive.stalled(), None);
    assert_eq!(body_of(&bench.pages(), "/0").as_deref(), Some("x"));
}

#[tokio::test]
async fn one_wacz_file_is_made_of_several_archives_which_stay() {
    let mut bench = Bench::new();
    bench.settings.size = 1;
    let archive = bench.archive();
    for n in 0..3 {
        let page = page(exchange(&format!("/{n}"), &format!("page {n}")));
        archive.append(page).await.unwrap();
    }
    archive.finish().await.unwrap();
    let names = bench.names();
    let to = bench.folder.path().join("books.wacz");
    let folder = [bench.settings.folder.clone()];
    let packed = pack_files(&folder, &to, "books", 7).unwrap();
    let expected = Packed {
        n_files: 3,
        n_open: 0,
        n_answers: 3,
        n_pages: 3,
    };
    assert_eq!(packed, expected);
    assert_eq!(bench.names(), names);
    // The digests of the container's parts are compared, too.
    assert_eq!(counts(&to), [3, 3, 3, 3, 0]);
    // A file that is there stays as it is.
    let refused = pack_files(std::slice::from_ref(&to), &to, "books", 7);
    assert!(refused.is_err());
    // One file is made of such a file, too.
    let again = bench.folder.path().join("again.wacz");
    let packed = pack_files(std::slice::from_ref(&to), &again, "books", 7);
    assert_eq!(packed.unwrap(), expected);
    // In a folder it is left out, because the files that it was made of are there.
    let folder = [bench.folder.path().to_owned()];
    let third = bench.folder.path().join("third.wacz");
    assert_eq!(pack_files(&folder, &third, "books", 7).unwrap(), expected);
    fs::remove_dir_all(&bench.settings.folder).unwrap();
    let fourth = bench.folder.path().join("fourth.wacz");
    let refused = pack_files(&folder, &fourth, "books", 7);
    assert!(matches!(refused, Err(ArchiveError::NothingToPack)));
    assert!(!fourth.exists());
    let pages = bench.pages();
    for n in 0..3 {
        let body = format!("page {n}");
        assert_eq!(body_of(&pages, &format!("/{n}")), Some(body));
    }
}

#[tokio::test]
async fn a_file_that_was_cut_is_packed_as_far_as_it_is_whole() {
    let bench = killed(|length| length - 1).await;
    let to = bench.folder.path().join("books.wacz");
    let folder = [bench.settings.folder.clone()];
    let packed = pack_files(&folder, &to, "books", 7).unwrap();
    assert_eq!((packed.n_files, packed.n_open), (1, 1));
    assert_eq!(counts(&to), [1, 2, 2, 1, 0]);
    let open = bench.path("3-1.warc.gz.open");
    let whole = killed(|length| length).await;
    let places = places(&whole.path("3-1.warc.gz.open"));
    fs::copy(whole.path("3-1.warc.gz.open"), &open).unwrap();
    damage(&open, &places[2]);
    let damaged = bench.folder.path().join("damaged.wacz");
    let refused = pack_files(&folder, &damaged, "books", 7);
    assert!(refused.is_err() && !damaged.exists());
}

#[tokio::test]
async fn a_changed_byte_of_a_body_is_found() {
    let bench = Bench::new();
    let archive = bench.archive();
    archive
        .append(page(exchange("/0", "page 0")))
        .await
        .unwrap();
    archive.finish().await.unwrap();
    // A file without compression has no checksum that would tell it first.
    let forged = text(&bench.path("3-1.warc.gz")).replace("page 0", "page 1");
    let path = bench.folder.path().join("forged.warc");
    fs::write(&path, forged).unwrap();
    let checked = check(&path, DEFAULT_MAX_RECORD).unwrap();
    let whys: Vec<&str> = checked
        .faults
        .iter()
        .map(|fault| fault.why.as_str())
        .collect();
    let expected = ["block", "payload"]
        .map(|what| format!("the digest of its {what} is not that of the bytes"));
    assert_eq!(whys, expected);
    assert!(checked.faults[0].offset > 0);
    let short = check(&path, 10).unwrap();
    assert_eq!((short.n_faults, short.n_records()), (1, 0), "{short:?}");
}

#[test]
fn files_that_are_no_archives_are_told_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.warc");
    let long = format!("WARC/1.1\r\nX: {}\r\n", "y".repeat(70_000));
    for (content, why) in [
        ("", "the file is empty"),
        ("<html>", "it does not begin like a record of a WARC file"),
        ("WARC/1.1\r\n", "the file ends within a record"),
        ("WARC/1.1\r\n\r\n", "it has no valid Content-Length"),
        (
            "WARC/1.1\r\nContent-Length: -1\r\n\r\n",
            "it has no valid Content-Length",
        ),
        (
            "WARC/1.1\r\nContent-Length: 9\r\n\r\nx",
            "the file ends within a record",
        ),
        (
            "WARC/1.1\r\nContent-Length: 1\r\n\r\nxyyyyy",
            "it does not end where its Content-Length says",
        ),
        (long.as_str(), "its fields are longer than 64 KiB"),
        ("PK\x03\x04", "the container has no end"),
        ("\x1f\u{b}xxxxxxxxxxxxxxxx", "invalid gzip header"),
    ] {
        fs::write(&path, content).unwrap();
        let checked = check(&path, DEFAULT_MAX_RECORD).unwrap();
        let fault = &checked.faults[0];
        assert_eq!(
            (fault.offset, fault.why.as_str()),
            (0, why),
            "{content:.40}"
        );
    }
    assert!(check(&folder.path().join("none"), 1).is_err());
}

#[test]
fn more_answers_than_are_allowed_are_refused_by_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let record = |n: u32| {
        let block = "HTTP/1.1 200 OK\r\n\r\n";
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: <http://a.test/{n}>\r\nWARC-Date: 2016-01-11T23:24:25Z\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    fs::write(folder.path().join("a.warc"), record(1) + &record(2)).unwrap();
    let paths = [folder.path().to_owned()];
    assert_eq!(
        RecordedPages::open(&paths, 2, "--urls")
            .unwrap()
            .n_answers(),
        2
    );
    let refused = RecordedPages::open(&paths, 1, "--urls")
        .unwrap_err()
        .to_string();
    assert!(refused.contains("--urls"), "{refused}");
}

#[test]
fn payloads_of_the_index_are_bounded_like_answers() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..3 {
        let block = "HTTP/1.1 200 OK\r\n\r\n";
        let record = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.test/\r\nWARC-Payload-Digest: sha1:{n}\r\nWARC-Date: 2016-01-11T23:24:25Z\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        );
        fs::write(folder.path().join(format!("{n}.warc")), record).unwrap();
    }
    let open = |max| RecordedPages::open(&[folder.path().to_owned()], max, "--urls");
    assert_eq!(open(3).unwrap().n_answers(), 1);
    let refused = open(2).unwrap_err().to_string();
    assert!(refused.contains("--urls"), "{refused}");
}

/// Random bytes of a generator whose numbers are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

/// Whatever is done to a file, reading ends with what is whole or with an error.
#[tokio::test]
async fn damaged_files_are_read_without_a_panic() {
    let bench = Bench::new();
    let archive = bench.archive();
    for n in 0..3 {
        let page = page(exchange(&format!("/{n}"), &format!("page {n}")));
        archive.append(page).await.unwrap();
    }
    archive.finish().await.unwrap();
    let zipped = fs::read(bench.path("3-1.warc.gz")).unwrap();
    let plain = text(&bench.path("3-1.warc.gz")).into_bytes();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("books.wacz");
    pack_files(&[bench.path("3-1.warc.gz")], &to, "books", 7).unwrap();
    let wacz = fs::read(to).unwrap();
    let path = folder.path().join("damaged.warc.gz");
    let mut numbers = Numbers(7);
    for original in [zipped, plain, wacz] {
        for _ in 0..300 {
            let mut bytes = original.clone();
            for _ in 0..=numbers.next(3) {
                let at = numbers.next(bytes.len());
                match numbers.next(3) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes[at] ^= 1 << numbers.next(8),
                    _ => bytes[at] = numbers.next(256) as u8,
                }
            }
            let mut file = File::create(&path).unwrap();
            file.write_all(&bytes).unwrap();
            check(&path, 1 << 20).unwrap();
            let pages = RecordedPages::open(std::slice::from_ref(&path), 100, "--urls").unwrap();
            for n in 0..3 {
                let url = format!("http://a.test/{n}").parse().unwrap();
                let _damaged = pages.answer("GET", &url, None, 1 << 10);
            }
        }
    }
}

fn block_text(_head: &Head, block: &mut dyn BufRead) -> io::Result<String> {
    let mut text = String::new();
    block.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn records_know_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FileId { epoch: 1, n: 1 }.warc());
    let mut file = File::create(&path).unwrap();
    for n in 0..2 {
        let block = vec![Bytes::from(format!("block {n}"))];
        let record = Record::new("resource", &new_id(), 7, "text/plain", block);
        record.write(&mut file).unwrap();
    }
    let source = Source::of_file(&path).unwrap();
    let mut records = Records::of(&source, 100).unwrap();
    let mut places = Vec::new();
    while let Some(read) = records.next(block_text).unwrap() {
        places.push((read.offset, read.length, read.value));
    }
    let [(0, first, one), (second, length, two)] = &places[..] else {
        panic!("{places:?}");
    };
    assert_eq!((one.as_str(), two.as_str()), ("block 0", "block 1"));
    assert_eq!((first, second + length), (second, source.n_bytes()));
}
