//! The Containerfile, read as instructions: no test builds the image.

use crawler::cli::Command;
use crawler_tests::repository;

use super::{check_command, check_health, read};

/// Returns the instructions of the file, each with its arguments on one line.
fn instructions() -> Vec<(String, String)> {
    let text = read("Containerfile");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    let instruction = |line: &str| {
        let (name, arguments) = line.split_once(' ').expect("an instruction has arguments");
        let words: Vec<&str> = arguments.split_whitespace().collect();
        (name.to_owned(), words.join(" "))
    };
    lines.map(instruction).collect()
}

/// Returns the instructions of the last stage.
fn shipped() -> Vec<(String, String)> {
    let all = instructions();
    let last = all.iter().rposition(|(name, _)| name == "FROM");
    all[last.expect("it begins with an image")..].to_vec()
}

/// Returns the arguments of the last instruction of this name in the last stage.
#[track_caller]
fn last(name: &str) -> String {
    let shipped = shipped();
    let last = shipped.iter().rfind(|(found, _)| found == name);
    last.unwrap_or_else(|| panic!("there is no {name}"))
        .1
        .clone()
}

fn words(list: &str) -> Vec<String> {
    serde_json::from_str(list).unwrap_or_else(|e| panic!("{list} is no list of words: {e}"))
}

#[test]
fn the_image_runs_commands_that_the_program_knows() {
    assert_eq!(words(&last("ENTRYPOINT")), ["/usr/bin/crawler"]);
    let command = check_command(&words(&last("CMD")), "");
    assert!(matches!(command, Command::Up(_)), "{command:?}");
    let check = last("HEALTHCHECK");
    let (_, check) = check.split_once("CMD ").expect("it has a command");
    check_health(&words(check));
}

#[test]
fn the_image_has_the_program_alone_and_runs_it_as_nobody_special() {
    let n_stages = instructions()
        .iter()
        .filter(|(name, _)| name == "FROM")
        .count();
    assert_eq!(n_stages, 2);
    let copies: Vec<String> = shipped()
        .into_iter()
        .filter(|(name, _)| name == "COPY" || name == "ADD")
        .map(|(_, arguments)| arguments)
        .collect();
    assert_eq!(
        copies,
        ["--from=build --chmod=0755 /crawler /usr/bin/crawler"]
    );
    let user = last("USER");
    let ids = user.split(':').map(|id| id.parse::<u32>().unwrap());
    assert!(ids.clone().count() == 2 && ids.min() > Some(999), "{user}");
    assert_eq!(words(&last("VOLUME")), ["/var/lib/crawler"]);
}

#[test]
fn the_image_is_built_by_the_oldest_compiler_that_will_do() {
    let manifest = std::fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let (_, version) = manifest.split_once("rust-version = \"").unwrap();
    let (version, _) = version.split_once('"').unwrap();
    let wanted = ("ARG".to_owned(), format!("RUST={version}"));
    assert!(instructions().contains(&wanted), "{wanted:?}");
}
