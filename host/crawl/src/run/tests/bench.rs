//! A site, rules and a sink that a whole crawl can be run against.

use super::*;
use crate::incidents::CrawlIncidents;
use crate::limit_uses::LimitUses;

/// Site that answers by path and counts its requests.
#[derive(Default)]
pub(super) struct Site {
    pub(super) asked: Mutex<Vec<String>>,
    pub(super) conditions: Mutex<Vec<Option<Validators>>>,
    pub(super) flaky: AtomicU32,
}

#[async_trait]
impl Fetch for Site {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        self.asked
            .lock()
            .unwrap()
            .push(request.url.path().to_owned());
        self.conditions
            .lock()
            .unwrap()
            .push(request.validators.clone());
        let url = &request.url;
        let is_known = request
            .validators
            .as_ref()
            .is_some_and(|v| v.etag.as_deref() == Some("v1"));
        if let "/busy" | "/calm" = url.path() {
            return Ok(Fetched {
                answer: Answer::Page(page(url, url, 200)),
                host_ready_at: SystemClock.unix_millis(),
                delay_by: match url.path() {
                    "/busy" => DelaySource::Trouble,
                    _ => DelaySource::Setting,
                },
            });
        }
        let answer = match url.path() {
            "/flaky" if self.flaky.fetch_add(1, Ordering::Relaxed) == 0 => {
                let error = FetchError::Connection {
                    why: "reset".into(),
                };
                return Err(Failure {
                    error,
                    host_ready_at: 0,
                    delay_by: DelaySource::default(),
                    is_of_host: false,
                });
            }
            "/paused" if self.flaky.fetch_add(1, Ordering::Relaxed) < 3 => {
                return Err(Failure {
                    error: FetchError::Paused {
                        host: request.url.to_string(),
                        pause: Duration::from_millis(10),
                    },
                    host_ready_at: SystemClock.unix_millis() + 10,
                    delay_by: DelaySource::default(),
                    is_of_host: false,
                });
            }
            "/etag" | "/rude" if is_known || url.path() == "/rude" => {
                let mut page = page(url, url, 304);
                page.body = Bytes::new();
                Answer::Page(page)
            }
            "/moved-rude" => {
                let mut page = page(&url.join("/target").unwrap(), url, 304);
                page.redirects = vec![url.clone()];
                Answer::Page(page)
            }
            "/unreached" => {
                let why = "refused".into();
                return Err(Failure {
                    error: FetchError::Connection { why },
                    host_ready_at: 0,
                    delay_by: DelaySource::default(),
                    is_of_host: true,
                });
            }
            "/film" => {
                let content_type = "video/mp4".to_owned();
                return Err(Failure {
                    error: FetchError::ContentType { content_type },
                    host_ready_at: 0,
                    delay_by: DelaySource::default(),
                    is_of_host: false,
                });
            }
            "/unset" => {
                let error = FetchError::NotSetUp {
                    setting: "proxy",
                    name: "abroad".to_owned(),
                    table: "proxies",
                };
                return Err(Failure {
                    error,
                    host_ready_at: 0,
                    delay_by: DelaySource::default(),
                    is_of_host: false,
                });
            }
            "/gone" | "/broken" => Answer::Page(page(url, url, 404)),
            "/moved" | "/moved-too" => Answer::Page(page(&url.join("/target").unwrap(), url, 200)),
            "/away" => Answer::Redirect {
                to: "http://other.test/".parse().unwrap(),
            },
            "/panic" => panic!("on purpose"),
            "/hang" => std::future::pending().await,
            _ => Answer::Page(page(url, url, 200)),
        };
        Ok(Fetched {
            answer,
            host_ready_at: 0,
            delay_by: DelaySource::default(),
        })
    }

    fn per_host(&self, _host: &Url, _delay: Option<Duration>) -> u32 {
        8
    }
}

/// Plugin that follows the links defined for each path, and emits one item per page.
pub(super) struct Links {
    pub(super) description: Description,
    pub(super) roots: Vec<&'static str>,
}

pub(super) fn kill(kill: Kill) -> CallFailure {
    let report = KillReport {
        kill,
        message: "ended".into(),
        backtrace: Vec::new(),
    };
    CallFailure::Killed(Box::new(report))
}

#[async_trait]
impl Rules for Links {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn root(&self, _config: CallConfig, _now: u64) -> CallReport {
        if self.roots == ["/retry"] {
            return report(Err(CallFailure::Rule(RuleError::Retry {
                after_ms: Some(u64::MAX),
                why: "not yet".into(),
            })));
        }
        report(Ok(CallOutput {
            requests: requests("http://site.test/", &self.roots),
            ..Default::default()
        }))
    }

