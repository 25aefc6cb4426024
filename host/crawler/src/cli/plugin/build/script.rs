//! Scripts: an interpreter with the rules in it, as one component, in the file plugin.wasm of the folder.
//!
//! Their tools give other bytes each time, and take long. A component is therefore stamped with the digest of what
//! it was made of ([`build_stamp`]), and is not built again while that is the same. One build of a folder waits for
//! another.

use std::fs::TryLockError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::fs;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::command::{Hints, run};
use crate::cli::Failure;
use crawler_model::id::Digest;
use crawler_plugin::build_stamp;
use crawler_process::task::spawn_blocking;

/// Name of the component's file, which the build has to write.
pub(super) const COMPONENT: &str = "plugin.wasm";
/// Folder of saved calls.
const PAGES: &str = "pages";
/// Time between two looks whether another build of the same folder has ended.
const LOCK_PERIOD: Duration = Duration::from_millis(100);

/// Returns a test for the files of a folder, by their paths there: true for what lies in the folder of the plugin and
/// is no source of it. Without it, the component would be one of its own sources.
pub(super) fn beside(plugin: &Path, folder: &Path) -> impl Fn(&Path) -> bool + use<> {
    // A folder that is missing has no files.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (plugin, folder) = (real(plugin), real(folder));
    move |file| {
        let path = folder.join(file);
        match path.strip_prefix(&plugin) {
            // A package of Python may have the name of the folder of saved calls.
            Ok(within) if within.starts_with(PAGES) => {
                !path.is_dir() && path.extension().is_none_or(|ending| ending != "py")
            }
            Ok(within) => is_no_source(within),
            Err(_elsewhere) => false,
        }
    }
}

/// Returns true for a path in the folder of a plugin that is no source of it.
pub(super) fn is_no_source(path: &Path) -> bool {
    ["node_modules", PAGES, COMPONENT]
        .iter()
        .any(|name| path.starts_with(name))
}

/// One build of a script.
pub(super) struct Build<'a> {
    /// Folder of the plugin.
    pub(super) folder: &'a Path,
    /// Command that writes the component.
    pub(super) command: Command,
    /// Ways out if it fails.
    pub(super) hints: Hints<'a>,
    /// Way out if it writes none.
    pub(super) nothing: &'a str,
}

impl Build<'_> {
    /// Returns the component, which is built unless it was made of the same before. `sources` returns the digest of
    /// what it is made of, or `None` if that is not known: then it is built each time.
    pub(super) async fn run(
        self,
        sources: impl Fn() -> anyhow::Result<Option<Digest>> + Clone + Send + 'static,
    ) -> anyhow::Result<PathBuf> {
        // Another build would remove the component of this one, or put its own stamp on it.
        let _lock = lock(self.folder).await?;
        let component = self.folder.join(COMPONENT);
        let before = spawn_blocking(sources.clone()).await??;
        if before.is_some() && before == stamp_of(&component).await? {
            return Ok(component);
        }
        self.build().await?;
        // Whoever saves a file during the build wants another one.
        let after = spawn_blocking(sources).await??;
        if let Some(sources) = before
            && after == before
        {
            let what = || format!("cannot write to {}", component.display());
            let mut file = fs::File::options();
            let mut file = file
                .append(true)
                .open(&component)
                .await
                .with_context(what)?;
            let stamp = build_stamp::stamp(sources);
            file.write_all(&stamp).await.with_context(what)?;
            file.flush().await.with_context(what)?;
        }
        Ok(component)
    }

    /// Runs the command; a file of an earlier build does not count. Its output is for the user, on stderr like all
    /// messages: compilers of TypeScript print theirs on stdout.
    async fn build(self) -> anyhow::Result<()> {
        let component = self.folder.join(COMPONENT);
        match fs::remove_file(&component).await {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let what = format!("cannot remove {}", component.display());
                return Err(anyhow::Error::new(error).context(what));
            }
        }
        let stdout = Stdio::from(std::io::stderr());
        run(self.command, self.folder, stdout, self.hints).await?;
        if component.is_file() {
            return Ok(());
        }
        let what = format!("building {} gave no {COMPONENT}", self.folder.display());
        Err(Failure::new(what, self.nothing).into())
    }
}

/// Locks the folder of a plugin against other builds, until the file that it returns is dropped. The folder itself is
/// locked, so that no file is left behind and all paths that lead to it mean the same. It is not waited for on a
/// thread, which would go on after Ctrl-C.
async fn lock(folder: &Path) -> anyhow::Result<std::fs::File> {
    let file = fs::File::open(folder).await;
    let file = file.with_context(|| format!("cannot open {}", folder.display()))?;
    let file = file.into_std().await;
    let mut is_waiting = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            // Some file systems of networks have no locks for folders.
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%error, folder = %folder.display(), "cannot lock the folder of a plugin");
                return Ok(file);
            }
        }
        if !is_waiting {
            eprintln!("waiting for another build of {}", folder.display());
            is_waiting = true;
        }
        tokio::time::sleep(LOCK_PERIOD).await;
    }
}

