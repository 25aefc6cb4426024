//! JavaScript: the build script of a package.json, which leaves plugin.wasm.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;
use tokio::process::Command;

use super::command::Hints;
use super::script::{self, Build};
use super::sources::Sources;
use crate::cli::Failure;
use crate::config;
use crawler_model::id::Digest;

/// Program that makes the component.
const TOOL: &str = "componentize-qjs";
/// Files beside package.json that tell versions of packages.
const LOCKS: [&str; 5] = [
    "bun.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "pnpm-lock.yaml",
    "yarn.lock",
];

/// Beginning of what the tool says if the engine refuses the rules; the step in which it does so follows, and then the
/// message of the engine.
const REFUSED: &str = "Failed to evaluate user JavaScript module: ";
/// Step in which the rules are parsed, and their imports looked up.
const PARSING: &str = "Failed to declare JavaScript module: ";
/// Steps in which they run.
const RUNNING: [&str; 2] = [
    "Failed to evaluate JavaScript module: ",
    "Failed to finish JavaScript module evaluation: ",
];

/// Builds a folder with a package.json, and returns the component: `npm run build` must write it as
/// plugin.wasm.
pub(super) async fn build(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", "build"]);
    let plugin = std::path::absolute(folder)?;
    let search_path = config::search_path();
    let is_installed = folder.join("node_modules").is_dir()
        || search_path.iter().any(|bin| bin.join(TOOL).is_file());
    let hints = Hints {
        missing: "install Node.js, which npm comes with",
        failed: (!is_installed).then_some(
            "run `npm install` in the folder of the plugin first: it has no node_modules",
        ),
        shown: Some(&script_error),
    };
    let build = Build {
        folder,
        command: npm,
        hints,
        nothing: "the script `build` of its package.json has to write that file into the folder",
    };
    build.run(move || sources(&plugin, &search_path)).await
}

