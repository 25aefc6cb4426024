//! Verdict on a window of pages: the field that departs most from a profile.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::MIN_PAGES;
use super::profile::Group;
use super::sample::{N_TYPES, Type};
use super::shape::Shape;

/// Chance of a difference as the logarithm of one in 100 million and more: smaller ones are no chance.
const EVIDENCE: f64 = 20.0;
/// Added to [`EVIDENCE`] for each further type that a field has: more types differ more by chance.
const EVIDENCE_PER_TYPE: f64 = 2.0;
/// Part of the values that a window may differ by beyond the largest difference within a good run.
const MARGIN: f64 = 0.2;
/// Largest difference of types within a good run that is taken into account if a window has [`MANY_MORE`] times as many
/// values of a type as the whole run. A few odd pages do not hide a field that is gone altogether.
const MAX_SPREAD: f64 = 0.7;
const MANY_MORE: u64 = 2;
/// Smallest number of values whose sizes are compared.
const MIN_VALUES: u64 = 8;

/// Distances of a field in some pages from the same field in a run, from 0 to 1 each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Distances {
    /// Part of the values that would have to be of another type.
    types: f64,
    lengths: f64,
    numbers: f64,
    /// Smallest number of distinct values in a block of pages.
    fewest: Option<u64>,
}

/// Way in which a field departs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Departs {
    /// Values are missing, or are there where they were not.
    Presence,
    /// Values are of another type.
    Type,
    /// Texts or lists have another length.
    Length,
    /// Numbers have another size.
    Number,
    /// There are far fewer distinct values.
    Distinct,
}

/// A field that departs from the profile of the last good run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// Name of the field.
    pub field: String,
    /// Way in which it departs.
    pub departs: Departs,
    /// Description of the field in the last good run.
    pub before: String,
    /// Description of the field in the window.
    pub now: String,
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "field {}: {}, before {}",
            self.field.escape_debug(),
            self.now,
            self.before
        )
    }
}

impl Distances {
    pub(super) fn widen(&mut self, other: &Self) {
        self.types = self.types.max(other.types);
        self.lengths = self.lengths.max(other.lengths);
        self.numbers = self.numbers.max(other.numbers);
        self.fewest = match (self.fewest, other.fewest) {
            (None, known) | (known, None) => known,
            (Some(one), Some(other)) => Some(one.min(other)),
        };
    }
}

/// Returns the distances of a field in some pages from the same field in a run.
pub(super) fn distances(run: &Shape, pages: &Shape, name: &str) -> Distances {
    let (before, now) = (run.fields.get(name), pages.fields.get(name));
    let (lengths, numbers) = match (before, now) {
        (Some(before), Some(now)) => (
            before.lengths.distance(&now.lengths),
            before.numbers.distance(&now.numbers),
        ),
        _ => (0.0, 0.0),
    };
    Distances {
        types: type_distance(&run.types_of(name), &pages.types_of(name)),
        lengths,
        numbers,
        fewest: Some(pages.n_distinct(name)),
    }
}

/// Returns the field of a window that departs most, if one does. `is_judged` tells which fields count.
pub(super) fn departure(
    before: &Group,
    window: &Shape,
    min_distance: f64,
    is_judged: impl Fn(&str) -> bool,
) -> Option<Departure> {
    if before.shape.n < MIN_PAGES || window.n == 0 {
        return None;
    }
    let fields = before.shape.fields.keys().filter(|name| is_judged(name));
    let found = fields.filter_map(|name| {
        let (by, departs) = of_field(before, window, min_distance, name)?;
        Some((by, name, departs))
    });
    let (_, name, departs) = found.max_by(|(one, ..), (other, ..)| one.total_cmp(other))?;
    let described = |shape: &Shape| described(shape, name, departs);
    Some(Departure {
        field: name.clone(),
        departs,
        before: described(&before.shape),
        now: described(window),
    })
}

