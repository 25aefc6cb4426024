//! Compiled plugins on this machine, so that a restart compiles nothing.
//!
//! Loaded machine code runs with all rights of this process. It must therefore be the code that was stored:
//! only this user can write to the folder, every file carries a MAC over its name and content under a key
//! that never leaves the folder, and bytes are checked and loaded from memory, not from a file that could
//! change in between. A file that fails any check is deleted and made again.

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use wasmtime::component::Component;

use super::PluginError;
use crawler_model::id::Digest;

use trim::KEY_FILE;

mod trim;

const MAC_BYTES: usize = 32;
/// Bits of a mode that let others write.
const OTHERS_WRITE: u32 = 0o022;

/// Folder of compiled plugins.
pub(crate) struct Cache {
    folder: PathBuf,
    key: [u8; 32],
    /// Suffix of the name of every file that this engine can load.
    suffix: String,
    /// Largest size of all files together: setting `--compiled-size`.
    max_bytes: u64,
}

impl Cache {
    /// Opens the folder, and makes it if it does not exist; refuses one that others could write to. Keeps at
    /// most `max_bytes`, those that were used last.
    pub(crate) fn open(
        folder: &Path,
        engine: &wasmtime::Engine,
        max_bytes: u64,
    ) -> Result<Self, PluginError> {
        let refused = |why: String| PluginError::Host {
            doing: "use the folder of compiled plugins",
            why: format!("{}: {why}", folder.display()),
        };
        let io = |e: io::Error| refused(e.to_string());
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(io)?;
        let metadata = fs::symlink_metadata(folder).map_err(io)?;
        if !metadata.is_dir() {
            return Err(refused("it is not a folder, or a link to one".to_owned()));
        }
        if let Some(why) = not_ours(&metadata) {
            return Err(refused(format!(
                "{why}; make it yours alone with chmod 700, or choose another"
            )));
        }
        let key = key(folder).map_err(io)?;
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        // The hash covers wasmtime's exact version; wasmtime itself checks only the major one.
        let suffix = format!("-{}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish());
        let cache = Self {
            folder: folder.to_owned(),
            key,
            suffix,
            max_bytes,
        };
        cache.drop_other_engines().map_err(io)?;
        trim::remove_cut_off(folder).map_err(io)?;
        trim::remove_least_used(folder, max_bytes).map_err(io)?;
        Ok(cache)
    }

    /// Returns the frame that was stored for this plugin, if it is there and intact.
    pub(crate) fn get(&self, digest: Digest) -> Option<Bytes> {
        let name = self.name(digest);
        let path = self.folder.join(&name);
        match self.read(&name, &path) {
            Ok(frame) => {
                if frame.is_some()
                    && let Err(error) = trim::note_use(&path)
                {
                    tracing::debug!(path = %path.display(), %error, "cannot note that compiled code was used");
                }
                frame
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "compiled plugin is not as it was stored: compiling it again");
                self.remove(&path);
                None
            }
        }
    }

    /// Removes the frame that was stored for this plugin.
    pub(crate) fn forget(&self, digest: Digest) {
        self.remove(&self.folder.join(self.name(digest)));
    }

    /// Stores a frame. A plugin whose frame cannot be stored is compiled again next time.
    pub(crate) fn put(&self, digest: Digest, frame: &[u8]) {
        let name = self.name(digest);
        let stored = self
            .write(&name, frame)
            .and_then(|()| trim::remove_least_used(&self.folder, self.max_bytes));
        if let Err(error) = stored {
            tracing::warn!(folder = %self.folder.display(), %error, "cannot keep the compiled plugin");
        }
    }

    fn name(&self, digest: Digest) -> String {
        format!("{digest}{}", self.suffix)
    }

    fn read(&self, name: &str, path: &Path) -> io::Result<Option<Bytes>> {
        let mut content = match read_ours(path) {
            Ok(content) => content,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let Some(split) = content.len().checked_sub(MAC_BYTES) else {
            return Err(io::Error::other("the file is cut"));
        };
        let mac = content.split_off(split);
        if mac != self.mac(name, &content) {
            return Err(io::Error::other("the file was changed"));
        }
        Ok(Some(Bytes::from(content)))
    }

    fn write(&self, name: &str, frame: &[u8]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(frame)?;
        file.write_all(&self.mac(name, frame))?;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(0o400))?;
        file.as_file().sync_all()?;
        file.persist(self.folder.join(name))?;
        File::open(&self.folder)?.sync_all()
    }

    fn remove(&self, path: &Path) {
        if let Err(error) = fs::remove_file(path) {
            tracing::warn!(path = %path.display(), %error, "cannot delete a compiled plugin");
        }
    }

