//! Values of the table `[fetch]`: parsed from the file, and written as in it.

use std::ops::RangeInclusive;
use std::time::Duration;

use crawler_fetch::Resolver;
use crawler_model::plugin::parse_bytes;
use crawler_model::settings::Rate;

/// Checks a number. A range without an upper bound ends at `u32::MAX` or `u64::MAX`.
pub(super) fn in_range<N: Copy + Into<u64>>(
    key: &str,
    n: N,
    range: RangeInclusive<N>,
) -> Result<N, String> {
    let (least, most): (u64, u64) = ((*range.start()).into(), (*range.end()).into());
    match n.into() {
        number if (least..=most).contains(&number) => Ok(n),
        _ if most >= u32::MAX.into() => Err(format!("{key} is at least {least}")),
        number => Err(format!("{key} is from {least} to {most}, not {number}")),
    }
}

/// Parses a time.
pub(in crate::config) fn time(key: &str, text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| format!("{key} takes a time like 30s or 5m, not {text:?}"))
}

/// Parses a time that is longer than zero.
pub(in crate::config) fn some_time(key: &str, text: &str) -> Result<Duration, String> {
    match time(key, text)? {
        Duration::ZERO => Err(format!("{key} is longer than 0s")),
        time => Ok(time),
    }
}

/// Parses a number of bytes that is at least 1.
pub(in crate::config) fn some_bytes(key: &str, text: &str) -> Result<usize, String> {
    match parse_bytes(text) {
        Some(n) if n > 0 => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        _ => Err(format!(
            "{key} takes a size like 64KiB or 4096, not {text:?}"
        )),
    }
}

/// Parses a rate; `None` means that there is none.
pub(super) fn rate(key: &str, text: &str) -> Result<Option<Rate>, String> {
    match text {
        "off" => Ok(None),
        _ => text
            .parse()
            .map(Some)
            .map_err(|()| format!("{key} takes a rate like 4/s or 30/m, or \"off\", not {text:?}")),
    }
}

/// Returns the text of a rate.
pub(super) fn rate_text(rate: Option<Rate>) -> String {
    rate.map_or("off".to_owned(), |rate| rate.to_string())
}

/// Parses the name of a resolver.
pub(super) fn resolver(key: &str, text: &str) -> Result<Resolver, String> {
    match text {
        "dns" => Ok(Resolver::Dns),
        "system" => Ok(Resolver::System),
        _ => Err(format!("{key} is \"dns\" or \"system\", not {text:?}")),
    }
}

/// Returns the name of a resolver.
pub(super) fn resolver_text(resolver: Resolver) -> &'static str {
    match resolver {
        Resolver::Dns => "dns",
        Resolver::System => "system",
    }
}

/// Returns the line of a key with its value.
pub(super) fn line(key: &str, value: String, is_text: bool) -> String {
    match is_text {
        true => format!("{key} = {value:?}"),
        false => format!("{key} = {value}"),
    }
}
