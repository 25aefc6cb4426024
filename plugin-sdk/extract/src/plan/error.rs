//! Errors of plans: the place, the reason, and the way out.

use crate::selector::SelectorFault;

/// A plan that is refused. Each message names the plan and the group or field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A selector that is wrong, or that one pass over the page cannot match.
    #[error("{at}, selector {selector:?}: {fault}")]
    Selector {
        /// Place in the plan, such as `plan "news", field "title"`.
        at: String,
        /// Selector as declared, cut if it is very long.
        selector: String,
        /// Reason for the refusal, and the way out.
        fault: SelectorFault,
    },
    /// Parts that do not fit together.
    #[error("{at}: {mistake}")]
    Mistake {
        /// Place in the plan, such as `plan "news", field "title"`.
        at: String,
        /// Kind of mistake.
        mistake: Mistake,
    },
    /// A plan that is too large.
    #[error("{at}: {n} {what}, and {limit} is the limit; read less, or make two plans of it")]
    TooLarge {
        /// Place in the plan, such as `plan "news", field "title"`, or the plan alone.
        at: String,
        /// Kind of things that were counted.
        what: &'static str,
        /// Number found; there may be more.
        n: usize,
        /// Largest number allowed.
        limit: usize,
    },
}

/// Parts of a plan that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// An empty name.
    #[error("it has no name; give it one")]
    NoName,
    /// A name that is too long.
    #[error("its name has {n} bytes, and {limit} is the limit; shorten it")]
    LongName {
        /// Bytes of the name.
        n: usize,
        /// Largest number of bytes allowed.
        limit: usize,
    },
    /// A name that would garble messages.
    #[error("its name has a control character; use letters, digits, - and _")]
    ControlInName,
    /// Two groups or two fields with one name.
    #[error("another {kind} before it has this name; rename one of them")]
    NameTwice {
        /// Kind of the part: `group` or `field`.
        kind: &'static str,
    },
    /// An index beyond the groups.
    #[error(
        "it names group {group}, but the plan has {n_groups}, counted from 0; correct the index"
    )]
    NoSuchGroup {
        /// Index that was declared.
        group: u32,
        /// Number of groups of the plan.
        n_groups: usize,
    },
    /// A parent that is not earlier.
    #[error("its parent is group {parent}, which does not come before it; put parents first")]
    LaterParent {
        /// Index of the parent.
        parent: u32,
    },
    /// A field that has neither a selector nor a group.
    #[error("it has neither a selector nor a group whose row it could read; give it one of them")]
    NothingToRead,
    /// An attribute name that HTML cannot write.
    #[error(
        "no attribute can be called {name:?}; write its name alone, without spaces, /, > and ="
    )]
    AttributeName {
        /// Name as declared, cut if it is very long.
        name: String,
    },
}

/// Cuts a text so that a message stays readable.
pub(super) fn clipped(text: &str) -> String {
    const MOST: usize = 120;
    if text.len() <= MOST {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MOST)])
}
