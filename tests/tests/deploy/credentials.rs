//! Credentials of people and services: the repository has none.

use std::process::Command;

use crawler_tests::repository;

/// Beginnings of tokens, and the number of letters and digits that follow at least.
const TOKENS: [(&str, usize); 5] = [
    ("AKIA", 16),
    ("ghp_", 36),
    ("github_pat_", 22),
    ("glpat-", 20),
    ("xoxb-", 10),
];
/// Names of files that hold keys, or cookies of a browser.
const FILES: [&str; 7] = [
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".netrc",
    "id_rsa",
    "cookies.txt",
];

#[test]
fn f36_no_file_of_the_repository_has_a_credential() {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(repository())
        .output()
        .expect("git is there");
    let names = String::from_utf8(listed.stdout).expect("names are UTF-8");
    let names: Vec<&str> = names.split_terminator('\0').collect();
    assert!(names.len() > 1_000, "{} files", names.len());
    let mut faults = Vec::new();
    for name in names {
        if FILES.iter().any(|end| name.ends_with(end)) {
            faults.push(format!("{name} is a file of credentials by its name"));
        }
        let Ok(text) = std::fs::read(repository().join(name)) else {
            continue;
        };
        if let Some(fault) = credential(&String::from_utf8_lossy(&text)) {
            faults.push(format!("{name} has {fault}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns what a text has that only its owner may know.
fn credential(text: &str) -> Option<String> {
    // A key in a string of a program or of a config file has more before it, and a line of it may follow an escape.
    let is_key = |line: &str| {
        let begins = line.contains("-----BEGIN") && !line.contains("such as -----BEGIN");
        begins && line.contains("PRIVATE KEY-----")
    };
    if text.lines().any(is_key) {
        return Some("a private key".to_owned());
    }
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
    let is_token = |word: &&str| {
        TOKENS.iter().any(|(begin, n)| {
            let rest = word.strip_prefix(begin);
            rest.is_some_and(|rest| rest.chars().filter(char::is_ascii_alphanumeric).count() >= *n)
        })
    };
    words.find(is_token).map(|word| format!("a token, {word}"))
}

#[test]
fn keys_and_tokens_are_recognised() {
    let key = ["-----BE", "GIN RSA PRIVATE KEY-----"].concat();
    let token = format!("id = \"{}{}\"", "AKIA", "X7".repeat(8));
    for (text, is_found) in [
        (format!("{key}\nMIIE"), true),
        (token, true),
        (format!("key: \"{key}\\nMIIE\""), true),
        (format!("a message about a file such as {key}"), false),
        ("AKIA is a beginning".to_owned(), false),
    ] {
        assert_eq!(credential(&text).is_some(), is_found, "{text}");
    }
}
