//! The files of a new plugin: rules that fit a small shop, saved calls of them, and their test.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::sdk::{self, Sdk, SdkError};
use crawler_model::id::PluginName;

#[cfg(test)]
mod book;
mod guide;

/// Language of a plugin's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Rust, compiled.
    Rust,
    /// JavaScript, with the interpreter QuickJS in the component.
    JavaScript,
    /// Python, with the interpreter CPython in the component.
    Python,
}

impl FromStr for Language {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "rust" => Ok(Self::Rust),
            "js" => Ok(Self::JavaScript),
            "python" => Ok(Self::Python),
            _ => Err("one of rust, js, python"),
        }
    }
}

/// Packages that make components of scripts, in the versions that the SDKs are tested with.
pub const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";
const COMPONENTIZE_QJS: &str = "0.4.5";

/// Paths and contents of the files of a new plugin.
type Files = &'static [(&'static str, &'static str)];

/// Saved calls, the same in each language.
const PAGES: Files = &[
    (
        "pages/root.call.json",
        include_str!("template/root.call.json"),
    ),
    (
        "pages/list.call.json",
        include_str!("template/list.call.json"),
    ),
    ("pages/list.html", include_str!("template/list.html")),
    (
        "pages/detail.call.json",
        include_str!("template/detail.call.json"),
    ),
    ("pages/detail.html", include_str!("template/detail.html")),
];

const RUST: Files = &[
    ("Cargo.toml", include_str!("template/rust/Cargo.toml.in")),
    // With the versions that the SDK is tested with, a build looks up none.
    ("Cargo.lock", include_str!("../../../plugins/Cargo.lock")),
    ("README.md", include_str!("template/rust/README.md.in")),
    (".gitignore", "/target\n"),
    ("src/lib.rs", include_str!("template/rust/lib.rs.in")),
    ("tests/pages.rs", include_str!("template/rust/pages.rs.in")),
];

const JAVASCRIPT: Files = &[
    ("package.json", include_str!("template/js/package.json.in")),
    ("README.md", include_str!("template/js/README.md.in")),
    (".gitignore", "/node_modules\n/plugin.wasm\n"),
    ("src/rules.js", include_str!("template/js/rules.js.in")),
    (
        "src/crawler.js",
        include_str!("../../../plugin-sdk/js/crawler.js"),
    ),
    TYPES,
    ("jsconfig.json", include_str!("template/js/jsconfig.json")),
    WIT,
];

const PYTHON: Files = &[
    (
        "pyproject.toml",
        include_str!("template/python/pyproject.toml.in"),
    ),
    ("README.md", include_str!("template/python/README.md.in")),
    (".gitignore", "/.venv\n/plugin.wasm\n__pycache__\n"),
    ("src/rules.py", include_str!("template/python/rules.py.in")),
    (
        "src/crawler.py",
        include_str!("../../../plugin-sdk/python/crawler.py"),
    ),
    WIT,
];

/// Types of the SDK for JavaScript, which stand beside its module.
const TYPES: (&str, &str) = (
    "src/crawler.d.ts",
    include_str!("../../../plugin-sdk/js/crawler.d.ts"),
);

const WIT: (&str, &str) = (
    "wit/rules.wit",
    include_str!("../../../plugin-sdk/wit/rules.wit"),
);

/// Names that no crate can have, or that would clash with its dependencies.
const TAKEN: &str = "abstract alloc as async await become box break const continue core crate crawler_plugin_sdk \
    do dyn else enum extern false final fn for gen if impl in let loop macro match mod move mut override \
    priv proc_macro pub ref return self serde static std struct super test trait true try type typeof unsafe \
    unsized use virtual where while yield";

/// Reason why there is no new plugin.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// No crate can have the name.
    #[error("no crate can be called {name}: {why}")]
    Name {
        /// Name that was asked for.
        name: PluginName,
        /// Reason against the name.
        why: &'static str,
    },
    /// The folder exists and is not empty.
    #[error("{folder} is there, and not an empty folder")]
    Present {
        /// Folder that was asked for.
        folder: PathBuf,
    },
    /// A file cannot be written.
    #[error("cannot write {path}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// There is no plugin to bring an SDK to.
    #[error("folder {folder} has no Cargo.toml, package.json or pyproject.toml")]
    NoPlugin {
        /// Folder that was named.
        folder: PathBuf,
    },
    /// A folder of this name is something else.
    #[error("{folder} is there, and not an SDK of plugins; move it away")]
    OtherFolder {
        /// Folder of the SDK.
        folder: PathBuf,
    },
    /// The SDK cannot be written.
    #[error(transparent)]
    Sdk(#[from] SdkError),
}

