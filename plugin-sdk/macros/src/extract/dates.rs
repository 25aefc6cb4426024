//! Formats of days and moments, tried at compile time: a format has to read what it writes.

use std::fmt::Write as _;

use chrono::format::{Fixed, Item, ParseErrorKind, StrftimeItems};
use chrono::{DateTime, NaiveDate, NaiveDateTime, ParseError};
use syn::{Error, LitStr, Result};

/// Sample moment; each of its parts has two digits, and is another number.
const SAMPLE: &str = "2026-11-23T14:25:36+02:00";

/// Checks that a format determines a day.
pub(super) fn check_date(format: &LitStr) -> Result<()> {
    let sample = written(format)?;
    let date = NaiveDate::parse_from_str(&sample, &format.value());
    date.map(|_| ())
        .map_err(|why| unread(format, why, "a day needs day, month and year"))
}

/// Checks that a format determines a moment, with or without an offset that holds for all texts.
pub(super) fn check_date_time(format: &LitStr, offset: Option<&LitStr>) -> Result<()> {
    let text = format.value();
    if StrftimeItems::new(&text).any(|item| item == Item::Fixed(Fixed::TimezoneName)) {
        let message = "`%Z` passes over any word, so that EST and EDT would be the same; read the offset by `%z`, or the text by a function of your own: with = …";
        return Err(Error::new(format.span(), message));
    }
    let sample = written(format)?;
    let whole = DateTime::parse_from_str(&sample, &format.value());
    let local = NaiveDateTime::parse_from_str(&sample, &format.value());
    match (whole, local, offset) {
        (Ok(_), _, None) | (Err(_), Ok(_), Some(_)) => Ok(()),
        (Ok(_), _, Some(offset)) => {
            let message = "the format reads the offset from the page; give it in one of them";
            Err(Error::new(offset.span(), message))
        }
        (Err(_), Ok(_), None) => {
            let message = "it reads no offset from UTC; add `%z`, or say which all texts have: offset = \"+00:00\"";
            Err(Error::new(format.span(), message))
        }
        (Err(_), Err(why), _) => {
            let needs = "a moment needs day, month, year, hour and minute, and `%p` beside `%I`";
            Err(unread(format, why, needs))
        }
    }
}

/// Reads an offset from UTC, in seconds.
pub(super) fn offset(text: &LitStr) -> Result<i32> {
    let moment = format!("{}{}", &SAMPLE[..19], text.value());
    match DateTime::parse_from_str(&moment, "%Y-%m-%dT%H:%M:%S%:z") {
        Ok(moment) => Ok(moment.offset().local_minus_utc()),
        Err(_) => {
            let message = "it is no offset from UTC, like \"+02:00\"";
            Err(Error::new(text.span(), message))
        }
    }
}

/// Writes the sample in this format.
fn written(format: &LitStr) -> Result<String> {
    let text = format.value();
    // This format is only for reading.
    let item = |text: &'static str| StrftimeItems::new(text).next();
    let (only_read, offset) = (item("%#z"), item("%z"));
    let items: Vec<Item<'_>> = StrftimeItems::new(&text)
        .map(|item| match (Some(&item) == only_read.as_ref(), &offset) {
            (true, Some(offset)) => offset.clone(),
            _ => item,
        })
        .collect();
    let unknown =
        "it has something behind a `%` that stands for nothing; see the letters at `Date`";
    if items.contains(&Item::Error) {
        return Err(Error::new(format.span(), unknown));
    }
    let sample = DateTime::parse_from_rfc3339(SAMPLE).expect("the sample is of this form");
    let mut written = String::new();
    match write!(written, "{}", sample.format_with_items(items.iter())) {
        Ok(()) => Ok(written),
        Err(_) => Err(Error::new(format.span(), unknown)),
    }
}

fn unread(format: &LitStr, why: ParseError, needs: &str) -> Error {
    let message = match why.kind() {
        ParseErrorKind::NotEnough => format!("no text of this format can be read: {needs}"),
        _ => format!("no text of this format can be read: {why}"),
    };
    Error::new(format.span(), message)
}
