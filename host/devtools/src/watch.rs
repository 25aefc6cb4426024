//! Tells when a plugin's source or its saved calls change, so that the calls are tried again on save.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

/// Time without a change after which a save is over: an editor writes more than one file.
const QUIET: Duration = Duration::from_millis(150);
/// Files beside `src` that a plugin is built from.
const MANIFESTS: [&str; 4] = ["Cargo.toml", "build.rs", "package.json", "pyproject.toml"];

/// Watcher of the changes of one plugin, for as long as this value lives.
pub struct ChangeWatcher {
    seen: Arc<Notify>,
    watcher: RecommendedWatcher,
    watched: Arc<Watched>,
    /// True if a change was seen and not told yet.
    is_pending: bool,
    /// Hash of everything that is watched, when it was last told.
    content: u64,
}

/// Files and folders that are watched.
struct Watched {
    /// Folders that are watched with everything below them.
    trees: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

/// Error of a folder that cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("cannot watch {path} for changes")]
pub struct WatchError {
    path: PathBuf,
    source: notify::Error,
}

impl ChangeWatcher {
    /// Watches a folder of source or a .wasm file, and a folder of saved calls.
    pub fn of(plugin: &Path, pages: Option<&Path>) -> Result<Self, WatchError> {
        let absolute = |path: &Path| {
            path.canonicalize().map_err(|error| WatchError {
                path: path.to_owned(),
                source: notify::Error::io(error),
            })
        };
        let plugin = absolute(plugin)?;
        let is_folder = plugin.is_dir();
        let folder = match plugin.parent() {
            Some(parent) if !is_folder => parent.to_owned(),
            Some(_) | None => plugin.clone(),
        };
        let mut trees = Vec::new();
        let src = folder.join("src");
        if is_folder && src.is_dir() {
            trees.push(src);
        }
        if let Some(pages) = pages {
            trees.push(absolute(pages)?);
        }
        let files = match is_folder {
            true => MANIFESTS.iter().map(|name| folder.join(name)).collect(),
            false => vec![plugin],
        };
        let (seen, watched) = (Arc::<Notify>::default(), Arc::new(Watched { trees, files }));
        let (tell, ours) = (seen.clone(), watched.clone());
        let heard = move |event: notify::Result<Event>| match event {
            Ok(event) => {
                let is_change = matches!(
                    event.kind,
                    EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_)
                );
                let is_ours = is_change && event.paths.iter().any(|path| ours.has(path));
                // An event may have been missed; one look more does no harm.
                if is_ours || event.need_rescan() {
                    tell.notify_one();
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a change may have been missed");
                tell.notify_one();
            }
        };
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| WatchError { path, source }
        };
        let mut watcher = notify::recommended_watcher(heard).map_err(failed(&folder))?;
        let begun = watcher.watch(&folder, RecursiveMode::NonRecursive);
        begun.map_err(failed(&folder))?;
        for tree in &watched.trees {
            let begun = watcher.watch(tree, RecursiveMode::Recursive);
            begun.map_err(failed(tree))?;
        }
        Ok(Self {
            content: watched.content(),
            seen,
            watcher,
            watched,
            is_pending: false,
        })
    }

    /// Waits until the content differs from the one that was last told, and the save is over. Dropping the
    /// future loses nothing.
    pub async fn next(&mut self) {
        loop {
            if !self.is_pending {
                self.seen.notified().await;
                self.is_pending = true;
            }
            while tokio::time::timeout(QUIET, self.seen.notified())
                .await
                .is_ok()
            {}
            for tree in &self.watched.trees {
                // A folder that was removed and made again is not watched any more. It may be gone for a
                // moment.
                let _gone = self.watcher.watch(tree, RecursiveMode::Recursive);
            }
            self.is_pending = false;
            // A build may write the files that it is built from: the same content again is no change.
            let content = self.watched.content();
            if std::mem::replace(&mut self.content, content) != content {
                return;
            }
        }
    }
}

impl Watched {
    fn has(&self, path: &Path) -> bool {
        let is_in_tree = self.trees.iter().any(|tree| path.starts_with(tree));
        is_in_tree && !is_of_a_tool(path) || self.files.iter().any(|file| file == path)
    }

