//! Check of one item against a schema, as it is written: only the part that is looked at is kept.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use super::json::{Text, each_element, each_property, is_same, kind_of, order};
use super::read::escaped;
use super::*;

/// Largest depth of schemas and values together, which bounds the stack that a call of a rule may take.
const DEPTH_MAX: usize = 256;
/// Cost of looking at a value, in addition to its bytes.
const PER_VALUE: u64 = 64;
/// Largest number of elements of an array that have to be unique.
const UNIQUE_MAX: usize = 1 << 16;
/// Largest number of bytes of a value that is compared with others, which are parts of a schema.
const COMPARED_MAX: usize = 512 << 10;
/// Number of characters of a value that an error shows.
const SHOWN: usize = 60;

/// Reason why an item is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A value differs from the schema.
    #[error("{}{why}", place(at))]
    Fault {
        /// Names and numbers on the way to the value, the last one first.
        at: Vec<String>,
        /// Fault of the value.
        why: String,
    },
    /// The budget was used up.
    #[error("looking for what it has to be took too much")]
    OverBudget,
}

fn place(at: &[String]) -> String {
    if at.is_empty() {
        return String::new();
    }
    let parts = at.iter().rev();
    let parts = parts.map(|part| format!("/{}", escaped(part).escape_debug()));
    format!("at {}: ", parts.collect::<String>())
}

fn fault(why: impl Into<String>) -> Unfit {
    let (at, why) = (Vec::new(), why.into());
    Unfit::Fault { at, why }
}

impl From<serde_json::Error> for Unfit {
    fn from(error: serde_json::Error) -> Self {
        fault(error.to_string())
    }
}

impl Unfit {
    /// Returns the fault as seen from the value around this one.
    fn within(mut self, part: &dyn fmt::Display) -> Self {
        if let Unfit::Fault { at, .. } = &mut self {
            at.push(part.to_string());
        }
        self
    }
}

impl JsonSchema {
    /// Checks that an item fits. An item is JSON that is nested no deeper than serde_json follows. The bytes that
    /// are looked at are taken from the budget, each as often as it is looked at.
    ///
    /// # Errors
    ///
    /// Returns the first difference from the schema, or that the budget is used up.
    pub fn check(&self, item: &str, budget: &mut u64) -> Result<(), Unfit> {
        let mut checker = Checker {
            schema: self,
            budget,
        };
        checker.value(self.root, item.trim(), 0)
    }
}

/// Reasons why none of several schemas fits, as far as they are for values of this kind.
#[derive(Default)]
struct Faults {
    n_meant: usize,
    first: Option<Unfit>,
}

impl Faults {
    /// Returns the fault. If the kind of the value leaves one choice, it is the fault of that one.
    fn of(self, n: usize, raw: &str) -> Unfit {
        match self.first {
            Some(fault) if self.n_meant == 1 => fault,
            _ => fault(format!(
                "{} fits none of the {n} that it may be",
                shown(raw)
            )),
        }
    }
}

struct Checker<'s, 'b> {
    schema: &'s JsonSchema,
    budget: &'b mut u64,
}

impl Checker<'_, '_> {
    fn spend(&mut self, cost: u64) -> Result<(), Unfit> {
        *self.budget = self.budget.checked_sub(cost).ok_or(Unfit::OverBudget)?;
        Ok(())
    }

    fn value(&mut self, id: NodeId, raw: &str, depth: usize) -> Result<(), Unfit> {
        self.spend(raw.len() as u64 + PER_VALUE)?;
        if depth > DEPTH_MAX {
            let why =
                format!("schemas and values are nested deeper than {DEPTH_MAX} in each other");
            return Err(fault(why));
        }
        let node = self.schema.node(id);
        let kind = kind_of(raw);
        if !node.kinds.has(kind) {
            let shown = shown(raw);
            return Err(fault(format!("{shown} is not of the kind {}", node.kinds)));
        }
        if let Some(values) = &node.values {
            // Each value of the list may begin like this one.
            self.spend(values.n_bytes as u64)?;
            let value = Some(raw).filter(|raw| raw.len() <= COMPARED_MAX);
            let value = value.and_then(|raw| serde_json::from_str::<Value>(raw).ok());
            if !value.is_some_and(|value| values.list.iter().any(|v| is_same(v, &value))) {
                return Err(fault(format!("{} is none of {}", shown(raw), values.text)));
            }
        }
        match kind {
            Kinds::INTEGER | Kinds::FRACTION => check_number(node, raw)?,
            Kinds::STRING => self.text(node, raw)?,
            Kinds::ARRAY => self.array(node, raw, depth)?,
            Kinds::OBJECT => self.object(node, raw, depth)?,
            _ => {}
        }
        for id in &node.all_of {
            self.value(*id, raw, depth + 1)?;
        }
        self.any(&node.any_of, raw, kind, depth)?;
        self.one(&node.one_of, raw, kind, depth)
    }

