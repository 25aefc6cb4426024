//! Running counts of samples: how the fields of the items look. The sum of two is exact, in any order.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::MAX_FIELDS;
use super::histogram::Histogram;
use super::sample::{Feature, N_TYPES, Sample, Type};

/// Number of hashes by which distinct values are estimated. The estimate is within 20 % in most cases.
const N_HASHES: usize = 32;

/// Counts of the items of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shape {
    /// Number of samples.
    pub(super) n: u64,
    pub(super) fields: BTreeMap<String, Field>,
}

/// Counts of the values of a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Field {
    /// Numbers of values by the place of their type.
    types: BTreeMap<u8, u64>,
    pub(super) lengths: Histogram,
    pub(super) numbers: Histogram,
    distinct: Distinct,
}

/// Estimate of the number of distinct values: the smallest of their hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Distinct(BTreeSet<u64>);

impl Shape {
    /// Counts an item, with as many fields as a profile has.
    pub(super) fn add(&mut self, sample: &Sample) {
        self.count(sample, MAX_FIELDS);
    }

    /// Counts an item of a window with all of its fields: one that is left out for lack of room would seem to be missing.
    pub(super) fn add_whole(&mut self, sample: &Sample) {
        self.count(sample, usize::MAX);
    }

    fn count(&mut self, sample: &Sample, max_fields: usize) {
        if sample.is_cut {
            return;
        }
        self.n += 1;
        for (name, feature) in &sample.fields {
            if self.fields.len() < max_fields || self.fields.contains_key(name.as_str()) {
                self.fields.entry(name.clone()).or_default().add(feature);
            }
        }
    }

    /// Adds the counts of another shape. Fields beyond the bound are left out, last names first.
    pub(super) fn merge(&mut self, other: &Self) {
        self.n += other.n;
        for (name, field) in &other.fields {
            self.fields.entry(name.clone()).or_default().merge(field);
        }
        while self.fields.len() > MAX_FIELDS {
            self.fields.pop_last();
        }
    }

    /// Returns the number of values of each type, missing ones included.
    pub(super) fn types_of(&self, name: &str) -> [u64; N_TYPES] {
        let mut types = [0; N_TYPES];
        let found = self.fields.get(name);
        for (r#type, n) in found.into_iter().flat_map(|field| &field.types) {
            if let Some(count) = types.get_mut(usize::from(*r#type)) {
                *count = *n;
            }
        }
        let n_present: u64 = types.iter().skip(1).sum();
        types[Type::Absent as usize] = self.n.saturating_sub(n_present);
        types
    }

    /// Returns the estimate of the number of distinct values of a field; exact for few values.
    pub(super) fn n_distinct(&self, name: &str) -> u64 {
        let field = self.fields.get(name);
        field.map_or(0, |field| field.distinct.estimate())
    }
}

impl Field {
    fn add(&mut self, feature: &Feature) {
        *self.types.entry(feature.r#type as u8).or_default() += 1;
        if let Some(length) = feature.length {
            self.lengths.add(length);
        }
        if let Some(number) = feature.number {
            self.numbers.add(number);
        }
        self.distinct.add(feature.hash);
    }

    fn merge(&mut self, other: &Self) {
        for (r#type, n) in &other.types {
            *self.types.entry(*r#type).or_default() += n;
        }
        self.lengths.merge(&other.lengths);
        self.numbers.merge(&other.numbers);
        other
            .distinct
            .0
            .iter()
            .for_each(|hash| self.distinct.add(*hash));
    }
}

impl Distinct {
    fn add(&mut self, hash: u64) {
        self.0.insert(hash);
        if self.0.len() > N_HASHES {
            self.0.pop_last();
        }
    }

    /// Returns the estimate: the denser the smallest hashes, the more there are.
    fn estimate(&self) -> u64 {
        match self.0.last() {
            Some(largest) if self.0.len() == N_HASHES => {
                let share = *largest as f64 / u64::MAX as f64;
                ((N_HASHES - 1) as f64 / share).round() as u64
            }
            Some(_) | None => self.0.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::sample::hash_of;

    #[test]
    fn what_is_missing_is_counted_from_the_first_item_on() {
        let mut shape = Shape::default();
        for json in [r#"{"a": 1}"#, r#"{"a": null, "b": "x"}"#, r#"{"a": true}"#] {
            shape.add(&Sample::of(json));
        }
        assert_eq!(shape.types_of("a")[..3], [1, 1, 1]);
        assert_eq!(shape.types_of("b")[Type::Absent as usize], 2);
        assert_eq!(shape.types_of("c")[Type::Absent as usize], 3);
    }

    #[test]
    fn a_sample_without_room_for_its_fields_is_not_counted() {
        let fields: Vec<String> = (0..=MAX_FIELDS).map(|n| format!("\"f{n}\": {n}")).collect();
        let mut shape = Shape::default();
        shape.add(&Sample::of(&format!("{{{}}}", fields.join(","))));
        assert_eq!(shape, Shape::default());
    }

    #[test]
    fn distinct_values_are_estimated() {
        for n in [1, 10, 31, 100, 5_000] {
            let mut distinct = Distinct::default();
            for _twice in 0..2 {
                (0..n).for_each(|value: u64| distinct.add(hash_of(&value.to_string())));
            }
            let estimate = distinct.estimate();
            let range = n / 2..=n * 2;
            assert!(range.contains(&estimate), "{n}: {estimate}");
            assert!(n >= N_HASHES as u64 || estimate == n, "{n}: {estimate}");
        }
    }

    #[test]
    fn a_shape_has_so_many_fields_at_most() {
        let item = |n: usize| Sample::of(&format!("{{\"f{n}\": 1}}"));
        let (mut one, mut other) = (Shape::default(), Shape::default());
        (0..100).for_each(|n| one.add(&item(n)));
        (50..200).for_each(|n| other.add(&item(n)));
        assert_eq!(one.fields.len(), MAX_FIELDS);
        one.merge(&other);
        assert_eq!((one.fields.len(), one.n), (MAX_FIELDS, 250));
    }
}
