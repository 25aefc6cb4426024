//! What a plan captured from one page: one buffer of text, and numbers that point into it.
//!
//! Numbers cross a boundary cheaply, thousands of small strings do not; and captures that nest share
//! their bytes.

/// Stands where a row would: outside of every row.
pub const NONE: u32 = u32::MAX;

/// Fuel for each byte of a page.
const FUEL_PER_BYTE: u64 = 1;
/// Fuel for each row and each capture.
const FUEL_PER_CAPTURE: u64 = 40;

/// What a plan captured from one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captures {
    /// All values. Those of fields that are kept come first.
    pub text: String,
    /// Bytes of `text` that kept fields point into. A guest that is given the columns of kept fields
    /// needs no more than these.
    pub n_kept: u32,
    /// For each group of the plan, for each of its rows in the order of the page: the row of the parent
    /// group that it lies in. [`NONE`] in groups without a parent.
    pub groups: Vec<Vec<u32>>,
    /// One for each field of the plan.
    pub columns: Vec<Column>,
    /// A budget was used up: what follows in the page is missing here.
    pub truncated: bool,
    /// What relative URLs of the page are relative to: the first `<base href>`, decoded, not resolved.
    pub base: Option<String>,
}

/// The captures of one field, in the order in which their elements begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Column {
    /// For each capture the row of the field's group that it lies in. [`NONE`] if the field has no group.
    pub rows: Vec<u32>,
    /// Start and end of each capture: byte offsets in [`Captures::text`], always between characters. They
    /// may overlap and nest.
    pub spans: Vec<u32>,
}

impl Captures {
    /// Rows of all groups and captures of all fields together.
    pub fn n_captures(&self) -> usize {
        let n_rows: usize = self.groups.iter().map(Vec::len).sum();
        let n_values: usize = self.columns.iter().map(|c| c.rows.len()).sum();
        n_rows + n_values
    }

    /// How many captures a field has. None: there is no such field.
    pub fn n_values(&self, field: usize) -> Option<usize> {
        self.columns.get(field).map(|column| column.rows.len())
    }

    /// One capture of a field, counted from 0. None: there is no such capture.
    pub fn value(&self, field: usize, n: usize) -> Option<&str> {
        let (spans, _) = self.columns.get(field)?.spans.as_chunks::<2>();
        let &[start, end] = spans.get(n)?;
        self.text.get(start as usize..end as usize)
    }

    /// Row and value of each capture of a field. Nothing for a field that is not there.
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

/// What reading a page is charged with: one for each of its bytes, and 40 for each row and capture.
///
/// It depends on nothing else, so that the same page costs the same everywhere: no metering of guests sees
/// the work of the host. A page of 55 kB with
/// 326 captures costs 68 000, which is what a guest pays for handing on 27 items. Where no captures came of
/// it, the bytes are charged all the same: `fuel(page.len(), &Captures::default())`.
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
