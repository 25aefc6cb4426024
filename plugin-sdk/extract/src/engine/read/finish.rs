//! Conversion of a reading into captures: inner HTML is copied, and segments become one text.

use std::ops::Range;

use super::{Reading, Values};
use crate::captures::{Captures, Column};
use crate::engine::text::Segment;
use crate::plan::{CompiledPlan, Take};
use crate::steps;

impl Reading {
    /// Puts all segments into one text.
    pub(in crate::engine) fn finish(mut self, plan: &CompiledPlan, page: &str) -> Captures {
        for (field, declared) in plan.plan().fields.iter().enumerate() {
            if let (Take::Inner, Some(segment)) = (&declared.take, plan.segment(field)) {
                let segment = &mut self.segments[segment];
                self.is_truncated |=
                    !self.fields[field].copy(page, segment, &mut self.n_bytes_left);
            }
        }
        let (text, offsets, n_kept) = self.joined(plan);
        let column = |(field, values): (usize, Values)| {
            values.into_column(plan.segment(field).map_or(0, |segment| offsets[segment]))
        };
        Captures {
            text,
            n_kept: to_u32(n_kept),
            columns: self.fields.into_iter().enumerate().map(column).collect(),
            groups: self.rows.into_iter().map(|rows| rows.parents).collect(),
            truncated: self.is_truncated,
            base: self.base,
        }
    }

    /// Joins all segments to one text, those of kept fields first. Returns the text, the offset of each segment,
    /// and the length of the kept part.
    fn joined(&self, plan: &CompiledPlan) -> (String, Vec<usize>, usize) {
        let mut text = String::with_capacity(self.segments.iter().map(|s| s.text.len()).sum());
        let mut offsets = vec![0; self.segments.len()];
        let mut n_kept = 0;
        for is_kept in [true, false] {
            for (i, segment) in self.segments.iter().enumerate() {
                if plan.is_kept()[i] == is_kept {
                    offsets[i] = text.len();
                    steps::add(segment.text.len());
                    text.push_str(&segment.text);
                }
            }
            if is_kept {
                n_kept = text.len();
            }
        }
        (text, offsets, n_kept)
    }
}

impl Values {
    /// Copies ranges of the page, and turns them into ranges of the segment. A range inside of another is not
    /// copied again, so that nesting costs nothing. A range that does not fit is cut, and later ones are left out.
    /// Returns true if everything was copied.
    fn copy(&mut self, page: &str, segment: &mut Segment, n_left: &mut usize) -> bool {
        let mut is_all = true;
        // The range of the page that was copied last, and its start in the segment.
        let mut copied = (0..0, 0);
        let mut kept = Vec::with_capacity(self.ranges.len());
        let mut rows = Vec::with_capacity(self.rows.len());
        let mut n_reached = 0;
        for (range, row) in self.ranges.drain(..).zip(self.rows.drain(..)) {
            steps::add(1);
            // Ranges are in the order of start tags, so an outer range comes before the inner ones.
            if range.start >= n_reached || range.end > n_reached {
                let offset = segment.text.len();
                is_all &= segment.push(page.get(range.clone()).unwrap_or_default(), n_left);
                n_reached = range.end;
                copied = (
                    range.start..range.start + segment.text.len() - offset,
                    offset,
                );
            }
            let (source, offset) = &copied;
            let end = range.end.min(source.end);
            if range.start > end || (range.start == end && range.end > end) {
                continue;
            }
            kept.push(offset + range.start - source.start..offset + end - source.start);
            rows.push(row);
        }
        self.ranges = kept;
        self.rows = rows;
        is_all
    }

    fn into_column(self, offset: usize) -> Column {
        let ends = |range: Range<usize>| [to_u32(offset + range.start), to_u32(offset + range.end)];
        Column {
            rows: self.rows,
            spans: self.ranges.into_iter().flat_map(ends).collect(),
        }
    }
}

/// Converts a count. None reaches 4 GiB, since pages, captures and bytes are all bounded below that.
fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
