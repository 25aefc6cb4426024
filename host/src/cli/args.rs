//! Arguments that several commands share, and the parsers of their values.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::{Args, ValueEnum};

use crate::model::node::{check_label_key, check_label_value};
use crate::model::placement::{Neighbour, PlacementChange};
use crate::model::plugin::{LimitName, LimitOverrides, parse_bytes};
use crate::model::resource::{
    Agent, ContentTypes, CookieSeed, Cookies, CrawlSettings, CredentialNames, HostPattern, Hours,
    ProxyChoice, Rates, Robots, Unchanged,
};

/// How far and how fast a crawl goes.
#[derive(Debug, Args)]
pub(super) struct CrawlArgs {
    /// Time between two requests to one host, like 250ms [default: 1s, and 0 in allowed networks]
    #[arg(long, value_name = "TIME", value_parser = millis)]
    delay: Option<u64>,
    /// Pages in flight at once [default: 16]
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,
    /// Pages fetched in one run [default: 1000000]
    #[arg(long, value_name = "N")]
    max_pages: Option<u64>,
    /// Bytes of bodies in one run, like 10GiB [default: 1TiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_bytes: Option<u64>,
    /// Links followed from the root requests [default: 50]
    #[arg(long, value_name = "N")]
    max_depth: Option<u32>,
    /// Bytes of a URL; longer links are not followed [default: 2048]
    #[arg(long, value_name = "N")]
    max_url_length: Option<u32>,
    /// How often one segment may stand in the path of a link [default: 3]
    #[arg(long, value_name = "N")]
    max_segment_repeats: Option<u32>,
    /// Links of one host that differ only in numbers, long tokens or query values [default: 100000]
    #[arg(long, value_name = "N")]
    max_pattern_urls: Option<u64>,
    /// Hosts with a URL in one run, of all shards together; links to further hosts are refused
    /// [default: 1000000]
    #[arg(long, value_name = "N")]
    max_hosts: Option<u64>,
    /// Bytes of the frontier on disk, of all shards together, like 10GiB; links found beyond them
    /// are refused, and the crawl goes on with those it has [default: 32GiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_disk: Option<u64>,
    /// Bytes of items that wait for their sink, of all shards together, at most 256MiB; with more
    /// no page is taken until the sink has caught up [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_undelivered: Option<u64>,
    /// Attempts at one page before it is given up [default: 5]
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// The longest wait before another attempt, whatever a server or a rule asks for [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = millis)]
    max_retry_wait: Option<u64>,
    /// What is done with a page that is as the last run saw it: parse it all the same, or skip it
    /// with its items and links [default: parse]
    #[arg(long, value_name = "parse|skip")]
    unchanged: Option<Unchanged>,
    /// Whether the robots.txt of a site counts; ignore only what is yours [default: obey]
    #[arg(long, value_name = "obey|ignore")]
    robots: Option<Robots>,
    /// The longest crawl-delay of a robots.txt that is kept; a longer one is cut to it [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = millis)]
    max_crawl_delay: Option<u64>,
    /// Longest random time that is added to --delay [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = millis)]
    random_delay: Option<u64>,
    /// Requests to one host in any such time, like 10/s or, several at once, 10/s,300/m [default: none]
    #[arg(long, value_name = "N/TIME,…")]
    host_rate: Option<Rates>,
    /// Pages begun in any such time, on all hosts [default: none]
    #[arg(long, value_name = "N/TIME,…")]
    rate: Option<Rates>,
    /// When pages are begun, in UTC, like 22:00-06:00 [default: all]
    #[arg(long, value_name = "HOURS,…")]
    hours: Option<Hours>,
    /// User agent of the crawl: honest (as its worker), browser, or other words; given several times, each
    /// host sees another [default: honest]
    #[arg(long, value_name = "NAME")]
    user_agent: Vec<Agent>,
    /// Whether cookies that sites set are sent back [default: keep]
    #[arg(long, value_name = "keep|ignore")]
    cookies: Option<Cookies>,
    /// A cookie that the crawl begins with; may be given several times
    #[arg(long, value_name = "HOST:NAME=VALUE")]
    cookie: Vec<CookieSeed>,
    /// Kinds of pages that are wanted, like text/*,application/json; bodies of others are not read
    /// [default: all]
    #[arg(long, value_name = "TYPE,…")]
    content_types: Option<ContentTypes>,
    /// Proxy for requests: direct, or a name from [proxies] of the workers' config file [default: default,
    /// where there is one]
    #[arg(long, value_name = "NAME")]
    proxy: Option<ProxyChoice>,
    /// Credentials that hosts require: names from [credentials] of the workers' config file [default: none]
    #[arg(long, value_name = "NAME,…")]
    credentials: Option<CredentialNames>,
    /// Hosts beyond those of the root requests: example.org, *.example.org,
    /// site:example.co.uk (a registrable domain and all below it) or *; with a
    /// port, example.org:9000, that one may be fetched from
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    scope: Vec<HostPattern>,
}

