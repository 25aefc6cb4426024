//! Tests of crawls whose rules want bodies kept.

use super::*;
use crawler_data::KeptFiles;
use crawler_model::id::Digest;

/// Site and rules of an album: its first page has links to pictures of 4 bytes each, and the first two are the same.
struct Album {
    description: Description,
    /// Folder in which rules look for the files that they are told of.
    folder: std::path::PathBuf,
    n_asked: AtomicU32,
}

const PICTURES: [(&str, &str); 3] = [("/1.png", "same"), ("/2.png", "same"), ("/3.png", "else")];

fn digest_of(path: &str) -> Digest {
    let picture = PICTURES.iter().find(|(known, _)| *known == path).unwrap();
    Digest::of(picture.1.as_bytes())
}

#[async_trait]
impl Fetch for Album {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        self.n_asked.fetch_add(1, Ordering::Relaxed);
        let url = &request.url;
        let mut page = page(url, url, 200);
        let picture = PICTURES.iter().find(|(path, _)| *path == url.path());
        assert_eq!(request.max_file.is_some(), picture.is_some(), "{url}");
        if let Some((_, body)) = picture {
            page.body = Bytes::from_static(body.as_bytes());
        }
        Ok(Fetched {
            answer: Answer::Page(page),
            host_ready_at: 0,
            delay_by: DelaySource::default(),
        })
    }

    fn per_host(&self, _host: &Url, _delay: Option<Duration>) -> u32 {
        8
    }
}

#[async_trait]
impl Rules for Album {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn root(&self, _config: CallConfig, _now: u64) -> CallReport {
        report(Ok(CallOutput {
            requests: requests("http://site.test/", &["/"]),
            ..CallOutput::default()
        }))
    }

    async fn parse(
        &self,
        _config: CallConfig,
        _rule: &str,
        page: Arc<Page>,
        context: PageContext,
    ) -> CallReport {
        let path = page.url.path();
        if path == "/" {
            let mut requests = requests(page.url.as_str(), &PICTURES.map(|(path, _)| path));
            requests
                .iter_mut()
                .for_each(|request| request.keep_body = true);
            return report(Ok(CallOutput {
                requests,
                ..CallOutput::default()
            }));
        }
        let kept = context.kept.unwrap();
        assert_eq!(kept, digest_of(path));
        let name = kept.to_string();
        let file = self.folder.join(&name[..2]).join(&name);
        assert_eq!(
            std::fs::read(file).unwrap(),
            page.body,
            "the file comes first"
        );
        report(Ok(CallOutput {
            items: vec![Item {
                schema: "picture".into(),
                json: format!("{{\"path\":\"{path}\",\"file\":\"{kept}\"}}"),
            }],
            ..CallOutput::default()
        }))
    }
}

struct Bench {
    folder: tempfile::TempDir,
    album: Arc<Album>,
    frontier: Arc<MemoryFrontier>,
    sink: Kept,
    parts: CrawlParts,
}

fn bench(settings: CrawlSettings) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let album = Arc::new(Album {
        description: description(),
        folder: folder.path().join("files"),
        n_asked: AtomicU32::new(0),
    });
    let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    let clock = Arc::new(SystemClock);
    let settings = CrawlSettings {
        concurrency: Some(1),
        ..settings
    };
    let parts = CrawlParts {
        files: Some(KeptFiles::in_folder(&album.folder).unwrap()),
        ..parts(
            frontier.clone(),
            album.clone(),
            album.clone(),
            clock,
            settings,
        )
    };
    Bench {
        folder,
        album,
        frontier,
        sink: Kept::default(),
        parts,
    }
}

impl Bench {
    async fn crawl(&self) -> Vec<String> {
        let (parts, sink) = (self.parts.clone(), Box::new(self.sink.clone()));
        let run = run(parts, sink, CancellationToken::new());
        let end = tokio::time::timeout(Duration::from_secs(60), run).await;
        assert_eq!(end.expect("the crawl ends"), CrawlEnd::Finished);
        let log = self.parts.log.read(false);
        log.map(|line| line.message).collect().await
    }

    fn n_items(&self) -> usize {
        self.sink.items.lock().unwrap().len()
    }
}

#[tokio::test]
async fn a_body_is_stored_before_its_rule_is_called() {
    let bench = bench(CrawlSettings::default());
    bench.crawl().await;
    assert_eq!(bench.n_items(), 3);
    let counts = bench.frontier.counts();
    // What is kept again counts again.
    assert_eq!((counts.parsed, counts.kept_bytes), (4, 12));
    let folders = std::fs::read_dir(&bench.album.folder).unwrap();
    assert_eq!(folders.count(), 2, "two pictures are the same");
}

#[tokio::test]
async fn files_beyond_the_quota_are_given_up_and_told_once() {
    // The third picture is fetched only if there is any room for it.
    for (max_kept, n_asked) in [(8, 3), (9, 4)] {
        let bench = bench(CrawlSettings {
            max_kept: Some(max_kept),
            ..CrawlSettings::default()
        });
        let log = bench.crawl().await;
        assert_eq!(bench.n_items(), 2);
        let counts = bench.frontier.counts();
        assert_eq!(
            (counts.dead_by_reason["max-kept"], counts.kept_bytes),
            (1, 8)
        );
        assert_eq!(bench.album.n_asked.load(Ordering::Relaxed), n_asked);
        let told = log.iter().filter(|line| line.contains("--max-kept"));
        assert_eq!(told.count(), 1, "{log:?}");
    }
}

#[tokio::test]
async fn a_page_waits_while_its_file_cannot_be_stored() {
    let bench = bench(CrawlSettings::default());
    let away = bench.folder.path().join("away");
    std::fs::rename(&bench.album.folder, &away).unwrap();
    let restore = async {
        let mut lines = bench.parts.log.read(true);
        while let Some(line) = lines.next().await {
            if line.message.contains("waits until its file is stored") {
                return std::fs::rename(&away, &bench.album.folder).unwrap();
            }
        }
    };
    let restore = tokio::time::timeout(Duration::from_secs(60), restore);
    let (_log, restored) = tokio::join!(bench.crawl(), restore);
    restored.expect("the log tells why the page waits");
    assert_eq!(bench.n_items(), 3);
    assert_eq!(
        bench.album.n_asked.load(Ordering::Relaxed),
        4,
        "no page twice"
    );
}
