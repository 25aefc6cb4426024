//! Rules that read by a plan, follow what they have read, and emit all that they are told.

use super::crawler::rules::types::{
    ChooseError, ExtractError, Field, FollowOptions, Group, LinkFilter, Plan, Take,
};
use super::crawler::rules::{output, page};
use super::exports::crawler::rules::rules::RuleError;
use super::{emit, text};

/// Returns the plan of number 0: each row of a list, with its text, that of its link, and the link's address,
/// which stays with the host.
pub(crate) fn rows() -> Plan {
    let field = |name: &str, selector: &str, take, keep| Field {
        name: name.into(),
        group: Some(0),
        selector: selector.into(),
        take,
        first: false,
        keep,
        hints: Vec::new(),
    };
    Plan {
        name: "rows".into(),
        groups: vec![Group {
            name: "row".into(),
            parent: None,
            selector: "li".into(),
            hints: Vec::new(),
        }],
        fields: vec![
            field("whole", "", Take::Text, true),
            field("title", "a", Take::Text, true),
            field("url", "a", Take::Attr("href".into()), false),
        ],
        hints: Vec::new(),
    }
}

/// Returns the plan of number 1: the paragraphs of the page.
pub(crate) fn words() -> Plan {
    Plan {
        name: "words".into(),
        groups: Vec::new(),
        fields: vec![Field {
            name: "word".into(),
            group: None,
            selector: "p".into(),
            take: Take::Text,
            first: false,
            keep: true,
            hints: Vec::new(),
        }],
        hints: Vec::new(),
    }
}

/// Returns the plan of a trick of `describe`: wrong, or larger than any host takes.
pub(crate) fn bad(trick: &str) -> Plan {
    match trick {
        "describe=selectors" => of_10_000_selectors(),
        "describe=mebibyte" => of_a_mebibyte(),
        "describe=nested-not" => of_nested_not(60),
        "describe=1000-nots" => of_nested_not(1_000),
        "describe=syntax" => of_a_selector("p["),
        "describe=unsupported" => of_a_selector("p:has(a)"),
        "describe=own-rows" => of_rows_in_themselves(),
        "describe=same-fields" => of_two_fields_of_one_name(),
        other => panic!("there is no trick {other:?}"),
    }
}

fn of_a_selector(selector: &str) -> Plan {
    let mut plan = words();
    plan.name = "wrong".into();
    plan.fields[0].selector = selector.into();
    plan
}

/// Returns a plan in which a group is its own parent.
fn of_rows_in_themselves() -> Plan {
    let mut plan = rows();
    plan.name = "endless".into();
    plan.groups[0].parent = Some(0);
    plan
}

fn of_two_fields_of_one_name() -> Plan {
    let mut plan = words();
    plan.name = "echo".into();
    plan.fields.extend(words().fields);
    plan
}

/// Returns a plan with more selectors than anybody writes by hand.
fn of_10_000_selectors() -> Plan {
    let fields = (0..10_000).map(|n| Field {
        name: format!("word-{n}"),
        selector: format!("p.word-{n}"),
        ..words().fields.remove(0)
    });
    Plan {
        name: "many".into(),
        fields: fields.collect(),
        ..words()
    }
}

/// Returns a plan with one selector of 1 MiB.
fn of_a_mebibyte() -> Plan {
    let mut plan = of_a_selector(&".word".repeat((1 << 20) / 5));
    plan.name = "long".into();
    plan
}

/// Returns a plan with nested `:not()`. A depth of sixty is still short.
fn of_nested_not(depth: usize) -> Plan {
    let mut plan = of_a_selector(&format!("{}p{}", ":not(".repeat(depth), ")".repeat(depth)));
    plan.name = "deep".into();
    plan
}

