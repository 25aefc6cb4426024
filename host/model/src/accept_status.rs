//! Statuses that a request hands to its rule although they are no success, such as `404,410,500-599`.
//!
//! A rule names them in a hint of its request. They decide what happens to an answer and are no part of a
//! request's identity.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Key of the hint of a request that names the statuses.
pub const ACCEPT_STATUS: &str = "accept-status";

/// Largest number of parts between commas.
const PARTS_MAX: usize = 64;
/// Smallest status that ends a request.
const FIRST: u16 = 200;
/// Largest status that an answer can have.
const LAST: u16 = 999;
/// Form of the text, for messages.
const FORM: &str = "write statuses and ranges like 404,410,500-599, or any";

/// Statuses that a request hands to its rule beside 200 to 299. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcceptStatus {
    /// True if every final status is handed over.
    is_any: bool,
    /// Ranges that are named: sorted, and none overlaps another. `None` if there are none.
    named: Option<Arc<[(u16, u16)]>>,
}

impl AcceptStatus {
    /// True if an answer with this status goes to the rule.
    pub fn takes(&self, status: u16) -> bool {
        self.is_any || matches!(status, 200..=299) || self.names(status)
    }

    /// True if a redirect with this status goes to the rule instead of being followed. `any` alone follows it.
    pub fn takes_redirect(&self, status: u16) -> bool {
        self.names(status)
    }

    /// True if only 200 to 299 go to the rule.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    fn names(&self, status: u16) -> bool {
        let mut named = self.named.iter().flat_map(|ranges| ranges.iter());
        named.any(|&(first, last)| (first..=last).contains(&status))
    }
}

impl FromStr for AcceptStatus {
    type Err = String;

    /// Parses the value of the hint. The error is the end of a sentence that starts with the hint.
    fn from_str(text: &str) -> Result<Self, String> {
        let n_parts = text.split(',').count();
        if n_parts > PARTS_MAX {
            return Err(format!(
                "has {n_parts} parts; at most {PARTS_MAX} are allowed"
            ));
        }
        let (mut is_any, mut ranges) = (false, Vec::new());
        for part in text.split(',').map(str::trim) {
            match part {
                "any" => is_any = true,
                _ => ranges.push(range(part)?),
            }
        }
        ranges.sort_unstable();
        let mut named: Vec<(u16, u16)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match named.last_mut() {
                Some(before) if first <= before.1 => before.1 = before.1.max(last),
                Some(_) | None => named.push((first, last)),
            }
        }
        Ok(Self {
            is_any,
            named: (!named.is_empty()).then(|| named.into()),
        })
    }
}

/// Parses one status or a range of them.
fn range(part: &str) -> Result<(u16, u16), String> {
    let status = |text: &str| {
        let is_number = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u16>().ok().filter(|_| is_number)
    };
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (Some(first), Some(last)) = (status(first), status(last)) else {
        let shown = &part[..part.floor_char_boundary(20)];
        return Err(format!("has {shown:?}, which is no status; {FORM}"));
    };
    if first < FIRST {
        return Err(format!(
            "has {first}, and a request ends with {FIRST} to {LAST}; {FORM}"
        ));
    }
    if last < first {
        return Err(format!("has {part}, which ends before it begins; {FORM}"));
    }
    Ok((first, last))
}

impl fmt::Display for AcceptStatus {
    /// Writes the text that [`FromStr`] reads; empty if only 200 to 299 are accepted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (first, last) in self.named.iter().flat_map(|ranges| ranges.iter()) {
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        match self.is_any {
            true => write!(f, "{comma}any"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, shown: &str, taken: &[u16], refused: &[u16]) {
        let accepted: AcceptStatus = text.parse().unwrap();
        assert_eq!(accepted.to_string(), shown);
        assert_eq!(shown.parse(), Ok(accepted.clone()));
        for status in taken {
            assert!(accepted.takes(*status), "{text}: {status}");
        }
        for status in refused {
            assert!(!accepted.takes(*status), "{text}: {status}");
        }
    }

    #[test]
    fn statuses_and_ranges_are_accepted_beside_success() {
        check("404", "404", &[200, 299, 404], &[300, 403, 405, 500]);
        check(
            " 500-599, 404 ,410",
            "404,410,500-599",
            &[404, 410, 500, 599],
            &[409, 499, 600],
        );
        check("405-410,404,400-406,404", "400-410", &[400, 410], &[411]);
        check("405,404", "404,405", &[404, 405], &[403, 406]);
        check("any", "any", &[200, 302, 404, 999], &[]);
        check("999,any,999", "999,any", &[404, 999], &[]);
        assert!(AcceptStatus::default().is_usual());
        assert!(!AcceptStatus::default().takes(404));
        assert!("404".parse().is_ok_and(|a: AcceptStatus| !a.is_usual()));
    }

    #[test]
    fn a_redirect_is_handed_over_only_if_it_is_named() {
        for (text, expected) in [
            ("any", false),
            ("404", false),
            ("301", true),
            ("300-399", true),
            ("any,301", true),
        ] {
            let accepted: AcceptStatus = text.parse().unwrap();
            assert_eq!(accepted.takes_redirect(301), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_status_is_refused_with_a_sentence() {
        let form = "write statuses and ranges like 404,410,500-599, or any";
        for (text, why) in [
            ("", "has \"\", which is no status"),
            ("404,", "has \"\", which is no status"),
            ("4xx", "has \"4xx\", which is no status"),
            ("404-", "has \"404-\", which is no status"),
            ("+404", "has \"+404\", which is no status"),
            ("1000", "has \"1000\", which is no status"),
            ("all", "has \"all\", which is no status"),
            ("100-199", "has 100, and a request ends with 200 to 999"),
            ("599-500", "has 599-500, which ends before it begins"),
        ] {
            let error = text.parse::<AcceptStatus>().unwrap_err();
            assert_eq!(error, format!("{why}; {form}"));
        }
        let many = vec!["404"; 65].join(",");
        let error = many.parse::<AcceptStatus>().unwrap_err();
        assert_eq!(error, "has 65 parts; at most 64 are allowed");
    }
}
