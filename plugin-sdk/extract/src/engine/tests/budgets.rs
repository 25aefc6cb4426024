//! Budgets: captures that they cut off, and pages that they refuse.

use super::*;
use crate::processor_time;

#[test]
fn captures_beyond_the_budget_are_left_out() {
    let budget = |n_captures| Budget {
        n_captures,
        ..Budget::default()
    };
    let page = "<div><b>1</b><div><b>2</b></div><b>3</b></div>";
    let plan = "r < div\nr.b = b";
    check_with(
        &budget(5),
        plan,
        page,
        "r: - -\nb: 0 \"1\", 1 \"2\", 0 \"3\"",
    );
    check_with(
        &budget(4),
        plan,
        page,
        "r: - -\nb: 0 \"1\", 1 \"2\"\ntruncated",
    );
    // Without the inner row, its value would be one of the outer.
    check_with(&budget(2), plan, page, "r: -\nb: 0 \"1\"\ntruncated");
    check_with(&budget(0), plan, page, "r:\nb:\ntruncated");
    check_with(&budget(0), ".x = x", page, "x:");
}

#[test]
fn bytes_beyond_the_budget_are_cut_but_never_an_attribute() {
    let budget = |captured_bytes| Budget {
        captured_bytes,
        ..Budget::default()
    };
    let page = "<x>ab é cd</x><a href=/ef></a><x>g</x>";
    let plan = ".x = x\n.a = a -> @href";
    check_with(
        &budget(12),
        plan,
        page,
        "x: - \"ab é cd\", - \"g\"\na: - \"/ef\"",
    );
    check_with(
        &budget(11),
        plan,
        page,
        "x: - \"ab é cd\", - \"\"\na: - \"/ef\"\ntruncated",
    );
    check_with(&budget(10), plan, page, "x: - \"ab é cd\"\na:\ntruncated");
    check_with(&budget(8), plan, page, "x: - \"ab é cd\"\na:\ntruncated");
    // The cut is between characters.
    check_with(&budget(4), plan, page, "x: - \"ab\"\na:\ntruncated");
    check_with(&budget(0), plan, page, "x: - \"\"\na:\ntruncated");
    // White space at the end needs no room.
    check_with(&budget(1), ".x = x", "<x> a  </x>", "x: - \"a\"");
    // No row begins after the cut, since nothing could be captured in it.
    check_with(
        &budget(1),
        "r < p\nr.x = x",
        "<p><x>ab</x></p><p></p>",
        "r: -\nx: 0 \"a\"\ntruncated",
    );
    // Nothing is appended after a gap.
    check_with(
        &budget(1),
        ".x = x -> raw",
        "<x>é<b>a</b></x>",
        "x: - \"\"\ntruncated",
    );
}

#[test]
fn inner_html_beyond_the_budget_is_cut_and_what_follows_left_out() {
    let budget = |captured_bytes| Budget {
        captured_bytes,
        ..Budget::default()
    };
    let page = "<d>a<d>bc</d>d</d><d>e</d><d></d>";
    let plan = ".d = d -> inner";
    let whole = "a<d>bc</d>d";
    // The inner one shares the bytes of the outer.
    check_with(
        &budget(12),
        plan,
        page,
        &format!("d: - {whole:?}, - \"bc\", - \"e\", - \"\""),
    );
    check_with(
        &budget(11),
        plan,
        page,
        &format!("d: - {whole:?}, - \"bc\", - \"\"\ntruncated"),
    );
    check_with(
        &budget(5),
        plan,
        page,
        "d: - \"a<d>b\", - \"b\", - \"\"\ntruncated",
    );
    check_with(&budget(2), plan, page, "d: - \"a<\", - \"\"\ntruncated");
    // Text is taken as the page is read, inner HTML afterwards.
    check_with(
        &budget(5),
        ".d = d -> inner\n.t = d",
        page,
        "d: - \"\"\nt: - \"abcd\", - \"bc\", - \"e\", - \"\"\ntruncated",
    );
}

#[test]
fn errors_name_the_limit_and_the_way_out() {
    let plan = CompiledPlan::new(&written::plan(".a = a"), &PlanLimits::default()).unwrap();
    let error = |page: &str, budget: Budget| extract(&plan, page, &budget).unwrap_err().to_string();
    let at_once = Budget {
        deadline: Duration::ZERO,
        ..Budget::default()
    };
    for page in ["", "<a>"] {
        assert_eq!(
            error(page, at_once.clone()),
            "reading the page takes longer than 0ns; use fewer selectors and begin them with a tag name, raise the deadline of the budget, or skip the page"
        );
    }
    let short = Budget {
        page_bytes: 2,
        ..Budget::default()
    };
    assert_eq!(
        error("<a>", short),
        "the page has 3 bytes, and 2 is the limit; raise the page bytes of the budget, or fetch less of the page"
    );
    let shallow = Budget {
        memory: 0,
        ..Budget::default()
    };
    assert_eq!(
        error(&"<b>".repeat(1_000), shallow),
        "reading the page takes more than 1024 bytes, at 128 for each element that is open in another: raise the memory of the budget, up to 4 MiB, or skip the page"
    );
}

