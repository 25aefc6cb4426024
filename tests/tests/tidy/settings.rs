//! Settings of a crawl are declared once, in the table of `host/model/src/settings/table.rs`: files that repeat
//! its rows are renewed from it, and no other file carries a setting on by name.
//!
//! `UPDATE=1 cargo test --test tidy` writes the files instead of comparing them.

use std::collections::BTreeMap;

use crawler_model::settings::{Applies, Fallback, Kind, SETTINGS, Setting};
use crawler_tests::repository;

use super::code::without_tests;
use super::{host_files, read, report, tracked_files};

/// Width of comments in the example.
const WIDTH: usize = 110;

#[test]
fn the_page_of_settings_is_that_of_the_table() {
    compare("host/docs/src/reference/settings.md", |page| {
        let page = with_table(page, "| setting | default | meaning | Scrapy |", rows);
        with_table(&page, "| settings | when the change holds |", groups)
    });
}

#[test]
fn the_example_shows_every_setting_of_the_table() {
    compare("host/crawler/src/config/example.toml", |example| {
        let (before, rest) = example.split_once("\nlimits = ").expect("it has limits");
        let (limits, rest) = rest.split_once('\n').expect("more lines follow");
        let (_, after) = rest.split_once("\nweight = ").expect("it has a weight");
        let keys: String = SETTINGS.iter().map(key).collect();
        format!("{before}\nlimits = {limits}\n{keys}weight = {after}")
    });
}

/// A setting whose value is only passed on needs no more files than its table and its message. This one is
/// obeyed in `scope.rs`, and `failures.md` lists it among the reasons for which a link is refused. The chapters
/// of the reference and the example are generated.
#[test]
fn a_setting_stands_in_few_places() {
    let allowed = [
        "host/crawler/src/config/example.toml",
        "host/docs/src/operate/failures.md",
        "host/docs/src/reference/cli.md",
        "host/docs/src/reference/grpc.md",
        "host/docs/src/reference/settings.md",
        "host/model/src/scope.rs",
        "host/model/src/settings/table.rs",
        "proto/proto/crawler.proto",
    ];
    let others = tracked_files(&["host/*/src/*.toml", "proto/*", "host/docs/*.md"]);
    let mut files = host_files();
    files.extend(others);
    files.retain(|file| {
        let text = read(file);
        let text = match file.ends_with(".rs") {
            true => without_tests(&text),
            false => text,
        };
        text.replace('-', "_").contains("max_segment_repeats")
    });
    files.sort();
    let faults = files
        .iter()
        .filter(|file| !allowed.contains(&file.as_str()));
    let faults = faults.map(|file| {
        format!("{file}: names a setting; take it from SETTINGS or crawl_settings! of host/model/src/settings")
    });
    report(&faults.collect::<Vec<_>>());
    assert_eq!(files, allowed);
}

/// Checks that a file is as `renew` would write it. With `UPDATE=1`, writes it.
#[track_caller]
fn compare(file: &str, renew: impl FnOnce(&str) -> String) {
    let present = read(file);
    let renewed = renew(&present);
    if present != renewed && crawler_tests::setting("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(repository().join(file), renewed).expect("the file can be written");
        return;
    }
    let differs = |(present, renewed): &(&str, &str)| present != renewed;
    let first = present.lines().zip(renewed.lines()).find(differs);
    assert!(
        present == renewed,
        "{file} is not that of the table of settings; renew it with UPDATE=1 cargo test --test tidy settings\n{first:?}"
    );
}

