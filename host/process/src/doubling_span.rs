//! Span of time after which something that goes on is told again: a minute at first, then twice as long each time, up to an
//! hour. What happens all day is told some 30 times, and what happens once is told within a minute.

use std::time::Duration;

use tokio::time::Instant;

/// A span that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoublingSpan {
    length: Duration,
    due_at: Instant,
}

impl DoublingSpan {
    /// Length of the first span, and of one after a span in which nothing happened.
    pub const FIRST: Duration = Duration::from_secs(60);
    /// Length that no span exceeds.
    pub const LONGEST: Duration = Duration::from_secs(60 * 60);

    /// Returns a first span, which begins now.
    pub fn first(now: Instant) -> Self {
        Self::of(Self::FIRST, now)
    }

    /// Returns the span after this one, in which something happened. It begins now.
    pub fn next(self, now: Instant) -> Self {
        Self::of((self.length * 2).min(Self::LONGEST), now)
    }

    /// Returns the time of the end.
    pub fn due_at(self) -> Instant {
        self.due_at
    }

    /// Returns true if the span has ended.
    pub fn has_ended(self, now: Instant) -> bool {
        self.due_at <= now
    }

    /// Ends the span now, unless it has ended before.
    pub fn end(&mut self, now: Instant) {
        self.due_at = self.due_at.min(now);
    }

    fn of(length: Duration, now: Instant) -> Self {
        Self {
            length,
            due_at: now + length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn spans_double_up_to_an_hour() {
        let start = Instant::now();
        let spans = std::iter::successors(Some(DoublingSpan::first(start)), |span| {
            Some(span.next(span.due_at()))
        });
        let ends = spans.map(|span| (span.due_at() - start).as_secs() / 60);
        let ends: Vec<u64> = ends.take(9).collect();
        assert_eq!(ends, [1, 3, 7, 15, 31, 63, 123, 183, 243]);
    }

    #[test]
    fn a_span_ends_at_its_time_or_when_it_is_told_to() {
        let start = Instant::now();
        let mut span = DoublingSpan::first(start);
        assert!(!span.has_ended(start + MINUTE / 2));
        assert!(span.has_ended(start + MINUTE));
        span.end(start + MINUTE / 2);
        assert!(span.has_ended(start + MINUTE / 2));
        // An end is not put off.
        span.end(start + MINUTE);
        assert_eq!(span.due_at(), start + MINUTE / 2);
        // The next span has twice the length all the same.
        let next = span.next(start + MINUTE);
        assert_eq!(next.due_at(), start + 3 * MINUTE);
    }
}
