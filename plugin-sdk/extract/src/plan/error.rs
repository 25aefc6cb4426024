//! Why a plan is refused: where, what, and the way out.

use crate::selector::SelectorFault;

/// A plan that is refused. Each message names the plan and the group or field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A selector that is wrong, or that one pass over the page cannot match.
    #[error("{at}, selector {selector:?}: {fault}")]
    Selector {
        /// As `plan "news", field "title"`.
        at: String,
        /// As declared, cut if it is very long.
        selector: String,
        /// What is refused and the way out.
        fault: SelectorFault,
    },
    /// Parts that do not fit together.
    #[error("{at}: {mistake}")]
    Mistake {
        /// As `plan "news", field "title"`.
        at: String,
        /// What it is.
        mistake: Mistake,
    },
    /// A plan that is too large.
    #[error("{at}: {n} {what}, and {limit} is the limit; read less, or make two plans of it")]
    TooLarge {
        /// As `plan "news", field "title"`, or the plan alone.
        at: String,
        /// What was counted.
        what: &'static str,
        /// How many there are, or more.
        n: usize,
        /// How many there may be.
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
        /// Bytes it has.
        n: usize,
        /// Bytes it may have.
        limit: usize,
    },
    /// A name that would garble messages.
    #[error("its name has a control character; use letters, digits, - and _")]
    ControlInName,
    /// Two of one kind and name.
    #[error("another {kind} before it has this name; rename one of them")]
    NameTwice {
        /// `group` or `field`.
        kind: &'static str,
    },
    /// An index beyond the groups.
    #[error(
        "it names group {group}, but the plan has {n_groups}, counted from 0; correct the index"
    )]
    NoSuchGroup {
        /// The index.
        group: u32,
        /// How many there are.
        n_groups: usize,
    },
    /// A parent that is not earlier.
    #[error("its parent is group {parent}, which does not come before it; put parents first")]
    LaterParent {
        /// The index.
        parent: u32,
    },
    /// A field that says nothing about where to look.
    #[error("it has neither a selector nor a group whose row it could read; give it one of them")]
    NothingToRead,
    /// An attribute name that HTML cannot write.
    #[error(
        "no attribute can be called {name:?}; write its name alone, without spaces, /, > and ="
    )]
    AttributeName {
        /// As declared, cut if it is very long.
        name: String,
    },
}

/// So much of a text that a message stays readable.
pub(super) fn clipped(text: &str) -> String {
    const MOST: usize = 120;
    if text.len() <= MOST {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MOST)])
}
