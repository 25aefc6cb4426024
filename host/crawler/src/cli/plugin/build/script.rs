//! JavaScript and Python: an interpreter with the rules in it, as one component.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use serde::Deserialize;
use tokio::process::Command;

use super::command::{Hints, run};
use crate::cli::Failure;
use crawler_devtools::template::COMPONENTIZE_PY;

/// Name of the component's file, which the build script of a package.json writes, and this program for
/// Python.
const COMPONENT: &str = "plugin.wasm";

/// Builds a folder with a package.json, and returns the component: `npm run build` must write it as
/// plugin.wasm.
pub(super) async fn build_javascript(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", "build"]);
    let hints = Hints {
        missing: "install Node.js, which npm comes with",
        failed: (!folder.join("node_modules").is_dir()).then_some(
            "run `npm install` in the folder of the plugin first: it has no node_modules",
        ),
        shown: None,
    };
    let nothing = "the script `build` of its package.json has to write that file into the folder";
    built(npm, folder, hints, nothing).await
}

/// Table `[tool.crawler]` of a pyproject.toml: arguments of componentize-py. Paths are relative to the file.
#[derive(Debug, PartialEq, Deserialize)]
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
pub(super) async fn build_python(folder: &Path) -> anyhow::Result<PathBuf> {
    let manifest = folder.join("pyproject.toml");
    let text = tokio::fs::read_to_string(&manifest).await;
    let text = text.with_context(|| format!("cannot read {}", manifest.display()))?;
    let project: PyProject =
        toml::from_str(&text).with_context(|| format!("cannot read {}", manifest.display()))?;
    let own = std::path::absolute(folder)?.join(".venv/bin/componentize-py");
    let mut program = match own.is_file() {
        true => Command::new(own),
        false => Command::new("componentize-py"),
    };
    let build = &project.tool.crawler;
    // Frames of the compiler itself say nothing about the rules.
    program.args(arguments(build)).env("RUST_BACKTRACE", "0");
    let missing = format!(
        "in the folder of the plugin: python3 -m venv .venv && .venv/bin/pip install {COMPONENTIZE_PY}"
    );
    let hints = Hints {
        missing: &missing,
        failed: None,
        shown: Some(&|messages| python_error(messages, &build.path)),
    };
    let nothing = "componentize-py ended without a word";
    built(program, folder, hints, nothing).await
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

/// Runs a build that must write plugin.wasm; a file of an earlier build does not count. `nothing` is the way
/// out if it writes none. The build's output is for the user, on stderr like all messages: compilers of
/// TypeScript print theirs on stdout.
async fn built(
    command: Command,
    folder: &Path,
    hints: Hints<'_>,
    nothing: &str,
) -> anyhow::Result<PathBuf> {
    let component = folder.join(COMPONENT);
    match tokio::fs::remove_file(&component).await {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => {
            let what = format!("cannot remove {}", component.display());
            return Err(anyhow::Error::new(error).context(what));
        }
    }
    run(command, folder, Stdio::from(std::io::stderr()), hints).await?;
    if component.is_file() {
        return Ok(component);
    }
    let what = format!("building {} gave no {COMPONENT}", folder.display());
    Err(Failure::new(what, nothing).into())
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

    #[tokio::test]
    async fn a_script_that_leaves_no_component_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let stale = folder.path().join(COMPONENT);
        std::fs::write(&stale, "old").unwrap();
        let built = async |program| {
            let hints = Hints {
                missing: "",
                failed: None,
                shown: None,
            };
            let built = built(Command::new(program), folder.path(), hints, "").await;
            built.unwrap_err().to_string()
        };
        let error = built("true").await;
        assert!(error.ends_with("gave no plugin.wasm"), "{error}");
        let error = built("false").await;
        assert!(error.ends_with("does not build"), "{error}");
        let error = built("no-such-program").await;
        assert!(error.starts_with("cannot start no-such-program"), "{error}");
    }
}
