//! Selectors as authors write them: read, bounded, composed with those of their rows, and only then parsed.
//!
//! The parser that lol_html uses recurses on parentheses without a bound, has one error for twenty causes, and
//! does not read all that it accepts as CSS means it. So this module reads the text first and refuses, with a
//! message of its own, all that one pass over a page cannot match or would match wrongly.

mod fault;
mod scan;

pub use fault::SelectorFault;
pub(crate) use scan::read;

/// One part of a comma list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alternative {
    /// Without the leading `>`, and without white space around it.
    pub(crate) text: String,
    /// Whether it began with `>`: its first step is a child of the row.
    pub(crate) is_child: bool,
    /// Compound selectors in it.
    pub(crate) n_steps: usize,
}

impl Alternative {
    /// No fewer than it has: signs inside of strings count, too.
    pub(crate) fn n_conditions(&self) -> usize {
        let begins = |b: &u8| matches!(b, b'.' | b'#' | b'[' | b':' | b'*' | b',');
        self.n_steps + self.text.bytes().filter(begins).count()
    }
}

/// Puts the selector of the row before each alternative that began with `>`, every one with every one, since
/// `ul, ol` with `> li` means `ul > li, ol > li`. None if there would be more than `most`.
pub(crate) fn compose(
    row: &[Alternative],
    own: &[Alternative],
    most: usize,
) -> Option<Vec<Alternative>> {
    let n_children = own.iter().filter(|a| a.is_child).count();
    let n = n_children.saturating_mul(row.len()) + own.len() - n_children;
    if n > most {
        return None;
    }
    let mut all: Vec<Alternative> = Vec::with_capacity(n);
    for alternative in own {
        if !alternative.is_child {
            all.push(alternative.clone());
            continue;
        }
        all.extend(row.iter().map(|outer| Alternative {
            text: format!("{} > {}", outer.text, alternative.text),
            is_child: false,
            n_steps: outer.n_steps + alternative.n_steps,
        }));
    }
    Some(all)
}

/// The list as one text.
pub(crate) fn joined(alternatives: &[Alternative]) -> String {
    let texts: Vec<&str> = alternatives.iter().map(|a| a.text.as_str()).collect();
    texts.join(", ")
}

/// Parses what was read and composed here.
pub(crate) fn parse(text: &str) -> Result<lol_html::Selector, SelectorFault> {
    text.parse().map_err(SelectorFault::of_parser)
}

#[cfg(test)]
mod tests;
