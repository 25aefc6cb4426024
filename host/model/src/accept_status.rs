//! Statuses that a request hands to its rule in addition to 200 to 299, such as `404,410,500-599`.
//!
//! A rule names them in a hint of its request. They decide what happens to an answer and are no part of a
//! request's identity.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Key of the hint of a request that names the statuses.
pub const ACCEPT_STATUS: &str = "accept-status";

/// Largest number of bytes of the text.
const TEXT_MAX: usize = 4 << 10;
/// Largest number of ranges, after neighbours are merged.
const RANGES_MAX: usize = 64;
/// Smallest status that ends a request.
const FIRST: u16 = 200;
/// Largest status that an answer can have.
const LAST: u16 = 999;
/// Form of the text, for messages.
const FORM: &str = "write statuses and ranges like 404,410,500-599, or any";

/// Statuses that a request hands to its rule in addition to 200 to 299. Cheap to clone, and small, because each
/// request that waits in memory has one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcceptStatus(Option<Arc<Statuses>>);

#[derive(Debug, PartialEq, Eq)]
struct Statuses {
    /// True if every final status is handed over.
    is_any: bool,
    /// Ranges that are named: sorted, and none overlaps or touches another.
    named: Vec<(u16, u16)>,
}

impl AcceptStatus {
    /// Parses the text that [`fmt::Display`] wrote. Unlike the value of a hint it may be empty: only 200 to 299 are
    /// accepted then.
    pub fn from_kept(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self::default()),
            text => text.parse(),
        }
    }

    /// True if an answer with this status goes to the rule.
    pub fn takes(&self, status: u16) -> bool {
        matches!(status, 200..=299) || self.is_any() || self.names(status)
    }

    /// True if a redirect with this status goes to the rule instead of being followed. `any` alone follows it.
    pub fn takes_redirect(&self, status: u16) -> bool {
        self.names(status)
    }

    /// True if only 200 to 299 go to the rule.
    pub fn is_usual(&self) -> bool {
        self.0.is_none()
    }

    /// Returns about the number of bytes that its text has.
    pub fn n_bytes(&self) -> usize {
        self.named().len() * "200-299,".len()
    }

    fn is_any(&self) -> bool {
        self.0.as_ref().is_some_and(|statuses| statuses.is_any)
    }

    fn named(&self) -> &[(u16, u16)] {
        self.0.as_ref().map_or(&[], |statuses| &statuses.named)
    }

    fn names(&self, status: u16) -> bool {
        let mut named = self.named().iter();
        named.any(|&(first, last)| (first..=last).contains(&status))
    }
}

impl FromStr for AcceptStatus {
    type Err = String;

    /// Parses the value of the hint. The error is the end of a sentence that starts with the hint.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > TEXT_MAX {
            let n_bytes = text.len();
            return Err(format!(
                "has {n_bytes} bytes; at most {TEXT_MAX} are allowed"
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
        let mut named: Vec<(u16, u16)> = Vec::new();
        for (first, last) in ranges {
            match named.last_mut() {
                Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
                Some(_) | None => named.push((first, last)),
            }
        }
        if named.len() > RANGES_MAX {
            let n_ranges = named.len();
            return Err(format!(
                "has {n_ranges} ranges; at most {RANGES_MAX} are allowed"
            ));
        }
        Ok(Self(Some(Arc::new(Statuses { is_any, named }))))
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
        for (first, last) in self.named() {
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        match self.is_any() {
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
        assert_eq!(AcceptStatus::from_kept(shown), Ok(accepted.clone()));
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
        check("405,404", "404-405", &[404, 405], &[403, 406]);
        check("500-599,400-499,601", "400-599,601", &[400, 599], &[600]);
        check("any", "any", &[200, 302, 404, 999], &[]);
        check("999,any,999", "999,any", &[404, 999], &[]);
        assert!(AcceptStatus::default().is_usual());
        assert_eq!(AcceptStatus::from_kept(""), Ok(AcceptStatus::default()));
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
    }

    #[test]
    fn many_statuses_are_accepted_if_they_are_few_ranges() {
        let every = (200..=999).map(|status| status.to_string());
        let every: Vec<String> = every.collect();
        check(&every.join(","), "200-999", &[200, 999], &[]);
        let apart = |n: usize| every.iter().step_by(2).take(n).cloned();
        let refusal = |text: String| text.parse::<AcceptStatus>().unwrap_err();
        let most: Vec<String> = apart(64).collect();
        assert!(most.join(",").parse::<AcceptStatus>().is_ok());
        let more: Vec<String> = apart(65).collect();
        let why = "has 65 ranges; at most 64 are allowed";
        assert_eq!(refusal(more.join(",")), why);
        let why = "has 4097 bytes; at most 4096 are allowed";
        assert_eq!(refusal(" ".repeat(4097)), why);
    }
}
