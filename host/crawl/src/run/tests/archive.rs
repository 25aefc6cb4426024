//! Tests of crawls whose requests and answers are archived.

use std::path::{Path, PathBuf};

use super::*;
use crawler_archive::{About, Archive, ArchiveSettings, PageRecord, RecordedPages, RunInfo};
use crawler_model::exchange::{BodyForm, Exchange};
use crawler_model::id::Shard;
use crawler_model::page::FetchRecord;

/// Body of all pages, which is much longer than the one that was sent.
const DECODED: &[u8] = &[b' '; 100_000];

/// A site whose requests are on their tapes, and rules that look into the archive.
struct Recording {
    site: Site,
    rules: Links,
    folder: PathBuf,
    n_parsed: AtomicUsize,
}

impl Recording {
    fn has(&self, url: &Url) -> bool {
        let pages = RecordedPages::open(std::slice::from_ref(&self.folder), 1_000, "--urls");
        pages
            .unwrap()
            .answer("GET", url, None, 100)
            .unwrap()
            .is_some()
    }
}

#[async_trait]
impl Fetch for Recording {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        let tape = request.tape.clone().expect("the crawl has an archive");
        let exchange = exchange(&request.url, &request.method);
        let mut fetched = self.site.fetch(request).await?;
        if let Answer::Page(page) = &mut fetched.answer {
            page.body = Bytes::from_static(DECODED);
        }
        tape.push(exchange);
        Ok(fetched)
    }

    fn per_host(&self, host: &Url, delay: Option<Duration>) -> u32 {
        self.site.per_host(host, delay)
    }
}

#[async_trait]
impl Rules for Recording {
    fn description(&self) -> &Description {
        self.rules.description()
    }

    async fn root(&self, config: CallConfig, now: u64) -> CallReport {
        self.rules.root(config, now).await
    }

    async fn parse(
        &self,
        config: CallConfig,
        rule: &str,
        page: Arc<Page>,
        context: PageContext,
    ) -> CallReport {
        assert!(self.has(&page.url), "{} is recorded first", page.url);
        self.n_parsed.fetch_add(1, Ordering::Relaxed);
        self.rules.parse(config, rule, page, context).await
    }
}

/// Returns the exchange of a page.
fn exchange(url: &Url, method: &str) -> Exchange {
    Exchange {
        url: url.clone(),
        method: method.to_owned(),
        request_headers: Vec::new(),
        request_body: Bytes::new(),
        status: 200,
        headers: Vec::new(),
        body: Bytes::from(url.to_string()),
        body_form: BodyForm::Sent,
        began_at: 7,
        ended_at: 7,
        record: FetchRecord::default(),
    }
}

/// Returns the archive that a life of the frontier with this epoch writes.
fn archive(base: &Path, epoch: u64, settings: &CrawlSettings) -> Archive {
    let info = RunInfo {
        name: "books".to_owned(),
        resource: ResourceId(1),
        run: Run(1),
        shard: Shard(0),
        started_at: 0,
        settings: settings.clone(),
    };
    let archive = ArchiveSettings {
        folder: base.join("1/1/0"),
        base: base.to_owned(),
        epoch,
        is_exclusive: true,
        size: settings.archive_size(),
    };
    Archive::new(archive, info, Arc::new(SystemClock))
}

struct Bench {
    folder: tempfile::TempDir,
    recording: Arc<Recording>,
    sink: Kept,
    parts: CrawlParts,
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("archives");
    std::fs::create_dir(&base).unwrap();
    let recording = Arc::new(Recording {
        site: Site::default(),
        rules: Links {
            description: description(),
            roots: vec!["/"],
        },
        folder: base.clone(),
        n_parsed: AtomicUsize::new(0),
    });
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let settings = CrawlSettings::default();
    let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    let parts = CrawlParts {
        archive: Some(archive(&base, 1, &settings)),
        ..parts(
            frontier,
            recording.clone(),
            recording.clone(),
            clock,
            settings,
        )
    };
    Bench {
        folder,
        recording,
        sink: Kept::default(),
        parts,
    }
}

impl Bench {
    async fn crawl(&self) {
        let (parts, sink) = (self.parts.clone(), Box::new(self.sink.clone()));
        let run = run(parts, sink, CancellationToken::new());
        let end = tokio::time::timeout(Duration::from_secs(60), run).await;
        assert_eq!(end.expect("the crawl ends"), CrawlEnd::Finished);
    }
}

#[tokio::test]
async fn a_page_is_recorded_before_its_rule_is_called() {
    let bench = bench();
    bench.crawl().await;
    assert!(bench.recording.n_parsed.load(Ordering::Relaxed) > 1);
    let file = bench.recording.folder.join("1/1/0/1-1.warc.gz");
    assert!(file.exists(), "the file is complete at the end");
}

#[tokio::test]
async fn a_page_waits_while_it_cannot_be_recorded() {
    let bench = bench();
    let away = bench.folder.path().join("away");
    std::fs::rename(&bench.recording.folder, &away).unwrap();
    let restore = async {
        let mut lines = bench.parts.log.read(true);
        while let Some(line) = lines.next().await {
            if line.message.contains("waits until it is archived") {
                let account = bench.parts.crawl_memory.account();
                assert!(account.bytes() >= DECODED.len() as u64, "its body counts");
                return std::fs::rename(&away, &bench.recording.folder).unwrap();
            }
        }
    };
    let restore = tokio::time::timeout(Duration::from_secs(60), restore);
    let ((), restored) = tokio::join!(bench.crawl(), restore);
    restored.expect("the log tells why the page waits");
    let asked = bench.recording.site.asked.lock().unwrap().len();
    let distinct: BTreeSet<String> = bench
        .recording
        .site
        .asked
        .lock()
        .unwrap()
        .iter()
        .cloned()
        .collect();
    assert_eq!(asked, distinct.len(), "no page twice");
}

/// Site that is never asked to record anything.
#[derive(Default)]
struct Untaped(Site);

#[async_trait]
impl Fetch for Untaped {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        assert!(request.tape.is_none());
        self.0.fetch(request).await
    }

    fn per_host(&self, host: &Url, delay: Option<Duration>) -> u32 {
        self.0.per_host(host, delay)
    }
}

#[tokio::test]
async fn nothing_is_recorded_without_an_archive() {
    let mut bench = bench();
    let site = Arc::new(Untaped::default());
    bench.parts.archive = None;
    bench.parts.fetch = site.clone();
    bench.parts.rules = Arc::new(Links {
        description: description(),
        roots: vec!["/"],
    });
    bench.crawl().await;
    assert!(site.0.asked.lock().unwrap().len() > 1);
    let mut files = std::fs::read_dir(&bench.recording.folder).unwrap();
    assert!(files.next().is_none());
}

#[tokio::test]
async fn files_of_an_earlier_life_are_completed() {
    let bench = bench();
    let folder = bench.recording.folder.join("1/1/0");
    let earlier = archive(&bench.recording.folder, 0, &CrawlSettings::default());
    let url: Url = "http://a.test/before".parse().unwrap();
    let before = PageRecord {
        exchanges: vec![exchange(&url, "GET")],
        about: About::default(),
        held: bench.parts.crawl_memory.account().reserve(0),
    };
    earlier.append(Arc::new(before)).await.unwrap();
    drop(earlier);
    assert!(folder.join("0-1.warc.gz.open").exists());
    bench.crawl().await;
    assert!(!folder.join("0-1.warc.gz.open").exists());
    assert!(folder.join("0-1.warc.gz").exists());
    assert!(bench.recording.has(&url));
}
