//! The Debian package: the files that its table in `host/crawler/Cargo.toml` names.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crawler_tests::repository;
use toml::{Table, Value};

use super::read;

/// Folder of the files that the script `build` makes.
const MADE: &str = "../deploy/debian/files/";

fn folder() -> PathBuf {
    repository().join("host/crawler")
}

/// Returns the table about the package.
fn package() -> Table {
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).expect("there is one");
    let manifest: Table = toml::from_str(&manifest).expect("it is TOML");
    let package = manifest["package"]["metadata"]["deb"].as_table();
    package.expect("it has the table").clone()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("it is a text")
}

/// Returns source and destination of each file.
fn assets() -> Vec<(String, String)> {
    let package = package();
    let assets = package["assets"].as_array().expect("they are a list");
    let asset = |asset: &Value| (text(&asset[0]).to_owned(), text(&asset[1]).to_owned());
    assets.iter().map(asset).collect()
}

#[test]
fn files_of_the_package_are_there_or_made_by_its_script() {
    let script = read("debian/build");
    for (source, _) in assets() {
        if source == "target/release/crawler" {
            continue;
        }
        if let Some(made) = source.strip_prefix(MADE) {
            let is_made = match made.strip_prefix("crawler.") {
                Some(shell) if shell != "toml" => {
                    script.contains("/crawler.$shell") && script.contains(&format!(" {shell}"))
                }
                _ => script.contains(made.split('/').next().unwrap_or(made)),
            };
            assert!(is_made, "{source}");
            continue;
        }
        // A pattern stands for the files of its folder with this ending.
        let there = match source.split_once('*') {
            Some((place, ending)) => fs::read_dir(folder().join(place))
                .unwrap()
                .any(|entry| entry.unwrap().path().to_string_lossy().ends_with(ending)),
            None => folder().join(&source).is_file(),
        };
        assert!(there, "{source}");
    }
}

#[test]
fn what_a_user_changes_is_kept_by_an_upgrade() {
    let (package, assets) = (package(), assets());
    let kept = package["conf-files"].as_array().unwrap();
    let kept: Vec<&str> = kept.iter().map(text).collect();
    let installed: Vec<String> = assets
        .iter()
        .filter(|(_, place)| place.starts_with("etc/"))
        .map(|(_, place)| format!("/{place}"))
        .collect();
    assert_eq!(
        installed
            .iter()
            .filter(|file| !kept.contains(&file.as_str()))
            .count(),
        0
    );
    assert_eq!(kept.len(), installed.len());
    for file in kept {
        let units = ["master", "up", "worker@"]
            .map(|unit| read(&format!("systemd/crawler-{unit}.service")));
        assert!(units.iter().all(|unit| unit.contains(file)), "{file}");
    }
}

#[test]
fn scripts_of_the_package_are_programs_that_a_shell_can_read() {
    let scripts = text(&package()["maintainer-scripts"]).to_owned();
    let scripts = fs::read_dir(folder().join(scripts)).unwrap();
    let mut n_scripts = 0;
    for script in scripts {
        let script = script.unwrap().path();
        n_scripts += 1;
        let mode = fs::metadata(&script).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{}", script.display());
        let read = std::process::Command::new("sh")
            .arg("-n")
            .arg(&script)
            .status();
        assert!(read.unwrap().success(), "{}", script.display());
    }
    assert_eq!(n_scripts, 3);
}