/// Emits the captures of the plan of this number, as they are handed over.
pub(crate) fn extract(plan: u32) -> Result<(), RuleError> {
    let captures = page::extract(plan).map_err(|e| RuleError::Skip(unread(e)))?;
    let columns = captures.columns.iter();
    let columns: Vec<_> = columns
        .map(|c| format!("[{:?},{:?}]", c.rows, c.spans))
        .collect();
    emit(&format!(
        "{{\"text\":{:?},\"groups\":{:?},\"columns\":[{}],\"base\":{:?},\"truncated\":{}}}",
        captures.text,
        captures.groups,
        columns.join(","),
        captures.base.unwrap_or_default(),
        captures.truncated,
    ))
    .map_err(|e| RuleError::Fatal(text(&e)))
}

fn unread(error: ExtractError) -> String {
    match error {
        ExtractError::TooDeep(why) => format!("too deep: {why}"),
        ExtractError::TooLarge(why) => format!("too large: {why}"),
        ExtractError::UnknownPlan(why) => format!("unknown plan: {why}"),
        ExtractError::Other((code, why)) => format!("{code}: {why}"),
    }
}

/// Returns the positions of the links of plan 0 in whose addresses this pattern is found.
fn chosen(plan: u32, field: u32, pattern: &str) -> Result<Vec<u32>, String> {
    let filter = LinkFilter {
        within_host: true,
        matching: vec![pattern.to_owned()],
        not_matching: vec!["/no such".to_owned()],
        distinct: true,
        hints: vec![("later".to_owned(), "x".to_owned())],
    };
    page::choose_links(plan, field, &filter).map_err(|error| match error {
        ChooseError::Unread(error) => unread(error),
        ChooseError::Refused(why) => format!("refused: {why}"),
        ChooseError::Other((code, why)) => format!("{code}: {why}"),
    })
}

/// Chooses links of the rows, and what does not exist.
pub(crate) fn choose() -> Result<(), RuleError> {
    let (title, url) = (1, 2);
    let cases = [
        (0, url, "."),
        (0, title, "Odd"),
        (0, url, "("),
        (0, 7, "."),
        (5, 0, "."),
    ];
    let said = cases.map(
        |(plan, field, pattern)| match chosen(plan, field, pattern) {
            Ok(positions) => format!("{positions:?}"),
            Err(why) => why,
        },
    );
    emit(&format!("{{\"chosen\":{said:?}}}")).map_err(|e| RuleError::Fatal(text(&e)))
}

/// Chooses links again and again, by a pattern that is much work.
pub(crate) fn choose_flood() -> Result<(), RuleError> {
    loop {
        chosen(0, 2, "(a|b|c){100}x").map_err(RuleError::Skip)?;
    }
}

/// Hands over more patterns than a filter has.
pub(crate) fn choose_many() -> Result<(), RuleError> {
    let filter = LinkFilter {
        within_host: false,
        matching: vec![".".to_owned(); 33],
        not_matching: Vec::new(),
        distinct: false,
        hints: Vec::new(),
    };
    match page::choose_links(0, 2, &filter) {
        Err(ChooseError::Refused(why)) => Err(RuleError::Skip(why)),
        other => Err(RuleError::Fatal(format!("{other:?}"))),
    }
}

fn options() -> FollowOptions {
    FollowOptions {
        priority: 3,
        state: b"kept".to_vec(),
        reload: false,
        hints: Vec::new(),
    }
}

/// Follows a field, some captures of it, and captures that do not exist.
pub(crate) fn follow() -> Result<(), RuleError> {
    let (url, title) = (2, 1);
    let links =
        |field, rule| output::follow_field(0, field, rule, &options()).map_err(|e| text(&e));
    links(url, 0).map_err(RuleError::Fatal)?;
    let chosen = [2, 0];
    output::follow_captures(0, url, &chosen, 1, &options())
        .map_err(|e| RuleError::Fatal(text(&e)))?;
    let mut refusals: Vec<String> = Vec::new();
    refusals.extend(links(title, 9_999).err());
    refusals.extend(links(7, 0).err());
    let beyond = output::follow_captures(0, url, &[9], 0, &options());
    refusals.extend(beyond.err().map(|e| text(&e)));
    let elsewhere = output::follow_field(5, 0, 0, &options());
    refusals.extend(elsewhere.err().map(|e| text(&e)));
    emit(&format!("{{\"refused\":{refusals:?}}}")).map_err(|e| RuleError::Fatal(text(&e)))
}
