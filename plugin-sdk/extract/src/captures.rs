//! Captures of a plan from one page: one buffer of text, and numbers that point into it.
//!
//! Numbers cross a boundary cheaply, thousands of small strings do not. Nested captures share their bytes.

/// Number that stands for the outside of every row where a row is expected.
pub const NONE: u32 = u32::MAX;

/// Fuel for each byte of a page.
const FUEL_PER_BYTE: u64 = 1;
/// Fuel for each row and each capture.
const FUEL_PER_CAPTURE: u64 = 40;

/// Captures of a plan from one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captures {
    /// Values of all fields. Those of kept fields come first.
    pub text: String,
    /// Bytes of `text` that kept fields point into. A guest that is given the columns of kept fields
    /// needs no more than these.
    pub n_kept: u32,
    /// The row of the parent group around each row of each group, in the order of the page. [`NONE`] in groups
    /// without a parent.
    pub groups: Vec<Vec<u32>>,
    /// Captures of each field of the plan.
    pub columns: Vec<Column>,
    /// True if a budget was used up: captures of the rest of the page are missing.
    pub truncated: bool,
    /// Base of relative URLs: the first `<base href>` of the page, decoded, not resolved.
    pub base: Option<String>,
}

/// Captures of one field, in the order in which their elements begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Column {
    /// The row of the field's group around each capture. [`NONE`] if the field has no group.
    pub rows: Vec<u32>,
    /// Start and end of each capture: byte offsets in [`Captures::text`], always between characters. They
    /// may overlap and nest.
    pub spans: Vec<u32>,
}

impl Captures {
    /// Number of rows of all groups and of captures of all fields together.
    pub fn n_captures(&self) -> usize {
        let n_rows: usize = self.groups.iter().map(Vec::len).sum();
        let n_values: usize = self.columns.iter().map(|c| c.rows.len()).sum();
        n_rows + n_values
    }

    /// Number of captures of a field. `None` if there is no such field.
    pub fn n_values(&self, field: usize) -> Option<usize> {
        self.columns.get(field).map(|column| column.rows.len())
    }

    /// Returns one capture of a field, counted from 0. `None` if there is no such capture.
    pub fn value(&self, field: usize, n: usize) -> Option<&str> {
        let (spans, _) = self.columns.get(field)?.spans.as_chunks::<2>();
        let &[start, end] = spans.get(n)?;
        self.text.get(start as usize..end as usize)
    }

    /// Returns row and value of each capture of a field; nothing if there is no such field.
    pub fn values(&self, field: usize) -> impl Iterator<Item = (u32, &str)> {
        let column = self.columns.get(field);
        let rows = column.map_or(&[][..], |c| &c.rows);
        let (spans, _) = column.map_or(&[][..], |c| &c.spans).as_chunks::<2>();
        rows.iter().zip(spans).map(|(row, &[start, end])| {
            let value = self.text.get(start as usize..end as usize);
            (*row, value.unwrap_or_default())
        })
    }
}

/// Returns the charge for reading a page: 1 for each of its bytes, and 40 for each row and capture.
///
/// The charge depends on nothing else, so that the same page costs the same everywhere: no metering of guests sees
/// the work of the host. A page of 55 kB with 326 captures costs 68 000, which is what a guest pays for handing on
/// 27 items. If a page gave no captures, its bytes are charged all the same: `fuel(page.len(),
/// &Captures::default())`.
pub fn fuel(n_bytes: usize, captures: &Captures) -> u64 {
    let of_bytes = (n_bytes as u64).saturating_mul(FUEL_PER_BYTE);
    let of_captures = (captures.n_captures() as u64).saturating_mul(FUEL_PER_CAPTURE);
    of_bytes.saturating_add(of_captures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuel_counts_bytes_rows_and_captures() {
        let mut captures = Captures::default();
        assert_eq!(fuel(0, &captures), 0);
        assert_eq!(fuel(55_000, &captures), 55_000);
        captures.groups = vec![vec![NONE; 26], vec![]];
        captures.columns = vec![Column::default(); 2];
        captures.columns[1].rows = vec![0; 300];
        assert_eq!(fuel(55_000, &captures), 68_040);
        assert_eq!(fuel(usize::MAX, &captures), u64::MAX);
    }

    #[test]
    fn values_of_a_field_that_is_not_there_are_none() {
        assert_eq!(Captures::default().values(3).count(), 0);
    }
}
