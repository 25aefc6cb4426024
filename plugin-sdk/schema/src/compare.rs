//! Differences between two schemas that readers of the items could stumble over.
//!
//! Not every two schemas allow an answer whether all that fits one fits the other. A change that is not seen to be
//! safe counts as a difference: whoever changes a schema can say that it is meant. There is one exception: the
//! schemas of a `oneOf` are taken to exclude each other, as the variants of an enum do.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::check::{listed, shown};
use super::json::{is_same, order};
use super::read::escaped;
use super::*;

/// Largest number of steps: pairs of schemas that are compared, and other work of the same size.
const STEPS_MAX: usize = 20_000;
/// Largest depth of nested comparisons.
const DEPTH_MAX: usize = 100;
/// Number of names, patterns and parts that are as much work as a pair of schemas.
const PARTS_PER_STEP: usize = 16;
/// Bytes of values, each compared with one, that are as much work as a pair of schemas.
const BYTES_PER_STEP: usize = 1 << 10;
/// Largest number of differences that are told.
const TOLD_MAX: usize = 20;

impl JsonSchema {
    /// Returns a line for each difference: content that may be in items of the later schema and may not be in
    /// those of this one, or that is missing from them. New properties are no difference if this schema is open to
    /// others.
    pub fn differences(&self, later: &JsonSchema) -> Vec<String> {
        let mut comparison = Comparison {
            old: self,
            new: later,
            safe: HashSet::new(),
            order: Vec::new(),
            n_steps: 0,
            depth: 0,
            at: Vec::new(),
            told: Vec::new(),
        };
        comparison.pair(self.root, later.root);
        match comparison.is_too_much() {
            true => vec!["the schemas are too large to be compared".to_owned()],
            false => comparison.told,
        }
    }
}

struct Comparison<'s> {
    old: &'s JsonSchema,
    new: &'s JsonSchema,
    /// Pairs that are being compared, or were found to be safe: a schema may lead back to itself.
    safe: HashSet<(NodeId, NodeId)>,
    /// The same pairs, in the order in which they came.
    order: Vec<(NodeId, NodeId)>,
    n_steps: usize,
    depth: usize,
    /// Path to the value.
    at: Vec<String>,
    told: Vec<String>,
}

impl<'s> Comparison<'s> {
    /// Tells the differences that are not safe if values of the new schema take the place of the old one's.
    fn pair(&mut self, old: NodeId, new: NodeId) {
        if self.told.len() > TOLD_MAX || !self.safe.insert((old, new)) {
            return;
        }
        self.order.push((old, new));
        if !self.step(1) {
            return;
        }
        self.depth += 1;
        self.pair_within(old, new);
        self.depth -= 1;
    }

    fn pair_within(&mut self, old: NodeId, new: NodeId) {
        let more = self.new.kinds(new).without(self.old.kinds(old));
        if more != Kinds::NONE {
            return self.tell(format!("it may be of the kind {more} now"));
        }
        let before = self.old.node(old);
        if let Err(told) = self.trial(|this| this.demands(before, this.new.node(new)))
            && !self.parts_demand(before, new)
        {
            self.told.extend(told);
        }
        for part in &before.all_of {
            self.pair(*part, new);
        }
        for choice in [&before.any_of, &before.one_of] {
            if !choice.is_empty() && !self.is_one_of(choice, new) {
                self.tell("it may be something else now than it was one of");
            }
        }
    }

    /// Returns true if each value that the new schema allows is allowed by one of these.
    fn is_one_of(&mut self, olds: &[NodeId], new: NodeId) -> bool {
        let is_safe = |this: &mut Self, old| this.trial(|this| this.pair(old, new)).is_ok();
        olds.iter().any(|old| is_safe(self, *old))
            || self.parts_are(new, |this, part| this.is_one_of(olds, part))
    }

    /// Returns true if each choice of the new schema, or one of the schemas that hold at once, demands as much as
    /// the old one.
    fn parts_demand(&mut self, before: &Node, new: NodeId) -> bool {
        self.parts_are(new, |this, part| {
            let demands = this.trial(|this| this.demands(before, this.new.node(part)));
            demands.is_ok() || this.parts_demand(before, part)
        })
    }

