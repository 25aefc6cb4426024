//! Refusals of a description, and the check of names that all of its lists share.

use std::collections::BTreeSet;
use std::fmt;

use crate::admission::Refusal;
use crawler_model::guest_text::GuestText;

/// Bytes of the name of a rule or schema.
const NAME_MAX: usize = 128;

/// Checks the names in a list of the description.
pub(super) fn check_names<'a>(
    what: &str,
    names: impl ExactSizeIterator<Item = &'a str>,
    max: usize,
) -> Result<(), Refusal> {
    if names.len() > max {
        return Err(refusal(
            format_args!("describe lists {} {what}", names.len()),
            format_args!("at most {max} are allowed"),
            "split the plugin",
        ));
    }
    let mut seen = BTreeSet::new();
    for name in names {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(allowed) {
            return Err(refusal(
                format_args!("describe lists {:?} among its {what}", short(name)),
                format_args!("a name has 1 to {NAME_MAX} letters, digits, '-', '_' and '.'"),
                "rename it",
            ));
        }
        if !seen.insert(name) {
            return Err(refusal(
                format_args!("describe lists {name:?} twice among its {what}"),
                "names are unique within a plugin",
                "rename one of them",
            ));
        }
    }
    Ok(())
}

/// Returns as much of a text of the plugin as a message shows.
pub(super) fn short(text: &str) -> &str {
    crate::host_calls::up_to(text, NAME_MAX)
}

/// Creates a refusal: what was found, what is allowed, and what to do.
pub(super) fn refusal(
    found: impl fmt::Display,
    allowed: impl fmt::Display,
    remedy: &str,
) -> Refusal {
    Refusal {
        found: GuestText::of(found),
        allowed: GuestText::of(allowed),
        remedy: remedy.to_owned(),
    }
}
