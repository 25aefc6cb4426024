//! Table of the settings of a crawl: the one place where a setting is declared.
//!
//! The row of a setting decides its name in every interface, its type, its default, its range and its words. From
//! the table come the fields and accessors of [`CrawlSettings`](super::CrawlSettings), the
//! [`SETTINGS`](super::SETTINGS) that the command line, the config file and HTTP read by name, the conversion
//! to and from messages, and the rows of `docs/src/reference/settings.md` and `config/example.toml`.
//!
//! # The form of a row
//!
//! `field: kind(arguments) { … }`. The kinds, with what they give:
//!
//! | kind | field | accessor |
//! |---|---|---|
//! | `u32(DEFAULT)`, `u64(DEFAULT)` | a number | of the field's name |
//! | `bytes(DEFAULT)` | a `u64`, written like `64MiB` | of the field's name |
//! | `time(ACCESSOR, DEFAULT)` | a `u64` of milliseconds, written like `250ms` | a `Duration` |
//! | `time(ACCESSOR)` | the same, for a default that depends on the host | an `Option<Duration>` |
//! | `word(TYPE)` | one of a few words | of the field's name |
//! | `text(TYPE)` | a text | none |
//! | `texts(TYPE)` | a list; its option may be given several times | none |
//! | `list(TYPE)` | a list; its option takes it separated by commas | none |
//!
//! The entries of a row stand in this order; those in brackets may be left out:
//!
//! - `name`: on the command line and in the config file.
//! - `takes`: how `--help` calls the value.
//! - `[default]`: how the default is shown. If left out, it is the default of the kind or of the type.
//! - `[range]`: smallest and largest value in milliseconds, bytes or pieces; of a list, number of entries.
//! - `example`: texts of a value, for `config/example.toml` and for tests.
//! - `applies`: when a change of it counts in a crawl that runs.
//! - `help`: the meaning in `--help` and in the example, in one sentence without a full stop.
//! - `[book]`: the meaning in the book, in Markdown. If left out, it is that of `help`.

use std::time::Duration;

/// Number of pages in flight at once, for one resource: as many as one host without a delay gets at once. The
/// chapter "My crawl is slow" of the book has measurements.
pub const DEFAULT_CONCURRENCY: u32 = 64;
/// Number of attempts at one page before it is given up.
pub const DEFAULT_MAX_ATTEMPTS: u32 = 5;
/// Longest `crawl-delay` that is kept.
pub const DEFAULT_MAX_CRAWL_DELAY: Duration = Duration::from_secs(300);
/// Bytes of a URL: the length that sitemaps may contain and that every browser, proxy and server accepts.
/// Longer URLs nearly always come from links that append to themselves.
pub const DEFAULT_MAX_URL_LENGTH: u32 = 2_048;
/// Time between two requests to one host outside the allowed networks.
pub const DEFAULT_DELAY: Duration = Duration::from_secs(1);
/// Longest delay that a setting may ask for: all crawls of a host keep the longest that one asks for.
pub const MAX_DELAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The same in milliseconds: no setting that is a time within a run is longer.
pub(super) const DAY: u64 = MAX_DELAY.as_millis() as u64;
/// Longest time between two visits of a page, in milliseconds.
pub(super) const YEAR: u64 = 366 * DAY;

