//! Settings that are comma-separated lists.

use std::fmt;

/// Largest number of entries in one list.
const MAX_ENTRIES: usize = 8;

/// Splits a comma-separated list. The text `nothing` stands for the empty list.
pub(super) fn entries<'a>(
    text: &'a str,
    nothing: &str,
) -> Result<impl Iterator<Item = &'a str>, String> {
    let text = if text.trim() == nothing { "" } else { text };
    let n = text.split(',').count();
    if n > MAX_ENTRIES {
        return Err(format!(
            "has {n} entries; at most {MAX_ENTRIES} are allowed"
        ));
    }
    let is_empty = text.is_empty();
    Ok(text.split(',').map(str::trim).filter(move |_| !is_empty))
}

/// Writes such a list.
pub(super) fn list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    entries: &[T],
    nothing: &str,
) -> fmt::Result {
    if entries.is_empty() {
        return f.write_str(nothing);
    }
    for (n, entry) in entries.iter().enumerate() {
        let comma = if n == 0 { "" } else { ", " };
        write!(f, "{comma}{entry}")?;
    }
    Ok(())
}