/// Writes a plugin in Rust, with its SDK, into a folder that does not exist yet, or is empty.
pub fn write_rust(name: &PluginName, folder: &Path) -> Result<(), TemplateError> {
    let crate_name = crate_name(name)?;
    ensure_empty(folder)?;
    let parts = [
        ("{{name}}", name.to_string()),
        ("{{crate}}", crate_name.clone()),
        ("{{type}}", type_name(&crate_name)),
    ];
    write_files(folder, RUST, &parts)?;
    Ok(Sdk::own().write(&folder.join(sdk::FOLDER))?)
}

/// Writes a plugin in JavaScript, with its SDK, into a folder that does not exist yet, or is empty.
pub fn write_javascript(name: &PluginName, folder: &Path) -> Result<(), TemplateError> {
    ensure_empty(folder)?;
    let version = COMPONENTIZE_QJS.to_owned();
    let parts = [
        ("{{name}}", name.to_string()),
        ("{{componentize-qjs}}", version),
    ];
    write_files(folder, JAVASCRIPT, &parts)?;
    write_file(&folder.join(guide::FILE), guide::text().as_bytes())
}

/// Writes a plugin in Python, with its SDK, into a folder that does not exist yet, or is empty.
pub fn write_python(name: &PluginName, folder: &Path) -> Result<(), TemplateError> {
    ensure_empty(folder)?;
    let package = COMPONENTIZE_PY.to_owned();
    let parts = [
        ("{{name}}", name.to_string()),
        ("{{componentize-py}}", package),
    ];
    write_files(folder, PYTHON, &parts)?;
    write_file(&folder.join(guide::FILE), guide::text().as_bytes())
}

/// Replaces the SDK in the folder of a plugin by that of this program, and returns what was written. Of a script,
/// files that lie elsewhere are left alone. With the module come its types and the guide, also where there were none.
pub fn renew_sdk(folder: &Path) -> Result<Vec<PathBuf>, TemplateError> {
    if folder.join("Cargo.toml").is_file() {
        let sdk = folder.join(sdk::FOLDER);
        if sdk.exists() && !sdk::is_at(&sdk) {
            return Err(TemplateError::OtherFolder { folder: sdk });
        }
        Sdk::own().write(&sdk)?;
        return Ok(vec![sdk]);
    }
    let scripts = [
        ("package.json", JAVASCRIPT, "src/crawler.js"),
        ("pyproject.toml", PYTHON, "src/crawler.py"),
    ];
    let is_here = |manifest: &str| folder.join(manifest).is_file();
    let Some((_, files, module)) = scripts.into_iter().find(|(manifest, ..)| is_here(manifest))
    else {
        let folder = folder.to_owned();
        return Err(TemplateError::NoPlugin { folder });
    };
    let mut written = Vec::new();
    for (file, text) in files {
        let path = folder.join(file);
        let needed = if *file == TYPES.0 { module } else { *file };
        if [module, TYPES.0, WIT.0].contains(file) && folder.join(needed).exists() {
            write_file(&path, text.as_bytes())?;
            written.push(path);
        }
    }
    let path = folder.join(guide::FILE);
    if folder.join(module).exists() && guide::may_replace(&path) {
        write_file(&path, guide::text().as_bytes())?;
        written.push(path);
    }
    Ok(written)
}

fn ensure_empty(folder: &Path) -> Result<(), TemplateError> {
    let path = folder.to_owned();
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(false) => Err(TemplateError::Present { folder: path }),
        Err(source) => Err(TemplateError::Io { path, source }),
    }
}

fn write_files(folder: &Path, files: Files, parts: &[(&str, String)]) -> Result<(), TemplateError> {
    for (file, text) in files.iter().chain(PAGES) {
        let text = parts
            .iter()
            .fold((*text).to_owned(), |text, (part, value)| {
                text.replace(part, value)
            });
        write_file(&folder.join(file), text.as_bytes())?;
    }
    Ok(())
}

