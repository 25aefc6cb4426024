//! Settings of a crawl, keys of `[fetch]` and limits of a call are each declared once, as a row of a table: files
//! that repeat the rows are renewed from it, and no other file carries a name on.
//!
//! `UPDATE=1 cargo test --test tidy` writes the files instead of comparing them.

use std::collections::BTreeMap;

use crawler::config::{FETCH_KEYS, FetchKey};
use crawler_model::plugin::{LimitKind, LimitName, Limits, format_bytes};
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
        let page = with_table(&page, "| `[fetch]` | default |", fetch_rows);
        with_table(&page, "| settings | when the change holds |", groups)
    });
}

#[test]
fn the_example_shows_every_setting_of_the_table() {
    compare("host/crawler/src/config/example.toml", |example| {
        let (before, rest) = example.split_once("\n[fetch]\n").expect("it has the table");
        let (_, after) = rest.split_once("\n\n").expect("more tables follow");
        let keys: String = FETCH_KEYS.iter().map(fetch_key).collect();
        let example = format!("{before}\n[fetch]\n{keys}\n{after}");
        let (before, rest) = example.split_once("\nlimits = ").expect("it has limits");
        let (limits, rest) = rest.split_once('\n').expect("more lines follow");
        let (_, after) = rest.split_once("\nweight = ").expect("it has a weight");
        let keys: String = SETTINGS.iter().map(key).collect();
        format!("{before}\nlimits = {limits}\n{keys}weight = {after}")
    });
}

#[test]
fn the_pages_of_limits_are_those_of_the_table() {
    compare("host/docs/src/reference/limits.md", |page| {
        with_table(page, "| `--limit` | default | meaning |", limits)
    });
    compare("host/docs/src/reference/http.md", |page| {
        with_table(page, "| fields | unit |", units)
    });
}

/// The SDK cannot name the table, because plugins do not depend on the host.
#[test]
fn the_sdk_knows_the_limits_of_the_table() {
    let file = "plugin-sdk/macros/src/attribute.rs";
    let text = read(file);
    let (_, names) = text.split_once("\nconst LIMITS: ").expect("it has a list");
    let (_, names) = names.split_once(" = [").expect("it has a value");
    let (names, _) = names.split_once("];").expect("it ends");
    let names: Vec<&str> = names.split('"').skip(1).step_by(2).collect();
    assert_eq!(names, LimitName::ALL.map(LimitName::as_str), "{file}");
}

/// A setting whose value is only passed on needs no more files than its table and its message. This one is
/// obeyed in `scope.rs`, is a part of the identity in `parsed_by.rs`, and `failures.md` lists it among the reasons for
/// which a link is refused. A benchmark has no bound of this kind, which its module of settings and its chapter say. The
/// other chapters and the example are generated.
#[test]
fn a_setting_stands_in_few_places() {
    check_places(
        "max_segment_repeats",
        &[
            "host/crawler/src/cli/bench/settings.rs",
            "host/crawler/src/config/example.toml",
            "host/docs/src/operate/failures.md",
            "host/docs/src/reference/bench.md",
            "host/docs/src/reference/cli.md",
            "host/docs/src/reference/grpc.md",
            "host/docs/src/reference/settings.md",
            "host/model/src/parsed_by.rs",
            "host/model/src/scope.rs",
            "host/model/src/settings/table.rs",
            "proto/proto/crawler.proto",
        ],
    );
}

/// The field and its default are in the settings of the fetcher, which obeys it in `hop.rs`. The page and the
/// example are generated.
#[test]
fn a_key_of_fetch_stands_in_few_places() {
    check_places(
        "first_byte_timeout",
        &[
            "host/crawler/src/config/example.toml",
            "host/crawler/src/config/fetch/table.rs",
            "host/docs/src/reference/settings.md",
            "host/fetch/src/http/hop.rs",
            "host/fetch/src/http/settings.rs",
        ],
    );
}

/// A limit that all interfaces pass on by its name. `state.rs` obeys it, `child.rs` lowers it for `describe`, and
/// two messages and comments of the crawl and the sandbox name it. The pages are generated, and the list of the
/// SDK is compared.
#[test]
fn a_limit_stands_in_few_places() {
    check_places(
        "log_lines",
        &[
            "host/crawl/src/log/report.rs",
            "host/docs/src/reference/http.md",
            "host/docs/src/reference/limits.md",
            "host/model/src/plugin/limits/table.rs",
            "host/plugin/src/admission/child.rs",
            "host/plugin/src/host_calls/state.rs",
            "host/plugin/src/lib.rs",
            "plugin-sdk/macros/src/attribute.rs",
        ],
    );
}