/// Returns what the engine says of the rules in the messages of a build, as the language prints it: with paths from the
/// folder of the plugin, and without frames of the engine itself. Messages of another form are returned as they are.
fn script_error(messages: &str) -> String {
    let Some((_, refused)) = messages.split_once(REFUSED) else {
        return messages.to_owned();
    };
    let said = match refused.strip_prefix(PARSING) {
        Some(said) => match said.strip_prefix("Error: ") {
            Some(import) if import.starts_with("Error resolving module ") => import.to_owned(),
            // The tool gives each error the same class.
            Some(fault) => format!("SyntaxError: {fault}"),
            None => said.to_owned(),
        },
        None => {
            let mut steps = RUNNING.iter();
            let said = steps.find_map(|step| refused.strip_prefix(step));
            said.unwrap_or(refused).to_owned()
        }
    };
    let is_frame = |line: &str| line.trim_start().starts_with("at ");
    let lines = said
        .lines()
        .filter(|line| !(is_frame(line) && line.ends_with(" (native)")));
    let lines = lines.map(|line| match is_frame(line) {
        true => line.replacen("at /", "at ", 1).replacen("(/", "(", 1),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Parts of a package.json that tell what is built.
#[derive(Deserialize)]
struct Package {
    #[serde(default)]
    scripts: BTreeMap<String, String>,
    #[serde(default)]
    crawler: PackageBuild,
}

/// Object `crawler` of a package.json.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageBuild {
    /// Files and folders that the build reads, relative to the folder of the plugin. If `None`, they are all of
    /// that folder.
    inputs: Option<Vec<String>>,
}

/// Returns the digest of what the component is made of. It is `None` if the build may read files that are not
/// known, or has a tool that is not known.
fn sources(folder: &Path, search_path: &[PathBuf]) -> anyhow::Result<Option<Digest>> {
    let manifest = folder.join("package.json");
    let cannot_read = || format!("cannot read {}", manifest.display());
    let text = fs::read_to_string(&manifest).with_context(cannot_read)?;
    let package: Package = serde_json::from_str(&text).with_context(cannot_read)?;
    let mut sources = Sources::of("javascript");
    let modules = folder.ancestors().map(|folder| folder.join("node_modules"));
    let modules: Vec<PathBuf> = modules.filter(|modules| modules.is_dir()).collect();
    let mut has_folders = false;
    for modules in &modules {
        has_folders |= add_packages(&mut sources, modules)?;
    }
    if !add_tool(&mut sources, &modules, search_path)? {
        return Ok(None);
    }
    let is_outside = || package.scripts.values().any(|script| leaves_folder(script));
    match package.crawler.inputs {
        Some(inputs) => {
            for name in ["package.json"].iter().chain(&LOCKS) {
                sources.add_path(name, &folder.join(name), &|_| false)?;
            }
            for input in inputs {
                let path = folder.join(&input);
                if !path.exists() {
                    let what = format!("{} does not exist", path.display());
                    let hint = format!("correct `inputs` of `crawler` in {}", manifest.display());
                    return Err(Failure::new(what, hint).into());
                }
                sources.add_path(&input, &path, &is_no_source)?;
            }
        }
        None if has_folders || is_outside() => return Ok(None),
        None => sources.add_path(".", folder, &is_no_source)?,
    }
    Ok(Some(sources.digest()))
}

/// Returns true for what lies in the folder of a plugin and is no part of it.
fn is_no_source(path: &Path) -> bool {
    script::is_no_source(path) || path.extension().is_some_and(|extension| extension == "md")
}

/// Returns true if a command names something outside of its folder.
fn leaves_folder(script: &str) -> bool {
    let mut words = script.split(|c: char| c.is_whitespace() || "'\"`=:;&|()<>".contains(c));
    words.any(|word| word.starts_with(['/', '~', '$']) || word.split('/').any(|part| part == ".."))
}

/// Adds the version of the tool, as the build finds it. Returns false if it is not found.
fn add_tool(
    sources: &mut Sources,
    modules: &[PathBuf],
    search_path: &[PathBuf],
) -> anyhow::Result<bool> {
    // npm looks for programs in this order.
    let bins = modules.iter().map(|modules| modules.join(".bin"));
    let mut programs = bins.chain(search_path.iter().cloned());
    let Some(program) = programs.find_map(|bin| bin.join(TOOL).canonicalize().ok()) else {
        return Ok(false);
    };
    let mut manifests = program.ancestors().map(|above| above.join("package.json"));
    let Some(manifest) = manifests.find(|manifest| manifest.is_file()) else {
        return Ok(false);
    };
    sources.add_path(TOOL, &manifest, &|_| false)?;
    Ok(true)
}

/// Adds the versions of the packages that npm has installed. Those that are optional belong to one platform, and
/// come in the versions of the packages that need them. Returns true if some are folders of somebody who works on
/// them: their files change, and their version does not.
fn add_packages(sources: &mut Sources, modules: &Path) -> anyhow::Result<bool> {
    let lock = modules.join(".package-lock.json");
    let cannot_read = || format!("cannot read {}", lock.display());
    let text = match fs::read_to_string(&lock) {
        Ok(text) => text,
        // Another program has installed the packages.
        Err(error) if error.kind() == ErrorKind::NotFound => return has_links(modules),
        Err(error) => return Err(error).with_context(cannot_read),
    };
    let lock: Lock = serde_json::from_str(&text).with_context(cannot_read)?;
    let mut has_folders = false;
    for (name, package) in lock.packages {
        has_folders |= package.is_folder();
        if !package.optional {
            let version = package.version.clone() + " " + package.origin();
            sources.add(&name, version.as_bytes());
        }
    }
    Ok(has_folders)
}

/// Parts of a lock file of npm.
#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    packages: BTreeMap<String, Installed>,
}

/// Package in a lock file.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Installed {
    version: String,
    /// Digest of the archive. Empty if the package did not come in one.
    integrity: String,
    /// Place that the package came from: that of an archive, a folder, or a commit of a repository.
    resolved: String,
    optional: bool,
    /// True for a link to the folder `resolved`.
    link: bool,
}

impl Installed {
    /// Returns what tells apart packages of one version, on each machine. Archives have several places.
    fn origin(&self) -> &str {
        match self.integrity.is_empty() {
            true => &self.resolved,
            false => &self.integrity,
        }
    }

    /// Returns true for a link to a folder, and for a copy of one.
    fn is_folder(&self) -> bool {
        self.link || (self.resolved.starts_with("file:") && self.integrity.is_empty())
    }
}

