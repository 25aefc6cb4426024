//! Plans as the engine uses them: checked, with parsed selectors, equal ones shared.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::error::clipped;
use super::{Field, Mistake, Plan, PlanError, PlanLimits, Take};
use crate::selector::{self, Alternative, Program, SelectorFault};

/// A plan that is ready to read many pages, by many threads at once.
#[derive(Debug, Clone)]
pub struct CompiledPlan {
    plan: Plan,
    program: Program,
    n_conditions: usize,
    rows: Vec<RowWatch>,
    watches: Vec<Watch>,
    is_kept: Vec<bool>,
    /// Segment that the values of each field go to. Presence has no values.
    segments: Vec<Option<usize>>,
    /// Index of the attribute that each field takes.
    attributes: Vec<Option<usize>>,
}

/// Selector that begins the rows of a group.
#[derive(Debug, Clone)]
pub(crate) struct RowWatch {
    /// Index of the selector.
    pub(crate) selector: usize,
    /// True if anything asks which row it lies in; otherwise the ends of rows do not matter.
    pub(crate) is_asked_for: bool,
}

/// One selector in one group, and the fields that read the elements it matches.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    /// Index of the selector.
    pub(crate) selector: usize,
    pub(crate) group: Option<usize>,
    /// True if it is about the element of the row itself, not about elements inside of rows.
    pub(crate) is_row: bool,
    /// Indices of the fields, in order.
    pub(crate) fields: Vec<usize>,
    /// Segment that folded text goes to, if a field takes it.
    pub(crate) folded: Option<usize>,
    /// Segment that text as written goes to, if a field takes it.
    pub(crate) raw: Option<usize>,
}

impl CompiledPlan {
    /// Checks and compiles a plan. The plan is not trusted: all of it is bounded before it is parsed.
    pub fn new(plan: &Plan, limits: &PlanLimits) -> Result<Self, PlanError> {
        let mut compiler = Compiler {
            plan,
            limits: limits.bounded(),
            known: HashMap::new(),
            counted: HashSet::new(),
            n_steps: 0,
            compiled: Self {
                plan: plan.clone(),
                program: Program::default(),
                n_conditions: 0,
                rows: Vec::new(),
                watches: Vec::new(),
                is_kept: Vec::new(),
                segments: Vec::new(),
                attributes: Vec::new(),
            },
        };
        compiler.sizes()?;
        compiler.names()?;
        let lists = compiler.groups()?;
        compiler.fields(&lists)?;
        Ok(compiler.compiled)
    }

    /// Plan as it was declared.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Program that matches elements.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Largest cost of one byte of a page: conditions that are checked, and values that take it.
    pub fn work(&self) -> usize {
        1 + self.n_conditions + self.watches.len()
    }

    /// Watch of the rows of each group.
    pub(crate) fn rows(&self) -> &[RowWatch] {
        &self.rows
    }

    pub(crate) fn watches(&self) -> &[Watch] {
        &self.watches
    }

    /// True for each segment that a kept field reads from.
    pub(crate) fn is_kept(&self) -> &[bool] {
        &self.is_kept
    }

    pub(crate) fn segment(&self, field: usize) -> Option<usize> {
        self.segments.get(field).copied().flatten()
    }

    /// Index of the program's attribute that a field takes.
    pub(crate) fn attribute(&self, field: usize) -> Option<usize> {
        self.attributes.get(field).copied().flatten()
    }
}

struct Compiler<'a> {
    plan: &'a Plan,
    limits: PlanLimits,
    /// Composed selectors that have an index already.
    known: HashMap<Vec<Alternative>, usize>,
    /// Alternatives that are counted already.
    counted: HashSet<Alternative>,
    n_steps: usize,
    compiled: CompiledPlan,
}

