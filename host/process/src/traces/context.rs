//! Ids of traces and spans, and the header `traceparent` by which a trace goes on in another process
//! (W3C Trace Context, <https://www.w3.org/TR/trace-context/>).

use std::fmt;

/// Bytes of a `traceparent` of version 0. Later versions may add to it.
const LENGTH: usize = 55;
/// Bit of the flags that tells that the caller records the trace.
const RECORDED: u8 = 1;

/// Id of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId([u8; 16]);

/// Id of a span within its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId([u8; 8]);

/// A span, as other spans refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceContext {
    /// Trace that the span belongs to.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
}

/// Span of a caller, as the header of its call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The span.
    pub context: TraceContext,
    /// True if the caller records the trace.
    pub is_recorded: bool,
}

impl TraceId {
    pub(super) fn of(high: u64, low: u64) -> Self {
        let id = (u128::from(high) << 64) | u128::from(low);
        // An id of zeros only would not count as one.
        Self(id.max(1).to_be_bytes())
    }

    pub(super) fn random() -> Self {
        Self::of(rand::random(), rand::random())
    }

    /// Returns the number by which it is decided whether a trace with this id is recorded.
    pub(super) fn number(&self) -> u64 {
        // The bytes on the right are random in the ids of others, too.
        let id = u128::from_be_bytes(self.0);
        u64::try_from(id & u128::from(u64::MAX)).expect("the rest is masked")
    }

    /// Returns the bytes of the id.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl SpanId {
    pub(super) fn random() -> Self {
        let id: u64 = rand::random();
        Self(id.max(1).to_be_bytes())
    }

    /// Returns the bytes of the id.
    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl TraceParent {
    /// Parses the value of the header. A value that is not one counts as none, as the specification asks.
    pub fn parse(header: &[u8]) -> Option<Self> {
        let (known, rest) = header.split_at_checked(LENGTH)?;
        let is_lower = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
        if !known.iter().all(is_lower) {
            return None;
        }
        let [version, trace, span, flags] =
            [&known[..2], &known[3..35], &known[36..52], &known[53..]];
        let has_dashes = [2, 35, 52].into_iter().all(|at| known[at] == b'-');
        let is_sound = match version {
            b"ff" => false,
            b"00" => rest.is_empty(),
            _ => rest.is_empty() || rest[0] == b'-',
        };
        let (mut id, mut of_span, mut bits) = ([0; 16], [0; 8], [0; 1]);
        hex::decode_to_slice(version, &mut bits).ok()?;
        hex::decode_to_slice(trace, &mut id).ok()?;
        hex::decode_to_slice(span, &mut of_span).ok()?;
        hex::decode_to_slice(flags, &mut bits).ok()?;
        let has_ids = id != [0; 16] && of_span != [0; 8];
        let context = TraceContext {
            trace: TraceId(id),
            span: SpanId(of_span),
        };
        (has_dashes && is_sound && has_ids).then_some(Self {
            context,
            is_recorded: bits[0] & RECORDED != 0,
        })
    }
}

/// Writes the value of the header for a trace that is recorded.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (hex::encode(self.trace.0), hex::encode(self.span.0));
        write!(f, "00-{trace}-{span}-{RECORDED:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn parse(header: &str) -> Option<TraceParent> {
        TraceParent::parse(header.as_bytes())
    }

    #[test]
    fn the_header_is_read_as_it_is_written() {
        let parent = parse(KNOWN).unwrap();
        assert!(parent.is_recorded);
        assert_eq!(parent.context.to_string(), KNOWN);
        let silent = parse(&KNOWN.replace("-01", "-00")).unwrap();
        assert_eq!(
            (silent.is_recorded, silent.context),
            (false, parent.context)
        );
        let later = parse(&format!("{}-more", KNOWN.replacen("00", "cc", 1)));
        assert_eq!(later, Some(parent), "later versions may add to it");
    }

    #[test]
    fn a_header_that_is_none_counts_as_absent() {
        for wrong in [
            "",
            "00",
            &KNOWN.to_uppercase(),
            &KNOWN.replacen("00", "ff", 1),
            &format!("{KNOWN}-more"),
            &KNOWN.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &KNOWN.replace("b7ad6b7169203331", &"0".repeat(16)),
            &KNOWN.replace('-', "0"),
            &KNOWN.replace("b7ad", "b7-d"),
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
