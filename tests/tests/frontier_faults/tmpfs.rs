//! A small file system of its own, where the test may mount one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crawler_tests::{PATIENCE, skipped, until};

/// A mounted tmpfs. Dropping it takes it away.
pub(crate) struct Tmpfs(PathBuf);

impl Tmpfs {
    /// Mounts one of this size, like `64m`, at a folder that is made; none, and a line that says so,
    /// where that is not allowed.
    pub(crate) fn mount(folder: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]);
        let mounted = mount.arg(folder).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(Self(folder.to_owned()));
        }
        skipped("tmpfs", "a file system cannot be mounted here");
        None
    }

    /// Mounts it anew with other options, like `ro`. It is tried again while files are being written.
    pub(crate) fn remount(&self, options: &str) {
        until("other options of the file system", PATIENCE, || {
            let options = format!("remount,{options}");
            let mut mount = Command::new("mount");
            let mounted = mount.args(["-o", &options]).arg(&self.0).output().unwrap();
            mounted.status.success().then_some(())
        });
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily: whatever still runs there keeps its files, and is ended by its own handle.
        let _unmounted = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}