/// Returns the page with other rows in the table that begins with this heading.
fn with_table(page: &str, heading: &str, renew: fn(&[&str]) -> Vec<String>) -> String {
    let lines: Vec<&str> = page.lines().collect();
    let heading = lines.iter().position(|line| line.starts_with(heading));
    let first = heading.expect("the page has the table") + 2;
    let n_rows = lines[first..]
        .iter()
        .take_while(|line| line.starts_with('|'));
    let (rows, after) = lines[first..].split_at(n_rows.count());
    let renewed = renew(rows);
    let renewed = renewed.iter().map(String::as_str);
    let lines = lines[..first]
        .iter()
        .copied()
        .chain(renewed)
        .chain(after.iter().copied());
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns one row for each setting, with what the page tells of other crawlers, and then the rows of the page
/// that are not of the table.
fn rows(present: &[&str]) -> Vec<String> {
    let mut present: Vec<(&str, &str)> = present.iter().map(|row| named(row)).collect();
    let known = SETTINGS.iter().map(|setting| {
        let name = format!("`--{}`", setting.name);
        let (default, meaning) = (default(setting), meaning(setting));
        let place = present.iter().position(|(present, _)| *present == name);
        let others = place.map(|place| present.remove(place).1);
        let others = others.and_then(|row| row.splitn(3, " | ").nth(2));
        let others = others.unwrap_or("none | none | none | none |");
        format!("| {name} | {default} | {meaning} | {others}")
    });
    let known: Vec<String> = known.collect();
    let others = present
        .iter()
        .map(|(name, row)| format!("| {name} | {row}"));
    known.into_iter().chain(others).collect()
}

/// Splits a row after its first cell.
fn named(row: &str) -> (&str, &str) {
    let cells = row.strip_prefix("| ").and_then(|row| row.split_once(" | "));
    cells.unwrap_or_else(|| panic!("{row} is no row"))
}

fn default(setting: &Setting) -> String {
    match setting.default {
        Fallback::Count(n) => number(n),
        ref other => other.to_string(),
    }
}

/// Formats a number with a space at each thousand.
pub(crate) fn number(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        _ => format!("{} {:03}", number(n / 1_000), n % 1_000),
    }
}

fn meaning(setting: &Setting) -> String {
    if !setting.book.is_empty() {
        return setting.book.to_owned();
    }
    let (first, rest) = setting.help.split_at(1);
    first.to_lowercase() + rest
}

/// Returns one row for each time at which changes apply, and then the rows of the page that are not of the table.
fn groups(present: &[&str]) -> Vec<String> {
    let mut groups: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for setting in SETTINGS {
        let nth = Applies::ALL
            .iter()
            .position(|applies| *applies == setting.applies);
        let group = groups
            .entry(nth.expect("all of them are listed"))
            .or_default();
        group.push(format!("`--{}`", setting.name));
    }
    let rows = groups
        .iter()
        .map(|(nth, names)| format!("| {} | {} |", names.join(", "), Applies::ALL[*nth].words()));
    let is_group = |row: &&&str| {
        let words = named(row).1.trim_end_matches(" |");
        Applies::ALL.iter().any(|applies| applies.words() == words)
    };
    let others = present.iter().filter(|row| !is_group(row));
    rows.chain(others.map(ToString::to_string)).collect()
}

/// Returns the line of a setting in the example, below a comment that tells its meaning.
fn key(setting: &Setting) -> String {
    let mut comment = String::from("#");
    let mut width = 1;
    let meaning = meaning(setting).replace('`', "");
    let meaning = match &setting.default {
        Fallback::Implied(_) => meaning,
        default => format!("{meaning} [default: {default}]"),
    };
    for word in meaning.split(' ') {
        if width + 1 + word.chars().count() > WIDTH {
            comment.push_str("\n#");
            width = 1;
        }
        comment.push(' ');
        comment.push_str(word);
        width += 1 + word.chars().count();
    }
    let quoted: Vec<String> = setting
        .example
        .iter()
        .map(|text| format!("{text:?}"))
        .collect();
    let value = match setting.kind {
        Kind::U32 | Kind::U64 => setting.example.concat(),
        Kind::Bytes | Kind::Time | Kind::Text => quoted.concat(),
        Kind::Texts | Kind::List => format!("[{}]", quoted.join(", ")),
    };
    format!("{comment}\n{} = {value}\n", setting.name)
}
