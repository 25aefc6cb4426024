//! Differences between two outcomes: items and requests that are gone, changed or new, and the fields that
//! changed.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::Serialize;
use serde_json::Value;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::outcome::{KeptItem, KeptRequest, Outcome};

/// Number of characters of a value that are shown.
const SHOWN: usize = 160;
/// Largest product of two numbers of items or requests in a row that are compared pair by pair.
const MAX_PAIRS: usize = 40_000;

/// Differences of one outcome from another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Counts of items.
    pub items: Tally,
    /// Counts of requests.
    pub requests: Tally,
    /// Number of changes of each field of an item, such as `book.price`.
    pub fields: BTreeMap<String, usize>,
    /// First difference, in words. If `None`, there is none.
    pub first: Option<String>,
}

/// Number of items or requests that differ, by kind of difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Number of those that are not there any more.
    pub gone: usize,
    /// Number of those that are there with another content.
    pub changed: usize,
    /// Number of those that were not there before.
    pub new: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.gone += other.gone;
        self.changed += other.changed;
        self.new += other.new;
    }
}

impl Changes {
    /// Compares one outcome with another.
    pub fn between(before: &Outcome, after: &Outcome) -> Self {
        let mut changes = Self::default();
        match (&before.error, &after.error) {
            (None, None) => {}
            (Some(before), Some(after)) if before == after => {}
            (None, Some(error)) => changes.note(|| format!("the rule gives up: {error}")),
            (Some(error), None) => changes.note(|| format!("the rule gives up no more: {error}")),
            (Some(before), Some(after)) => {
                changes.note(|| format!("the rule gives up: {before} -> {after}"));
            }
        }
        changes.items(&before.items, &after.items);
        changes.requests(before, after);
        if before.bad_urls != after.bad_urls {
            let (before, after) = (before.bad_urls, after.bad_urls);
            changes.note(|| format!("addresses that do not parse: {before} -> {after}"));
        }
        changes
    }

    /// Returns true if there is no difference.
    pub fn is_none(&self) -> bool {
        self.first.is_none()
    }

    /// Adds the differences of another pair of outcomes; the first difference stays.
    pub fn add(&mut self, other: Self) {
        self.items += other.items;
        self.requests += other.requests;
        for (field, n) in other.fields {
            *self.fields.entry(field).or_default() += n;
        }
        self.first = self.first.take().or(other.first);
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        self.first.get_or_insert_with(what);
    }

    fn items(&mut self, before: &[KeptItem], after: &[KeptItem]) {
        let item = |item: &KeptItem| shown(&item.item);
        for pair in pairs(before, after, likeness) {
            match pair {
                Pair::Both(n, m) => {
                    self.items.changed += 1;
                    self.fields_of(n, &before[n], &after[m]);
                }
                Pair::Gone(n) => {
                    self.items.gone += 1;
                    let gone = &before[n];
                    self.note(|| format!("item {} ({}) is gone: {}", n + 1, gone.kind, item(gone)));
                }
                Pair::New(m) => {
                    self.items.new += 1;
                    let new = &after[m];
                    self.note(|| format!("item {} ({}) is new: {}", m + 1, new.kind, item(new)));
                }
            }
        }
    }

    fn fields_of(&mut self, n: usize, before: &KeptItem, after: &KeptItem) {
        let kind = &before.kind;
        let mut changed = |name: &str, one: Option<&Value>, other: Option<&Value>| {
            if one == other {
                return;
            }
            let or_nothing = |value: Option<&Value>| value.map_or("nothing".to_owned(), shown);
            let field = match name {
                "" => kind.clone(),
                name => format!("{kind}.{name}"),
            };
            self.first.get_or_insert_with(|| {
                let (one, other) = (or_nothing(one), or_nothing(other));
                format!("item {}: {field}: {one} -> {other}", n + 1)
            });
            *self.fields.entry(field).or_default() += 1;
        };
        match (&before.item, &after.item) {
            (Value::Object(one), Value::Object(other)) => {
                for (name, value) in one {
                    changed(name, Some(value), other.get(name));
                }
                for (name, value) in other.iter().filter(|(name, _)| !one.contains_key(*name)) {
                    changed(name, None, Some(value));
                }
            }
            (one, other) => changed("", Some(one), Some(other)),
        }
    }