impl Compiler<'_> {
    fn sizes(&self) -> Result<(), PlanError> {
        let Plan {
            name,
            groups,
            fields,
        } = self.plan;
        self.bounded(self.at(None), "groups", groups.len(), self.limits.n_groups)?;
        self.bounded(self.at(None), "fields", fields.len(), self.limits.n_fields)?;
        let of_groups: usize = groups.iter().map(|g| g.name.len() + g.selector.len()).sum();
        let of_fields: usize = fields.iter().map(Field::n_bytes).sum();
        let n = name.len() + of_groups + of_fields;
        self.bounded(
            self.at(None),
            "bytes of names and selectors",
            n,
            self.limits.plan_bytes,
        )
    }

    fn names(&self) -> Result<(), PlanError> {
        let Plan {
            name,
            groups,
            fields,
        } = self.plan;
        self.name(self.at(None), name)?;
        let mut names = BTreeSet::new();
        for (i, group) in groups.iter().enumerate() {
            self.name(self.at_group(i), &group.name)?;
            if !names.insert(group.name.as_str()) {
                return Err(mistake(
                    self.at_group(i),
                    Mistake::NameTwice { kind: "group" },
                ));
            }
        }
        names.clear();
        for (i, field) in fields.iter().enumerate() {
            self.name(self.at_field(i), &field.name)?;
            if !names.insert(field.name.as_str()) {
                return Err(mistake(
                    self.at_field(i),
                    Mistake::NameTwice { kind: "field" },
                ));
            }
        }
        Ok(())
    }

    fn name(&self, at: String, name: &str) -> Result<(), PlanError> {
        let limit = self.limits.name_bytes;
        let fault = match name.len() {
            0 => Mistake::NoName,
            n if n > limit => Mistake::LongName { n, limit },
            _ if name.chars().any(char::is_control) => Mistake::ControlInName,
            _ => return Ok(()),
        };
        Err(mistake(at, fault))
    }

    /// Returns the composed selector of each group.
    fn groups(&mut self) -> Result<Vec<Vec<Alternative>>, PlanError> {
        let mut lists: Vec<Vec<Alternative>> = Vec::new();
        for (i, group) in self.plan.groups.iter().enumerate() {
            let at = self.at_group(i);
            let n_groups = self.plan.groups.len();
            let row = match group.parent {
                Some(group) if group as usize >= n_groups => {
                    return Err(mistake(at, Mistake::NoSuchGroup { group, n_groups }));
                }
                Some(parent) if parent as usize >= i => {
                    return Err(mistake(at, Mistake::LaterParent { parent }));
                }
                Some(parent) => {
                    self.compiled.rows[parent as usize].is_asked_for = true;
                    Some(lists[parent as usize].as_slice())
                }
                None => None,
            };
            let (list, selector) = self.selector(&at, &group.selector, row)?;
            lists.push(list);
            self.compiled.rows.push(RowWatch {
                selector,
                is_asked_for: false,
            });
        }
        Ok(lists)
    }

    fn fields(&mut self, lists: &[Vec<Alternative>]) -> Result<(), PlanError> {
        let mut known: BTreeMap<(usize, Option<usize>, bool), usize> = BTreeMap::new();
        for (i, field) in self.plan.fields.iter().enumerate() {
            let at = self.at_field(i);
            let group = match field.group {
                Some(group) if group as usize >= lists.len() => {
                    let n_groups = lists.len();
                    return Err(mistake(at, Mistake::NoSuchGroup { group, n_groups }));
                }
                group => group.map(|g| g as usize),
            };
            let attribute = match &field.take {
                Take::Attr(name) => Some(self.attribute(&at, name)?),
                _ => None,
            };
            self.compiled.attributes.push(attribute);
            let is_row = field.selector.trim_ascii().is_empty();
            let selector = match (group, is_row) {
                (None, true) => return Err(mistake(at, Mistake::NothingToRead)),
                (Some(group), true) => self.compiled.rows[group].selector,
                (_, false) => {
                    let row = group.map(|g| lists[g].as_slice());
                    self.selector(&at, &field.selector, row)?.1
                }
            };
            if let (Some(group), false) = (group, is_row) {
                self.compiled.rows[group].is_asked_for = true;
            }
            let watches = &mut self.compiled.watches;
            let watch = *known
                .entry((selector, group, is_row))
                .or_insert(watches.len());
            if watch == watches.len() {
                watches.push(Watch {
                    selector,
                    group,
                    is_row,
                    fields: Vec::new(),
                    folded: None,
                    raw: None,
                });
            }
            let segment = self.compiled.place(watch, field);
            self.compiled.watches[watch].fields.push(i);
            self.compiled.segments.push(segment);
        }
        Ok(())
    }

    fn attribute(&mut self, at: &str, name: &str) -> Result<usize, PlanError> {
        let (n, limit) = (name.len(), self.limits.name_bytes);
        let cannot_be =
            |c: char| c.is_ascii_whitespace() || c.is_control() || matches!(c, '/' | '>' | '=');
        if n > limit {
            return Err(mistake(at.to_owned(), Mistake::LongName { n, limit }));
        }
        if name.is_empty() || name.contains(cannot_be) {
            let name = clipped(name);
            return Err(mistake(at.to_owned(), Mistake::AttributeName { name }));
        }
        Ok(self.compiled.program.attribute(name))
    }

    /// Reads, composes and counts a selector. Returns its alternatives and its index.
    fn selector(
        &mut self,
        at: &str,
        text: &str,
        row: Option<&[Alternative]>,
    ) -> Result<(Vec<Alternative>, usize), PlanError> {
        let refused = |fault| PlanError::Selector {
            at: at.to_owned(),
            selector: clipped(text),
            fault,
        };
        let limits = self.limits.clone();
        let own = selector::read(text, limits.selector_bytes, limits.nesting).map_err(refused)?;
        let list = match row {
            None if own.iter().any(|a| a.is_child) => return Err(refused(SelectorFault::NoRow)),
            None => Some(own),
            Some(row) => selector::compose(row, &own, limits.n_selectors),
        };
        let too_many = |n| PlanError::TooLarge {
            at: at.to_owned(),
            what: "selectors, parts of comma lists counted one by one and multiplied with those of rows",
            n,
            limit: limits.n_selectors,
        };
        let Some(list) = list else {
            return Err(too_many(limits.n_selectors + 1));
        };
        for alternative in &list {
            if self.counted.insert(alternative.clone()) {
                self.n_steps += alternative.steps.len();
                self.compiled.n_conditions += alternative.n_conditions();
            }
        }
        if self.counted.len() > limits.n_selectors {
            return Err(too_many(self.counted.len()));
        }
        let steps = "steps of selectors, those of rows counted again in each that begins with `>`";
        self.bounded(at.to_owned(), steps, self.n_steps, limits.n_steps)?;
        let conditions = "conditions of selectors, as `a.b[c]` has three";
        let n_conditions = self.compiled.n_conditions;
        self.bounded(at.to_owned(), conditions, n_conditions, limits.n_conditions)?;
        if let Some(index) = self.known.get(&list) {
            return Ok((list, *index));
        }
        let index = self.compiled.program.add(&list);
        self.known.insert(list.clone(), index);
        Ok((list, index))
    }

    fn bounded(
        &self,
        at: String,
        what: &'static str,
        n: usize,
        limit: usize,
    ) -> Result<(), PlanError> {
        if n > limit {
            return Err(PlanError::TooLarge { at, what, n, limit });
        }
        Ok(())
    }

    fn at_group(&self, i: usize) -> String {
        self.at(Some(("group", i, &self.plan.groups[i].name)))
    }

    fn at_field(&self, i: usize) -> String {
        self.at(Some(("field", i, &self.plan.fields[i].name)))
    }

    /// Describes a place for messages. Parts without a name are numbered.
    fn at(&self, part: Option<(&str, usize, &str)>) -> String {
        let plan = format!("plan {:?}", clipped(&self.plan.name));
        match part {
            None => plan,
            Some((kind, i, "")) => format!("{plan}, {kind} {i}"),
            Some((kind, _, name)) => format!("{plan}, {kind} {:?}", clipped(name)),
        }
    }
}

impl CompiledPlan {
    /// Returns the segment for the values of a field. Text of one watch is the same for all its fields.
    fn place(&mut self, watch: usize, field: &Field) -> Option<usize> {
        let is_kept = &mut self.is_kept;
        let mut fresh = || {
            is_kept.push(false);
            is_kept.len() - 1
        };
        let segment = match field.take {
            Take::Text => *self.watches[watch].folded.get_or_insert_with(fresh),
            Take::TextRaw => *self.watches[watch].raw.get_or_insert_with(fresh),
            Take::Inner | Take::Attr(_) | Take::Tag => fresh(),
            Take::Present => return None,
        };
        self.is_kept[segment] |= field.keep;
        Some(segment)
    }
}

impl Field {
    fn n_bytes(&self) -> usize {
        let of_take = match &self.take {
            Take::Attr(name) => name.len(),
            Take::Text | Take::TextRaw | Take::Inner | Take::Present | Take::Tag => 0,
        };
        self.name.len() + self.selector.len() + of_take
    }
}

fn mistake(at: String, mistake: Mistake) -> PlanError {
    PlanError::Mistake { at, mistake }
}

#[cfg(test)]
mod tests;
