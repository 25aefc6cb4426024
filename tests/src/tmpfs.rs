//! A small file system of its own, if the test may mount one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{PATIENCE, skipped, until};

/// A mounted tmpfs. Dropping it unmounts it.
#[derive(Debug)]
pub struct Tmpfs(PathBuf);

impl Tmpfs {
    /// Mounts one of this size, such as `64m`, at a folder that is created. If that is not allowed, a line says
    /// so, and it returns `None`.
    pub fn mount(folder: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(folder).expect("a folder can be made");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]);
        let mounted = mount.arg(folder).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(Self(folder.to_owned()));
        }
        skipped("tmpfs", "a file system cannot be mounted here");
        None
    }

    /// Folder where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Mounts it again with other options, such as `ro`. It is tried again while files are being written.
    pub fn remount(&self, options: &str) {
        until("other options of the file system", PATIENCE, || {
            let options = format!("remount,{options}");
            let mut mount = Command::new("mount");
            let mounted = mount.args(["-o", &options]).arg(&self.0).output();
            let mounted = mounted.expect("it was mounted by this program");
            mounted.status.success().then_some(())
        });
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // The unmount is lazy: processes that still run there keep their files, and are ended by their own
        // handles.
        let _unmounted = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}