    fn requests(&mut self, before: &Outcome, after: &Outcome) {
        let (before, after) = (&before.requests, &after.requests);
        let alike =
            |one: &KeptRequest, other: &KeptRequest| u32::from(one.address() == other.address());
        for pair in pairs(before, after, alike) {
            match pair {
                Pair::Both(n, m) => {
                    self.requests.changed += 1;
                    let (one, other) = (text(&before[n]), text(&after[m]));
                    self.note(|| format!("request {}: {} -> {}", n + 1, cut(&one), cut(&other)));
                }
                Pair::Gone(n) => {
                    self.requests.gone += 1;
                    let (rule, url) = before[n].address();
                    self.note(|| format!("request {} is gone: {} to {rule}", n + 1, cut(url)));
                }
                Pair::New(m) => {
                    self.requests.new += 1;
                    let (rule, url) = after[m].address();
                    self.note(|| format!("request {} is new: {} to {rule}", m + 1, cut(url)));
                }
            }
        }
    }
}

/// A pair that differs; one of its two may be missing.
enum Pair {
    Both(usize, usize),
    Gone(usize),
    New(usize),
}

/// Returns the pairs that differ, in order. Items or requests that are most alike form a pair; a likeness of
/// 0 means that two are not alike at all.
fn pairs<T: Serialize>(before: &[T], after: &[T], likeness: impl Fn(&T, &T) -> u32) -> Vec<Pair> {
    let texts = |all: &[T]| all.iter().map(text).collect::<Vec<_>>();
    let mut pairs = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &texts(before), &texts(after)) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (old, new) = (op.old_range(), op.new_range());
        let alike = |n: usize, m: usize| likeness(&before[old.start + n], &after[new.start + m]);
        let found = match old.len() * new.len() <= MAX_PAIRS {
            true => best(old.len(), new.len(), alike),
            false => in_order(old.len(), new.len(), alike),
        };
        pairs.extend(found.into_iter().map(|pair| match pair {
            Pair::Both(n, m) => Pair::Both(old.start + n, new.start + m),
            Pair::Gone(n) => Pair::Gone(old.start + n),
            Pair::New(m) => Pair::New(new.start + m),
        }));
    }
    pairs
}

/// Returns the pairs, in order, whose likenesses have the largest sum.
fn best(n_old: usize, n_new: usize, alike: impl Fn(usize, usize) -> u32) -> Vec<Pair> {
    let width = n_new + 1;
    // Each sum is that of the best pairs from its place to the end.
    let mut sums = vec![0; (n_old + 1) * width];
    for n in (0..n_old).rev() {
        for m in (0..n_new).rev() {
            let alone = sums[(n + 1) * width + m].max(sums[n * width + m + 1]);
            let together = match alike(n, m) {
                0 => 0,
                likeness => likeness + sums[(n + 1) * width + m + 1],
            };
            sums[n * width + m] = alone.max(together);
        }
    }
    let (mut n, mut m) = (0, 0);
    let mut pairs = Vec::new();
    while n < n_old && m < n_new {
        let sum = sums[n * width + m];
        let likeness = alike(n, m);
        if likeness > 0 && sum == likeness + sums[(n + 1) * width + m + 1] {
            pairs.push(Pair::Both(n, m));
            (n, m) = (n + 1, m + 1);
        } else if sum == sums[(n + 1) * width + m] {
            pairs.push(Pair::Gone(n));
            n += 1;
        } else {
            pairs.push(Pair::New(m));
            m += 1;
        }
    }
    pairs.extend((n..n_old).map(Pair::Gone));
    pairs.extend((m..n_new).map(Pair::New));
    pairs
}

/// Pairs each with the one at its place; used if there are too many to look for better pairs.
fn in_order(n_old: usize, n_new: usize, alike: impl Fn(usize, usize) -> u32) -> Vec<Pair> {
    let pair = |n: usize| match n {
        n if n >= n_old => vec![Pair::New(n)],
        n if n >= n_new => vec![Pair::Gone(n)],
        n if alike(n, n) > 0 => vec![Pair::Both(n, n)],
        n => vec![Pair::Gone(n), Pair::New(n)],
    };
    (0..n_old.max(n_new)).flat_map(pair).collect()
}

