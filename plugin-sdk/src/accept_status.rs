//! Hint by which a request asks for statuses in addition to 200 to 299.

use std::ops::RangeInclusive;

/// Key of the hint.
pub(crate) const KEY: &str = "accept-status";

/// Adds a status, a range, or `any` to those that the hints ask for.
pub(crate) fn add(hints: &mut Vec<(String, String)>, status: &str) {
    match hints.iter_mut().find(|(key, _)| key == KEY) {
        Some((_, statuses)) => {
            statuses.push(',');
            statuses.push_str(status);
        }
        None => hints.push((KEY.to_owned(), status.to_owned())),
    }
}

/// Adds a range to those that the hints ask for.
pub(crate) fn add_range(hints: &mut Vec<(String, String)>, statuses: &RangeInclusive<u16>) {
    add(hints, &format!("{}-{}", statuses.start(), statuses.end()));
}

#[cfg(test)]
mod tests {
    use crate::{Follow, Request, Rule};

    #[test]
    fn all_statuses_of_a_request_are_in_one_hint() {
        let rule = Rule::__new(0, "page");
        let expected = [("accept-status".to_owned(), "404,500-599,any".to_owned())];
        let request = Request::get("/", rule)
            .accept_status(404)
            .accept_statuses(500..=599);
        assert_eq!(request.accept_any_status().hints, expected);
        let follow = Follow::by(rule).accept_status(404);
        let follow = follow.accept_statuses(500..=599);
        assert_eq!(follow.accept_any_status().hints, expected);
    }
}