    /// Removes code of other versions, which is never loaded again except after a return to them.
    fn drop_other_engines(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name != KEY_FILE && name.contains('-') && !name.ends_with(&self.suffix) {
                self.remove(&entry.path());
            }
        }
        Ok(())
    }

    /// Returns HMAC-SHA256 over name and content.
    fn mac(&self, name: &str, content: &[u8]) -> [u8; MAC_BYTES] {
        let pad = |byte: u8| {
            let mut block = [byte; 64];
            for (b, key) in block.iter_mut().zip(self.key) {
                *b ^= key;
            }
            Sha256::new_with_prefix(block)
        };
        let inner = pad(0x36)
            .chain_update((name.len() as u64).to_be_bytes())
            .chain_update(name)
            .chain_update(content)
            .finalize();
        pad(0x5c).chain_update(inner).finalize().into()
    }
}

/// Returns the folder's key, which is made at first use.
fn key(folder: &Path) -> io::Result<[u8; 32]> {
    let path = folder.join(KEY_FILE);
    match read_ours(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(&rand::random::<[u8; 32]>())?;
            file.as_file().sync_all()?;
            // Two processes that start together must end up with the same key.
            match file.persist_noclobber(&path) {
                Err(e) if e.error.kind() != io::ErrorKind::AlreadyExists => return Err(e.error),
                _ => {}
            }
        }
        _ => {}
    }
    read_ours(&path)?
        .try_into()
        .map_err(|_| io::Error::other("the file \"key\" does not hold a key; delete it"))
}

/// Reads a file that belongs to this user, is no link, and that nobody else could have written.
fn read_ours(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if let Some(why) = not_ours(&metadata) {
        return Err(io::Error::other(why));
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(content)
}

fn not_ours(metadata: &fs::Metadata) -> Option<&'static str> {
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Some("it belongs to another user");
    }
    (metadata.mode() & OTHERS_WRITE != 0).then_some("others may write to it")
}

/// Loads machine code.
#[expect(
    unsafe_code,
    reason = "wasmtime cannot tell its own code from any other bytes"
)]
pub(crate) fn deserialize(engine: &wasmtime::Engine, image: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the image was written by `Component::serialize`, in this program's own compiling
    // process, and came here over a pipe or through this cache, which checked its MAC. It is bytes in
    // memory that nobody else can change. Wasmtime itself refuses images of other versions or
    // settings.
    unsafe { Component::deserialize(engine, image) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path) -> Result<Cache, PluginError> {
        Cache::open(folder, &wasmtime::Engine::default(), 1 << 20)
    }

    fn only_image(folder: &Path) -> PathBuf {
        let images = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut images: Vec<_> = images
            .filter(|p| p.file_name().unwrap() != KEY_FILE)
            .collect();
        assert_eq!(images.len(), 1, "{images:?}");
        images.remove(0)
    }

    #[test]
    fn what_is_kept_is_found_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("code");
        let digest = Digest::of(b"a");
        open(&folder).unwrap().put(digest, b"frame");
        let cache = open(&folder).unwrap();
        assert_eq!(cache.get(digest).as_deref(), Some(&b"frame"[..]));
        assert_eq!(cache.get(Digest::of(b"b")), None);
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        assert_eq!(
            fs::metadata(only_image(&folder)).unwrap().mode() & 0o777,
            0o400
        );
        assert_eq!(
            fs::metadata(folder.join(KEY_FILE)).unwrap().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn a_file_that_was_changed_is_deleted_and_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path()).unwrap();
        let digest = Digest::of(b"a");
        let changes: [fn(&mut Vec<u8>); 4] = [
            |content| content[0] ^= 1,
            |content| *content.last_mut().unwrap() ^= 1,
            |content| content.truncate(10),
            |content| content.insert(0, 0),
        ];
        for change in changes {
            cache.put(digest, b"frame");
            let path = only_image(folder.path());
            let mut content = fs::read(&path).unwrap();
            change(&mut content);
            fs::remove_file(&path).unwrap();
            fs::write(&path, content).unwrap();
            assert_eq!(cache.get(digest), None);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_file_of_another_plugin_is_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path()).unwrap();
        let (one, other) = (Digest::of(b"a"), Digest::of(b"b"));
        cache.put(one, b"frame");
        fs::rename(
            folder.path().join(cache.name(one)),
            folder.path().join(cache.name(other)),
        )
        .unwrap();
        assert_eq!(cache.get(other), None);
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path()).unwrap();
        let digest = Digest::of(b"a");
        cache.put(digest, b"frame");
        let path = only_image(folder.path());
        let elsewhere = tempfile::tempdir().unwrap();
        let moved = elsewhere.path().join("image");
        fs::rename(&path, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &path).unwrap();
        assert_eq!(cache.get(digest), None);
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = open(folder.path()).err().unwrap().to_string();
        assert_eq!(
            error,
            format!(
                "cannot use the folder of compiled plugins: {}: others may write to it; make it yours alone with chmod 700, or choose another",
                folder.path().display()
            )
        );
    }

    #[test]
    fn code_of_another_engine_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path()).unwrap().put(Digest::of(b"a"), b"frame");
        let mut config = wasmtime::Config::new();
        config.consume_fuel(true);
        let other = wasmtime::Engine::new(&config).unwrap();
        let cache = Cache::open(folder.path(), &other, 1 << 20).unwrap();
        assert_eq!(cache.get(Digest::of(b"a")), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
