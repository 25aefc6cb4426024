//! Files that declare plugins and resources: what `crawler apply` and `crawler config check` read.
//!
//! They have the form of the config file, in TOML or in JSON. A fault in one of them hides nothing of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::file::{ConfigError, PluginSource, Reading};
use crawler_model::id::ResourceName;
use crawler_model::resource::ResourceSpec;

/// Path that stands for the standard input.
const STDIN: &str = "-";
/// Endings of the files that count in a folder.
const ENDINGS: [&str; 2] = ["toml", "json"];

/// A value of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed<T> {
    /// Path and line, as in `shop.toml:3`.
    pub place: String,
    /// The value.
    pub value: T,
}

/// Content of some files, and the faults in them.
#[derive(Debug, Default)]
pub struct Declared {
    /// Paths that were read, as messages show them.
    pub files: Vec<String>,
    /// Plugins, in the order of the files.
    pub plugins: Vec<Placed<PluginSource>>,
    /// Resources, in the order of the files; each name is there once.
    pub resources: Vec<Placed<ResourceSpec>>,
    /// All faults. What has a fault is not among the plugins and resources.
    pub faults: Vec<ConfigError>,
}

impl Declared {
    /// Reads these files, the files of these folders, and the standard input for `-`.
    pub fn read(paths: &[PathBuf]) -> Self {
        let mut declared = Self::default();
        for path in paths {
            match files(path) {
                Ok(files) => files.iter().for_each(|file| declared.add_file(file)),
                Err(error) => declared.faults.push(error),
            }
        }
        declared.take_out_doubles();
        declared
    }

    fn add_file(&mut self, path: &Path) {
        let text = match path == Path::new(STDIN) {
            true => {
                let mut text = String::new();
                io::stdin().read_to_string(&mut text).map(|_n_bytes| text)
            }
            false => fs::read_to_string(path),
        };
        let shown = path.display().to_string();
        match text {
            Ok(text) => self.add(Reading::of(&text, path), shown),
            Err(source) => self.faults.push(ConfigError::Path {
                path: shown,
                source,
            }),
        }
    }

    fn add(&mut self, reading: Reading, path: String) {
        self.files.push(path);
        self.plugins.extend(reading.plugins);
        self.resources.extend(reading.resources);
        self.faults.extend(reading.faults);
    }

    /// Takes out resources whose name is there twice: nobody can tell which of them is meant.
    fn take_out_doubles(&mut self) {
        let mut first: BTreeMap<ResourceName, &str> = BTreeMap::new();
        let mut doubles = BTreeSet::new();
        for resource in &self.resources {
            let name = &resource.value.name;
            if let Some(first) = first.insert(name.clone(), &resource.place) {
                let why = format!("{}: resource {name} is in {first} too", resource.place);
                self.faults.push(ConfigError::Twice { why });
                doubles.insert(name.clone());
            }
        }
        self.resources
            .retain(|resource| !doubles.contains(&resource.value.name));
    }
}

/// Returns the files that a path stands for, in the order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let shown = || path.display().to_string();
    let listed = fs::read_dir(path).and_then(|entries| {
        let paths = entries.map(|entry| Ok(entry?.path()));
        paths.collect::<io::Result<Vec<PathBuf>>>()
    });
    let mut files = listed.map_err(|source| ConfigError::Path {
        path: shown(),
        source,
    })?;
    files.retain(|file| {
        let ending = file.extension().and_then(|ending| ending.to_str());
        // What is no folder and no file, like a link to nothing, has to be told when it is read.
        ending.is_some_and(|ending| ENDINGS.contains(&ending)) && !file.is_dir()
    });
    files.sort();
    match files.is_empty() {
        true => Err(ConfigError::NoFile { path: shown() }),
        false => Ok(files),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(folder: &Path) -> (Vec<String>, Vec<String>) {
        let declared = Declared::read(&[folder.to_owned()]);
        let prefix = format!("{}/", folder.display());
        let resources = declared.resources.iter();
        let resources = resources.map(|r| format!("{} {}", r.place, r.value.name));
        let faults = declared.faults.iter().map(|fault| format!("{fault}"));
        let short = |text: String| text.replace(&prefix, "");
        (resources.map(short).collect(), faults.map(short).collect())
    }

    #[test]
    fn a_folder_stands_for_its_files_and_a_fault_hides_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write(
            "b.json",
            "{\"resource\": [\n{\"name\": \"json\", \"max-pages\": 3},\n{\"name\": \"bad\",\n\"delay\": 1}]}",
        );
        write(
            "a.toml",
            "[[resource]]\nname = 'toml'\n[[resource]]\nname = 'both'\ndelay = 'soon'\nweight = 0\nwieght = 1\n",
        );
        write("c.toml", "[[resource]\n");
        write("read.me", "[[resource]\n");
        std::os::unix::fs::symlink("nowhere", folder.path().join("d.toml")).unwrap();
        let (resources, faults) = read(folder.path());
        assert_eq!(resources, ["a.toml:1 toml", "b.json:2 json"]);
        assert_eq!(
            faults,
            [
                "a.toml:5: delay takes a time like 250ms or 1s, not \"soon\"",
                "a.toml:6: setting weight is 0; it goes from 1 to 1000",
                "a.toml:7: [[resource]] has an unknown key \"wieght\"",
                "b.json:4: delay takes a time with its unit, like \"1ms\" or \"1s\", not 1",
                "c.toml:1: unclosed array table, expected `]`",
                "cannot read d.toml",
            ]
        );
    }

    #[test]
    fn a_name_that_is_there_twice_is_nobodys() {
        let folder = tempfile::tempdir().unwrap();
        let two = "[[resource]]\nname = 'a'\n[[resource]]\nname = 'b'\n";
        fs::write(folder.path().join("1.toml"), two).unwrap();
        fs::write(folder.path().join("2.toml"), "[[resource]]\nname = 'a'\n").unwrap();
        let (resources, faults) = read(folder.path());
        assert_eq!(resources, ["1.toml:3 b"]);
        assert_eq!(faults, ["2.toml:1: resource a is in 1.toml:1 too"]);
    }

    #[test]
    fn a_folder_without_files_and_a_path_to_nothing_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let (_, faults) = read(folder.path());
        let shown = folder.path().display();
        let none = format!("{shown} has no file that ends with .toml or .json");
        assert_eq!(faults, [none]);
        let gone = folder.path().join("gone");
        let (_, faults) = read(&gone);
        assert_eq!(faults, [format!("cannot read {}", gone.display())]);
    }
}
