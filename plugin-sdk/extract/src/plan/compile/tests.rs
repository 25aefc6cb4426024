//! Plans that are refused, and the bounds of plans.

use super::*;
use crate::written::plan;

fn compiled(text: &str) -> Result<CompiledPlan, PlanError> {
    CompiledPlan::new(&plan(text), &PlanLimits::default())
}

fn check_refused(refused: Result<CompiledPlan, PlanError>, message: &str) {
    assert_eq!(refused.map(|_| ()).unwrap_err().to_string(), message);
}

/// Compiles the plan with one thing changed.
fn changed(text: &str, change: impl FnOnce(&mut Plan)) -> Result<CompiledPlan, PlanError> {
    let mut plan = plan(text);
    change(&mut plan);
    CompiledPlan::new(&plan, &PlanLimits::default())
}

#[test]
fn compiled_plans_go_to_other_threads() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<CompiledPlan>();
}

#[test]
fn refused_selectors_say_what_where_and_the_way_out() {
    check_refused(
        compiled("rows < li\nrows.title = h1 || p"),
        "plan \"test\", field \"title\", selector \"h1 || p\": the combinator `||` is not known; use scraper inside the rule (SDK feature dom)",
    );
    check_refused(
        compiled("rows < li:last-child"),
        "plan \"test\", group \"rows\", selector \"li:last-child\": `:last-child` is not known: only :not(), :is(), :where(), :first-child, :nth-child(), :first-of-type and :nth-of-type() are; use scraper inside the rule (SDK feature dom)",
    );
    let no_row = "it begins with `>`, and there is no row whose child it could be; write the parent before it";
    let of = |kind: &str, selector: &str| {
        format!("plan \"test\", {kind}, selector {selector:?}: {no_row}")
    };
    check_refused(compiled(".a = > b"), &of("field \"a\"", "> b"));
    check_refused(compiled("a < b, > c"), &of("group \"a\"", "b, > c"));
    let long = "x".repeat(600);
    let message = compiled(&format!(".a = {long}")).unwrap_err().to_string();
    assert!(message.contains("it has 600 bytes"), "{message}");
    assert!(message.len() < 400, "{message}");
}

#[test]
fn groups_and_parents_have_to_exist_and_come_first() {
    let text = "a < a\na/b < b\nb.c = c";
    check_refused(
        changed(text, |p| p.groups[1].parent = Some(2)),
        "plan \"test\", group \"b\": it names group 2, but the plan has 2, counted from 0; correct the index",
    );
    let later = "which does not come before it; put parents first";
    check_refused(
        changed(text, |p| p.groups[1].parent = Some(1)),
        &format!("plan \"test\", group \"b\": its parent is group 1, {later}"),
    );
    check_refused(
        changed(text, |p| p.groups[0].parent = Some(1)),
        &format!("plan \"test\", group \"a\": its parent is group 1, {later}"),
    );
    check_refused(
        changed(text, |p| p.fields[0].group = Some(u32::MAX)),
        "plan \"test\", field \"c\": it names group 4294967295, but the plan has 2, counted from 0; correct the index",
    );
}

#[test]
fn names_are_there_short_plain_and_different() {
    let text = "a < a\na/b < b\nb.c = c\n.d = d";
    check_refused(
        changed(text, |p| p.groups[1].name.clear()),
        "plan \"test\", group 1: it has no name; give it one",
    );
    check_refused(
        changed(text, |p| p.name.clear()),
        "plan \"\": it has no name; give it one",
    );
    check_refused(
        changed(text, |p| p.fields[1].name = "x".repeat(65)),
        &format!(
            "plan \"test\", field \"{}\": its name has 65 bytes, and 64 is the limit; shorten it",
            "x".repeat(65)
        ),
    );
    check_refused(
        changed(text, |p| p.fields[0].name = "c\n".to_owned()),
        "plan \"test\", field \"c\\n\": its name has a control character; use letters, digits, - and _",
    );
    check_refused(
        changed(text, |p| p.groups[1].name = "a".to_owned()),
        "plan \"test\", group \"a\": another group before it has this name; rename one of them",
    );
    check_refused(
        changed(text, |p| p.fields[1].name = "c".to_owned()),
        "plan \"test\", field \"c\": another field before it has this name; rename one of them",
    );
    // A group and a field may have the same name.
    changed(text, |p| p.fields[1].name = "a".to_owned()).unwrap();
}

#[test]
fn a_field_says_where_to_look() {
    check_refused(
        compiled(".a = -> @b"),
        "plan \"test\", field \"a\": it has neither a selector nor a group whose row it could read; give it one of them",
    );
    compiled("r < a\nr.a = -> @b").unwrap();
    let empty = changed("r < a", |p| p.groups[0].selector = " ".to_owned());
    let message = empty.map(|_| ()).unwrap_err().to_string();
    assert!(
        message.contains("group \"r\", selector \" \": there is nothing"),
        "{message}"
    );
}

#[test]
fn attribute_names_are_such_as_html_can_write() {
    for name in ["", "a b", "a\n", "a/", ">", "a=b", "a\0"] {
        let refused = changed(".a = b -> @c", |p| {
            p.fields[0].take = Take::Attr(name.to_owned())
        });
        let message = refused.map(|_| ()).unwrap_err().to_string();
        assert!(
            message.contains("no attribute can be called"),
            "{name:?}: {message}"
        );
    }
    for name in ["href", "data-x", "xlink:href", "@click", "É", "viewBox"] {
        changed(".a = b -> @c", |p| {
            p.fields[0].take = Take::Attr(name.to_owned())
        })
        .unwrap();
    }
}

