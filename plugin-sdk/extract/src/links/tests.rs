//! Tests of choosing: which links fit, how often they are judged, and what ends the work.

use super::*;
use crate::captures::{Column, NONE};

const PAGE: &str = "http://a.test/x/page";
const FUEL: u64 = 1_000_000_000;

/// Returns captures of one field with these values.
fn captures(values: &[&str]) -> Captures {
    let mut captures = Captures::default();
    let mut column = Column::default();
    for value in values {
        column.rows.push(NONE);
        let start = u32::try_from(captures.text.len()).unwrap();
        captures.text.push_str(value);
        let end = u32::try_from(captures.text.len()).unwrap();
        column.spans.extend([start, end]);
    }
    captures.columns.push(column);
    captures
}

fn conditions(matching: &[&str], not_matching: &[&str]) -> LinkConditions {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    LinkConditions {
        matching: owned(matching),
        not_matching: owned(not_matching),
        ..LinkConditions::default()
    }
}

fn distinct() -> LinkConditions {
    LinkConditions {
        distinct: true,
        ..LinkConditions::default()
    }
}

fn choose_with(
    conditions: &LinkConditions,
    values: &[&str],
    budget: &ChooseBudget,
    fuel: &mut u64,
) -> Result<Vec<u32>, ChooseError> {
    let page = Url::parse(PAGE).unwrap();
    let filter = filter(conditions);
    filter.choose(&captures(values), 0, (&page, &page), budget, fuel)
}

fn filter(conditions: &LinkConditions) -> LinkFilter {
    LinkFilter::new(conditions).0.unwrap()
}

#[track_caller]
fn check(conditions: &LinkConditions, values: &[&str], expected: &[u32]) {
    let budget = ChooseBudget {
        deadline: Duration::from_secs(60),
        ..ChooseBudget::default()
    };
    let chosen = choose_with(conditions, values, &budget, &mut FUEL.clone());
    assert_eq!(chosen.unwrap(), expected);
}

#[test]
fn only_addresses_of_pages_are_chosen() {
    let long = format!("/{}", "x".repeat(ADDRESS_MAX));
    let values = [
        "/a",
        "mailto:me@a.test",
        "http://[",
        "//b.test",
        &long,
        "https:c",
        "",
    ];
    check(&LinkConditions::default(), &values, &[0, 3, 5, 6]);
}

#[test]
fn patterns_are_searched_in_absolute_addresses_without_fragments() {
    let values = ["7", "8#7", "http://b.test/7", "/9?7"];
    check(&conditions(&["^http://a.test/x/7$"], &[]), &values, &[0]);
    check(&conditions(&["7"], &[]), &values, &[0, 2, 3]);
    check(&conditions(&["7", "x"], &[]), &values, &[0]);
    check(&conditions(&["7"], &["x", "b\\.test"]), &values, &[3]);
    check(&conditions(&[], &["."]), &values, &[]);
}

#[test]
fn the_host_is_that_of_the_page_with_any_scheme_and_port() {
    let here = LinkConditions {
        within_host: true,
        ..LinkConditions::default()
    };
    let values = [
        "y",
        "https://A.test:8443/",
        "http://www.a.test/",
        "//b.test/",
    ];
    check(&here, &values, &[0, 1]);
    let (page, base) = (
        Url::parse(PAGE).unwrap(),
        Url::parse("http://b.test/").unwrap(),
    );
    let filter = filter(&here);
    let (budget, mut fuel) = (ChooseBudget::default(), FUEL);
    let chosen = filter.choose(
        &captures(&["y", "http://a.test/"]),
        0,
        (&page, &base),
        &budget,
        &mut fuel,
    );
    assert_eq!(chosen.unwrap(), [1]);
}

#[test]
fn the_first_link_to_an_address_is_chosen_if_they_are_distinct() {
    let values = ["a", "a#top", "/x/a", "b", "a", "http://a.test:80/x/b#"];
    check(&distinct(), &values, &[0, 3]);
    check(&conditions(&["a$"], &[]), &values, &[0, 1, 2, 4]);
}

#[test]
fn white_space_before_a_fragment_belongs_to_the_address() {
    check(&distinct(), &["a #top", "a", " a ", "a%20"], &[0, 1]);
    check(&distinct(), &["#top", "#", "page"], &[0]);
}

#[test]
fn an_address_is_paid_once_however_many_links_lead_to_it() {
    let cost = |values: &[&str]| {
        let mut fuel = FUEL;
        let budget = ChooseBudget {
            deadline: Duration::from_secs(60),
            ..ChooseBudget::default()
        };
        choose_with(&conditions(&["a+b"], &[]), values, &budget, &mut fuel).unwrap();
        FUEL - fuel
    };
    let (one, same, other) = (cost(&["a"]), cost(&["a", "a"]), cost(&["a", "b"]));
    assert_eq!(same - one, FUEL_PER_LINK + 1);
    assert!(other - one > FUEL_PER_ADDRESS, "{other} {one}");
    // The second text is resolved, and its address is known.
    let known = cost(&["a", "./a"]);
    assert!(known < other, "{known} {other}");
}