    fn any(&mut self, ids: &[NodeId], raw: &str, kind: Kinds, depth: usize) -> Result<(), Unfit> {
        let mut faults = Faults::default();
        for id in ids {
            if self.fits(*id, raw, kind, depth, &mut faults)? {
                return Ok(());
            }
        }
        match ids {
            [] => Ok(()),
            ids => Err(faults.of(ids.len(), raw)),
        }
    }

    fn one(&mut self, ids: &[NodeId], raw: &str, kind: Kinds, depth: usize) -> Result<(), Unfit> {
        let (mut n_fit, mut faults) = (0, Faults::default());
        for id in ids {
            n_fit += usize::from(self.fits(*id, raw, kind, depth, &mut faults)?);
        }
        match (n_fit, ids.len()) {
            (1, _) | (0, 0) => Ok(()),
            (0, n) => Err(faults.of(n, raw)),
            (n, _) => {
                let shown = shown(raw);
                Err(fault(format!("{shown} fits {n} of what it may be one of")))
            }
        }
    }

    /// Returns true if one of several schemas fits.
    fn fits(
        &mut self,
        id: NodeId,
        raw: &str,
        kind: Kinds,
        depth: usize,
        faults: &mut Faults,
    ) -> Result<bool, Unfit> {
        match self.value(id, raw, depth + 1) {
            Ok(()) => Ok(true),
            Err(Unfit::OverBudget) => Err(Unfit::OverBudget),
            Err(fault) => {
                if self.schema.kinds(id).has(kind) {
                    faults.n_meant += 1;
                    faults.first.get_or_insert(fault);
                }
                Ok(false)
            }
        }
    }

    fn text(&mut self, node: &Node, raw: &str) -> Result<(), Unfit> {
        if node.pattern.is_none() && node.length == Bounds::default() {
            return Ok(());
        }
        let Text(text) = serde_json::from_str(raw)?;
        check_count(&node.length, text.chars().count() as u64, "characters")?;
        match &node.pattern {
            Some(pattern) if !self.matches(pattern, &text)? => {
                let pattern = shown(pattern.as_str());
                Err(fault(format!("{} does not match {pattern}", shown(raw))))
            }
            _ => Ok(()),
        }
    }

    fn matches(&mut self, pattern: &Pattern, text: &str) -> Result<bool, Unfit> {
        self.spend(pattern.work(text).saturating_add(PER_VALUE))?;
        Ok(pattern.is_match(text))
    }