    fn parts_are(&mut self, new: NodeId, mut are: impl FnMut(&mut Self, NodeId) -> bool) -> bool {
        if !self.step(1) {
            return false;
        }
        self.depth += 1;
        let after = self.new.node(new);
        let choices = [&after.any_of, &after.one_of].into_iter();
        let mut choices = choices.filter(|choice| !choice.is_empty());
        let all_are = choices.any(|choice| choice.iter().all(|part| are(self, *part)))
            || after.all_of.iter().any(|part| are(self, *part));
        self.depth -= 1;
        all_are
    }

    /// Counts steps. Returns true if there is room for more work.
    fn step(&mut self, n: usize) -> bool {
        self.n_steps = self.n_steps.saturating_add(n);
        if self.depth > DEPTH_MAX {
            self.n_steps = usize::MAX;
        }
        !self.is_too_much()
    }

    /// Returns true if the steps are used up. Then nothing counts as safe any more.
    fn is_too_much(&self) -> bool {
        self.n_steps > STEPS_MAX
    }

    /// Returns the differences that a comparison tells. If there are any, the pairs that it found safe on the way
    /// are forgotten, because they may hold for nothing.
    fn trial(&mut self, look: impl FnOnce(&mut Self)) -> Result<(), Vec<String>> {
        let (n_told, n_safe) = (self.told.len(), self.order.len());
        look(self);
        if self.told.len() == n_told && !self.is_too_much() {
            return Ok(());
        }
        for pair in self.order.drain(n_safe..) {
            self.safe.remove(&pair);
        }
        Err(self.told.split_off(n_told))
    }

    fn demands(&mut self, before: &Node, after: &Node) {
        let n_parts = before.n_parts() + after.n_parts();
        if !self.step(1 + n_parts / PARTS_PER_STEP) {
            return;
        }
        self.values(before, after);
        if after.kinds & Kinds::NUMBER != Kinds::NONE {
            self.numbers(before, after);
        }
        self.counts(before, after);
        let pattern = |node: &Node| node.pattern.as_ref().map(|p| p.as_str().to_owned());
        if after.kinds.has(Kinds::STRING) {
            self.kept("pattern", pattern(before), pattern(after));
        }
        if after.kinds & (Kinds::NUMBER | Kinds::STRING) != Kinds::NONE {
            self.kept("format", before.format.clone(), after.format.clone());
        }
        if before.unique && !after.unique && after.kinds.has(Kinds::ARRAY) {
            self.tell("it may have elements twice now");
        }
        self.elements(before, after);
        self.properties(before, after);
    }

    fn numbers(&mut self, before: &Node, after: &Node) {
        let is_less = |old: &Number, new: &Number| {
            matches!(order(old, new), Some(Ordering::Less | Ordering::Equal))
        };
        let is_more = |old: &Number, new: &Number| {
            matches!(order(old, new), Some(Ordering::Greater | Ordering::Equal))
        };
        for (old, new) in [
            (&before.number, &after.number),
            (&before.exclusive, &after.exclusive),
        ] {
            self.bound(&old.least, &new.least, is_less, "it may be less than", "");
            self.bound(&old.most, &new.most, is_more, "it may be more than", "");
        }
    }

    fn counts(&mut self, before: &Node, after: &Node) {
        let at_least = |old: &u64, new: &u64| old <= new;
        let at_most = |old: &u64, new: &u64| old >= new;
        for (kind, old, new, what) in [
            (Kinds::STRING, &before.length, &after.length, " characters"),
            (
                Kinds::ARRAY,
                &before.n_elements,
                &after.n_elements,
                " elements",
            ),
            (
                Kinds::OBJECT,
                &before.n_properties,
                &after.n_properties,
                " properties",
            ),
        ] {
            if after.kinds.has(kind) {
                let (least, most) = ("it may have fewer than", "it may have more than");
                self.bound(&old.least, &new.least, at_least, least, what);
                self.bound(&old.most, &new.most, at_most, most, what);
            }
        }
    }

    fn values(&mut self, before: &Node, after: &Node) {
        let Some(old) = &before.values else { return };
        match &after.values {
            None => self.tell(format!("it may be something else now than {}", old.text)),
            Some(new) => {
                if !self.step(old.list.len() * new.n_bytes / BYTES_PER_STEP) {
                    return;
                }
                let is_old = |value: &&Value| old.list.iter().any(|old| is_same(old, value));
                let more: Vec<Value> = new.list.iter().filter(|v| !is_old(v)).cloned().collect();
                if !more.is_empty() {
                    self.tell(format!("it may be {} now", listed(&more)));
                }
            }
        }
    }