#[test]
fn work_ends_with_the_fuel_the_time_and_the_bytes() {
    let all = LinkConditions::default();
    let budget = ChooseBudget::default();
    let mut fuel = FUEL_PER_ADDRESS;
    let ended = choose_with(&all, &["a"], &budget, &mut fuel);
    assert_eq!((ended, fuel), (Err(ChooseError::OutOfFuel), 0));
    let slow = ChooseBudget {
        deadline: Duration::ZERO,
        ..budget.clone()
    };
    let deadline = Duration::ZERO;
    let ended = choose_with(&all, &["a"], &slow, &mut FUEL.clone());
    assert_eq!(ended, Err(ChooseError::TooSlow { deadline }));
    let limit = 2 * "http://a.test/x/a".len() - 1;
    let small = ChooseBudget {
        address_bytes: limit,
        deadline: Duration::from_secs(60),
    };
    check(&all, &["a", "a", "b"], &[0, 1, 2]);
    assert_eq!(
        choose_with(&all, &["a", "a"], &small, &mut FUEL.clone()),
        Ok(vec![0, 1])
    );
    let ended = choose_with(&all, &["a", "b"], &small, &mut FUEL.clone());
    assert_eq!(ended, Err(ChooseError::TooLarge { limit }));
}

#[track_caller]
fn check_too_slow(conditions: &LinkConditions, captures: &Captures) {
    let (page, deadline) = (Url::parse(PAGE).unwrap(), Duration::from_millis(5));
    let budget = ChooseBudget {
        deadline,
        ..ChooseBudget::default()
    };
    let (places, mut fuel) = ((&page, &page), u64::MAX);
    let ended = filter(conditions).choose(captures, 0, places, &budget, &mut fuel);
    assert_eq!(ended, Err(ChooseError::TooSlow { deadline }));
}

#[test]
fn the_clock_is_read_between_equal_texts_and_between_patterns() {
    // Elements within each other may all have one long text, which is looked up for each.
    let mut nested = captures(&["x".repeat(16 << 10).as_str()]);
    let column = &mut nested.columns[0];
    column.rows = vec![NONE; 50_000];
    column.spans = column.spans.repeat(50_000);
    check_too_slow(&LinkConditions::default(), &nested);
    let long = captures(&["x".repeat(8_000).as_str()]);
    let patterns = ["x{0,200}y", "x{0,200}z", "x{0,200}v", "x{0,200}w"];
    check_too_slow(&conditions(&[], &patterns), &long);
}

#[test]
fn no_links_take_more_fuel_than_is_told_before() {
    let max_and_used = |conditions: &LinkConditions, values: &[&str]| {
        let page = Url::parse(PAGE).unwrap();
        let max = filter(conditions).max_fuel(&captures(values), 0, &page);
        let budget = ChooseBudget {
            deadline: Duration::from_secs(60),
            ..ChooseBudget::default()
        };
        let mut fuel = u64::MAX;
        choose_with(conditions, values, &budget, &mut fuel).unwrap();
        (max, u64::MAX - fuel)
    };
    let all = LinkConditions::default();
    let (max, used) = max_and_used(&all, &["a", "b", "/c?d"]);
    assert_eq!(max, used);
    let long = "x".repeat(ADDRESS_MAX - 20);
    let escaped = "ü".repeat(500);
    let values = [
        "a",
        "a",
        "#b",
        "http://b.test/",
        &long,
        &escaped,
        "mailto:c",
    ];
    for conditions in [all, conditions(&["a{100}|."], &["b{9}"]), distinct()] {
        let (max, used) = max_and_used(&conditions, &values);
        assert!(max >= used, "{max} {used} {conditions:?}");
    }
}

#[test]
fn a_field_that_does_not_exist_is_refused() {
    let filter = filter(&LinkConditions::default());
    let page = Url::parse(PAGE).unwrap();
    let (budget, mut fuel) = (ChooseBudget::default(), FUEL);
    let refused = filter.choose(&captures(&["a"]), 7, (&page, &page), &budget, &mut fuel);
    let why = refused.unwrap_err().to_string();
    assert_eq!(why, "field 7 does not exist; the plan has 1");
}

#[track_caller]
fn check_refused(conditions: &LinkConditions, why: &str) {
    let (compiled, fuel) = LinkFilter::new(conditions);
    assert_eq!(fuel, PATTERNS_SIZE_MAX as u64 * FUEL_PER_PATTERN_BYTE);
    let error = compiled.unwrap_err().to_string();
    assert!(error.starts_with(why), "{error}");
}

#[test]
fn conditions_that_are_wrong_or_too_large_are_refused() {
    check_refused(
        &conditions(&[], &["("]),
        "`(` is no regular expression for links: found open group without closing",
    );
    check_refused(
        &conditions(&[&"a".repeat(5_000)], &[]),
        "a regular expression for links is 5000 bytes long; at most 4096 are allowed",
    );
    check_refused(
        &conditions(&["a"; 20], &["b"; 20]),
        "there are 40 regular expressions for links; at most 32 are allowed",
    );
    check_refused(
        &conditions(&["a{1000}"; 30], &[]),
        "the regular expressions for links take more than 262144 bytes once they are compiled",
    );
    let (compiled, fuel) = LinkFilter::new(&conditions(&["a"; 16], &["b"; 16]));
    assert!(compiled.is_ok());
    assert_eq!(fuel, 32 * 1_024 * FUEL_PER_PATTERN_BYTE);
}
