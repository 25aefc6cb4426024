//! Plans: what a rule wants to read from pages, declared before there is a page.

use serde::{Deserialize, Serialize};

mod compile;
mod error;

pub use compile::CompiledPlan;
pub(crate) use compile::Watch;
pub use error::{Mistake, PlanError};

/// What is to be read from a page, as it was declared.
///
/// Groups give rows, fields give values, and each value says which row it lies in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// For messages.
    pub name: String,
    /// Kinds of rows.
    pub groups: Vec<Group>,
    /// Kinds of values.
    pub fields: Vec<Field>,
}

/// A kind of rows: each element that the selector matches is one.
///
/// A group with a parent has rows only inside of that group's rows. Rows of one group may lie in each other;
/// what is inside belongs to the innermost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Differs from the names of the plan's other groups.
    pub name: String,
    /// Index of a group that comes earlier in the plan.
    pub parent: Option<u32>,
    /// CSS, matched against the whole page. Where it begins with `>`, it is meant as a child of the
    /// parent's row; so does each part of a comma list for itself. Of several steps, as in `> a b`, the first may
    /// also be the child of an element that the parent's selector matches without being a row, because it lies in
    /// no row of the group around.
    pub selector: String,
}

/// A kind of values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Differs from the names of the plan's other fields.
    pub name: String,
    /// Index of the group in whose rows it is looked for. None: in the whole page.
    pub group: Option<u32>,
    /// As that of a group. Empty: the element of the row itself.
    pub selector: String,
    /// What of the element is read.
    pub take: Take,
    /// Only the first capture in each row, or in the page if there is no group.
    pub first: bool,
    /// False: a guest does not need it, because it is only followed. See [`crate::Captures::n_kept`].
    pub keep: bool,
}

/// What of an element is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Take {
    /// Its text and that of all it contains. Runs of white space count as one space, ends are trimmed, `<br>`
    /// counts as white space, and a non-breaking space does not. Other tags separate nothing, as in a
    /// document tree. Without scripts, style sheets and what only shows without scripting.
    Text,
    /// The same with all white space as it was written; `<br>` adds nothing.
    TextRaw,
    /// The page between the start tag and the end tag, as it was written, entities included. The text of a
    /// script, as JSON-LD, is read so.
    Inner,
    /// The value of this attribute, decoded. An element that does not have it is not captured.
    Attr(String),
    /// That it is there: an empty capture.
    Present,
    /// Its name, in lower case also where the standard has capitals, as in `foreignObject`.
    Tag,
}

/// How large a plan may be. All of it is checked before anything parses a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLimits {
    /// Different selectors, each part of a comma list counted, after those that begin with `>` were
    /// multiplied out. Each costs time on every page. At most 200, whatever is set.
    pub n_selectors: usize,
    /// Steps of all these together: `a b > c` has three. At most 512, whatever is set.
    pub n_steps: usize,
    /// Conditions of all these together: `a.b[c]` has three, also inside `:not()`. Each may be tried on all of a
    /// tag. At most 1 024, whatever is set.
    pub n_conditions: usize,
    /// Bytes of one selector as declared. At most 2 048, whatever is set.
    pub selector_bytes: usize,
    /// How deep parentheses may nest in a selector. At most 32, whatever is set.
    pub nesting: usize,
    /// Groups of a plan.
    pub n_groups: usize,
    /// Fields of a plan.
    pub n_fields: usize,
    /// Bytes of a name, and of an attribute's name.
    pub name_bytes: usize,
    /// Bytes of all names and selectors together.
    pub plan_bytes: usize,
}

impl Default for PlanLimits {
    fn default() -> Self {
        Self {
            n_selectors: 64,
            n_steps: 256,
            n_conditions: 512,
            selector_bytes: 512,
            nesting: 8,
            n_groups: 32,
            n_fields: 128,
            name_bytes: 64,
            plan_bytes: 64 << 10,
        }
    }
}

impl PlanLimits {
    /// With the bounds that no setting lifts. Reading and asking what is in parentheses recurses.
    fn bounded(&self) -> Self {
        Self {
            n_selectors: self.n_selectors.min(200),
            n_steps: self.n_steps.min(512),
            n_conditions: self.n_conditions.min(1_024),
            selector_bytes: self.selector_bytes.min(2_048),
            nesting: self.nesting.min(32),
            ..*self
        }
    }
}