#[test]
fn a_long_tag_that_is_asked_much_is_given_up_on_the_way() {
    let conditions: Vec<String> = (0..100).map(|n| format!("[a*=x{n}]")).collect();
    let plan = format!(".a = p:not({})", conditions.join(", "));
    check_given_up(
        &plan,
        &format!("<p a=\"{}\">text</p>", "x".repeat(1_000_000)),
    );
    let conditions: String = (0..45).map(|_| "[a^=\"&\"]").collect();
    let long = format!("<p a='{}'>text</p>", "&amp;".repeat(200_000));
    check_given_up(&format!(".a = p{conditions}"), &long);
    let names: String = (0..200_000).map(|n| format!(" a{n}")).collect();
    let conditions: Vec<String> = (0..100).map(|n| format!("[x{n}]")).collect();
    let plan = format!(".a = p:not({})", conditions.join(", "));
    check_given_up(&plan, &format!("<p {names}>text</p>"));
}

#[test]
fn a_long_value_that_many_fields_take_is_given_up_on_the_way() {
    let fields: Vec<String> = (0..128).map(|n| format!(".f{n} = p -> @a")).collect();
    let fields = fields.join("\n");
    let page = format!("<p a='{}'>text</p>", "&amp;".repeat(200_000));
    check_given_up(&fields, &page);
    // No value is read in vain once there is no room: 127 of the fields take no time.
    let took = |fields: &str| {
        let plan = CompiledPlan::new(&written::plan(fields), &PlanLimits::default()).unwrap();
        let begun = processor_time();
        let one = Budget {
            n_captures: 1,
            ..Budget::default()
        };
        let read = extract(&plan, &format!("{page}{page}"), &one).unwrap();
        assert!(read.truncated);
        processor_time() - begun
    };
    let (one, all) = (took(".f = p -> @a\n.g = p -> @a"), took(&fields));
    assert!(all < one * 16, "{all:?} of {one:?}");
}

#[test]
fn memory_is_counted_by_the_steps_of_the_plan() {
    let deepest = |n: usize, between: &str| {
        let fields = (0..n).map(|n| format!(".f{n} = a{n}{between}b -> present"));
        let plan = written::plan(&fields.collect::<Vec<_>>().join("\n"));
        let plan = CompiledPlan::new(&plan, &PlanLimits::default()).unwrap();
        let budget = Budget {
            memory: 64 << 10,
            ..Budget::default()
        };
        let fits = |depth: usize| extract(&plan, &"<i>".repeat(depth), &budget).is_ok();
        (1..1_000).take_while(|depth| fits(*depth)).count()
    };
    assert_eq!(deepest(32, " "), (64 << 10) / 128);
    assert_eq!(deepest(33, " "), (64 << 10) / 144);
    assert_eq!(deepest(32, " ~ "), (64 << 10) / 144);
    assert_eq!(deepest(64, " ~ "), (64 << 10) / 176);
}

#[test]
fn a_base_that_no_address_can_have_is_as_good_as_none() {
    let plan = CompiledPlan::new(&written::plan(".a = a"), &PlanLimits::default()).unwrap();
    let base = |href: &str| {
        let page = format!("<base href='{href}'><base href=/second>");
        extract(&plan, &page, &Budget::default()).unwrap().base
    };
    assert_eq!(base("/first").as_deref(), Some("/first"));
    assert_eq!(base(&"x".repeat(9_000)).as_deref(), Some(""));
}

/// Checks that reading is given up in less than a quarter of the full time: on the way, and not at its end.
#[track_caller]
fn check_given_up(plan: &str, page: &str) {
    let limits = PlanLimits {
        selector_bytes: 2_048,
        ..PlanLimits::default()
    };
    let plan = CompiledPlan::new(&written::plan(plan), &limits).unwrap();
    let took = |deadline: Duration| {
        let begun = processor_time();
        let budget = Budget {
            deadline,
            ..Budget::default()
        };
        let read = extract(&plan, page, &budget);
        (read.map(drop), processor_time() - begun)
    };
    let (read, whole) = took(Duration::from_secs(600));
    assert_eq!(read, Ok(()));
    let deadline = Duration::from_millis(1);
    let (given_up, part) = took(deadline);
    assert_eq!(given_up, Err(ExtractError::TooSlow { deadline }));
    assert!(part < whole / 4, "{part:?} of {whole:?}");
}

#[test]
fn a_page_that_takes_long_is_given_up_on_the_way() {
    let conditions = (0..40).map(|n| format!(".f{n} = :not(.a{n}) :not(.b{n}) -> present"));
    let plan = conditions.collect::<Vec<_>>().join("\n");
    check_given_up(&plan, &"<b></b>".repeat(20_000));
}

/// White space is no byte of any value, so no other budget ends it, and here it comes in one piece.
#[test]
fn a_long_text_of_nothing_but_space_is_given_up_on_the_way() {
    let fields = (0..30).map(|n| format!("g{n} < body\ng{n}.f{n} = div"));
    let plan = fields.collect::<Vec<_>>().join("\n");
    for first in [" ", "&#32;"] {
        let page = format!("<body><div>a{first}{}</div></body>", " ".repeat(1_600_000));
        check_given_up(&plan, &page);
    }
}
