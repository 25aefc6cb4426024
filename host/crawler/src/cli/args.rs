//! Arguments that several commands share, and the parsers of their values.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crawler_model::label::{check_label_key, check_label_value};
use crawler_model::placement::{AffinityTarget, PlacementChange};
use crawler_model::plugin::{LimitName, LimitOverrides, parse_bytes, parse_millis};

/// Choice of the workers that take a crawl.
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
    near: Option<AffinityTarget>,
    /// Never place it on a worker with this resource. In an update, '' takes it back
    #[arg(long, value_name = "RESOURCE")]
    apart: Option<AffinityTarget>,
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

/// Labels of a resource.
#[derive(Debug, Args)]
pub(super) struct LabelArgs {
    /// A label, by which lists and `apply --prune` select resources; may be given several times. In an update, KEY=
    /// takes one out
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = selector)]
    labels: Vec<(String, String)>,
}

impl LabelArgs {
    pub(super) fn labels(self) -> BTreeMap<String, String> {
        self.labels.into_iter().collect()
    }
}

/// Labels that select resources.
#[derive(Debug, Default, Args)]
pub(crate) struct SelectArgs {
    /// Only resources that have these labels
    #[arg(short = 'l', long = "label", value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
}

impl SelectArgs {
    /// True if all resources are meant.
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// True if a resource with these labels is meant.
    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let has = |(key, value): &(String, String)| labels.get(key) == Some(value);
        self.labels.iter().all(has)
    }
}

/// Params and limits of a crawl's rules.
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

/// Form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Output of a command that prints an answer.
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

/// Parses `KEY=VALUE` of a label that is asked for.
/// Parses `KEY=VALUE` of a label that selects.
pub(super) fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = selector(text)?;
    check_label_value(&key, &value).map_err(|e| e.to_string())?;
    Ok((key, value))
}

/// Parses a time such as `1s` or `250ms`, in milliseconds.
pub(super) fn millis(text: &str) -> Result<u64, String> {
    parse_millis(text).ok_or_else(|| "write a time like 250ms or 1s".to_owned())
}

/// Parses a time such as `1s` or `250ms`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    millis(text).map(Duration::from_millis)
}

/// Parses a time for which calls do without the store, or wait for it.
pub(super) fn store_time(text: &str) -> Result<Duration, String> {
    const BOUNDS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3_600);
    let time = humantime::parse_duration(text).ok();
    let time = time.filter(|time| BOUNDS.contains(time));
    time.ok_or_else(|| "write a time from 1ms to 1h, such as 5s".to_owned())
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