    fn array(&mut self, node: &Node, raw: &str, depth: usize) -> Result<(), Unfit> {
        let is_counted = node.n_elements != Bounds::default();
        if !is_counted && !node.unique && node.prefix.is_empty() && node.elements.is_none() {
            return Ok(());
        }
        let (mut n, mut all) = (0_usize, Vec::new());
        each_element(raw, |element| {
            let schema = node.prefix.get(n).copied().or(node.elements);
            if let Some(id) = schema {
                let fits = self.value(id, element, depth + 1);
                fits.map_err(|fault| fault.within(&n))?;
            }
            if node.unique {
                if all.len() == UNIQUE_MAX {
                    let why = format!(
                        "it has more elements than {UNIQUE_MAX}, which are not compared with each other"
                    );
                    return Err(fault(why));
                }
                self.spend(PER_VALUE)?;
                all.push(element);
            }
            n += 1;
            Ok(())
        })?;
        let n = n as u64;
        check_count(&node.n_elements, n, "elements")?;
        all.sort_unstable();
        match all.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(fault(format!("{} is in it twice", shown(pair[0])))),
            None => Ok(()),
        }
    }

    fn object(&mut self, node: &Node, raw: &str, depth: usize) -> Result<(), Unfit> {
        let has_schemas = !node.properties.is_empty() || !node.by_pattern.is_empty();
        let is_counted = node.n_properties != Bounds::default() || !node.required.is_empty();
        if !has_schemas && !is_counted && node.others.is_none() {
            return Ok(());
        }
        let (mut n, mut is_there) = (0_u64, vec![false; node.required.len()]);
        each_property(raw, |name, value| {
            n += 1;
            if let Ok(place) = node.required.binary_search_by(|known| (**known).cmp(name)) {
                is_there[place] = true;
            }
            let named = node.properties.get(name);
            let mut is_known = named.is_some();
            let mut fits = named.map_or(Ok(()), |id| self.value(*id, value, depth + 1));
            for (pattern, id) in &node.by_pattern {
                if fits.is_ok() && self.matches(pattern, name)? {
                    is_known = true;
                    fits = self.value(*id, value, depth + 1);
                }
            }
            if let (false, Some(id)) = (is_known, node.others) {
                fits = match self.schema.node(id).kinds {
                    Kinds::NONE => Err(fault(
                        "the schema has no such property, and no others than it has",
                    )),
                    _ => self.value(id, value, depth + 1),
                };
            }
            fits.map_err(|fault| fault.within(&shown(name)))
        })?;
        if let Some(missing) = is_there.iter().position(|is_there| !is_there) {
            let name = shown(&node.required[missing]);
            return Err(fault(format!("it has no {name:?}")));
        }
        check_count(&node.n_properties, n, "properties")
    }
}

fn check_number(node: &Node, raw: &str) -> Result<(), Unfit> {
    let (least, most) = (&node.number.least, &node.number.most);
    let (above, below) = (&node.exclusive.least, &node.exclusive.most);
    if [least, most, above, below]
        .iter()
        .all(|bound| bound.is_none())
    {
        return Ok(());
    }
    let number: Number = serde_json::from_str(raw)?;
    let misses = |bound: &Option<Number>, allowed: &[Ordering]| {
        let bound = bound.as_ref()?;
        let fits = order(&number, bound).is_some_and(|order| allowed.contains(&order));
        (!fits).then(|| bound.clone())
    };
    use Ordering::{Equal, Greater, Less};
    if let Some(bound) = misses(least, &[Equal, Greater]) {
        return Err(fault(format!("{number} is less than {bound}")));
    }
    if let Some(bound) = misses(most, &[Equal, Less]) {
        return Err(fault(format!("{number} is more than {bound}")));
    }
    if let Some(bound) = misses(above, &[Greater]) {
        return Err(fault(format!("{number} is not more than {bound}")));
    }
    if let Some(bound) = misses(below, &[Less]) {
        return Err(fault(format!("{number} is not less than {bound}")));
    }
    Ok(())
}

fn check_count(bounds: &Bounds<u64>, n: u64, what: &str) -> Result<(), Unfit> {
    match bounds {
        Bounds {
            least: Some(least), ..
        } if n < *least => Err(fault(format!("it has {n} {what}, fewer than {least}"))),
        Bounds {
            most: Some(most), ..
        } if n > *most => Err(fault(format!("it has {n} {what}, more than {most}"))),
        _ => Ok(()),
    }
}

/// Returns the beginning of a value, as it is written.
pub(super) fn shown(raw: &str) -> Cow<'_, str> {
    match raw.char_indices().nth(SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}…", &raw[..end])),
        None => Cow::Borrowed(raw),
    }
}

pub(super) fn listed(values: &[Value]) -> String {
    const MAX: usize = 8;
    let some = values
        .iter()
        .take(MAX)
        .map(|value| shown(&value.to_string()).into_owned());
    let more = if values.len() > MAX { ", …" } else { "" };
    format!("{}{more}", some.collect::<Vec<_>>().join(", "))
}