impl CrawlArgs {
    pub(super) fn settings(self) -> CrawlSettings {
        CrawlSettings {
            delay_ms: self.delay,
            concurrency: self.concurrency,
            max_pages: self.max_pages,
            max_bytes: self.max_bytes,
            max_depth: self.max_depth,
            max_url_length: self.max_url_length,
            max_segment_repeats: self.max_segment_repeats,
            max_pattern_urls: self.max_pattern_urls,
            max_hosts: self.max_hosts,
            max_disk: self.max_disk,
            max_undelivered: self.max_undelivered,
            max_attempts: self.max_attempts,
            max_retry_wait_ms: self.max_retry_wait,
            unchanged: self.unchanged,
            robots: self.robots,
            max_crawl_delay_ms: self.max_crawl_delay,
            random_delay_ms: self.random_delay,
            host_rate: self.host_rate,
            rate: self.rate,
            hours: self.hours,
            user_agents: self.user_agent,
            cookies: self.cookies,
            cookie_seeds: self.cookie,
            content_types: self.content_types,
            proxy: self.proxy,
            credentials: self.credentials,
            scope: self.scope,
        }
    }
}

/// Which workers take a crawl.
#[derive(Debug, Args)]
pub(super) struct PlacementArgs {
    /// Parts, by host, that workers crawl side by side, 1 to 32 [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    shards: Option<u32>,
    /// Load that it adds to its worker, 1 to 1000 [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    weight: Option<u32>,
    /// A label that its worker must have; may be given several times. Every worker has id and host.
    /// In an update, KEY= takes one out
    #[arg(long, value_name = "KEY=VALUE", value_parser = selector)]
    selector: Vec<(String, String)>,
    /// Place it on the worker of this resource, if that is placed and has room. In an update, '' takes it
    /// back
    #[arg(long, value_name = "RESOURCE")]
    near: Option<Neighbour>,
    /// Never place it on a worker with this resource. In an update, '' takes it back
    #[arg(long, value_name = "RESOURCE")]
    apart: Option<Neighbour>,
}

impl PlacementArgs {
    pub(super) fn change(self) -> PlacementChange {
        PlacementChange {
            shards: self.shards,
            weight: self.weight,
            selector: self.selector.into_iter().collect(),
            near: self.near,
            apart: self.apart,
        }
    }
}

/// What a crawl's rules get and may use.
#[derive(Debug, Args)]
pub(super) struct RuleArgs {
    /// Handed to the rules as their config; may be given several times
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    params: Vec<(String, String)>,
    /// What one call of a rule may use, like memory=128MiB; may be given several times
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = limit)]
    limits: Vec<(LimitName, u64)>,
}

impl RuleArgs {
    pub(super) fn params(&self) -> BTreeMap<String, String> {
        self.params.iter().cloned().collect()
    }

    pub(super) fn limits(&self) -> LimitOverrides {
        overrides(&self.limits)
    }
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

/// How an answer is printed.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// How the answer is printed
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        default_value = "table"
    )]
    pub(super) format: Format,
}

impl OutputArgs {
    pub(super) fn is_json(&self) -> bool {
        self.format == Format::Json
    }
}

/// Builds overrides from limits that were parsed one by one.
pub(super) fn overrides(limits: &[(LimitName, u64)]) -> LimitOverrides {
    let mut overrides = LimitOverrides::default();
    for (name, value) in limits {
        overrides
            .set_value(*name, *value)
            .expect("zero was refused when the value was parsed");
    }
    overrides
}

/// Parses `NAME=VALUE` of a limit, in its base unit.
pub(super) fn limit(text: &str) -> Result<(LimitName, u64), String> {
    let (name, value) = key_value(text)?;
    let mut overrides = LimitOverrides::default();
    overrides.set(&name, &value).map_err(|e| e.to_string())?;
    let set = overrides.iter().next();
    set.ok_or_else(|| format!("limit {name} was not set"))
}

/// Parses `KEY=VALUE`; the value may be empty and may have further equals signs.
pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

/// Parses `KEY=VALUE` of a label; an empty value removes it from a selector.
fn selector(text: &str) -> Result<(String, String), String> {
    let (key, value) = key_value(text)?;
    check_label_key(&key).map_err(|e| e.to_string())?;
    if !value.is_empty() {
        check_label_value(&key, &value).map_err(|e| e.to_string())?;
    }
    Ok((key, value))
}

/// Parses a time such as `1s` or `250ms`, in milliseconds.
pub(super) fn millis(text: &str) -> Result<u64, String> {
    let delay = humantime::parse_duration(text).ok();
    let millis = delay.and_then(|delay| u64::try_from(delay.as_millis()).ok());
    millis.ok_or_else(|| "write a time like 250ms or 1s".to_owned())
}

/// Parses a size such as `64MiB` or `4096`, in bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let size = parse_bytes(text).filter(|size| *size > 0);
    size.ok_or_else(|| "write a size like 64MiB or 4096".to_owned())
}

/// Parses the bytes that the whole process may use.
pub(super) fn memory(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 128 << 20;
    let memory = size(text)?;
    match memory < LEAST {
        true => Err("a process needs at least 128MiB".to_owned()),
        false => Ok(memory),
    }
}

/// Parses a setting that is `on` or `off`.
pub(super) fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("write on or off".to_owned()),
    }
}

/// Parses `:PORT` on this machine only, or `ADDRESS:PORT`.
pub(super) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let local = text.strip_prefix("localhost").unwrap_or(text);
    if let Some(Ok(port)) = local.strip_prefix(':').map(str::parse) {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let expected = "write :PORT, or an address like 127.0.0.1:8081; port 0 takes a free one";
    text.parse().map_err(|_| expected.to_owned())
}
