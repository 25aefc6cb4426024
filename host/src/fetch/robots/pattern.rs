//! The path of one rule: octets after percent-decoding, `*` for any of them, `$` for the end.
//!
//! RFC 9309, 2.2.2, has all that is not plain ASCII and all that is reserved percent-encoded before a
//! comparison, and everything else decoded. Both spellings of an octet are equal then, so both sides are
//! decoded here, which compares the same and leaves bytes that can be searched for.

use memchr::memmem;

/// What a rule says of paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// What stands between the wildcards, decoded, one after the other.
    literals: Box<[u8]>,
    /// Where in `literals` the wildcards stand, in order.
    wildcards: Box<[u32]>,
    /// The end of the path is the end of the pattern.
    is_anchored: bool,
    /// Its length as it would be written.
    n_octets: u32,
}

impl Pattern {
    /// A pattern as a robots.txt has it; none if no path can be meant, because none begins so.
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

    /// Returns what every path that it matches begins with.
    pub(super) fn head(&self) -> &[u8] {
        let end = self.wildcards.first().map(|&end| end as usize);
        &self.literals[..end.unwrap_or(self.literals.len())]
    }

    /// By this length a rule is more or less specific than others.
    pub(super) fn n_octets(&self) -> u32 {
        self.n_octets
    }

    /// Bytes that it takes in memory, beside itself.
    pub(super) fn n_bytes(&self) -> usize {
        self.literals.len() + 4 * self.wildcards.len()
    }

    /// Whether it matches a path with its query, [`decoded`]. Each wildcard takes as little as it can:
    /// what follows it then has the most left to match, so nothing is tried twice.
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

/// A path with its query, in the form in which patterns are compared with it.
pub(super) fn decoded(path: &str) -> Vec<u8> {
    let mut octets = Vec::with_capacity(path.len());
    decode_onto(&mut octets, path.as_bytes());
    octets
}

/// Every `%XX` as the octet that it stands for; a `%` that begins none is itself.
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

/// Octets of an octet as it is written: one, or the three of its percent-encoding.
fn written(octet: u8) -> usize {
    let is_plain = octet.is_ascii_alphanumeric() || b"-._~/=".contains(&octet);
    if is_plain { 1 } else { 3 }
}
