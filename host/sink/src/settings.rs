//! Ranges of the numbers among the settings of sinks, and the words about one that is out of its range.

use std::ops::RangeInclusive;
use std::time::Duration;

use crawler_model::plugin::format_bytes;

/// Fault of a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}; it goes from {least} to {most}")]
pub struct SettingError {
    name: &'static str,
    value: String,
    least: &'static str,
    most: &'static str,
}

/// Refuses a number out of its range, whose ends messages call by these texts.
///
/// # Errors
///
/// The number is out of its range.
pub fn check_number(
    name: &'static str,
    value: u64,
    range: RangeInclusive<u64>,
    (least, most): (&'static str, &'static str),
) -> Result<(), SettingError> {
    check(range.contains(&value), || SettingError {
        name,
        value: value.to_string(),
        least,
        most,
    })
}

/// Refuses a number of bytes out of its range, whose ends messages call by these texts.
///
/// # Errors
///
/// The number is out of its range.
pub fn check_size(
    name: &'static str,
    n_bytes: u64,
    range: RangeInclusive<u64>,
    (least, most): (&'static str, &'static str),
) -> Result<(), SettingError> {
    check(range.contains(&n_bytes), || SettingError {
        name,
        value: format_bytes(n_bytes),
        least,
        most,
    })
}

/// Refuses a time out of its range, whose ends messages call by these texts.
///
/// # Errors
///
/// The time is out of its range.
pub fn check_time(
    name: &'static str,
    value: Duration,
    range: RangeInclusive<Duration>,
    (least, most): (&'static str, &'static str),
) -> Result<(), SettingError> {
    check(range.contains(&value), || SettingError {
        name,
        value: time(value),
        least,
        most,
    })
}

/// Returns a time as people write it: whole days are not months and years of a mean length.
fn time(time: Duration) -> String {
    let (seconds, day) = (time.as_secs(), 86_400);
    match seconds > 0 && seconds.is_multiple_of(day) && time.subsec_nanos() == 0 {
        true => format!("{}days", seconds / day),
        false => humantime::format_duration(time).to_string(),
    }
}

fn check(is_in_range: bool, error: impl FnOnce() -> SettingError) -> Result<(), SettingError> {
    if is_in_range { Ok(()) } else { Err(error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_its_range_is_named() {
        let ends = ("1", "10");
        assert_eq!(check_number("batch-items", 10, 1..=10, ends), Ok(()));
        let error = check_number("batch-items", 11, 1..=10, ends).unwrap_err();
        assert_eq!(error.to_string(), "batch-items is 11; it goes from 1 to 10");
        let range = Duration::ZERO..=Duration::from_secs(60);
        let error = check_time("max-wait", Duration::from_secs(90), range, ("0s", "1m"));
        let expected = "max-wait is 1m 30s; it goes from 0s to 1m";
        assert_eq!(error.unwrap_err().to_string(), expected);
    }

    #[test]
    fn values_are_shown_as_people_write_them() {
        let range = (64 << 10)..=(8 << 20);
        let error = check_size("max-file", 1 << 30, range, ("64KiB", "8MiB")).unwrap_err();
        let expected = "max-file is 1GiB; it goes from 64KiB to 8MiB";
        assert_eq!(error.to_string(), expected);
        let times = [60 * 86_400, 86_400, 90, 0].map(|seconds| time(Duration::from_secs(seconds)));
        assert_eq!(times, ["60days", "1days", "1m 30s", "0s"]);
    }
}
