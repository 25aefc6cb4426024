//! Python: componentize-py, called as `[tool.crawler]` of the pyproject.toml says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use serde::Deserialize;
use tokio::process::Command;

use super::command::{Hints, run};
use super::script::{Build, COMPONENT, beside};
use super::sources::Sources;
use crate::config;
use crawler_devtools::template::COMPONENTIZE_PY;
use crawler_model::id::Digest;

/// Parts of each virtual environment that are no packages of the plugin.
const TOOLS: [&str; 8] = [
    "_distutils_hack",
    "_virtualenv",
    "componentize_py",
    "distutils-precedence",
    "pip",
    "pkg_resources",
    "setuptools",
    "wheel",
];

/// Table `[tool.crawler]` of a pyproject.toml: arguments of componentize-py. Paths are relative to the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PythonBuild {
    /// Module that has `Rules`.
    module: String,
    /// Folder of rules.wit.
    wit: String,
    /// Folders in which modules are looked for.
    path: Vec<String>,
}

impl Default for PythonBuild {
    fn default() -> Self {
        Self {
            module: "rules".to_owned(),
            wit: "wit".to_owned(),
            path: vec!["src".to_owned()],
        }
    }
}

#[derive(Deserialize)]
struct PyProject {
    #[serde(default)]
    tool: Tools,
}

#[derive(Default, Deserialize)]
struct Tools {
    #[serde(default)]
    crawler: PythonBuild,
}

/// Builds a folder with a pyproject.toml, by the componentize-py of its `.venv` or of PATH, and returns the
/// component.
pub(super) async fn build(folder: &Path) -> anyhow::Result<PathBuf> {
    let manifest = folder.join("pyproject.toml");
    let text = tokio::fs::read_to_string(&manifest).await;
    let text = text.with_context(|| format!("cannot read {}", manifest.display()))?;
    let project: PyProject =
        toml::from_str(&text).with_context(|| format!("cannot read {}", manifest.display()))?;
    let project = project.tool.crawler;
    let plugin = std::path::absolute(folder)?;
    let own = plugin.join(".venv");
    let own_program = own.join("bin/componentize-py");
    let program = match own_program.is_file() {
        true => own_program,
        false => "componentize-py".into(),
    };
    let missing = format!(
        "in the folder of the plugin: python3 -m venv .venv && .venv/bin/pip install {COMPONENTIZE_PY}"
    );
    let folders = project.path.clone();
    let hints = Hints {
        missing: &missing,
        failed: None,
        shown: Some(&|messages| python_error(messages, &folders)),
    };
    let mut version = Command::new(&program);
    version.arg("--version");
    let version = run(version, folder, Stdio::piped(), hints).await?.stdout;
    let none = tempfile::tempdir().context("cannot make a temporary folder")?;
    let environment = match own.is_dir() {
        true => own,
        false => match config::virtual_environment() {
            Some(active) => active,
            None => none.path().to_owned(),
        },
    };
    // Without a virtual environment, componentize-py would take the packages of this machine.
    fs::create_dir_all(none.path().join("lib/site-packages"))
        .context("cannot make a temporary folder")?;
    let mut command = Command::new(program);
    command
        .args(arguments(&project))
        .env("VIRTUAL_ENV", &environment)
        // Frames of the compiler itself say nothing about the rules.
        .env("RUST_BACKTRACE", "0");
    let build = Build {
        folder,
        command,
        hints,
        nothing: "componentize-py ended without a word",
    };
    let parts = Parts {
        plugin,
        project,
        version,
        environment,
    };
    build.run(move || parts.digest().map(Some)).await
}

/// Returns what Python says in the messages of componentize-py, as Python prints it. Files in the folders of
/// modules have their numbers there. Messages of another form are returned as they are.
fn python_error(messages: &str, folders: &[String]) -> String {
    let said = messages.split_once("\nAssertionError: ");
    let said = said.and_then(|(_, rest)| rest.split_once("\n\nCaused by:"));
    let Some((said, _)) = said else {
        return messages.to_owned();
    };
    let named = |said: String, (n, folder): (usize, &String)| {
        let folder = folder.trim_end_matches('/');
        said.replace(&format!("File \"/{n}/"), &format!("File \"{folder}/"))
    };
    folders.iter().enumerate().fold(said.to_owned(), named)
}

/// Returns the arguments of componentize-py. WASI is stubbed: rules reach nothing but what the crawler gives
/// them.
fn arguments(build: &PythonBuild) -> Vec<&str> {
    let mut arguments = vec!["--quiet", "--wit-path", &build.wit, "--world", "plugin"];
    arguments.extend(["componentize", "--stub-wasi"]);
    arguments.extend(build.path.iter().flat_map(|path| ["--python-path", path]));
    arguments.extend([&build.module, "--output", COMPONENT]);
    arguments
}

/// Parts that a component is made of.
#[derive(Clone)]
struct Parts {
    /// Folder of the plugin.
    plugin: PathBuf,
    project: PythonBuild,
    /// Version of componentize-py, as it prints it.
    version: Vec<u8>,
    /// Virtual environment that has the packages.
    environment: PathBuf,
}

impl Parts {
    fn digest(&self) -> anyhow::Result<Digest> {
        let mut sources = Sources::of("python");
        sources.add("componentize-py", &self.version);
        sources.add("arguments", arguments(&self.project).join("\0").as_bytes());
        for path in self.project.path.iter().chain([&self.project.wit]) {
            let folder = self.plugin.join(path);
            sources.add_path(path, &folder, &beside(&self.plugin, &folder))?;
        }
        for packages in site_packages(&self.environment)? {
            sources.add_path("packages", &packages, &is_of_a_tool)?;
        }
        Ok(sources.digest())
    }
}