    fn bound<T: fmt::Display>(
        &mut self,
        old: &Option<T>,
        new: &Option<T>,
        holds: impl Fn(&T, &T) -> bool,
        is: &str,
        what: &str,
    ) {
        if let Some(old) = old
            && !new.as_ref().is_some_and(|new| holds(old, new))
        {
            self.tell(format!("{is} {old}{what} now"));
        }
    }

    fn kept(&mut self, what: &str, old: Option<String>, new: Option<String>) {
        if let Some(old) = old
            && new.as_ref() != Some(&old)
        {
            let new = new.map_or("none".to_owned(), |new| format!("{:?}", shown(&new)));
            self.tell(format!("its {what} was {:?} and is {new} now", shown(&old)));
        }
    }

    fn elements(&mut self, before: &Node, after: &Node) {
        if !after.kinds.has(Kinds::ARRAY) {
            return;
        }
        let n = before.prefix.len().max(after.prefix.len());
        for place in 0..=n {
            let of = |node: &Node| node.prefix.get(place).copied().or(node.elements);
            let name = if place == n {
                "-".to_owned()
            } else {
                place.to_string()
            };
            self.part(&name, of(before), of(after));
        }
    }

    fn properties(&mut self, before: &Node, after: &Node) {
        if !after.kinds.has(Kinds::OBJECT) {
            return;
        }
        for (name, old) in &before.properties {
            match after.properties.get(name) {
                None => self.tell(format!("{:?} is gone", shown(name))),
                new => self.part(name, Some(*old), new.copied()),
            }
        }
        for name in &before.required {
            let is_gone =
                before.properties.contains_key(name) && !after.properties.contains_key(name);
            if !is_gone && after.required.binary_search(name).is_err() {
                self.tell(format!("{:?} may be missing now", shown(name)));
            }
        }
        // Names without a property in the old schema fall under its patterns and its others.
        let is_open = before.others.is_none() && before.by_pattern.is_empty();
        if is_open {
            return;
        }
        let patterns = |node: &Node| -> Vec<String> {
            node.by_pattern
                .iter()
                .map(|(p, _)| p.as_str().to_owned())
                .collect()
        };
        if patterns(before) != patterns(after) {
            return self.tell("the patterns of its properties are others now");
        }
        let pairs: Vec<_> = before.by_pattern.iter().zip(&after.by_pattern).collect();
        for ((pattern, old), (_, new)) in pairs {
            self.part(pattern.as_str(), Some(*old), Some(*new));
        }
        for (name, new) in &after.properties {
            if !before.properties.contains_key(name) {
                self.part(name, before.others, Some(*new));
            }
        }
        self.part("*", before.others, after.others);
    }

    /// Compares a value inside of this one. `None` stands for any value.
    fn part(&mut self, name: &str, old: Option<NodeId>, new: Option<NodeId>) {
        self.at.push(shown(&escaped(name)).into_owned());
        match (old, new) {
            (None, _) => {}
            (Some(old), Some(new)) => self.pair(old, new),
            (Some(old), None) if self.old.is_any(old) => {}
            (Some(_), None) => self.tell("it may be anything now"),
        }
        self.at.pop();
    }

    fn tell(&mut self, what: impl Into<String>) {
        if self.told.len() > TOLD_MAX {
            return;
        }
        let what = what.into();
        let at: String = self
            .at
            .iter()
            .map(|part| format!("/{}", part.escape_debug()))
            .collect();
        self.told.push(match at.is_empty() {
            true => what,
            false => format!("{at}: {what}"),
        });
    }
}

impl JsonSchema {
    /// Returns true if the schema demands nothing, as far as that is seen without following it.
    fn is_any(&self, id: NodeId) -> bool {
        let node = self.node(id);
        let demands_no_number =
            node.number == Bounds::default() && node.exclusive == Bounds::default();
        node.kinds == Kinds::ALL
            && node.values.is_none()
            && demands_no_number
            && node.length == Bounds::default()
            && node.pattern.is_none()
            && node.format.is_none()
            && node.prefix.is_empty()
            && node.elements.is_none()
            && node.n_elements == Bounds::default()
            && !node.unique
            && node.properties.is_empty()
            && node.required.is_empty()
            && node.by_pattern.is_empty()
            && node.others.is_none()
            && node.n_properties == Bounds::default()
            && node.beside().next().is_none()
    }
}
