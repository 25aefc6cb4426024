//! `--fail-on`: conditions under which a crawl that ended in order is no success.

use std::fmt;
use std::str::FromStr;

use super::unmet::Unmet;
use crawler_model::crawl::Counts;
use crawler_model::statistics::Statistics;

/// Help of the option.
pub(super) const HELP: &str = "Exit with 3 if a condition holds: dead=N or dead=N% (pages given up, at least), items=N (items, at most), empty=FIELD (in every item of a kind, or no item has it), unmatched (a selector never matched)";

/// Condition under which a crawl is no success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailOn {
    /// At least this many pages were given up.
    Dead(u64),
    /// At least this many of ten thousand pages were given up.
    DeadShare(u32),
    /// At most this many items came.
    Items(u64),
    /// The field was empty in every item of a kind.
    Empty(String),
    /// A selector was tried and never matched.
    Unmatched,
}

impl FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |name: &str, value: &str, min: u64| {
            let number = value.parse().ok().filter(|n| *n >= min);
            number.ok_or_else(|| format!("{name} takes a number from {min} on, not {value:?}"))
        };
        match text.split_once('=') {
            Some(("dead", value)) => match value.strip_suffix('%') {
                Some(percent) => {
                    let percent: Option<f64> = percent.parse().ok();
                    let share = percent.map(|percent| (percent * 100.0).round());
                    let share = share.filter(|share| (1.0..=10_000.0).contains(share));
                    let why = || format!("dead takes a share from 0.01% to 100%, not {value:?}");
                    let share = share.map(|share| FailOn::DeadShare(share as u32));
                    share.ok_or_else(why)
                }
                None => number("dead", value, 1).map(FailOn::Dead),
            },
            Some(("items", value)) => number("items", value, 0).map(FailOn::Items),
            Some(("empty", field)) if !field.is_empty() => Ok(FailOn::Empty(field.to_owned())),
            None if text == "unmatched" => Ok(FailOn::Unmatched),
            _ => Err("write dead=N, dead=N%, items=N, empty=FIELD or unmatched".to_owned()),
        }
    }
}

impl fmt::Display for FailOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailOn::Dead(n) => write!(f, "dead={n}"),
            FailOn::DeadShare(share) => write!(f, "dead={}%", f64::from(*share) / 100.0),
            FailOn::Items(n) => write!(f, "items={n}"),
            FailOn::Empty(field) => write!(f, "empty={field}"),
            FailOn::Unmatched => f.write_str("unmatched"),
        }
    }
}

/// Checks a crawl that ended in order against all conditions.
pub fn check(conditions: &[FailOn], counts: &Counts, statistics: &Statistics) -> Result<(), Unmet> {
    let broken = conditions.iter().find_map(|condition| {
        let why = condition.broken(counts, statistics)?;
        Some(Unmet {
            what: format!("--fail-on {condition}: {why}"),
            hint: String::new(),
        })
    });
    broken.map_or(Ok(()), Err)
}

impl FailOn {
    /// True if counts alone cannot decide about the condition.
    pub(super) fn needs_statistics(&self) -> bool {
        match self {
            FailOn::Empty(_) | FailOn::Unmatched => true,
            FailOn::Dead(_) | FailOn::DeadShare(_) | FailOn::Items(_) => false,
        }
    }

    /// Returns what breaks the condition, if anything does.
    fn broken(&self, counts: &Counts, statistics: &Statistics) -> Option<String> {
        let (dead, pages) = (counts.dead, counts.pages());
        let holds = match self {
            FailOn::Dead(min) => dead >= *min,
            FailOn::DeadShare(share) => {
                dead > 0 && u128::from(dead) * 10_000 >= u128::from(*share) * u128::from(pages)
            }
            FailOn::Items(max) => counts.items <= *max,
            // A name that is written wrong must not pass.
            FailOn::Empty(field) if !statistics.has_field(field) => {
                return Some(format!("no item has a field {field}"));
            }
            FailOn::Empty(field) => {
                let mut empty = statistics.empty_fields();
                let (kind, _) = empty.find(|(_, name)| name == field)?;
                return Some(format!("field {field} is empty in every item {kind}"));
            }
            FailOn::Unmatched => {
                let (plan, name) = statistics.unmatched().next()?;
                return Some(format!("selector {name} of plan {plan} never matched"));
            }
        };
        holds.then(|| match self {
            FailOn::Items(_) => format!("the crawl has {} items", counts.items),
            _ => format!("{dead} of {pages} pages were given up"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::statistics::{Kind, PlanMatches};

    #[test]
    fn conditions_are_read_and_written_alike() {
        for text in ["dead=3", "dead=0.5%", "items=0", "empty=price", "unmatched"] {
            let condition: FailOn = text.parse().unwrap();
            assert_eq!(condition.to_string(), text);
        }
        for text in [
            "",
            "dead",
            "dead=0",
            "dead=x",
            "dead=0%",
            "dead=101%",
            "empty=",
            "x=1",
        ] {
            assert!(text.parse::<FailOn>().is_err(), "{text}");
        }
    }

    #[track_caller]
    fn check_one(condition: &str, broken: Option<&str>) {
        let counts = Counts {
            parsed: 98,
            dead: 2,
            items: 5,
            ..Counts::default()
        };
        let kind = Kind {
            items: 5,
            fields: [("price".to_owned(), 0), ("title".to_owned(), 1)].into(),
        };
        let plan = PlanMatches {
            pages: 5,
            selectors: [("price".to_owned(), 0)].into(),
        };
        let statistics = Statistics {
            kinds: [("book".to_owned(), kind)].into(),
            plans: [("page".to_owned(), plan)].into(),
            ..Statistics::default()
        };
        let conditions = [condition.parse().unwrap()];
        let found = check(&conditions, &counts, &statistics).map_err(|unmet| unmet.what);
        let expected = broken.map(|why| format!("--fail-on {condition}: {why}"));
        assert_eq!(found.err(), expected);
    }

    #[test]
    fn a_condition_that_holds_is_told() {
        check_one("dead=2", Some("2 of 100 pages were given up"));
        check_one("dead=3", None);
        check_one("dead=2%", Some("2 of 100 pages were given up"));
        check_one("dead=2.1%", None);
        check_one("items=5", Some("the crawl has 5 items"));
        check_one("items=4", None);
        check_one(
            "empty=price",
            Some("field price is empty in every item book"),
        );
        check_one("empty=title", None);
        check_one("empty=prise", Some("no item has a field prise"));
        check_one(
            "unmatched",
            Some("selector price of plan page never matched"),
        );
    }
}
