//! Crawls that ended in order and are no success all the same: they have an exit code of their own.

use super::block::lost_root;
use crawler_model::crawl::{Counts, Done};
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
        [root, others @ ..] => Err(Unmet {
            what: format!("a root request gave no page: {}", lost_root(root)),
            hint: match others {
                [] => "look at this address, or leave it out",
                _ => "look at all addresses in the lines `no page`, or leave them out",
            }
            .to_owned(),
        }),
    }
}

/// True if a root request may have given no page, as far as counts tell: they do not tell root requests from others.
pub(super) fn may_have_lost_a_root(counts: &Counts) -> bool {
    let pages = [Done::NotModified, Done::NotDue, Done::Duplicate];
    let pages = pages.map(|done| counts.outcomes.get(done.as_str()));
    let n_pages: u64 = pages.into_iter().flatten().sum();
    counts.dead > 0 || counts.other_done > n_pages
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
            match counts.dead_by_reason.contains_key("not-in-archive") {
                true => {
                    "start from an address that the archive has an answer of, with the params of its crawl"
                }
                false => "look at the address that the crawl starts from",
            },
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
        assert!(!unmet.hint.contains("archive"));
        counts.end_dead("not-in-archive");
        assert!(check_roots(&counts).unwrap_err().hint.contains("archive"));
        counts.end_done(Done::Parsed);
        assert_eq!(check_roots(&counts), Ok(()));
    }

    #[test]
    fn one_root_request_without_a_page_is_no_success() {
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
        assert_eq!(unmet.hint, "look at this address, or leave it out");
    }

    #[test]
    fn counts_tell_if_a_root_request_may_be_lost() {
        let mut counts = Counts::default();
        for done in [
            Done::Parsed,
            Done::NotModified,
            Done::NotDue,
            Done::Duplicate,
        ] {
            counts.end_done(done);
        }
        assert!(!may_have_lost_a_root(&counts));
        let mut dead = counts.clone();
        dead.end_dead("timeout");
        assert!(may_have_lost_a_root(&dead));
        for done in [Done::Skipped, Done::Redirected, Done::Gone, Done::Denied] {
            let mut counts = counts.clone();
            counts.end_done(done);
            assert!(may_have_lost_a_root(&counts), "{done:?}");
        }
    }
}