/// Checks that a name stands in no other files than these; hyphens count as underscores.
#[track_caller]
fn check_places(name: &str, allowed: &[&str]) {
    let others = tracked_files(&[
        "host/*/src/*.toml",
        "proto/*",
        "host/docs/*.md",
        "plugin-sdk/macros/*.rs",
    ]);
    let mut files = host_files();
    files.extend(others);
    files.retain(|file| {
        let text = read(file);
        let text = match file.ends_with(".rs") {
            true => without_tests(&text),
            false => text,
        };
        text.replace('-', "_").contains(name)
    });
    files.sort();
    let faults = files
        .iter()
        .filter(|file| !allowed.contains(&file.as_str()));
    let faults =
        faults.map(|file| format!("{file}: names {name}; take it from the table that declares it"));
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
        "{file} is not that of the table; renew it with UPDATE=1 cargo test --test tidy settings\n{first:?}"
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

/// Returns one row for each key of `[fetch]`, with what the page tells of other crawlers, and then the rows of the
/// page that are not of the table.
fn fetch_rows(present: &[&str]) -> Vec<String> {
    let known = FETCH_KEYS.iter().map(|key| {
        let name = format!("`{}`", key.name);
        let mut rows = present.iter().map(|row| named(row));
        let row = rows.find(|(present, _)| *present == name);
        let others = row.and_then(|(_, row)| row.splitn(4, " | ").nth(3));
        let others = others.unwrap_or("none | none | none | none |");
        format!(
            "| {name} | {} | config | {} | {others}",
            (key.default)(),
            key.book
        )
    });
    // The rows of options and of other tables.
    let is_other = |row: &&&str| {
        let (name, cells) = named(row);
        !name.starts_with('`') || cells.split(" | ").nth(1) != Some("config")
    };
    let others = present.iter().filter(is_other);
    known.chain(others.map(ToString::to_string)).collect()
}

/// Returns one row for each limit; limits with one meaning, one after the other, share a row.
fn limits(_present: &[&str]) -> Vec<String> {
    let default = |limit: &LimitName| {
        let value = Limits::default().value(*limit);
        match limit.kind() {
            LimitKind::Count => number(value),
            LimitKind::Bytes => format_bytes(value),
            LimitKind::Time => {
                humantime::format_duration(std::time::Duration::from_millis(value)).to_string()
            }
        }
    };
    let groups = LimitName::ALL.chunk_by(|one, next| one.book() == next.book());
    let rows = groups.map(|group| {
        let names: Vec<String> = group.iter().map(|limit| format!("`{limit}`")).collect();
        let defaults: Vec<String> = group.iter().map(default).collect();
        let book = group[0].book();
        format!(
            "| {} | {} | {book} |",
            names.join(", "),
            defaults.join(", ")
        )
    });
    rows.collect()
}

/// Returns the rows of the page, with other names in those that tell the units of limits.
fn units(present: &[&str]) -> Vec<String> {
    let of_kind = |kind: LimitKind, unit: &str| {
        let limits = LimitName::ALL.iter().filter(|limit| limit.kind() == kind);
        let names: Vec<String> = limits.map(|limit| format!("`{limit}`")).collect();
        format!("| `limits`: {} | {unit} |", names.join(", "))
    };
    let is_of_limits = |row: &&str| row.starts_with("| `limits`: ");
    let place = present
        .iter()
        .position(is_of_limits)
        .unwrap_or(present.len());
    let mut rows: Vec<String> = present
        .iter()
        .filter(|row| !is_of_limits(row))
        .map(ToString::to_string)
        .collect();
    let units = [
        of_kind(
            LimitKind::Time,
            "milliseconds, or a text such as `\"500ms\"`",
        ),
        of_kind(LimitKind::Bytes, "bytes, or a text such as `\"128MiB\"`"),
        of_kind(LimitKind::Count, "pieces"),
    ];
    rows.splice(place..place, units);
    rows
}

/// Returns the line of a key of `[fetch]` in the example, below a comment that tells its meaning.
fn fetch_key(key: &FetchKey) -> String {
    format!("{}\n{}\n", comment(key.book), (key.line)())
}

/// Returns the line of a setting in the example, below a comment that tells its meaning.
fn key(setting: &Setting) -> String {
    let meaning = match &setting.default {
        Fallback::Implied(_) => meaning(setting),
        default => format!("{} [default: {default}]", meaning(setting)),
    };
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
    format!("{}\n{} = {value}\n", comment(&meaning), setting.name)
}

/// Replaces each link `[text](page)` by its text.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        match link
            .split_once("](")
            .and_then(|(text, more)| Some((text, more.split_once(')')?.1)))
        {
            Some((text, after)) => {
                plain.push_str(text);
                rest = after;
            }
            None => {
                plain.push('[');
                rest = link;
            }
        }
    }
    plain + rest
}

/// Returns a comment of the example with this text, in lines.
fn comment(text: &str) -> String {
    let mut comment = String::from("#");
    let mut width = 1;
    for word in without_links(text).replace('`', "").split(' ') {
        if width + 1 + word.chars().count() > WIDTH {
            comment.push_str("\n#");
            width = 1;
        }
        comment.push(' ');
        comment.push_str(word);
        width += 1 + word.chars().count();
    }
    comment
}
