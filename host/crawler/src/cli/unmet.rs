//! Crawls that ended in order and did not bring what they were to bring: they have an exit code of their own.

use crawler_model::crawl::Counts;

/// Exit code of a crawl that ended in order and did not bring what it was to bring.
pub const UNMET: u8 = 3;

/// Reason why a crawl that ended in order does not count as a success, with a way out.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Unmet {
    /// Description of what is missing.
    pub what: String,
    /// Way out; empty if there is none.
    pub hint: String,
}

/// Checks that a root request gave a page.
pub fn check_roots(counts: &Counts) -> Result<(), Unmet> {
    if !counts.has_no_root_page() {
        return Ok(());
    }
    let ends = counts.outcomes.iter().chain(&counts.dead_by_reason);
    let ends: Vec<_> = ends.map(|(end, n)| format!("{end} {n}")).collect();
    Err(Unmet {
        what: match ends.is_empty() {
            true => "no root request gave a page".to_owned(),
            false => format!("no root request gave a page: {}", ends.join(", ")),
        },
        hint: "look at the address that the crawl starts from".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::crawl::Done;

    #[test]
    fn a_crawl_without_a_page_of_a_root_request_is_no_success() {
        let mut counts = Counts::default();
        let unmet = check_roots(&counts).unwrap_err();
        assert_eq!(unmet.what, "no root request gave a page");
        counts.end_done(Done::Gone, true, false);
        counts.end_dead("timeout", true);
        let unmet = check_roots(&counts).unwrap_err();
        assert_eq!(unmet.what, "no root request gave a page: gone 1, timeout 1");
        counts.end_done(Done::Parsed, true, false);
        assert_eq!(check_roots(&counts), Ok(()));
    }
}