/// Returns how far a field departs, and in which way, if it does.
fn of_field(
    before: &Group,
    window: &Shape,
    min_distance: f64,
    name: &str,
) -> Option<(f64, Departs)> {
    let found = distances(&before.shape, window, name);
    let none = Distances::default();
    let spread = before.spread.get(name).unwrap_or(&none);
    let is_beyond =
        |distance: f64, spread: f64| distance >= min_distance && distance > spread + MARGIN;
    let (was, is) = (before.shape.types_of(name), window.types_of(name));
    let types_spread = match has_many_more(&was, &is) {
        true => spread.types.min(MAX_SPREAD),
        false => spread.types,
    };
    if is_beyond(found.types, types_spread) && is_no_chance(&was, &is) {
        let absent = |types: &[u64; N_TYPES]| {
            let n: u64 = types.iter().sum();
            types[Type::Absent as usize] as f64 / n.max(1) as f64
        };
        let is_presence = (absent(&was) - absent(&is)).abs() * 2.0 >= found.types;
        let departs = if is_presence {
            Departs::Presence
        } else {
            Departs::Type
        };
        return Some((1.0 + found.types, departs));
    }
    let (was, is) = (before.shape.fields.get(name)?, window.fields.get(name)?);
    let sizes = [
        (
            found.numbers,
            spread.numbers,
            was.numbers.n(),
            is.numbers.n(),
            Departs::Number,
        ),
        (
            found.lengths,
            spread.lengths,
            was.lengths.n(),
            is.lengths.n(),
            Departs::Length,
        ),
    ];
    for (distance, spread, n_before, n_now, departs) in sizes {
        if n_now < MIN_VALUES || n_before < MIN_PAGES {
            continue;
        }
        let n = (n_now * n_before) as f64 / (n_now + n_before) as f64;
        if is_beyond(distance, spread) && 2.0 * n * distance * distance > EVIDENCE {
            return Some((distance, departs));
        }
    }
    // A window of two blocks has no fewer distinct values than each of them.
    let n_distinct = window.n_distinct(name);
    let fewest = spread.fewest.filter(|fewest| *fewest >= MIN_VALUES)?;
    let is_poor =
        window.n >= 2 * super::BLOCK && (n_distinct as f64) < fewest as f64 * (1.0 - min_distance);
    is_poor.then_some((0.0, Departs::Distinct))
}

/// Returns the part of the values that would have to be of another type for the shares to be equal.
fn type_distance(before: &[u64; N_TYPES], now: &[u64; N_TYPES]) -> f64 {
    let n = |types: &[u64; N_TYPES]| types.iter().sum::<u64>().max(1) as f64;
    let (n_before, n_now) = (n(before), n(now));
    let pairs = before.iter().zip(now);
    let differences =
        pairs.map(|(before, now)| (*before as f64 / n_before - *now as f64 / n_now).abs());
    differences.sum::<f64>() / 2.0
}

/// Returns true if a window has many more values of a type than a whole run.
fn has_many_more(run: &[u64; N_TYPES], window: &[u64; N_TYPES]) -> bool {
    let mut pairs = run.iter().zip(window);
    pairs.any(|(run, window)| *window >= super::MIN_WINDOW as u64 && *window >= run * MANY_MORE)
}

/// Returns true if types differ by more than chance: by the divergence of their shares, times the number of values.
fn is_no_chance(before: &[u64; N_TYPES], now: &[u64; N_TYPES]) -> bool {
    let pairs = || {
        before
            .iter()
            .zip(now)
            .filter(|(before, now)| **before + **now > 0)
    };
    let n_types = pairs().count() as f64;
    let n_before: u64 = before.iter().sum();
    let (n_before, n_now) = (
        n_before as f64 + n_types / 2.0,
        now.iter().sum::<u64>() as f64,
    );
    let terms = pairs().filter(|(_, now)| **now > 0).map(|(before, now)| {
        // A type that was not seen before may still have been there.
        let expected = (*before as f64 + 0.5) / n_before;
        *now as f64 * (*now as f64 / n_now / expected).ln()
    });
    terms.sum::<f64>() > EVIDENCE + EVIDENCE_PER_TYPE * (n_types - 2.0).max(0.0)
}

/// Describes a field by what departs.
fn described(shape: &Shape, name: &str, departs: Departs) -> String {
    let types = shape.types_of(name);
    let field = shape.fields.get(name);
    let range = |histogram: Option<&super::histogram::Histogram>| {
        let [low, high] = [0.1, 0.9].map(|share| histogram?.quantile(share));
        Some(format!("mostly {} to {}", rounded(low?), rounded(high?)))
    };
    let none = || "none".to_owned();
    match departs {
        Departs::Presence => {
            let n = types[Type::Absent as usize];
            format!("missing in {n} of {} items", shape.n)
        }
        Departs::Type => {
            let named = Type::WORDS.into_iter().zip(types);
            let most = named.max_by_key(|(_, n)| *n);
            most.map_or_else(none, |(word, n)| {
                format!("{word} in {n} of {} items", shape.n)
            })
        }
        Departs::Length => {
            let range = range(field.map(|field| &field.lengths));
            range.map_or_else(none, |range| format!("length {range}"))
        }
        Departs::Number => {
            let range = range(field.map(|field| &field.numbers));
            range.map_or_else(none, |range| format!("size {range}"))
        }
        Departs::Distinct => {
            let n = shape.n_distinct(name);
            format!("{n} distinct values in {} items", shape.n)
        }
    }
}

/// Returns a number with two digits, since a histogram knows no more.
fn rounded(number: f64) -> String {
    let digits = if number == 0.0 {
        0.0
    } else {
        1.0 - number.abs().log10().floor()
    };
    let factor = 10_f64.powf(digits);
    let rounded = (number * factor).round() / factor;
    let places = digits.clamp(0.0, 9.0) as usize;
    format!("{rounded:.places$}")
}
