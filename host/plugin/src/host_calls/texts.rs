//! Sizes and beginnings of texts that cross between host and guest.

/// Returns the number of bytes of names and values.
pub(super) fn named_bytes(all: &[(String, String)]) -> usize {
    all.iter()
        .map(|(name, value)| name.len() + value.len())
        .sum()
}

/// Returns the start of a text, of at most `max` bytes.
pub(crate) fn up_to(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
