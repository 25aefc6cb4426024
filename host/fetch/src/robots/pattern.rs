//! Path pattern of one rule: octets after percent-decoding, `*` for any sequence of them, `$` for the end.
//!
//! RFC 9309, 2.2.2, compares paths after percent-encoding all characters that are reserved or not plain
//! ASCII, and decoding everything else. Both spellings of an octet are equal then. Here both sides are
//! decoded, which gives the same result and leaves bytes that can be searched for.

use memchr::memmem;

/// Path pattern of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Texts between the wildcards, decoded, one after the other.
    literals: Box<[u8]>,
    /// Positions of the wildcards in `literals`, in order.
    wildcards: Box<[u32]>,
    /// True if the end of the pattern must match the end of the path.
    is_anchored: bool,
    /// Length of the pattern as written.
    n_octets: u32,
}

impl Pattern {
    /// Parses a pattern of a robots.txt. Returns `None` if no path can match, because no path begins like it.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        if !matches!(text.first(), Some(b'/' | b'*')) {
            return None;
        }
        let (text, is_anchored) = match text.strip_suffix(b"$") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let mut literals = Vec::with_capacity(text.len());
        let mut wildcards = Vec::new();
        for (nth, literal) in text.split(|&b| b == b'*').enumerate() {
            if nth > 0 {
                wildcards.push(u32::try_from(literals.len()).unwrap_or(u32::MAX));
            }
            decode_onto(&mut literals, literal);
        }
        let n_written: usize = literals.iter().map(|&octet| written(octet)).sum();
        let n_octets = n_written + wildcards.len() + usize::from(is_anchored);
        Some(Self {
            literals: literals.into(),
            wildcards: wildcards.into(),
            is_anchored,
            n_octets: u32::try_from(n_octets).unwrap_or(u32::MAX),
        })
    }

    /// Returns the prefix of every path that the pattern matches.
    pub(super) fn head(&self) -> &[u8] {
        let end = self.wildcards.first().map(|&end| end as usize);
        &self.literals[..end.unwrap_or(self.literals.len())]
    }

    /// Returns the length by which a rule is more or less specific than others.
    pub(super) fn n_octets(&self) -> u32 {
        self.n_octets
    }

    /// Returns the size in bytes of its memory on the heap.
    pub(super) fn n_bytes(&self) -> usize {
        self.literals.len() + 4 * self.wildcards.len()
    }

    /// Returns true if the pattern matches a path with its query, [`decoded`]. Each wildcard takes as few
    /// octets as possible: the rest of the pattern then has the most left to match, so nothing is tried
    /// twice.
    pub(super) fn matches(&self, path: &[u8]) -> bool {
        let mut start = 0;
        let mut rest = path;
        for (nth, &wildcard) in self.wildcards.iter().enumerate() {
            let end = wildcard as usize;
            let literal = &self.literals[start..end];
            start = end;
            let after = match nth {
                0 => rest.strip_prefix(literal),
                _ => memmem::find(rest, literal).map(|at| &rest[at + literal.len()..]),
            };
            match after {
                Some(after) => rest = after,
                None => return false,
            }
        }
        let last = &self.literals[start..];
        match (self.wildcards.is_empty(), self.is_anchored) {
            (true, true) => rest == last,
            (true, false) => rest.starts_with(last),
            (false, true) => rest.ends_with(last),
            (false, false) => memmem::find(rest, last).is_some(),
        }
    }
}

/// Returns a path with its query in the form that patterns are compared with.
pub(super) fn decoded(path: &str) -> Vec<u8> {
    let mut octets = Vec::with_capacity(path.len());
    decode_onto(&mut octets, path.as_bytes());
    octets
}

/// Appends the text with every `%XX` replaced by its octet; a `%` that begins none is kept.
fn decode_onto(octets: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let escaped = (first == b'%').then(|| hex_pair(after)).flatten();
        octets.push(escaped.unwrap_or(first));
        rest = match escaped {
            Some(_) => &after[2..],
            None => after,
        };
    }
}

fn hex_pair(text: &[u8]) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16);
    let (&high, &low) = (text.first()?, text.get(1)?);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Returns the length of an octet as written: one, or three if percent-encoded.
fn written(octet: u8) -> usize {
    let is_plain = octet.is_ascii_alphanumeric() || b"-._~/=".contains(&octet);
    if is_plain { 1 } else { 3 }
}
