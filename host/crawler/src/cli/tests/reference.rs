//! The chapter about the command line names every command, argument and option as the program does.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Arg, CommandFactory as _};

use crate::cli::Args;
use crawler_testing::book::{cell, check, code};

/// Number of rows from which on a table that another command has too is not repeated.
const N_REPEATED: usize = 6;

#[test]
fn the_book_has_every_command() {
    let mut program = Args::command();
    program.build();
    let mut commands = Vec::new();
    collect(&program, &mut commands);
    assert!(commands.len() > 30, "{}", commands.len());
    let mut overview = "| command | what it does |\n|---|---|\n".to_owned();
    let mut sections = String::new();
    let mut tables = BTreeMap::new();
    for command in commands {
        let path = path(command);
        let anchor = anchor(&path);
        let about = command.get_about().map(ToString::to_string);
        let about = cell(&about.unwrap_or_default());
        let _ = writeln!(overview, "| [`{path}`](#{anchor}) | {about} |");
        let _ = writeln!(sections, "\n### {path}\n\n{about}.\n");
        let usage = command.clone().render_usage().to_string();
        let _ = writeln!(sections, "```text\n{}\n```", usage.trim_end());
        sections.push_str(&arguments(command, &path, &mut tables));
        if let Some(after) = command.get_after_help() {
            let _ = writeln!(sections, "\n```text\n{}\n```", after.to_string().trim_end());
        }
    }
    check("reference/cli.md", "commands", &(overview + &sections));
}

/// Collects the commands that do something themselves, in the order of the help.
fn collect<'a>(command: &'a clap::Command, commands: &mut Vec<&'a clap::Command>) {
    for below in command.get_subcommands() {
        if below.get_name() == "help" || below.is_hide_set() {
            continue;
        }
        // `crawler backup` does something, and so does `crawler backup verify`.
        if !below.has_subcommands() || below.is_subcommand_negates_reqs_set() {
            commands.push(below);
        }
        collect(below, commands);
    }
}

/// Returns a command as it is typed.
fn path(command: &clap::Command) -> String {
    let path = command.get_bin_name();
    path.expect("a built command has one").to_owned()
}

/// Returns what a link to the section of a command names.
fn anchor(path: &str) -> String {
    path.replace(' ', "-")
}

/// Returns the table of arguments and options, or a sentence about the command that has the same.
fn arguments(command: &clap::Command, path: &str, tables: &mut BTreeMap<String, String>) -> String {
    let is_own = |arg: &&Arg| {
        let is_general = ["help", "version"].contains(&arg.get_id().as_str());
        !arg.is_hide_set() && !arg.is_global_set() && !is_general
    };
    let rows: Vec<String> = command.get_arguments().filter(is_own).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let table = format!(
        "\n| argument or option | meaning |\n|---|---|\n{}",
        rows.concat()
    );
    match tables.get(&table) {
        Some(other) if rows.len() >= N_REPEATED => format!(
            "\nIt takes the arguments and options of [`{other}`](#{}).\n",
            anchor(other)
        ),
        _ => {
            tables.insert(table.clone(), path.to_owned());
            table
        }
    }
}

fn row(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut meaning = cell(&help);
    let values = arg.get_possible_values();
    let values: Vec<String> = values.iter().map(|value| code(value.get_name())).collect();
    if !values.is_empty() && arg.get_action().takes_values() {
        let _ = write!(meaning, " ({})", values.join(", "));
    }
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<String> = defaults
        .map(|value| code(&value.to_string_lossy()))
        .collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        let _ = write!(meaning, " [default: {}]", defaults.join(", "));
    }
    let name = match arg.get_short() {
        Some(short) => format!("-{short}, {arg}"),
        None => arg.to_string(),
    };
    format!("| {} | {meaning} |\n", code(&name))
}