fn crate_name(name: &PluginName) -> Result<String, TemplateError> {
    let crate_name = name.as_str().replace(['-', '.'], "_");
    let why = if !crate_name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        "it has to begin with a letter"
    } else if TAKEN
        .split_whitespace()
        .any(|taken| taken.eq_ignore_ascii_case(&crate_name))
    {
        "Rust or the SDK has the name"
    } else if name.as_str().contains('.') {
        "it has a dot"
    } else if name.as_str().contains('/') {
        "it has a slash"
    } else {
        return Ok(crate_name);
    };
    let name = name.clone();
    Err(TemplateError::Name { name, why })
}

/// Returns `book_shop` as `BookShopRules`; nothing else in the file has that name.
fn type_name(crate_name: &str) -> String {
    let words = crate_name.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect::<String>() + "Rules"
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), TemplateError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes));
    written.map_err(|source| TemplateError::Io {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_plugin_has_its_name_everywhere_and_its_sdk() {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().join("crawls/book-shop");
        write_rust(&"book-shop".parse().unwrap(), &folder).unwrap();
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        let manifest = read("Cargo.toml");
        assert!(manifest.contains("name = \"book-shop\""), "{manifest}");
        assert!(read("src/lib.rs").contains("pub struct BookShopRules;"));
        assert!(read("tests/pages.rs").contains("use book_shop::BookShopRules;"));
        for (file, _) in RUST {
            assert!(!read(file).contains("{{"), "{file}");
        }
        assert_eq!(Sdk::read(&folder.join("sdk")).unwrap(), Some(Sdk::own()));
    }

    #[test]
    fn a_new_plugin_names_the_version_of_the_sdk() {
        let manifest: toml::Table = RUST[0].1.parse().unwrap();
        let version = manifest["dependencies"][sdk::PACKAGE].as_str().unwrap();
        let required = semver::VersionReq::parse(version).unwrap();
        let own = semver::Version::parse(env!("CARGO_PKG_VERSION")).unwrap();
        assert!(required.matches(&own), "{version}");
        let patch = &manifest["patch"]["crates-io"][sdk::PACKAGE]["path"];
        assert_eq!(patch.as_str(), Some(sdk::FOLDER));
    }

    #[test]
    fn a_new_plugin_of_a_script_has_its_sdk_with_it() {
        let tree = tempfile::tempdir().unwrap();
        let (js, py) = (tree.path().join("js"), tree.path().join("py"));
        // No crate could have this name.
        let name = "7days".parse().unwrap();
        write_javascript(&name, &js).unwrap();
        write_python(&name, &py).unwrap();
        for (folder, files, rules) in [
            (&js, JAVASCRIPT, "src/rules.js"),
            (&py, PYTHON, "src/rules.py"),
        ] {
            let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
            assert!(read(rules).contains("\"7days\""), "{}", read(rules));
            assert!(read("wit/rules.wit").contains("world plugin"));
            for (file, _) in files {
                assert!(!read(file).contains("{{"), "{file}");
            }
        }
        let error = write_python(&name, &js).unwrap_err();
        assert!(matches!(error, TemplateError::Present { .. }), "{error}");
    }

    /// Returns the targets of the links in a text that are no addresses.
    fn linked_files(text: &str) -> Vec<&str> {
        let ends = text.split("](").skip(1);
        let targets = ends.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
        targets
            .filter(|target| !target.starts_with("https://"))
            .collect()
    }

    /// Writes a new plugin in each language, and returns their folders: Rust, JavaScript, Python.
    fn write_all(tree: &Path) -> [PathBuf; 3] {
        let name = "shop".parse().unwrap();
        let [rust, js, py] = ["rust", "js", "py"].map(|lang| tree.join(lang));
        write_rust(&name, &rust).unwrap();
        write_javascript(&name, &js).unwrap();
        write_python(&name, &py).unwrap();
        [rust, js, py]
    }

    #[test]
    fn a_new_plugin_has_the_files_that_its_readme_links() {
        let tree = tempfile::tempdir().unwrap();
        let [rust, js, py] = write_all(tree.path());
        for (folder, n_links) in [(&rust, 0), (&js, 1), (&py, 1)] {
            let readme = fs::read_to_string(folder.join("README.md")).unwrap();
            assert!(!readme.contains("plugin-sdk/src"), "{readme}");
            let files = linked_files(&readme);
            assert_eq!(files.len(), n_links, "{readme}");
            for file in files {
                assert!(folder.join(file).exists(), "{}/{file}", folder.display());
            }
        }
        for (folder, lang) in [(&js, "js"), (&py, "python")] {
            let guide = fs::read_to_string(folder.join(guide::FILE)).unwrap();
            assert!(guide.contains(&format!("\n```{lang}\n")), "{guide}");
            assert!(guide.contains("| giving up | `RuleError` | throw `skip`"));
            assert_eq!(linked_files(&guide), [""; 0]);
        }
        // The documentation of the SDK, which the README for Rust opens, is made of files that it has with it.
        for chapter in ["tutorial.md", "languages.md", "cookbook.rs"] {
            assert!(rust.join("sdk/src").join(chapter).exists(), "{chapter}");
        }
    }

    #[test]
    fn the_sdk_of_a_plugin_is_renewed_and_nothing_else() {
        let tree = tempfile::tempdir().unwrap();
        let [rust, js, py] = write_all(tree.path());
        for (folder, old, kept) in [
            (&rust, "sdk/src/lib.rs", "src/lib.rs"),
            (&js, "src/crawler.js", "src/rules.js"),
            (&py, "wit/rules.wit", "src/rules.py"),
        ] {
            let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
            let new = read(old);
            for file in [old, kept] {
                fs::write(folder.join(file), "changed").unwrap();
            }
            assert!(!renew_sdk(folder).unwrap().is_empty());
            assert!(read(old) == new && read(kept) == "changed", "{old}");
        }
        // This plugin takes its boundary from elsewhere, and was made when there were no types and no guide.
        for file in ["wit/rules.wit", "src/crawler.d.ts", guide::FILE] {
            fs::remove_file(js.join(file)).unwrap();
        }
        let written = ["src/crawler.js", "src/crawler.d.ts", guide::FILE];
        assert_eq!(renew_sdk(&js).unwrap(), written.map(|file| js.join(file)));
        // The author of this one has a guide of their own.
        fs::write(py.join(guide::FILE), "mine").unwrap();
        assert!(!renew_sdk(&py).unwrap().contains(&py.join(guide::FILE)));
        assert_eq!(fs::read_to_string(py.join(guide::FILE)).unwrap(), "mine");
        // This one takes its SDK from elsewhere too.
        fs::remove_file(js.join("src/crawler.js")).unwrap();
        assert!(renew_sdk(&js).unwrap().is_empty());
    }

    #[test]
    fn a_folder_that_is_no_sdk_stays() {
        let folder = tempfile::tempdir().unwrap();
        let error = renew_sdk(folder.path()).unwrap_err();
        assert!(matches!(error, TemplateError::NoPlugin { .. }), "{error}");
        fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        fs::create_dir(folder.path().join("sdk")).unwrap();
        let error = renew_sdk(folder.path()).unwrap_err();
        assert!(
            matches!(error, TemplateError::OtherFolder { .. }),
            "{error}"
        );
        assert!(folder.path().join("sdk").exists());
    }

    #[test]
    fn a_new_plugin_is_never_written_over_something() {
        let folder = tempfile::tempdir().unwrap();
        let name = "shop".parse().unwrap();
        write_rust(&name, folder.path()).unwrap();
        let error = write_rust(&name, folder.path()).unwrap_err();
        assert!(matches!(error, TemplateError::Present { .. }), "{error}");
        let file = folder.path().join("Cargo.toml");
        let error = write_rust(&name, &file).unwrap_err();
        assert!(matches!(error, TemplateError::Io { .. }), "{error}");
    }

    #[test]
    fn what_no_crate_can_be_called_is_refused() {
        let why = |name: &str| match crate_name(&name.parse().unwrap()) {
            Err(TemplateError::Name { why, .. }) => Some(why),
            _ => None,
        };
        assert_eq!(why("shop-2"), None);
        assert_eq!(why("team/shop"), Some("it has a slash"));
        assert_eq!(why("7days"), Some("it has to begin with a letter"));
        assert_eq!(why("Self"), Some("Rust or the SDK has the name"));
        assert_eq!(why("self"), Some("Rust or the SDK has the name"));
        assert_eq!(
            why("crawler-plugin-sdk"),
            Some("Rust or the SDK has the name")
        );
    }
}
