//! The compose file: its commands, its secrets, and the specification of compose.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command as Program;

use crawler::cli::Command;
use crawler_tests::process::Home;
use crawler_tests::python::python;
use crawler_tests::repository;
use serde_json::Value;

use super::{check_command, check_health, read, texts, yaml};

const FILE: &str = "compose/compose.yaml";
/// Package of PyPI with the schema of compose files.
const SCHEMA: &str = "check-jsonschema==0.39.0";

fn compose() -> Value {
    yaml(&read(FILE)).remove(0)
}

fn services(compose: &Value) -> Vec<(&String, &Value)> {
    let services = compose["services"].as_object();
    services.expect("there are some").iter().collect()
}

fn is_ours(service: &Value) -> bool {
    let image = service["image"].as_str();
    image.is_some_and(|image| image.starts_with("${CRAWLER_IMAGE"))
}

#[test]
fn s31_services_run_commands_that_the_program_knows() {
    let (compose, config) = (compose(), read("compose/crawler.toml"));
    let ours = services(&compose).into_iter();
    let ours: Vec<_> = ours.filter(|(_, service)| is_ours(service)).collect();
    let names: Vec<&str> = ours.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    for (name, service) in ours {
        let mut words = texts(&service["command"]);
        if name == "worker" {
            // The entry point adds the name of the container.
            words.push("--advertise=container".to_owned());
        }
        match check_command(&words, &config) {
            Command::Master(options) => {
                assert!(options.node.exposure.requires_tokens, "{name}");
            }
            Command::Worker(_) => assert_eq!(name, "worker"),
            other => panic!("{name} runs {other:?}"),
        }
        let check = texts(&service["healthcheck"]["test"]);
        assert_eq!(check[0], "CMD");
        check_health(&check[1..]);
    }
}

#[test]
fn all_that_a_cluster_needs_is_there() {
    let compose = compose();
    let names = services(&compose).into_iter();
    let mut names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "bucket", "database", "etcd-1", "etcd-2", "etcd-3", "master-1", "master-2", "master-3",
            "store", "worker"
        ]
    );
    let config: toml::Table = read("compose/crawler.toml").parse().expect("it is TOML");
    let url = config["sink"]["database"]["url"].as_str();
    assert!(url.is_some_and(|url| url.contains("@database/items")));
    let environment = &compose["services"]["database"]["environment"];
    assert_eq!(environment["POSTGRES_DB"], "items");
    assert_eq!(environment["POSTGRES_USER"], "crawler");
}

#[test]
fn services_are_confined_and_bounded() {
    let compose = compose();
    for (name, service) in services(&compose) {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(texts(&service["cap_drop"]), ["ALL"], "{name}");
        assert_eq!(
            texts(&service["security_opt"]),
            ["no-new-privileges:true"],
            "{name}"
        );
        assert!(service["restart"].is_string(), "{name}");
        if name != "bucket" {
            let limits = &service["deploy"]["resources"]["limits"];
            assert!(limits["memory"].is_string(), "{name}");
            assert!(service["healthcheck"]["test"].is_array(), "{name}");
        }
    }
    assert_eq!(compose["networks"]["inside"]["internal"], true);
}

/// Variables would show secrets to everybody who may list containers.
#[test]
fn secrets_are_files_that_are_not_in_the_repository() {
    let compose = compose();
    for (name, service) in services(&compose) {
        let Some(variables) = service["environment"].as_object() else {
            continue;
        };
        for variable in variables.keys() {
            let is_secret = ["PASSWORD", "SECRET", "TOKEN"]
                .iter()
                .any(|word| variable.contains(word) && !variable.ends_with("_FILE"));
            let is_name = variable == "ETCD_INITIAL_CLUSTER_TOKEN";
            assert!(!is_secret || is_name, "{name}: {variable}");
        }
    }
    let secrets = compose["secrets"].as_object().expect("there are some");
    for (name, secret) in secrets {
        let file = secret["file"].as_str().expect("it is a file");
        let file = file
            .strip_prefix("./")
            .expect("it is beside the compose file");
        let ignored = Program::new("git")
            .args(["check-ignore", "--quiet"])
            .arg(format!("host/deploy/compose/{file}"))
            .current_dir(repository())
            .status()
            .unwrap();
        assert!(ignored.success(), "{name}: git would take {file}");
        let place = format!("/run/secrets/{name}");
        assert!(read("compose/crawler.toml").contains(&place), "{name}");
    }
}

#[test]
fn the_script_makes_each_secret_once() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("init");
    fs::copy(repository().join("host/deploy/compose/init"), &script).unwrap();
    let run = || {
        let ended = Program::new("sh").arg(&script).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        let secrets = fs::read_dir(folder.path().join("secrets")).unwrap();
        let secret = |entry: fs::DirEntry| {
            let text = fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), text)
        };
        let mut secrets: Vec<_> = secrets.map(|entry| secret(entry.unwrap())).collect();
        secrets.sort();
        secrets
    };
    let made = run();
    let compose = compose();
    let wanted = compose["secrets"].as_object().unwrap().keys();
    let names: Vec<&String> = made.iter().map(|(name, _)| name).collect();
    assert_eq!(names, wanted.collect::<Vec<_>>());
    assert!(
        made.iter().all(|(_, secret)| secret.len() == 64),
        "{names:?}"
    );
    let folder_mode = fs::metadata(folder.path().join("secrets")).unwrap();
    assert_eq!(folder_mode.permissions().mode() & 0o777, 0o700);
    assert_eq!(run(), made);
}

#[test]
fn the_file_keeps_to_the_specification_of_compose() {
    let home = Home::new();
    let Some(python) = python(home.path(), "compose-spec", &[SCHEMA]) else {
        return;
    };
    let checked = Program::new(python.with_file_name("check-jsonschema"))
        .args(["--builtin-schema", "vendor.compose-spec"])
        .arg(repository().join("host/deploy").join(FILE))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}");
}