/// Returns true if a folder of packages, or the folder of a scope (`@name`) in it, has a link that leads out of all
/// such folders. Links between them are the way in which some programs install packages.
fn has_links(modules: &Path) -> anyhow::Result<bool> {
    let cannot_read = || format!("cannot read {}", modules.display());
    for entry in fs::read_dir(modules).with_context(cannot_read)? {
        let entry = entry.with_context(cannot_read)?;
        let path = entry.path();
        let leads_out = match path.is_symlink() {
            true => {
                let target = path.canonicalize();
                target.is_ok_and(|target| target.iter().all(|part| part != "node_modules"))
            }
            false => {
                let is_scope = entry.file_name().as_encoded_bytes().starts_with(b"@");
                is_scope && path.is_dir() && has_links(&path)?
            }
        };
        if leads_out {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGE: &str =
        r#"{"scripts": {"build": "componentize-qjs --wit wit --js src/rules.js"}}"#;

    /// Folder of a plugin with a tool in its node_modules.
    fn plugin() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("package.json", PACKAGE),
            ("src/rules.js", "1"),
            ("wit/rules.wit", "2"),
            ("shared/a.js", "3"),
            ("node_modules/.bin/componentize-qjs", ""),
            ("node_modules/.package-lock.json", r#"{"packages": {}}"#),
        ] {
            write(folder.path(), name, text);
        }
        folder
    }

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn of(folder: &Path) -> Option<Digest> {
        sources(folder, &[]).unwrap()
    }

    #[test]
    fn the_engine_says_what_is_wrong_with_the_rules() {
        let shown = |said: &str| script_error(&format!("Error: : {REFUSED}{said}\n\n"));
        let parsed = format!("{PARSING}Error: unexpected end of string\n    at /src/rules.js:5:11");
        assert_eq!(
            shown(&parsed).trim_end(),
            "SyntaxError: unexpected end of string\n    at src/rules.js:5:11"
        );
        let import = "Error resolving module './gone.js' from '/src/rules.js'";
        assert_eq!(
            shown(&format!("{PARSING}Error: {import}")).trim_end(),
            import
        );
        let ran = format!(
            "{}Error: no (native)\n    at map (native)\n    at <anonymous> (/src/rules.js:5:5)",
            RUNNING[1]
        );
        assert_eq!(
            shown(&ran).trim_end(),
            "Error: no (native)\n    at <anonymous> (src/rules.js:5:5)"
        );
        let other = "sh: 1: esbuild: not found\n";
        assert_eq!(script_error(other), other);
    }

    #[track_caller]
    fn check(changes: &[(&str, &str)], is_other: bool) {
        let folder = plugin();
        let before = of(folder.path());
        assert!(before.is_some());
        for (name, text) in changes {
            write(folder.path(), name, text);
        }
        assert_eq!(of(folder.path()) != before, is_other, "{changes:?}");
    }

    #[test]
    fn everything_that_a_build_reads_is_in_its_digest() {
        for name in [
            "src/rules.js",
            "wit/rules.wit",
            "tsconfig.json",
            "package-lock.json",
        ] {
            check(&[(name, "changed")], true);
        }
        check(
            &[("package.json", r#"{"scripts": {"build": "tsc"}}"#)],
            true,
        );
        for name in ["pages/a.html", "README.md", "plugin.wasm", ".gitignore"] {
            check(&[(name, "changed")], false);
        }
    }

    #[test]
    fn versions_of_packages_are_in_the_digest_if_each_platform_has_them() {
        let lock = |text| ("node_modules/.package-lock.json", text);
        check(
            &[lock(r#"{"packages": {"a": {"version": "1.0.0"}}}"#)],
            true,
        );
        check(
            &[lock(
                r#"{"packages": {"a-linux": {"version": "1.0.0", "optional": true}}}"#,
            )],
            false,
        );
        let git = |commit| {
            let folder = plugin();
            let resolved = format!("git+ssh://git@example.test/a.git#{commit}");
            let text = format!(
                r#"{{"packages": {{"a": {{"version": "1.0.0", "resolved": "{resolved}"}}}}}}"#
            );
            write(folder.path(), "node_modules/.package-lock.json", &text);
            of(folder.path()).unwrap()
        };
        assert_ne!(git("0123"), git("4567"));
        let folder = plugin();
        let tool = "node_modules/componentize-qjs";
        write(folder.path(), &format!("{tool}/package.json"), "0.4.5");
        let before = of(folder.path());
        write(folder.path(), &format!("{tool}/bin/qjs"), "");
        let program = folder.path().join("node_modules/.bin/componentize-qjs");
        fs::remove_file(&program).unwrap();
        std::os::unix::fs::symlink("../componentize-qjs/bin/qjs", &program).unwrap();
        assert_ne!(of(folder.path()), before);
    }

    #[test]
    fn a_build_with_packages_that_are_folders_runs_each_time() {
        let lock = |packages: &str| {
            let folder = plugin();
            let text = format!(r#"{{"packages": {{{packages}}}}}"#);
            write(folder.path(), "node_modules/.package-lock.json", &text);
            folder
        };
        let archive =
            r#""a": {"version": "1.0.0", "resolved": "file:../a.tgz", "integrity": "sha512-0"}"#;
        assert!(of(lock(archive).path()).is_some());
        let link =
            r#""../a": {"version": "1.0.0"}, "node_modules/a": {"resolved": "../a", "link": true}"#;
        let copy = r#""node_modules/a": {"version": "1.0.0", "resolved": "file:../a"}"#;
        for packages in [link, copy] {
            let folder = lock(packages);
            assert_eq!(of(folder.path()), None, "{packages}");
            // Packages may be installed in a folder above.
            let inner = folder.path().join("inner");
            write(&inner, "package.json", PACKAGE);
            assert_eq!(of(&inner), None, "{packages}");
            let inputs = r#"{"crawler": {"inputs": ["src"]}}"#;
            write(folder.path(), "package.json", inputs);
            assert!(of(folder.path()).is_some(), "{packages}");
        }
    }

    #[test]
    fn links_of_other_programs_than_npm_are_seen() {
        for (target, is_known) in [
            ("node_modules/.pnpm/a@1/node_modules/a", true),
            ("shared", false),
        ] {
            for link in ["a", "@of/a"] {
                let folder = plugin();
                let modules = folder.path().join("node_modules");
                fs::remove_file(modules.join(".package-lock.json")).unwrap();
                let target = folder.path().join(target);
                fs::create_dir_all(&target).unwrap();
                let link = modules.join(link);
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(&target, &link).unwrap();
                assert_eq!(of(folder.path()).is_some(), is_known, "{target:?}");
            }
        }
    }

    #[test]
    fn a_build_that_leaves_the_folder_tells_its_inputs_or_runs_each_time() {
        let package = |more: &str| {
            let build = "componentize-qjs --module-root ../.. --js src/rules.js";
            format!(r#"{{"scripts": {{"build": "{build}"}}{more}}}"#)
        };
        let folder = plugin();
        let inner = folder.path().join("inner");
        write(&inner, "package.json", &package(""));
        assert_eq!(of(&inner), None);
        let inputs = r#", "crawler": {"inputs": ["../src", "../wit/rules.wit"]}"#;
        write(&inner, "package.json", &package(inputs));
        let before = of(&inner);
        assert!(before.is_some());
        write(folder.path(), "shared/a.js", "changed");
        write(&inner, "notes.js", "changed");
        assert_eq!(of(&inner), before);
        write(folder.path(), "src/rules.js", "changed");
        assert_ne!(of(&inner), before);
        let wrong = r#", "crawler": {"inputs": ["src"]}"#;
        write(&inner, "package.json", &package(wrong));
        let error = sources(&inner, &[]).unwrap_err();
        assert!(
            error.to_string().ends_with("/inner/src does not exist"),
            "{error}"
        );
    }

    #[test]
    fn a_tool_that_is_not_known_runs_each_time() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "package.json", PACKAGE);
        assert_eq!(of(folder.path()), None);
        // It may be one that is installed for all plugins.
        let global = plugin();
        let bin = global.path().join("node_modules/.bin");
        assert!(sources(folder.path(), &[bin]).unwrap().is_some());
    }

    #[test]
    fn commands_that_leave_their_folder_are_known() {
        for script in [
            "a ../b",
            "a --root=../..",
            "a /usr/lib",
            "a \"$HOME\"",
            "cd ~/a",
            "a b/../c",
            "cd ..;a",
            "(cd ..&&a)",
            "a >../b",
            "a <../b",
            "a|../b",
            "a `../b`",
        ] {
            assert!(leaves_folder(script), "{script}");
        }
        for script in ["tsc && a --js src/rules.js", "a ./b", "a b..c"] {
            assert!(!leaves_folder(script), "{script}");
        }
    }
}