    async fn parse(
        &self,
        _config: CallConfig,
        _rule: &str,
        page: Arc<Page>,
        context: PageContext,
    ) -> CallReport {
        let referrer = context.referrer.as_deref().unwrap_or_default();
        if page.url.path() == "/checked" {
            let mut requests = requests(page.url.as_str(), &["/broken"]);
            requests[0].accept_status = "404".parse().unwrap();
            return report(Ok(CallOutput {
                requests,
                ..Default::default()
            }));
        }
        if page.url.path() == "/slow" {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let links: &[&str] = match page.url.path() {
            "/" => &[
                "/a",
                "/b",
                "/a#again",
                "/gone",
                "http://other.test/x",
                "mailto:x@site.test",
            ],
            "/a" => &["/", "/b", "/deep"],
            "/deep" => &["/deeper"],
            "/busy" => &["/calm"],
            "/numbers" | "/1" | "/2" => &["/1", "/2", "/3", "/4"],
            "/fatal" => return report(Err(CallFailure::Rule(RuleError::Fatal("no sense".into())))),
            "/later" => {
                return report(Err(CallFailure::Rule(RuleError::Retry {
                    after_ms: Some(60 * 60_000),
                    why: "not yet".into(),
                })));
            }
            "/stray" => {
                let mut requests = requests(page.url.as_str(), &["/a", "/b"]);
                requests[0].rule = "lost".into();
                return report(Ok(CallOutput {
                    requests,
                    ..Default::default()
                }));
            }
            "/skip" => return report(Err(CallFailure::Rule(RuleError::Skip("no".into())))),
            "/fuel" => return report(Err(kill(Kill::OutOfFuel))),
            _ => &[],
        };
        let json = match page.url.path() {
            "/broken" => serde_json::json!({"path": "/broken", "referrer": referrer}).to_string(),
            path => format!("{{\"path\":\"{path}\"}}"),
        };
        let items = vec![Item {
            schema: "page".into(),
            json,
        }];
        report(Ok(CallOutput {
            items,
            requests: requests(page.url.as_str(), links),
            n_bad_urls: 0,
        }))
    }
}

/// Sink that keeps its items, and fails the first `n` times.
#[derive(Clone, Default)]
pub(super) struct Kept {
    pub(super) items: Arc<Mutex<Vec<ItemRecord>>>,
    pub(super) n_failures: Arc<AtomicU32>,
    /// True if no try ever succeeds.
    pub(super) is_closed_for_good: bool,
    pub(super) gathering: Gathering,
    /// Time that a write takes.
    pub(super) write_time: Duration,
    /// Largest number of items that a write takes.
    pub(super) n_at_once: Option<usize>,
    /// True if it leaves a mark before each write, as sinks of files do.
    pub(super) leaves_marks: bool,
    /// Number of items that it wants at once after it has left a mark.
    pub(super) wants_when_marked: usize,
    /// True if its mark is there.
    pub(super) is_marked: bool,
    /// True if a write must not be given up.
    pub(super) is_cut_unsafe: bool,
    /// Signals that a write has begun.
    pub(super) began: Arc<Notify>,
    /// Number of items that an earlier owner has written, from the first one on.
    pub(super) n_there: u64,
    pub(super) n_writes: Arc<AtomicU32>,
}

#[async_trait]
impl Sink for Kept {
    async fn write(&mut self, _first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        if self.is_closed_for_good {
            return Err(SinkError::Permanent {
                message: "cannot insert into items".to_owned(),
                source: Some("no such table".into()),
            });
        }
        let left = self.n_failures.load(Ordering::Relaxed);
        if left > 0 {
            self.n_failures.store(left - 1, Ordering::Relaxed);
            let source = std::io::Error::other("disk full");
            return Err(SinkError::of_file("write", "x", source));
        }
        if self.leaves_marks && !std::mem::replace(&mut self.is_marked, true) {
            return Ok(Written::default());
        }
        self.is_marked = false;
        let n_taken = self.n_at_once.unwrap_or(usize::MAX).min(items.len());
        let items = &items[..n_taken];
        self.began.notify_one();
        tokio::time::sleep(self.write_time).await;
        self.items.lock().unwrap().extend_from_slice(items);
        self.n_writes.fetch_add(1, Ordering::Relaxed);
        let n_items = self.n_there.max(items.len() as u64);
        Ok(Written {
            n_items,
            ..Written::default()
        })
    }

    fn is_cancel_safe(&self) -> bool {
        !self.is_cut_unsafe
    }

