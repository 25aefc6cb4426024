//! Selectors that a plugin sends, and the page that they are used on.

use std::time::Duration;

use crawler_extract::{Budget, CompiledPlan, ExtractError, PlanLimits, Take, extract};

/// Checks a plan and a page. The first line has selectors, separated by `|`: of rows, and of the values that are
/// read of them and of the whole page. The page is the rest, whatever it is.
///
/// A plan is refused or can be followed. A page is read or refused, and all captures lie within the text that
/// comes with them.
pub fn extract_page(data: &[u8]) {
    let (line, page) = super::first_line(data);
    let selectors = String::from_utf8_lossy(line);
    let takes = [
        Take::Text,
        Take::Attr("href".to_owned()),
        Take::TextRaw,
        Take::Inner,
        Take::Present,
        Take::Tag,
    ];
    let plan = super::plan(selectors.split('|'), &takes);
    let Ok(compiled) = CompiledPlan::new(&plan, &PlanLimits::default()) else {
        return;
    };
    let page = String::from_utf8_lossy(page);
    let budget = Budget {
        n_captures: 500,
        captured_bytes: 4 << 10,
        memory: 64 << 10,
        deadline: Duration::from_secs(10),
        ..Budget::default()
    };
    let captures = match extract(&compiled, &page, &budget) {
        Ok(captures) => captures,
        Err(error @ ExtractError::TooSlow { .. }) => panic!("{error}"),
        Err(ExtractError::TooDeep { .. } | ExtractError::TooLarge { .. }) => return,
    };
    assert!(captures.n_captures() <= budget.n_captures);
    assert!(captures.text.len() <= budget.captured_bytes);
    for (field, column) in compiled.plan().fields.iter().zip(&captures.columns) {
        let n_rows = field
            .group
            .map(|group| captures.groups[group as usize].len());
        for (row, span) in column.rows.iter().zip(column.spans.as_chunks::<2>().0) {
            assert!(n_rows.is_none_or(|n| (*row as usize) < n), "{}", field.name);
            let [start, end] = span.map(|at| at as usize);
            assert!(captures.text.get(start..end).is_some(), "{}", field.name);
        }
    }
}
