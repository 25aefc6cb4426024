//! Plans: declarations of the data that a rule reads from pages, made before there is a page.

use serde::{Deserialize, Serialize};

use crate::selector::{BYTES_MAX, NESTING_MAX};

mod compile;
mod error;

pub use compile::CompiledPlan;
pub(crate) use compile::Watch;
pub use error::{Mistake, PlanError};

/// Declaration of the data to read from a page.
///
/// Groups give rows, fields give values, and each value says which row it lies in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the plan, for messages.
    pub name: String,
    /// Kinds of rows.
    pub groups: Vec<Group>,
    /// Kinds of values.
    pub fields: Vec<Field>,
}

/// A kind of rows: each element that the selector matches is a row.
///
/// A group with a parent has rows only inside of that group's rows. Rows of one group may be nested; elements
/// inside belong to the innermost row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Name, different from those of the plan's other groups.
    pub name: String,
    /// Index of a group that comes earlier in the plan.
    pub parent: Option<u32>,
    /// CSS selector, matched against the whole page. If it begins with `>`, it means a child of the parent's row;
    /// each part of a comma list is read so for itself. In several steps, as in `> a b`, the first may also be the
    /// child of an element that the parent's selector matches without being a row, because it lies in no row of
    /// the group around.
    pub selector: String,
}

/// A kind of values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Name, different from those of the plan's other fields.
    pub name: String,
    /// Index of the group in whose rows the field is looked for. If `None`, in the whole page.
    pub group: Option<u32>,
    /// CSS selector, as of a group. If it is empty, it means the element of the row itself.
    pub selector: String,
    /// Part of the element that is read.
    pub take: Take,
    /// True if only the first capture is taken in each row, or in the page if there is no group.
    pub first: bool,
    /// False if guests do not need the field, because it is only followed. See [`crate::Captures::n_kept`].
    pub keep: bool,
}

/// Part of an element that is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Take {
    /// Text of the element and of all it contains. Runs of white space count as one space, ends are trimmed,
    /// `<br>` counts as white space, and a non-breaking space does not. Other tags separate nothing, as in a
    /// document tree. Scripts, style sheets and content that only shows without scripting are left out.
    Text,
    /// The same text with all white space as it was written; `<br>` adds nothing.
    TextRaw,
    /// The page between the start tag and the end tag, as it was written, entities included. The text of a script,
    /// such as JSON-LD, is read so.
    Inner,
    /// Value of this attribute, decoded. An element that does not have it is not captured.
    Attr(String),
    /// Presence of the element: an empty capture.
    Present,
    /// Name of the element, in lower case even if the standard has capitals, as in `foreignObject`.
    Tag,
}

/// Limits of the size of a plan. All of them are checked before any selector is parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLimits {
    /// Number of different selectors. Each part of a comma list counts, after those that begin with `>` were
    /// multiplied out. Each costs time on every page. At most 200, whatever is set.
    pub n_selectors: usize,
    /// Steps of all these together: `a b > c` has three. At most 512, whatever is set.
    pub n_steps: usize,
    /// Conditions of all these together: `a.b[c]` has three, also inside `:not()`. Each may be tried on all of a
    /// tag. At most 1 024, whatever is set.
    pub n_conditions: usize,
    /// Bytes of one selector as declared. At most 2 048, whatever is set.
    pub selector_bytes: usize,
    /// Depth to which parentheses may nest in a selector. At most 32, whatever is set.
    pub nesting: usize,
    /// Number of groups of a plan.
    pub n_groups: usize,
    /// Number of fields of a plan.
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
            selector_bytes: BYTES_MAX,
            nesting: NESTING_MAX,
            n_groups: 32,
            n_fields: 128,
            name_bytes: 64,
            plan_bytes: 64 << 10,
        }
    }
}

impl PlanLimits {
    /// Applies the bounds that no setting lifts. Reading and checking the content of parentheses recurses.
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