    /// Returns a hash of everything that is watched. A file that cannot be read counts as absent.
    fn content(&self) -> u64 {
        let mut files = self.files.clone();
        for tree in &self.trees {
            files_below(tree, &mut files);
        }
        files.sort();
        let mut hasher = DefaultHasher::new();
        for file in files {
            if let Ok(bytes) = std::fs::read(&file) {
                (file, bytes).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(_) if is_of_a_tool(&path) => {}
            Ok(kind) if kind.is_dir() => files_below(&path, files),
            Ok(kind) if kind.is_file() => files.push(path),
            Ok(_) | Err(_) => {}
        }
    }
}

/// Returns true for files that editors write beside those that they save, for temporary files, and for files
/// that Python keeps of a build.
pub fn is_of_a_tool(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_of_an_editor = name.starts_with('.') || name.ends_with('~') || name == "4913";
    is_of_an_editor
        || path
            .components()
            .any(|part| part.as_os_str() == "__pycache__")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns true if a change is told within a time.
    async fn is_told(changes: &mut ChangeWatcher, within: Duration) -> bool {
        tokio::time::timeout(within, changes.next()).await.is_ok()
    }

    const SOON: Duration = Duration::from_secs(60);
    /// Time in which a wrong report would come.
    const WHILE: Duration = Duration::from_millis(300);

    #[tokio::test]
    async fn what_a_plugin_is_made_of_is_told_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["src/inner", "src/__pycache__", "pages", "target"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        fs::write(path("Cargo.toml"), "").unwrap();
        let mut changes = ChangeWatcher::of(folder.path(), Some(&path("pages"))).unwrap();
        for name in ["src/lib.rs", "src/inner/a.rs", "pages/a.html", "Cargo.toml"] {
            fs::write(path(name), "changed").unwrap();
            assert!(is_told(&mut changes, SOON).await, "{name}");
        }
        for name in [
            "target/a.wasm",
            "Cargo.lock",
            "src/.lib.rs.swp",
            "src/__pycache__/rules.pyc",
            "src/lib.rs~",
        ] {
            fs::write(path(name), "changed").unwrap();
            assert!(!is_told(&mut changes, WHILE).await, "{name}");
        }
        fs::read(path("src/lib.rs")).unwrap();
        assert!(
            !is_told(&mut changes, WHILE).await,
            "reading changes nothing"
        );
        fs::write(path("src/lib.rs"), "changed").unwrap();
        assert!(!is_told(&mut changes, WHILE).await, "the same is no change");
        fs::remove_file(path("src/lib.rs")).unwrap();
        assert!(is_told(&mut changes, SOON).await);
    }

    #[tokio::test]
    async fn a_change_is_not_lost_where_nobody_waits_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        let mut changes = ChangeWatcher::of(folder.path(), None).unwrap();
        fs::write(folder.path().join("src/lib.rs"), "1").unwrap();
        // The change is seen, and the future is dropped before the save is over.
        let heard = async {
            while !changes.is_pending {
                let _cut = tokio::time::timeout(QUIET / 5, changes.next()).await;
            }
        };
        tokio::time::timeout(SOON, heard).await.unwrap();
        assert!(is_told(&mut changes, SOON).await);
    }

    #[tokio::test]
    async fn a_folder_that_is_made_again_is_watched_again() {
        let folder = tempfile::tempdir().unwrap();
        let src = folder.path().join("src");
        fs::create_dir(&src).unwrap();
        fs::write(src.join("lib.rs"), "1").unwrap();
        let mut changes = ChangeWatcher::of(folder.path(), None).unwrap();
        fs::remove_dir_all(&src).unwrap();
        assert!(is_told(&mut changes, SOON).await);
        fs::create_dir(&src).unwrap();
        fs::write(src.join("lib.rs"), "2").unwrap();
        assert!(is_told(&mut changes, SOON).await);
        fs::write(src.join("lib.rs"), "3").unwrap();
        assert!(is_told(&mut changes, SOON).await);
    }

    #[tokio::test]
    async fn a_file_is_told_also_where_another_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let wasm = folder.path().join("a.wasm");
        fs::write(&wasm, "1").unwrap();
        let mut changes = ChangeWatcher::of(&wasm, None).unwrap();
        fs::write(folder.path().join("b.wasm"), "2").unwrap();
        assert!(!is_told(&mut changes, WHILE).await);
        fs::rename(folder.path().join("b.wasm"), &wasm).unwrap();
        assert!(is_told(&mut changes, SOON).await);
    }

    #[tokio::test]
    async fn what_is_not_there_cannot_be_watched() {
        let error = ChangeWatcher::of(Path::new("/nowhere"), None)
            .err()
            .unwrap();
        assert_eq!(error.to_string(), "cannot watch /nowhere for changes");
    }
}
