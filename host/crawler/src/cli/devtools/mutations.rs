//! Output of `crawler plugin test --mangle`.

use crawler_extract::mutation::Mutation;
use serde_json::{Value, json};

use super::show::CallResult;
use crate::cli::{Failure, table};
use crawler_devtools::changes::Tally;
use crawler_devtools::mutation::{Copies, MutationResult};
use crawler_model::number;

/// Number of fields that are named in a row of the table.
const FIELDS: usize = 4;

/// Prints a table of all calls and ways to mangle a page, and the first difference of each.
pub(super) fn print(all: &[CallResult], copies: Copies) -> anyhow::Result<()> {
    let results = || {
        let each = all.iter();
        each.flat_map(|call| {
            call.mangled
                .iter()
                .map(move |of_mutation| (call, of_mutation))
        })
    };
    table::print_line(&format!(
        "\non mangled copies of the pages (--mangle={} --seed={}):",
        copies.n_each, copies.seed
    ))?;
    let rows: Vec<[String; 7]> = results()
        .map(|(call, of_mutation)| row(call, of_mutation))
        .collect();
    let head = [
        "CALL", "MISTAKE", "SAME", "ITEMS", "FIELDS", "REQUESTS", "RESULT",
    ];
    if !rows.is_empty() {
        table::print(head, &rows)?;
    }
    for (why, has_outcome) in [
        ("without a page of HTML", true),
        ("without an outcome on the page itself", false),
    ] {
        let others = all.iter().filter(|call| call.mangled.is_empty());
        let others = others.filter(|call| call.has_outcome() == has_outcome);
        let others: Vec<String> = others.map(|call| call.name.to_string()).collect();
        if !others.is_empty() {
            table::print_line(&format!("{why}: {}", others.join(", ")))?;
        }
    }
    let firsts: Vec<String> = results()
        .filter_map(|(call, of_mutation)| first(call, of_mutation))
        .collect();
    if !firsts.is_empty() {
        table::print_line(&format!("\nthe first differences:\n{}", firsts.join("\n")))?;
    }
    Ok(())
}

fn row(call: &CallResult, of_mutation: &MutationResult) -> [String; 7] {
    let MutationResult {
        n_copies,
        n_same,
        changes,
        ..
    } = of_mutation;
    [
        call.name.to_string(),
        of_mutation.mutation.as_str().to_owned(),
        match n_copies {
            0 => "-".to_owned(),
            n_copies => format!("{n_same} of {n_copies}"),
        },
        tally(changes.items),
        table::plain(&fields(of_mutation)),
        tally(changes.requests),
        result(of_mutation),
    ]
}

/// Returns the result in words.
fn result(of_mutation: &MutationResult) -> String {
    let n_differ =
        of_mutation.n_copies - of_mutation.n_same - of_mutation.n_gave_up - of_mutation.n_ended;
    let counts = [
        (n_differ, "differs"),
        (of_mutation.n_gave_up, "gives up"),
        (of_mutation.n_ended, "ended"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{word} {n}x"))
        .collect();
    match counts.is_empty() {
        true if of_mutation.n_copies == 0 => "nothing to mangle".to_owned(),
        true => "same".to_owned(),
        false => counts.join(", "),
    }
}

/// Formats counts such as `2 gone, 1 changed`.
pub(super) fn tally(tally: Tally) -> String {
    let counts = [
        (tally.gone, "gone"),
        (tally.changed, "changed"),
        (tally.new, "new"),
    ];
    let counts = counts.iter().filter(|(n, _)| *n > 0);
    let counts: Vec<String> = counts.map(|(n, word)| format!("{n} {word}")).collect();
    match counts.is_empty() {
        true => "-".to_owned(),
        false => counts.join(", "),
    }
}

/// Returns the fields that changed most often.
fn fields(of_mutation: &MutationResult) -> String {
    let mut fields: Vec<(&String, &usize)> = of_mutation.changes.fields.iter().collect();
    fields.sort_by_key(|(name, n)| (std::cmp::Reverse(**n), *name));
    let shown = fields.iter().take(FIELDS);
    let mut shown: Vec<String> = shown.map(|(name, n)| format!("{name} {n}x")).collect();
    match fields.len().saturating_sub(FIELDS) {
        0 => {}
        n_more => shown.push(format!("{n_more} more")),
    }
    match shown.is_empty() {
        true => "-".to_owned(),
        false => shown.join(", "),
    }
}

fn first(call: &CallResult, of_mutation: &MutationResult) -> Option<String> {
    let begin = |copy: u32| {
        format!(
            "{}, {}, copy {copy}: ",
            call.name,
            of_mutation.mutation.as_str()
        )
    };
    let ended = of_mutation.ended.as_ref().map(|(copy, report)| {
        let begin = begin(*copy);
        format!("{begin}ended ({}): {}", report.kill, report.message)
    });
    let differs = of_mutation.changes.first.as_ref();
    let differs = differs.map(|first| begin(of_mutation.first_copy) + first);
    let lines: Vec<String> = ended.into_iter().chain(differs).collect();
    (!lines.is_empty()).then(|| table::plain(&lines.join("\n")))
}

pub(super) fn as_json(of_mutation: &MutationResult) -> Value {
    let changes = &of_mutation.changes;
    let ended = of_mutation.ended.as_ref();
    json!({
        "mistake": of_mutation.mutation.as_str(),
        "copies": of_mutation.n_copies,
        "same": of_mutation.n_same,
        "gave_up": of_mutation.n_gave_up,
        "ended": of_mutation.n_ended,
        "items": changes.items,
        "fields": changes.fields,
        "requests": changes.requests,
        "first": changes.first.as_ref().map(|what| json!({
            "copy": of_mutation.first_copy, "what": what,
        })),
        "first_ended": ended.map(|(copy, report)| json!({
            "copy": copy, "kill": report.kill.to_string(), "message": report.message,
        })),
    })
}

/// Returns an error if a rule does not withstand what it should.
pub(super) fn check(all: &[CallResult]) -> anyhow::Result<()> {
    let faults = || {
        let each = all.iter().flat_map(|call| &call.mangled);
        each.filter(|of_mutation| of_mutation.is_fault())
    };
    let n_ended: u32 = faults().map(|of_mutation| of_mutation.n_ended).sum();
    if n_ended > 0 {
        let calls = number(n_ended.into(), "call");
        let what = format!("the sandbox ended {calls} on mangled pages");
        let hint = "a rule should give up what it cannot read, not trap or run on; the first of each is named above";
        return Err(Failure::new(what, hint).into());
    }
    if faults().next().is_some() {
        let way = Mutation::OptionalEndTags.as_str();
        let what = format!(
            "pages without the end tags that HTML lets an author leave out give something else ({way})"
        );
        let hint = "a browser sees the same page: select elements by what they are, and trim texts that are taken raw";
        return Err(Failure::new(what, hint).into());
    }
    Ok(())
}