/// Hands all rows to the macro `$callback`.
#[macro_export]
macro_rules! crawl_settings {
    ($callback:ident) => {
        $callback! {
            robots: word(Robots) {
                name: "robots",
                takes: "obey|ignore",
                example: &["obey"],
                applies: Pages,
                help: "Whether the robots.txt of a site counts; ignore only what is yours",
                book: "`ignore`: the robots.txt of a site does not count",
            }
            max_crawl_delay_ms: time(max_crawl_delay, DEFAULT_MAX_CRAWL_DELAY) {
                name: "max-crawl-delay",
                takes: "TIME",
                range: 0..=DAY,
                example: &["30s"],
                applies: Pages,
                help: "The longest crawl-delay of a robots.txt that is kept; a longer one is cut to it",
            }
            delay_ms: time(delay) {
                name: "delay",
                takes: "TIME",
                default: Fallback::Words("1s, and 0 in allowed networks"),
                range: 0..=DAY,
                example: &["250ms"],
                applies: Pages,
                help: "Time between two requests to one host, like 250ms",
                book: "time from the end of an answer to the next request to the same host; kept over all crawls of a worker, and over all workers with `--shared-turns`; allowed networks are those of `--allow-networks`",
            }
            random_delay_ms: time(random_delay, Duration::ZERO) {
                name: "random-delay",
                takes: "TIME",
                range: 0..=DAY,
                example: &["50ms"],
                applies: Pages,
                help: "Longest random time that is added to the delay",
            }
            // All crawls of a worker that visit a host count: the strictest rates hold, for as long as a crawl
            // asks for them.
            host_rate: text(Rates) {
                name: "host-rate",
                takes: "N/TIME,…",
                example: &["10/s, 300/m"],
                applies: Pages,
                help: "Most requests to one host in any period of that length, like 10/s or, several at once, 10/s,300/m",
                book: "most requests to one host in any period of that length, like `10/s,300/m`; counted over all crawls of a worker",
            }
            rate: text(Rates) {
                name: "rate",
                takes: "N/TIME,…",
                example: &["5000/h"],
                applies: AtOnce,
                help: "Most pages begun in any period of that length, on all hosts, like 10/s",
                book: "most pages that the crawl begins in any period of that length, like `10/s,300/m`; its shards share it",
            }
            hours: text(Hours) {
                name: "hours",
                takes: "HOURS,…",
                example: &["22:00-06:00"],
                applies: AtOnce,
                help: "When pages are begun, in UTC, like 22:00-06:00",
            }
            concurrency: u32(DEFAULT_CONCURRENCY) {
                name: "concurrency",
                takes: "N",
                range: 1..=1_024,
                example: &["4"],
                applies: AtOnce,
                help: "Pages in flight at once, from 1 to 1024; at most 512 take effect, unless the data root is in a bucket",
                book: "pages in flight, of which at most 512 take effect unless the data root is in a bucket; one page of a host at a time where a delay is kept, and at most `parallel` (64) elsewhere; hosts that wait take no place",
            }
            // More than 64 user agents are no longer a rotation.
            user_agents: texts(Agent) {
                name: "user-agent",
                takes: "NAME",
                default: Fallback::Words("honest"),
                range: 0..=64,
                example: &["honest", "shop-reader/2.0 (+https://shop.example/bot)"],
                applies: Pages,
                help: "User agent of the crawl: honest (as its worker), browser, or other words; given several times, each host sees another",
                book: "`honest`: what the worker calls itself, see `user-agent` of `[fetch]`; `browser`: the name and headers of a browser; or other words, sent as they are. If several are given, each host sees one of them, and another one when its pages fail",
            }
            cookies: word(Cookies) {
                name: "cookies",
                takes: "keep|ignore",
                example: &["keep"],
                applies: Pages,
                help: "Whether cookies that sites set are sent back",
                book: "cookies that sites set are sent back, also after a restart; `ignore`: they are neither sent nor stored",
            }
            // A site may set 50 cookies.
            cookie_seeds: texts(CookieSeed) {
                name: "cookie",
                takes: "HOST:NAME=VALUE",
                default: Fallback::Implied("none"),
                range: 0..=50,
                example: &["books.example:currency=EUR"],
                applies: Opening,
                help: "A cookie that the crawl begins with; may be given several times",
                book: "a cookie that the crawl begins with, like `shop.example:name=value`; whoever may read the resource can read it",
            }
            proxy: text(ProxyChoice) {
                name: "proxy",
                takes: "NAME",
                default: Fallback::Words("default, where there is one"),
                example: &["abroad"],
                applies: Pages,
                help: "Proxy for requests: direct, or a name from [proxies] of the workers' config file",
                book: "a name from the table `[proxies]`, or `direct`",
            }
            credentials: text(CredentialNames) {
                name: "credentials",
                takes: "NAME,…",
                example: &["shop"],
                applies: Pages,
                help: "Credentials that hosts require: names from [credentials] of the workers' config file",
                book: "names from the table `[credentials]`",
            }
            max_attempts: u32(DEFAULT_MAX_ATTEMPTS) {
                name: "max-attempts",
                takes: "N",
                range: 1..=u64::MAX,
                example: &["3"],
                applies: Pages,
                help: "Attempts at one page before it is given up",
                book: "attempts at one page, and attempts to reach one host ([Waits](fetch.md#waits))",
            }
            max_retry_wait_ms: time(max_retry_wait, Duration::from_secs(300)) {
                name: "max-retry-wait",
                takes: "TIME",
                range: 1..=DAY,
                example: &["1m"],
                applies: Pages,
                help: "The longest wait before another attempt, whatever a server or a rule asks for",
            }
            max_depth: u32(50) {
                name: "max-depth",
                takes: "N",
                example: &["20"],
                applies: Links,
                help: "Links followed from the root requests",
            }
            max_pages: u64(1_000_000) {
                name: "max-pages",
                takes: "N",
                range: 1..=u64::MAX,
                example: &["10000"],
                applies: AtOnce,
                help: "Pages fetched in one run",
            }
            // The default is ten times the size of a million pages on most sites, so that the bound on pages is
            // reached first unless something is odd. Pages in flight when it is reached still count.
            max_bytes: bytes(1 << 40) {
                name: "max-bytes",
                takes: "SIZE",
                range: 1..=u64::MAX,
                example: &["20GiB"],
                applies: AtOnce,
                help: "Bytes of bodies in one run, like 10GiB",
            }
            max_url_length: u32(DEFAULT_MAX_URL_LENGTH) {
                name: "max-url-length",
                takes: "N",
                range: 1..=URL_MAX as u64,
                example: &["1000"],
                applies: Links,
                help: "Bytes of a URL; longer links are not followed",
            }
            // Relative links that append to themselves form every word over a few segments, and the number of such
            // words grows like a factorial with this bound.
            max_segment_repeats: u32(3) {
                name: "max-segment-repeats",
                takes: "N",
                range: 1..=u64::MAX,
                example: &["2"],
                applies: Links,
                help: "How often one segment may stand in the path of a link",
            }
            // The default is a tenth of the pages of a run, so that an endless calendar cannot use it up, and more
            // products, threads or articles than most sites have.
            max_pattern_urls: u64(100_000) {
                name: "max-pattern-urls",
                takes: "N",
                range: 1..=u64::MAX,
                example: &["5000"],
                applies: Links,
                help: "Links of one host that differ only in numbers, long tokens or query values",
            }
            // A worker keeps about 120 bytes in memory for each host that has something left to fetch.
            max_hosts: u64(1_000_000) {
                name: "max-hosts",
                takes: "N",
                range: 1..=u64::MAX,
                example: &["10000"],
                applies: Links,
                help: "Hosts with a URL in one run, of all shards together; links to further hosts are refused",
            }
            // A page that was crawled takes 1.6 kB with its records, so that the default is reached at about 20 million
            // pages.
            max_disk: bytes(32 << 30) {
                name: "max-disk",
                takes: "SIZE",
                range: 1..=u64::MAX,
                example: &["2GiB"],
                applies: AtOnce,
                help: "Bytes of the frontier on disk, of all shards together, like 10GiB; links found beyond them are refused, and the crawl goes on with those it has",
            }
            // A body is in memory until its rule has returned, and counts as memory of its crawl.
            max_file: bytes(64 << 20) {
                name: "max-file",
                takes: "SIZE",
                range: 1..=1 << 30,
                example: &["100MiB"],
                applies: Pages,
                help: "Bytes of a body that a rule wants kept as a file, like 100MiB; a page with a longer one is given up",
            }
            max_kept: bytes(10 << 30) {
                name: "max-kept",
                takes: "SIZE",
                range: 1..=u64::MAX,
                example: &["50GiB"],
                applies: Pages,
                help: "Bytes of files that rules want kept in one run, of all shards together, like 10GiB; pages with further ones are given up",
            }
            // A frontier takes no page above the upper end of the range.
            max_undelivered: bytes(256 << 20) {
                name: "max-undelivered",
                takes: "SIZE",
                range: 1..=256 << 20,
                example: &["64MiB"],
                applies: AtOnce,
                help: "Bytes of items that wait for their sink, of all shards together, at most 256MiB; with more no page is taken until the sink has caught up",
            }
            // A change opens the frontier again, which is when the positions of sinks begin and end.
            sinks: list(SinkName) {
                name: "sink",
                takes: "NAME,…",
                default: Fallback::Words("lines"),
                range: 0..=MAX_SINKS,
                example: &["lines"],
                applies: AtOnce,
                help: "Sinks that get every item, at most 8: lines, which is the data root, or names of [sink.NAME] of the config files of masters and workers",
                book: "sinks that get every item, at most 8: `lines`, which is the data root, or [names from `[sink.NAME]`](../guide/sinks.md); one that is added gets the items from then on",
            }
            // The log of a crawl is in memory while it runs, so that the sizes of all crawls of a worker add up.
            max_log: u64(1_000) {
                name: "max-log",
                takes: "N",
                range: 1..=100_000,
                example: &["5000"],
                applies: Opening,
                help: "Lines that the log of a shard keeps, the last ones",
            }
            max_log_size: bytes(1 << 20) {
                name: "max-log-size",
                takes: "SIZE",
                range: 16 << 10..=64 << 20,
                example: &["8MiB"],
                applies: Opening,
                help: "Bytes of the texts that the log of a shard keeps, from 16KiB to 64MiB",
            }
            archive: word(ArchiveForm) {
                name: "archive",
                takes: "off|warc",
                example: &["warc"],
                applies: Opening,
                help: "Form in which requests and answers are archived; warc writes WARC files, which hold cookies, too",
                book: "`warc`: requests and answers are written to WARC files, cookies included ([Archives](../guide/archives.md))",
            }
            // ISO 28500:2017 recommends files of 1 GB (annex C). A record is never split.
            archive_size: bytes(1 << 30) {
                name: "archive-size",
                takes: "SIZE",
                range: 1 << 20..=1 << 40,
                example: &["256MiB"],
                applies: Opening,
                help: "Bytes of a WARC file at which the next one begins, from 1MiB to 1TiB",
            }
            unchanged: word(Unchanged) {
                name: "unchanged",
                takes: "parse|skip",
                example: &["skip"],
                applies: Pages,
                help: "What is done with a page that is as the last run saw it: parse it all the same, or skip it with its items and links",
                book: "`skip`: a new run does not parse pages again that are as the last run saw them, by the answer 304 or by a hash of the body. All are parsed once more after a change of plugin version, params, `--limit body`, `--scope`, `--max-depth`, `--max-url-length`, `--max-segment-repeats`, `--max-pattern-urls`, `--max-hosts` or `--max-disk`",
            }
            revisit_ms: time(revisit, Duration::ZERO) {
                name: "revisit",
                takes: "TIME",
                range: 0..=YEAR,
                example: &["20h"],
                applies: Pages,
                help: "Time after which a run asks again for a page that an earlier run has parsed; needs --unchanged skip",
                book: "time after which a run asks again for a page that an earlier run has parsed, at most 366 days; until then the page is passed over as `not-due` ([Revisits](../guide/revisits.md)). 0: every run asks for every page. For `--unchanged skip`",
            }
            revisit_max_ms: time(revisit_max, Duration::ZERO) {
                name: "revisit-max",
                takes: "TIME",
                range: 0..=YEAR,
                example: &["30d"],
                applies: Pages,
                help: "Longest such time: it grows by a half, from --revisit to this, when a page has not changed, and is halved when it has",
                book: "longest such time: that of a page grows by a half whenever the page has not changed, and is halved whenever it has, within `--revisit` and this. 0: it stays",
            }
            // The rows of a run are at most as many as its items and those of the run before.
            changes: u32(0) {
                name: "changes",
                takes: "N",
                range: 0..=1_000,
                example: &["0"],
                applies: Run,
                help: "Latest runs whose changes of items are kept, at most 1000; 0: items are not compared from run to run",
                book: "latest runs whose changes of items are kept ([Changes](../guide/changes.md)), at most 1 000; 0: items are not compared from run to run. For resources with one shard and `--unchanged parse`",
            }
            drift: word(Sensitivity) {
                name: "drift",
                takes: "off|loose|normal|tight",
                example: &["tight"],
                applies: AtOnce,
                help: "How different items may be from those of the last good run before they are held; off: none are, and nothing is learned",
            }
            scope: list(HostPattern) {
                name: "scope",
                takes: "HOST,…",
                default: Fallback::Implied("hosts of the root requests"),
                example: &["books.example", "*.books.example"],
                applies: Links,
                help: "Hosts beyond those of the root requests: example.org, *.example.org, site:example.co.uk (a registrable domain and all below it) or *; with a port, example.org:9000, that one may be fetched from",
                book: "hosts to add: `example.org`, `*.example.org`, `site:example.co.uk` (this registrable domain and all below it), `*`, or one of these with a port",
            }
            content_types: text(ContentTypes) {
                name: "content-types",
                takes: "TYPE,…",
                example: &["text/*, application/json"],
                applies: Pages,
                help: "Kinds of pages that are wanted, like text/*,application/json; bodies of others are not read",
                book: "kinds of pages that are wanted, like `text/*,application/json`; bodies of other kinds are not read",
            }
        }
    };
}