/// Returns the likeness of two items: items of one kind are alike, the more so the more fields they share.
fn likeness(one: &KeptItem, other: &KeptItem) -> u32 {
    if one.kind != other.kind {
        return 0;
    }
    match (&one.item, &other.item) {
        (Value::Object(one), Value::Object(other)) => {
            let same = one.iter().filter(|(name, value)| {
                // A value that is missing in both makes no two items alike.
                !value.is_null() && other.get(*name) == Some(*value)
            });
            1 + 2 * u32::try_from(same.count()).unwrap_or(u32::MAX / 4)
        }
        _ => 1,
    }
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("an outcome is plain data")
}

fn shown(value: &Value) -> String {
    cut(&text(value))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(items: &[Value], urls: &[&str]) -> Outcome {
        let items = items
            .iter()
            .map(|item| json!({"kind": "book", "item": item}));
        let requests = urls.iter().map(|url| json!({"rule": "list", "url": url}));
        let (items, requests): (Vec<_>, Vec<_>) = (items.collect(), requests.collect());
        serde_json::from_value(json!({"items": items, "requests": requests})).unwrap()
    }

    fn items(items: &[Value]) -> Outcome {
        outcome(items, &[])
    }

    #[track_caller]
    fn check(before: &Outcome, after: &Outcome, [gone, changed, new]: [usize; 3], first: &str) {
        let changes = Changes::between(before, after);
        let (items, requests) = (changes.items, changes.requests);
        let found = [
            items.gone + requests.gone,
            items.changed + requests.changed,
            items.new + requests.new,
        ];
        assert_eq!(found, [gone, changed, new], "{changes:?}");
        assert_eq!(changes.first.as_deref().unwrap_or_default(), first);
    }

    #[test]
    fn items_are_held_against_those_that_are_most_alike() {
        let book = |title: &str, price: u32| json!({"title": title, "price": price});
        let (a, b, c) = (book("a", 1), book("b", 2), book("c", 3));
        let all = items(&[a.clone(), b.clone(), c.clone()]);
        check(&all, &all, [0; 3], "");
        let gone = items(&[a, c.clone()]);
        let is_gone = "item 2 (book) is gone: {\"price\":2,\"title\":\"b\"}";
        check(&all, &gone, [1, 0, 0], is_gone);
        check(&gone, &all, [0, 0, 1], &is_gone.replace("gone", "new"));
        // The first item is gone, and those behind it have changed: none is taken for another.
        let changed = items(&[book("b", 20), book("c", 30)]);
        let first = "item 1 (book) is gone: {\"price\":1,\"title\":\"a\"}";
        check(&all, &changed, [1, 2, 0], first);
        let fields = Changes::between(&all, &changed).fields;
        assert_eq!(fields, [("book.price".to_owned(), 2)].into());
        let less = items(&[json!({"title": "a"}), b, c]);
        check(&all, &less, [0, 1, 0], "item 1: book.price: 1 -> nothing");
    }

    #[test]
    fn requests_are_the_same_by_rule_and_address() {
        let (one, other) = (outcome(&[], &["/1", "/2"]), outcome(&[], &["/2", "/3"]));
        check(&one, &other, [1, 0, 1], "request 1 is gone: /1 to list");
        let mut posted = one.clone();
        let mut text = serde_json::to_value(&posted.requests).unwrap();
        text[1]["method"] = "POST".into();
        posted.requests = serde_json::from_value(text).unwrap();
        let first = "request 2: {\"rule\":\"list\",\"url\":\"/2\"} -> \
            {\"rule\":\"list\",\"url\":\"/2\",\"method\":\"POST\"}";
        check(&one, &posted, [0, 1, 0], first);
    }

    #[test]
    fn a_rule_that_gives_up_differs() {
        let given_up = Outcome {
            error: Some("skip: old".to_owned()),
            ..Outcome::default()
        };
        let first = "the rule gives up: skip: old";
        check(&Outcome::default(), &given_up, [0; 3], first);
        assert!(!Changes::between(&Outcome::default(), &given_up).is_none());
    }

    #[test]
    fn many_items_are_compared_in_order() {
        let many = |price: usize| {
            let all: Vec<_> = (0..250).map(|n| json!({"n": n, "price": price})).collect();
            items(&all)
        };
        let changes = Changes::between(&many(1), &many(2));
        assert_eq!(changes.items.changed, 250);
        assert_eq!(changes.fields, [("book.price".to_owned(), 250)].into());
    }
}
