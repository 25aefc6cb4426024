//! `--fail-on`: conditions under which a crawl that ended in order is no success.

use std::fmt;
use std::str::FromStr;

use super::unmet::Unmet;
use crawler_model::number;
use crawler_model::statistics::RunStatistics;

/// Help of the option.
pub(super) const HELP: &str = "Exit with 3 if a condition holds: dead=N or dead=N% (pages given up, at least), items=N (items, at most), empty=FIELD (in every item of a kind, or no item has it), unmatched (a selector never matched)";

/// Condition under which a crawl is no success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailOn {
    /// At least this many pages were given up.
    Dead(u64),
    /// At least this many of ten thousand pages were given up. Pages that were not due do not count.
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
                    let share = percent.map(|percent| percent * 100.0);
                    let is_whole = |share: &f64| (share - share.round()).abs() < 1e-6;
                    let share =
                        share.filter(|share| (0.5..=10_000.0).contains(share) && is_whole(share));
                    let why = || {
                        format!(
                            "dead takes a share from 0.01% to 100%, with two decimals at most, not {value:?}"
                        )
                    };
                    let share = share.map(|share| FailOn::DeadShare(share.round() as u32));
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
pub fn check(conditions: &[FailOn], found: &RunStatistics) -> Result<(), Unmet> {
    let broken = conditions.iter().find_map(|condition| {
        let why = condition.broken(found)?;
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
    fn broken(&self, found: &RunStatistics) -> Option<String> {
        let (counts, statistics) = (&found.counts, &found.statistics);
        let is_all_unchanged = counts.parsed == 0 && !counts.has_no_page();
        let (dead, pages) = (counts.dead, counts.due_pages());
        let holds = match self {
            FailOn::Dead(min) => dead >= *min,
            FailOn::DeadShare(share) => {
                dead > 0 && u128::from(dead) * 10_000 >= u128::from(*share) * u128::from(pages)
            }
            FailOn::Items(max) => counts.items <= *max,
            FailOn::Empty(_) | FailOn::Unmatched if is_all_unchanged => false,
            FailOn::Empty(_) if counts.items == 0 => return Some("there are no items".to_owned()),
            FailOn::Empty(field) => {
                // A name that is written wrong must not pass.
                let what = match statistics.has_field(field) {
                    true => {
                        let mut empty = statistics.empty_fields();
                        let (kind, _) = empty.find(|(_, name)| name == field)?;
                        format!("field {field} is empty in every item {kind}")
                    }
                    false => format!("no item has a field {field}"),
                };
                let known = statistics.items();
                return Some(match known < counts.items {
                    // A crash, or an upgrade, has lost what was known of the others.
                    true => format!(
                        "{what}, as far as is known: of {known} of {}",
                        number(counts.items, "item")
                    ),
                    false => what,
                });
            }
            FailOn::Unmatched if statistics.plans.is_empty() => {
                return Some("no page was read by a plan".to_owned());
            }
            FailOn::Unmatched => {
                let (plan, name) = statistics.unmatched().next()?;
                return Some(format!("selector {name} of plan {plan} never matched"));
            }
        };
        holds.then(|| match self {
            FailOn::Items(_) => format!("the crawl has {}", number(counts.items, "item")),
            _ if dead == 1 => format!("1 of {} was given up", number(pages, "page")),
            _ => format!("{dead} of {pages} pages were given up"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::crawl::{Counts, Done};
    use crawler_model::statistics::{Kind, PlanMatches, Statistics};

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
            "dead=2.004%",
            "dead=0.005%",
            "empty=",
            "x=1",
        ] {
            assert!(text.parse::<FailOn>().is_err(), "{text}");
        }
    }

    fn found() -> RunStatistics {
        let kind = Kind {
            items: 5,
            fields: [("price".to_owned(), 0), ("title".to_owned(), 1)].into(),
        };
        let plan = PlanMatches {
            pages: 5,
            selectors: [("price".to_owned(), 0)].into(),
        };
        RunStatistics {
            counts: Counts {
                parsed: 98,
                dead: 2,
                items: 5,
                ..Counts::default()
            },
            statistics: Statistics {
                kinds: [("book".to_owned(), kind)].into(),
                plans: [("page".to_owned(), plan)].into(),
                ..Statistics::default()
            },
            ..RunStatistics::default()
        }
    }

    #[track_caller]
    fn check_in(found: &RunStatistics, condition: &str, broken: Option<&str>) {
        let conditions = [condition.parse().unwrap()];
        let told = check(&conditions, found).map_err(|unmet| unmet.what);
        let expected = broken.map(|why| format!("--fail-on {condition}: {why}"));
        assert_eq!(told.err(), expected);
    }

    #[track_caller]
    fn check_one(condition: &str, broken: Option<&str>) {
        check_in(&found(), condition, broken);
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

    #[test]
    fn pages_that_are_not_due_do_not_lower_the_share() {
        let mut found = found();
        for _ in 0..1_000 {
            found.counts.end_done(Done::NotDue);
        }
        check_in(&found, "dead=2%", Some("2 of 100 pages were given up"));
    }

    #[test]
    fn a_condition_that_nothing_is_known_about_does_not_pass() {
        let mut found = found();
        found.counts.items = 7;
        let why = "field price is empty in every item book, as far as is known: of 5 of 7 items";
        check_in(&found, "empty=price", Some(why));
        check_in(&found, "empty=title", None);
        found.statistics = Statistics::default();
        let why = "no item has a field title, as far as is known: of 0 of 7 items";
        check_in(&found, "empty=title", Some(why));
        check_in(&found, "unmatched", Some("no page was read by a plan"));
        found.counts.items = 0;
        check_in(&found, "empty=title", Some("there are no items"));
    }

    #[test]
    fn one_page_and_one_item_are_told_as_one() {
        let mut found = RunStatistics::default();
        found.counts.items = 1;
        found.counts.end_dead("timeout");
        check_in(&found, "dead=1", Some("1 of 1 page was given up"));
        check_in(&found, "items=1", Some("the crawl has 1 item"));
    }

    #[test]
    fn a_run_without_a_changed_page_passes() {
        let mut found = RunStatistics::default();
        found.counts.end_done(Done::NotModified);
        check_in(&found, "empty=title", None);
        check_in(&found, "unmatched", None);
    }
}
