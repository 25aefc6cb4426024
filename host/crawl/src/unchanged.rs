//! Pages that are unchanged since the last run, and the conditions by which a server tells.
//!
//! Every `GET` that a rule has read leaves its validators behind, whatever the settings say, so that setting
//! `unchanged` takes effect from the next run on when it is changed. With `skip` a server is asked for the
//! page unless it is unchanged (`If-None-Match`, `If-Modified-Since`), and a body that came all the same is
//! compared by its hash. An unchanged page ends as `not-modified`: no rule sees it, so it gives neither items
//! nor links. A page that was parsed by another plugin, with other params, or under other settings of links is asked for
//! and parsed as if nothing were known of it. The missing links cost no page that the last run has parsed or given up,
//! because with `skip` a new run fetches again all of those. That includes each failure that a rule has accepted, although
//! no page may link to it any more, so a link checker needs `parse`. A page that was gone, or of a content type that is
//! not wanted, is fetched again only once a page that leads to it is parsed.

use crawler_frontier::Claim;
use crawler_model::frontier::Validators;
use crawler_model::parsed_by::ParsedBy;
use crawler_model::resource::{CrawlSettings, Unchanged};

/// Returns the validators to send, or `None` if the page is wanted in full.
pub(super) fn condition<'a>(
    claim: &'a Claim,
    settings: &CrawlSettings,
    parsed_by: impl FnOnce() -> Option<ParsedBy>,
) -> Option<&'a Validators> {
    let known = known(claim, settings, parsed_by)?;
    let mut names = claim.request.headers.iter().map(|(name, _)| name);
    // A rule that sets a condition of its own gets the answer to that.
    let has_own = names.any(|name| {
        let name = name.to_ascii_lowercase();
        name.starts_with("if-") || name == "range"
    });
    (known.make_a_condition() && !has_own).then_some(known)
}

/// Returns true if a page that came in full is the one that the last run saw.
pub(super) fn is_as_known(claim: &Claim, settings: &CrawlSettings, page: &Validators) -> bool {
    let known = known(claim, settings, || page.parsed_by).and_then(|known| known.content);
    known.is_some() && known == page.content
}

/// Returns the validators of a page that may end without its rule. A page that a rule asks to see again never
/// does.
pub(super) fn known<'a>(
    claim: &'a Claim,
    settings: &CrawlSettings,
    parsed_by: impl FnOnce() -> Option<ParsedBy>,
) -> Option<&'a Validators> {
    let request = &claim.request;
    let may_be_skipped =
        settings.unchanged() == Unchanged::Skip && request.method == "GET" && !request.reload;
    let known = claim.validators.as_deref().filter(|_| may_be_skipped)?;
    (known.parsed_by.is_some() && known.parsed_by == parsed_by()).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::crawl::Request;
    use crawler_model::frontier::ContentHash;

    const PARSED_BY: ParsedBy = ParsedBy([7; 16]);

    fn seen() -> Validators {
        Validators {
            etag: Some("\"v1\"".into()),
            last_modified: None,
            content: Some(ContentHash::of(b"body")),
            parsed_by: Some(PARSED_BY),
            visit: None,
        }
    }

    fn seen_claim() -> Claim {
        let request = Request::get("http://a.test/".parse().unwrap(), "page");
        Claim {
            depth: 0,
            attempt: 1,
            visit: 0,
            fingerprint: request.fingerprint(),
            entry: 0,
            alone: false,
            validators: Some(Box::new(seen())),
            host: crawler_frontier::HostStanding::default(),
            request,
        }
    }

    /// Checks if a condition is sent, and if the same content is recognised.
    #[track_caller]
    fn check(change: impl FnOnce(&mut Claim, &mut CrawlSettings), sent: bool, known: bool) {
        let mut claim = seen_claim();
        let mut settings = CrawlSettings {
            unchanged: Some(Unchanged::Skip),
            ..CrawlSettings::default()
        };
        change(&mut claim, &mut settings);
        let found = condition(&claim, &settings, || Some(PARSED_BY)).is_some();
        let nothing = Validators {
            parsed_by: Some(PARSED_BY),
            ..Validators::default()
        };
        assert!(!is_as_known(&claim, &settings, &nothing));
        assert_eq!(
            (found, is_as_known(&claim, &settings, &seen())),
            (sent, known)
        );
    }

    #[test]
    fn only_a_page_that_may_be_skipped_is_asked_for_with_a_condition() {
        check(|_, _| (), true, true);
        check(|_, settings| settings.unchanged = None, false, false);
        check(
            |claim, _| claim.request.method = "POST".into(),
            false,
            false,
        );
        check(|claim, _| claim.request.reload = true, false, false);
        check(|claim, _| claim.validators = None, false, false);
        let with_header = |name: &str| {
            let header = (name.to_owned(), "x".to_owned());
            move |claim: &mut Claim, _: &mut CrawlSettings| claim.request.headers.push(header)
        };
        check(with_header("If-None-Match"), false, true);
        check(with_header("Range"), false, true);
        check(with_header("accept"), true, true);
        let only_content = Validators {
            etag: None,
            ..seen()
        };
        check(
            |claim, _| claim.validators = Some(Box::new(only_content)),
            false,
            true,
        );
        let other_content = Validators {
            content: Some(ContentHash::of(b"other")),
            ..seen()
        };
        check(
            |claim, _| claim.validators = Some(Box::new(other_content)),
            true,
            false,
        );
        let no_content = Validators {
            content: None,
            ..seen()
        };
        check(
            |claim, _| claim.validators = Some(Box::new(no_content)),
            true,
            false,
        );
        for parsed_by in [None, Some(ParsedBy([8; 16]))] {
            let by_another = Validators {
                parsed_by,
                ..seen()
            };
            check(
                |claim, _| claim.validators = Some(Box::new(by_another)),
                false,
                false,
            );
        }
    }
}