/// Returns the digest of what a component was made of, if it is there and has a stamp.
async fn stamp_of(component: &Path) -> anyhow::Result<Option<Digest>> {
    match fs::read(component).await {
        Ok(bytes) => Ok(spawn_blocking(move || build_stamp::sources(&bytes)).await?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", component.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Component without anything in it.
    const EMPTY: &str = r"\0asm\015\000\001\000";

    fn build(folder: &Path, command: Command) -> Build<'_> {
        Build {
            folder,
            command,
            hints: Hints {
                missing: "",
                failed: None,
                shown: None,
            },
            nothing: "",
        }
    }

    /// Builds with a shell that counts its runs, and returns the count.
    async fn n_runs(folder: &Path, sources: Option<&'static [u8]>, more: &str) -> usize {
        let mut shell = Command::new("sh");
        let script = format!("echo >>runs; printf '{EMPTY}' >plugin.wasm; {more}");
        shell.args(["-c", &script]);
        let sources = move || Ok(sources.map(Digest::of));
        let component = build(folder, shell).run(sources).await.unwrap();
        assert_eq!(component, folder.join(COMPONENT));
        std::fs::read_to_string(folder.join("runs"))
            .unwrap()
            .lines()
            .count()
    }

    #[tokio::test]
    async fn a_script_is_built_again_only_after_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(n_runs(folder, Some(b"one"), "").await, 1);
        let bytes = std::fs::read(folder.join(COMPONENT)).unwrap();
        assert_eq!(build_stamp::sources(&bytes), Some(Digest::of(b"one")));
        assert_eq!(n_runs(folder, Some(b"one"), "").await, 1);
        assert_eq!(n_runs(folder, Some(b"two"), "").await, 2);
        // The component was built without this program, or is damaged.
        std::fs::write(folder.join(COMPONENT), &bytes[..8]).unwrap();
        assert_eq!(n_runs(folder, Some(b"two"), "").await, 3);
        std::fs::remove_file(folder.join(COMPONENT)).unwrap();
        assert_eq!(n_runs(folder, Some(b"two"), "").await, 4);
    }

    #[tokio::test]
    async fn a_script_of_unknown_sources_is_built_each_time() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(n_runs(folder.path(), None, "").await, 1);
        assert_eq!(n_runs(folder.path(), None, "").await, 2);
        let bytes = std::fs::read(folder.path().join(COMPONENT)).unwrap();
        assert_eq!(build_stamp::sources(&bytes), None);
    }

    #[tokio::test]
    async fn a_change_during_the_build_is_built_next_time() {
        let folder = tempfile::tempdir().unwrap();
        let rules = folder.path().join("rules.py");
        std::fs::write(&rules, "old").unwrap();
        let sources =
            move || -> anyhow::Result<_> { Ok(Some(Digest::of(&std::fs::read(&rules)?))) };
        let mut shell = Command::new("sh");
        let script = format!("printf '{EMPTY}' >plugin.wasm; echo new >rules.py");
        shell.args(["-c", &script]);
        let built = build(folder.path(), shell).run(sources).await.unwrap();
        assert_eq!(build_stamp::sources(&std::fs::read(built).unwrap()), None);
    }

    #[tokio::test]
    async fn a_build_waits_for_another_one_of_the_same_folder() {
        for (sources, n_expected) in [(Some(b"one".as_slice()), 1), (None, 2)] {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            let [started, go_on] = ["started", "go-on"].map(|name| folder.join(name));
            let wait = "touch started; until [ -e go-on ]; do sleep 0.01; done";
            let first = n_runs(folder, sources, wait);
            // A link leads to the same folder.
            let link = folder.join("link");
            std::os::unix::fs::symlink(folder, &link).unwrap();
            let second = async {
                while !started.exists() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let mut second = std::pin::pin!(n_runs(&link, sources, ""));
                let early = tokio::time::timeout(3 * LOCK_PERIOD, second.as_mut()).await;
                assert!(early.is_err(), "it did not wait");
                assert!(folder.join(COMPONENT).is_file());
                std::fs::write(&go_on, "").unwrap();
                second.await
            };
            let both = async { tokio::join!(first, second) };
            let both = tokio::time::timeout(Duration::from_secs(60), both).await;
            assert_eq!(both.expect("both builds end").1, n_expected);
        }
    }

    #[tokio::test]
    async fn a_script_that_leaves_no_component_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let stale = folder.path().join(COMPONENT);
        std::fs::write(&stale, "old").unwrap();
        let built = async |program| {
            let built = build(folder.path(), Command::new(program));
            built.run(|| Ok(None)).await.unwrap_err().to_string()
        };
        let error = built("true").await;
        assert!(error.ends_with("gave no plugin.wasm"), "{error}");
        let error = built("false").await;
        assert!(error.ends_with("does not build"), "{error}");
        let error = built("no-such-program").await;
        assert!(error.starts_with("cannot start no-such-program"), "{error}");
    }
}
