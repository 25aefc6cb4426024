//! The digest of what the component of a script is made of: sources, settings and tools.
//!
//! It is the same on each machine: files count by their content and by their path as the manifest has it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use crawler_devtools::watch::is_of_a_tool;
use crawler_model::id::Digest;

/// Largest depth of folders. A link to a folder above leads around in circles; systems follow 40 links at the most.
const DEPTH_MAX: usize = 32;

/// Parts that the digest is made of, in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Sources(Vec<u8>);

impl Sources {
    /// Begins with the version of this list of parts: another list gives another digest.
    pub(super) fn of(language: &str) -> Self {
        let mut sources = Self::default();
        sources.add("crawler sources 1", language.as_bytes());
        sources
    }

    /// Adds a part by its name and content.
    pub(super) fn add(&mut self, name: &str, content: &[u8]) {
        self.0
            .extend_from_slice(Digest::of(name.as_bytes()).as_bytes());
        self.0.extend_from_slice(Digest::of(content).as_bytes());
    }

    /// Adds a file, or all files below a folder except those that `is_skipped` tells by their path in the folder,
    /// and those that editors and Python leave there. Nothing is added if the path does not exist.
    pub(super) fn add_path(
        &mut self,
        name: &str,
        path: &Path,
        is_skipped: &dyn Fn(&Path) -> bool,
    ) -> anyhow::Result<()> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).with_context(|| cannot_read(path)),
        };
        if metadata.is_file() {
            self.add(name, &fs::read(path).with_context(|| cannot_read(path))?);
            return Ok(());
        }
        let mut files = Vec::new();
        list(path, Path::new(""), is_skipped, &mut files)?;
        files.sort();
        for file in files {
            let content = fs::read(path.join(&file));
            let content = content.with_context(|| cannot_read(&path.join(&file)))?;
            self.add(&format!("{name}/{}", file.display()), &content);
        }
        Ok(())
    }

    /// Returns the digest of all parts.
    pub(super) fn digest(&self) -> Digest {
        Digest::of(&self.0)
    }
}

/// Lists the files of a folder below `root`, by their paths from there.
fn list(
    root: &Path,
    folder: &Path,
    is_skipped: &dyn Fn(&Path) -> bool,
    files: &mut Vec<PathBuf>,
) -> anyhow::Result<()> {
    let shown = root.join(folder);
    ensure!(
        folder.components().count() < DEPTH_MAX,
        "{} lies {DEPTH_MAX} folders deep; remove a link that leads to a folder above it",
        shown.display()
    );
    for entry in fs::read_dir(&shown).with_context(|| cannot_read(&shown))? {
        let name = entry.with_context(|| cannot_read(&shown))?.file_name();
        let path = folder.join(name);
        if is_of_a_tool(&path) || is_skipped(&path) {
            continue;
        }
        match fs::metadata(root.join(&path)) {
            Ok(metadata) if metadata.is_dir() => list(root, &path, is_skipped, files)?,
            Ok(metadata) if metadata.is_file() => files.push(path),
            // Pipes and sockets are no sources.
            Ok(_) => {}
            // It was removed meanwhile, or is a link to nothing.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| cannot_read(&root.join(&path))),
        }
    }
    Ok(())
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(folder: &Path) -> Digest {
        let mut sources = Sources::of("python");
        let is_skipped = |path: &Path| path.starts_with("pages");
        sources.add_path("src", folder, &is_skipped).unwrap();
        sources.digest()
    }

    #[test]
    fn the_digest_is_of_names_and_contents_and_of_nothing_else() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [&one, &two] {
            fs::create_dir(folder.path().join("inner")).unwrap();
            fs::write(folder.path().join("inner/a.py"), "a").unwrap();
            fs::write(folder.path().join("b.py"), "b").unwrap();
        }
        let of_one = digest(one.path());
        assert_eq!(digest(two.path()), of_one);
        let changed = |file: &str, text: &str| {
            let path = two.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            digest(two.path()) != of_one
        };
        for file in ["__pycache__/b.pyc", ".b.py.swp", "b.py~", "pages/a.html"] {
            assert!(!changed(file, "x"), "{file}");
        }
        assert!(changed("b.py", "c"));
        assert!(!changed("b.py", "b"));
        assert!(changed("c.py", ""));
        fs::rename(two.path().join("c.py"), two.path().join("d.py")).unwrap();
        assert_ne!(digest(two.path()), of_one);
    }

    #[test]
    fn parts_do_not_flow_into_each_other() {
        let digest = |parts: &[(&str, &str)]| {
            let mut sources = Sources::of("js");
            for (name, content) in parts {
                sources.add(name, content.as_bytes());
            }
            sources.digest()
        };
        assert_ne!(digest(&[("ab", "c")]), digest(&[("a", "bc")]));
        assert_ne!(
            digest(&[("a", "b"), ("c", "d")]),
            digest(&[("c", "d"), ("a", "b")])
        );
        assert_ne!(Sources::of("js").digest(), Sources::of("python").digest());
    }

    #[test]
    fn a_link_to_a_folder_above_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("up")).unwrap();
        let mut sources = Sources::of("js");
        let added = sources.add_path(".", folder.path(), &|_| false);
        let error = added.unwrap_err().to_string();
        assert!(
            error.ends_with("remove a link that leads to a folder above it"),
            "{error}"
        );
    }

    #[test]
    fn what_is_not_there_adds_nothing() {
        let mut sources = Sources::of("js");
        let before = sources.digest();
        sources
            .add_path("gone", Path::new("/nowhere/at/all"), &|_| false)
            .unwrap();
        assert_eq!(sources.digest(), before);
    }
}