/// Returns the folders of packages of a virtual environment.
fn site_packages(environment: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let lib = environment.join("lib");
    if !lib.is_dir() {
        return Ok(Vec::new());
    }
    let cannot_read = || format!("cannot read {}", lib.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(&lib).with_context(cannot_read)? {
        let packages = entry
            .with_context(cannot_read)?
            .path()
            .join("site-packages");
        if packages.is_dir() {
            found.push(packages);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns true for what an installer leaves beside packages, and for packages that build and install others.
fn is_of_a_tool(path: &Path) -> bool {
    let top = path.iter().next().unwrap_or_default().to_string_lossy();
    let (name, extension) = top.rsplit_once('.').unwrap_or((top.as_ref(), ""));
    extension == "dist-info" || TOOLS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pyproject_may_say_where_the_parts_of_a_plugin_are() {
        let read = |text: &str| {
            let project: Result<PyProject, _> = toml::from_str(text);
            project.map(|project| project.tool.crawler)
        };
        let usual = read("[project]\nname = \"shop\"\n[tool.black]\nline-length = 100").unwrap();
        assert_eq!(usual, PythonBuild::default());
        let own = read("[tool.crawler]\nmodule = \"shop\"\npath = [\"src\", \"lib\"]").unwrap();
        assert_eq!(
            arguments(&own).join(" "),
            "--quiet --wit-path wit --world plugin componentize --stub-wasi --python-path src \
             --python-path lib shop --output plugin.wasm"
        );
        let wrong = read("[tool.crawler]\nmodul = \"shop\"").unwrap_err();
        assert!(
            wrong.to_string().contains("unknown field `modul`"),
            "{wrong}"
        );
    }

    #[test]
    fn a_syntax_error_in_python_is_shown_as_python_prints_it() {
        let said = "  File \"/1/rules.py\", line 8\n    crawl.follow(\"http://a.test/\", \"page\"\n                ^\nSyntaxError: '(' was never closed\n";
        let messages = format!(
            "Traceback (most recent call last):\n  File \"/venv/bin/componentize-py\", line 8, in <module>\n    \
             sys.exit(script())\nAssertionError: {said}\n\nCaused by:\n    SyntaxError: '(' was never closed\n\n\
             Stack backtrace:\n   0: <anyhow::Error>::msg::<alloc::string::String>\n"
        );
        let folders = ["lib", "src/"].map(str::to_owned);
        let shown = python_error(&messages, &folders);
        assert_eq!(shown.trim_end(), said.replace("/1/", "src/").trim_end());
        let other = "error: unexpected argument\n";
        assert_eq!(python_error(other, &folders), other);
    }

    /// Returns true if a file of the plugin, or of its virtual environment, is part of the digest.
    fn is_part(file: &str) -> bool {
        is_part_of("src", file)
    }

    /// Returns true if a file of a plugin that has its modules in a folder is part of the digest.
    fn is_part_of(modules: &str, file: &str) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let plugin = folder.path().join("shop");
        let parts = Parts {
            plugin: plugin.clone(),
            project: PythonBuild {
                path: vec![modules.to_owned()],
                ..PythonBuild::default()
            },
            version: b"componentize-py 0.25.1".to_vec(),
            environment: plugin.join(".venv"),
        };
        let path = plugin.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let before = parts.digest().unwrap();
        fs::write(path, "changed").unwrap();
        parts.digest().unwrap() != before
    }

    #[test]
    fn modules_boundary_and_packages_are_in_the_digest() {
        let packages = ".venv/lib/python3.12/site-packages";
        for file in ["src/rules.py", "src/data/names.txt", "wit/rules.wit"] {
            assert!(is_part(file), "{file}");
        }
        for file in ["dateutil/tz.py", "six.py", "pip_of_ours/a.py"] {
            assert!(is_part(&format!("{packages}/{file}")), "{file}");
        }
        for file in ["README.md", "pages/a.html", "src/__pycache__/rules.pyc"] {
            assert!(!is_part(file), "{file}");
        }
        for file in [
            "pip/main.py",
            "six-1.16.0.dist-info/RECORD",
            "_virtualenv.pth",
        ] {
            assert!(!is_part(&format!("{packages}/{file}")), "{file}");
        }
    }

    #[test]
    fn a_component_beside_the_modules_is_not_in_its_own_digest() {
        for modules in [".", "./", "..", "../shop"] {
            for file in [
                "rules.py",
                "pages/list.py",
                "lib/pages/list.py",
                "lib/plugin.wasm",
            ] {
                assert!(is_part_of(modules, file), "{modules}: {file}");
            }
            for file in [
                "plugin.wasm",
                "pages/a.html",
                "node_modules/a.js",
                ".venv/a",
            ] {
                assert!(!is_part_of(modules, file), "{modules}: {file}");
            }
        }
        for file in ["src/pages/list.py", "src/plugin.wasm"] {
            assert!(is_part(file), "{file}");
        }
    }

    #[test]
    fn tool_and_arguments_are_in_the_digest() {
        let folder = tempfile::tempdir().unwrap();
        let parts = Parts {
            plugin: folder.path().to_owned(),
            project: PythonBuild::default(),
            version: b"componentize-py 0.25.1".to_vec(),
            environment: folder.path().to_owned(),
        };
        let newer = Parts {
            version: b"componentize-py 0.26.0".to_vec(),
            ..parts.clone()
        };
        let other = Parts {
            project: PythonBuild {
                module: "shop".to_owned(),
                ..PythonBuild::default()
            },
            ..parts.clone()
        };
        let digests = [parts, newer, other].map(|parts| parts.digest().unwrap());
        assert_ne!(digests[0], digests[1]);
        assert_ne!(digests[0], digests[2]);
    }
}
