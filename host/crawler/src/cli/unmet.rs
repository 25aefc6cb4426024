//! Crawls that ended in order and are no success all the same: they have an exit code of their own.

use super::block::lost_root;
use crawler_model::crawl::Counts;
use crawler_model::statistics::RunStatistics;

/// Exit code of a crawl that ended in order and is no success.
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

/// Checks that every root request gave a page.
pub fn check_all_roots(found: &RunStatistics) -> Result<(), Unmet> {
    check_roots(&found.counts)?;
    match found.statistics.lost_roots.as_slice() {
        [] => Ok(()),
        [root, ..] => Err(Unmet {
            what: format!("a root request gave no page: {}", lost_root(root)),
            hint: "the lines `no page` name more of them".to_owned(),
        }),
    }
}

/// Checks that a root request gave a page.
pub fn check_roots(counts: &Counts) -> Result<(), Unmet> {
    if !counts.has_no_page() {
        return Ok(());
    }
    let ends = counts.outcomes.iter().chain(&counts.dead_by_reason);
    let ends: Vec<_> = ends.map(|(end, n)| format!("{end} {n}")).collect();
    let refused = counts.refused_links.iter();
    let refused: Vec<_> = refused.map(|(why, n)| format!("{why} {n}")).collect();
    let (what, hint) = match (ends.is_empty(), refused.is_empty()) {
        (false, _) => (
            format!("no root request gave a page: {}", ends.join(", ")),
            "look at the address that the crawl starts from",
        ),
        (true, false) => (
            format!(
                "no root request was fetched: refused {}",
                refused.join(", ")
            ),
            "look at the scope, and at the limits of the crawl",
        ),
        (true, true) => (
            "there was no root request".to_owned(),
            "look at what the plugin's root asks for",
        ),
    };
    Err(Unmet {
        what,
        hint: hint.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::crawl::Done;
    use crawler_model::statistics::LostRoot;

    #[test]
    fn a_crawl_without_a_page_of_a_root_request_is_no_success() {
        let mut counts = Counts::default();
        let unmet = check_roots(&counts).unwrap_err();
        assert_eq!(unmet.what, "there was no root request");
        counts.refuse("out-of-scope", 2);
        let unmet = check_roots(&counts).unwrap_err();
        let refused = "no root request was fetched: refused out-of-scope 2";
        assert_eq!(unmet.what, refused);
        counts.end_done(Done::Gone);
        counts.end_dead("timeout");
        let unmet = check_roots(&counts).unwrap_err();
        assert_eq!(unmet.what, "no root request gave a page: gone 1, timeout 1");
        counts.end_done(Done::Parsed);
        assert_eq!(check_roots(&counts), Ok(()));
    }

    #[test]
    fn a_crawl_with_one_root_request_that_gave_no_page_is_no_success() {
        let mut found = RunStatistics::default();
        found.counts.end_done(Done::Parsed);
        assert_eq!(check_all_roots(&found), Ok(()));
        found.statistics.lost_roots.push(LostRoot {
            url: "http://a.test/".into(),
            end: "timeout".into(),
            ..LostRoot::default()
        });
        let unmet = check_all_roots(&found).unwrap_err();
        let expected = "a root request gave no page: http://a.test/: timeout";
        assert_eq!(unmet.what, expected);
    }
}