#[test]
fn plans_have_a_size() {
    let groups = |n: usize| (0..n).map(|i| format!("g{i} < g\n")).collect::<String>();
    compiled(&groups(32)).unwrap();
    check_refused(
        compiled(&groups(33)),
        "plan \"test\": 33 groups, and 32 is the limit; read less, or make two plans of it",
    );
    let fields = |n: usize, each: &dyn Fn(usize) -> String| -> String {
        (0..n).map(|i| format!(".f{i} = {}\n", each(i))).collect()
    };
    compiled(&fields(128, &|_| "x".to_owned())).unwrap();
    check_refused(
        compiled(&fields(129, &|_| "x".to_owned())),
        "plan \"test\": 129 fields, and 128 is the limit; read less, or make two plans of it",
    );
    // Equal selectors count once.
    compiled(&fields(64, &|i| format!("x{i}, y"))).unwrap_err();
    compiled(&fields(63, &|i| format!("x{i}, y"))).unwrap();
    compiled(&fields(64, &|i| format!("x{i}"))).unwrap();
    check_refused(
        compiled(&fields(65, &|i| format!("x{i}"))),
        "plan \"test\", field \"f64\": 65 selectors, parts of comma lists counted one by one and multiplied with those of rows, and 64 is the limit; read less, or make two plans of it",
    );
    let refused = compiled(&fields(64, &|i| format!("a b c d x{i}"))).map(|_| ());
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("260 steps of selectors"), "{message}");
    let long = compiled(&fields(128, &|_| "x".repeat(512)))
        .map(|_| ())
        .unwrap_err();
    assert!(
        long.to_string().contains("bytes of names and selectors"),
        "{long}"
    );
}

#[test]
fn products_of_lists_are_capped_before_they_are_made() {
    let list = |n: usize| {
        (0..n)
            .map(|i| format!("> x{i}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let ten = (0..10)
        .map(|i| format!("y{i}"))
        .collect::<Vec<_>>()
        .join(", ");
    let refused = compiled(&format!(
        "a < {ten}\na/b < {}\nb/c < {}",
        list(10),
        list(10)
    ));
    let message = refused.map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("group \"b\": 65 selectors"), "{message}");
}

#[test]
fn no_setting_lifts_what_keeps_the_process_alive() {
    let all = PlanLimits {
        n_selectors: usize::MAX,
        n_steps: usize::MAX,
        n_conditions: usize::MAX,
        selector_bytes: usize::MAX,
        nesting: usize::MAX,
        n_groups: usize::MAX,
        n_fields: usize::MAX,
        name_bytes: usize::MAX,
        plan_bytes: usize::MAX,
    };
    let compiled = |text: &str| {
        CompiledPlan::new(&plan(text), &all)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    let message = compiled(&format!(".a = {}b{}", ":not(".repeat(33), ")".repeat(33)));
    assert!(message.contains("deeper than 32"), "{message}");
    let message = compiled(&format!(".a = {}", ":not(".repeat(100_000)));
    assert!(message.contains("2048 is the limit"), "{message}");
    // The plan has many steps; each group adds some.
    let mut text = "g0 < a a a a a a a a a a\n".to_owned();
    for i in 1..60 {
        text.push_str(&format!("g{}/g{i} < > a a a a a a a a a a\n", i - 1));
    }
    let message = compiled(&text);
    assert!(message.contains("512 is the limit"), "{message}");
    let many: String = (0..201).map(|i| format!(".f{i} = x{i}\n")).collect();
    let message = compiled(&many);
    assert!(message.contains("200 is the limit"), "{message}");
}

#[test]
fn the_longest_selector_that_is_allowed_compiles_and_runs_on_a_small_stack() {
    let limits = PlanLimits {
        n_steps: usize::MAX,
        selector_bytes: usize::MAX,
        ..PlanLimits::default()
    };
    let run = move || {
        let steps = vec!["a"; 512].join(" ");
        let nested = format!("{}a{}", ":not(".repeat(8), ")".repeat(8));
        let plan = CompiledPlan::new(&plan(&format!(".a = {steps}")), &limits).unwrap();
        crate::extract(&plan, "<a><a>", &crate::Budget::default()).unwrap();
        CompiledPlan::new(&crate::written::plan(&format!(".a = {nested}")), &limits).unwrap();
    };
    std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn fields_share_what_is_equal() {
    let plan = compiled(
        "r < li\nr.a = b\nr.b = b -> @c\nr.c = b -> raw\nr.d = drop b\n.e = b\nr.f =\nr.g = li",
    )
    .unwrap();
    let fields: Vec<&[usize]> = plan.watches().iter().map(|w| w.fields.as_slice()).collect();
    assert_eq!(fields, [&[0, 1, 2, 3][..], &[4], &[5], &[6]]);
    assert_eq!(plan.program().n_selectors(), 2);
    // Text is read once for a and d, which are not both kept.
    assert_eq!(plan.segment(0), plan.segment(3));
    assert_eq!(plan.is_kept().len(), 6);
}

#[test]
fn conditions_are_counted_over_the_whole_plan() {
    let field = |n: usize| format!(".f{n} = p{}", ".c".repeat(100));
    let fields = |n: usize| {
        (0..n)
            .map(|f| field(f).replace(".c", &format!(".c{f}")))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let compiled = |n: usize| CompiledPlan::new(&plan(&fields(n)), &PlanLimits::default());
    assert_eq!(compiled(5).unwrap().n_conditions, 505);
    let message = compiled(6).unwrap_err().to_string();
    assert!(message.contains("606 conditions of selectors"), "{message}");
}