    fn gathering(&self) -> Gathering {
        let mut gathering = self.gathering;
        if self.is_marked {
            gathering.max_items = gathering.max_items.max(self.wants_when_marked);
        }
        gathering
    }
}

pub(super) struct Ended {
    pub(super) end: CrawlEnd,
    pub(super) asked: Vec<String>,
    pub(super) paths: BTreeSet<String>,
    pub(super) n_items: usize,
    pub(super) counts: Counts,
    pub(super) log: Vec<String>,
    pub(super) conditions: Vec<Option<Validators>>,
}

pub(super) async fn crawl(roots: &[&'static str], settings: CrawlSettings, sink: Kept) -> Ended {
    crawl_until(roots, settings, sink, CancellationToken::new()).await
}

pub(super) async fn crawl_until(
    roots: &[&'static str],
    settings: CrawlSettings,
    sink: Kept,
    stop: CancellationToken,
) -> Ended {
    let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    crawl_on(frontier, roots, settings, sink, stop).await
}

pub(super) async fn crawl_on(
    frontier: Arc<dyn Frontier>,
    roots: &[&'static str],
    settings: CrawlSettings,
    sink: Kept,
    stop: CancellationToken,
) -> Ended {
    crawl_or_rest(frontier, roots, settings, sink, stop, Rest::default()).await
}

/// Time after which a crawl may end as resting, the pages that it has begun before, and its memory.
#[derive(Clone, Default)]
pub(super) struct Rest {
    pub(super) after: Option<Duration>,
    pub(super) pacing: Pacing,
    pub(super) crawl_memory: CrawlMemory,
}

impl Rest {
    pub(super) fn after(seconds: u64) -> Self {
        Self {
            after: Some(Duration::from_secs(seconds)),
            ..Self::default()
        }
    }
}

pub(super) fn description() -> Description {
    Description {
        name: "links".parse().unwrap(),
        version: "1.0.0".parse().unwrap(),
        rules: vec!["page".into()],
        schemas: Vec::new(),
        plans: Vec::new(),
        hosts: Vec::new(),
        params: None,
        limits: BTreeMap::new(),
    }
}

/// Returns the digest of the plugin of all crawls here.
pub(super) fn plugin() -> Digest {
    Digest::of(b"links")
}

/// Returns the parts of a crawl of the only shard of a resource.
pub(super) fn parts(
    frontier: Arc<dyn Frontier>,
    rules: Arc<dyn Rules>,
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
    settings: CrawlSettings,
) -> CrawlParts {
    let config = CrawlConfig {
        limits: Limits::default(),
        settings,
    };
    CrawlParts {
        resource: ResourceId(1),
        run: Run(1),
        run_started_at: 0,
        plugin: Some(plugin()),
        params: Arc::default(),
        config: watch::channel(config).1,
        rules,
        frontier,
        fetch,
        files: None,
        archive: None,
        log: CrawlLog::new(clock.clone()),
        clock,
        permit: Arc::new(Always),
        pacing: Pacing::default(),
        incidents: CrawlIncidents::default(),
        limit_uses: LimitUses::default(),
        peers: None,
        rest_after: None,
        crawl_memory: CrawlMemory::default(),
        tracer: Default::default(),
    }
}

pub(super) async fn crawl_or_rest(
    frontier: Arc<dyn Frontier>,
    roots: &[&'static str],
    settings: CrawlSettings,
    sink: Kept,
    stop: CancellationToken,
    rest: Rest,
) -> Ended {
    let site = Arc::new(Site::default());
    let rules = Arc::new(Links {
        description: description(),
        roots: roots.to_vec(),
    });
    let parts = CrawlParts {
        pacing: rest.pacing,
        rest_after: rest.after,
        crawl_memory: rest.crawl_memory,
        ..parts(
            frontier.clone(),
            rules,
            site.clone(),
            Arc::new(SystemClock),
            settings,
        )
    };
    let log = parts.log.clone();
    let run = run(parts, Box::new(sink.clone()), stop);
    let end = tokio::time::timeout(Duration::from_secs(60), run)
        .await
        .expect("the crawl ends");
    let conditions = site.conditions.lock().unwrap().clone();
    let items = sink.items.lock().unwrap().clone();
    let paths = items
        .iter()
        .map(|record| record.item.get().to_owned())
        .collect();
    let asked = site.asked.lock().unwrap().clone();
    Ended {
        end,
        asked,
        paths,
        n_items: items.len(),
        counts: frontier.counts(),
        log: log.read(false).map(|line| line.message).collect().await,
        conditions,
    }
}

pub(super) fn item(path: &str) -> String {
    format!("{{\"path\":\"{path}\"}}")
}
