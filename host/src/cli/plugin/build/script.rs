//! JavaScript and Python: an interpreter with the rules in it, as one component.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;
use tokio::process::Command;

use super::run;
use crate::author::template::COMPONENTIZE_PY;
use crate::cli::Failure;

/// Where the build script of a package.json, and we for Python, leave the component.
const COMPONENT: &str = "plugin.wasm";

/// The component of a folder with a package.json: what `npm run build` leaves as plugin.wasm.
pub(super) async fn build_javascript(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", "build"]);
    let needs = match folder.join("node_modules").is_dir() {
        true => "install Node.js, which npm comes with",
        false => "run `npm install` in the folder of the plugin first: it has no node_modules",
    };
    let hint = "the script `build` of its package.json has to write that file into the folder";
    built(npm, folder, needs, hint).await
}

/// `[tool.crawler]` of a pyproject.toml: how componentize-py is called. Paths are beside the file.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PythonBuild {
    /// The module that has `Rules`.
    module: String,
    /// The folder of rules.wit.
    wit: String,
    /// Where modules are looked for.
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

/// The component of a folder with a pyproject.toml, by the componentize-py of its `.venv` or of PATH.
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
    program.args(arguments(&project.tool.crawler));
    let needs = format!(
        "in the folder of the plugin: python3 -m venv .venv && .venv/bin/pip install {COMPONENTIZE_PY}"
    );
    built(
        program,
        folder,
        &needs,
        "componentize-py ended without a word",
    )
    .await
}

/// Without WASI: rules reach nothing but what the crawler gives them.
fn arguments(build: &PythonBuild) -> Vec<&str> {
    let mut arguments = vec!["--quiet", "--wit-path", &build.wit, "--world", "plugin"];
    arguments.extend(["componentize", "--stub-wasi"]);
    arguments.extend(build.path.iter().flat_map(|path| ["--python-path", path]));
    arguments.extend([&build.module, "--output", COMPONENT]);
    arguments
}

/// Runs a build that leaves plugin.wasm; one of an earlier build is none of this one. `needs` says what to do
/// where the program cannot be started, `hint` where it leaves nothing.
async fn built(
    command: Command,
    folder: &Path,
    needs: &str,
    hint: &str,
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
    run(command, folder, needs).await?;
    if component.is_file() {
        return Ok(component);
    }
    let what = format!("building {} gave no {COMPONENT}", folder.display());
    Err(Failure::new(what, hint).into())
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

    #[tokio::test]
    async fn a_script_that_leaves_no_component_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let stale = folder.path().join(COMPONENT);
        std::fs::write(&stale, "old").unwrap();
        let error = built(Command::new("true"), folder.path(), "", "").await;
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("gave no plugin.wasm"), "{error}");
        let error = built(Command::new("false"), folder.path(), "", "").await;
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("does not build"), "{error}");
        let error = built(Command::new("no-such-program"), folder.path(), "", "").await;
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("cannot start no-such-program"), "{error}");
    }
}
