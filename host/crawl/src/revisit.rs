//! Pages that an earlier run has parsed and that are not due again: settings `revisit` and `revisit-max`.
//!
//! Such a page ends as `not-due` without a request, and keeps what is known of it, so that its next visit stays when it
//! is. Its links are not lost: with `unchanged = skip`, which the settings need, a run asks for all that the last one knew,
//! except for pages that were gone or of a content type that is not wanted. Those are asked for again once a page that
//! leads to them is parsed.
//!
//! A page counts as visited when its server has answered: with the page, or with the word that it has not changed. A page
//! that was given up, was redirected, or was parsed by another plugin is due in the next run.

use super::unchanged;
use crawler_frontier::{Claim, Ended, PageResult};
use crawler_model::crawl::{Done, UnixMillis};
use crawler_model::frontier::Validators;
use crawler_model::parsed_by::ParsedBy;
use crawler_model::settings::CrawlSettings;
use crawler_model::visit::{Intervals, Visit};

/// Returns the end of a page that is not due yet. What it would be parsed by is asked for only if that matters.
pub(super) fn not_due(
    claim: &Claim,
    settings: &CrawlSettings,
    parsed_by: impl FnOnce() -> Option<ParsedBy>,
    now: UnixMillis,
) -> Option<PageResult> {
    let intervals = Intervals::of(settings)?;
    let known = unchanged::known(claim, settings, parsed_by)?;
    let visit = known.visit?;
    (!visit.is_due(now, intervals)).then(|| PageResult {
        validators: Some(known.clone()),
        ..PageResult::new(Ended::Done(Done::NotDue), 0)
    })
}

/// Adds this visit to the validators that a page leaves behind. By them is known if it has changed since the last visit,
/// whatever it is parsed by.
pub(super) fn visited(
    claim: &Claim,
    settings: &CrawlSettings,
    validators: Validators,
    now: UnixMillis,
) -> Validators {
    let before = claim.validators.as_deref().and_then(|known| {
        let has_changed = known.content != validators.content;
        Some((known.visit?, has_changed))
    });
    Validators {
        visit: Some(Visit::of(now, before, Intervals::of(settings))),
        ..validators
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::crawl::Request;
    use crawler_model::frontier::ContentHash;
    use crawler_model::settings::Unchanged;

    const PARSED_BY: ParsedBy = ParsedBy([7; 16]);
    const VISIT: Visit = Visit {
        at: 1_000,
        interval_ms: 100,
    };

    fn validators(body: &[u8]) -> Validators {
        Validators {
            content: Some(ContentHash::of(body)),
            parsed_by: Some(PARSED_BY),
            visit: Some(VISIT),
            ..Validators::default()
        }
    }

    fn claim() -> Claim {
        let request = Request::get("http://a.test/".parse().unwrap(), "page");
        Claim {
            depth: 0,
            attempt: 1,
            visit: 0,
            fingerprint: request.fingerprint(),
            entry: 0,
            alone: false,
            validators: Some(Box::new(validators(b"body"))),
            host: crawler_frontier::HostStanding::default(),
            request,
        }
    }

    fn settings() -> CrawlSettings {
        CrawlSettings {
            unchanged: Some(Unchanged::Skip),
            revisit_ms: Some(100),
            revisit_max_ms: Some(1_000),
            ..CrawlSettings::default()
        }
    }

    /// Checks if a page is passed over 50 ms after its last visit.
    #[track_caller]
    fn check(change: impl FnOnce(&mut Claim, &mut CrawlSettings), is_passed_over: bool) {
        let (mut claim, mut settings) = (claim(), settings());
        change(&mut claim, &mut settings);
        let found = not_due(&claim, &settings, || Some(PARSED_BY), 1_050);
        assert_eq!(found.is_some(), is_passed_over);
    }

    #[test]
    fn only_a_page_that_may_be_passed_over_is_not_due() {
        check(|_, _| (), true);
        check(|_, settings| settings.revisit_ms = None, false);
        check(|_, settings| settings.unchanged = None, false);
        check(|claim, _| claim.request.reload = true, false);
        check(|claim, _| claim.request.method = "POST".into(), false);
        check(|claim, _| claim.validators = None, false);
        let never_visited = Validators {
            visit: None,
            ..validators(b"body")
        };
        check(
            |claim, _| claim.validators = Some(Box::new(never_visited)),
            false,
        );
        let by_another = Validators {
            parsed_by: None,
            ..validators(b"body")
        };
        check(
            |claim, _| claim.validators = Some(Box::new(by_another)),
            false,
        );
        assert!(not_due(&claim(), &settings(), || Some(PARSED_BY), 1_100).is_none());
    }

    #[test]
    fn a_page_that_is_not_due_keeps_what_is_known_of_it() {
        let result = not_due(&claim(), &settings(), || Some(PARSED_BY), 1_050).unwrap();
        assert_eq!(result.ended, Ended::Done(Done::NotDue));
        assert_eq!(result.validators, Some(validators(b"body")));
    }

    #[test]
    fn the_next_visit_follows_from_the_content() {
        for (body, interval_ms) in [(b"body".as_slice(), 150), (b"other", 100)] {
            let validators = validators(body);
            let left = visited(&claim(), &settings(), validators.clone(), 2_000);
            let expected = Visit {
                at: 2_000,
                interval_ms,
            };
            assert_eq!(left.visit, Some(expected));
            assert_eq!(left.content, validators.content);
        }
        let unknown = Claim {
            validators: None,
            ..claim()
        };
        let left = visited(&unknown, &settings(), validators(b"body"), 2_000);
        assert_eq!(left.visit.map(|visit| visit.interval_ms), Some(100));
    }
}
