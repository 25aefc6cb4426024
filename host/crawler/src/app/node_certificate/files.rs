//! The folder with the private key of a node, its certificate, and that of the CA of its cluster.
//!
//! The key is made once and stays for all certificates of the folder, so that a renewal replaces one file at a time:
//! key and certificate fit together at every moment. Each file is replaced by another one that is whole.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crawler_access::ca::{CaDigest, CertificateFacts, NodeKey, ca_digest};
use crawler_api::tls::IdentityFiles;

/// Folder with the certificate of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::app) struct NodeFiles {
    folder: PathBuf,
}

impl NodeFiles {
    pub(in crate::app) fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the files of the certificate and its key.
    pub(in crate::app) fn identity(&self) -> IdentityFiles {
        IdentityFiles {
            certificate: self.certificate(),
            key: self.folder.join("key.pem"),
        }
    }

    /// Returns the file of the certificate, with that of the CA behind it.
    pub(in crate::app) fn certificate(&self) -> PathBuf {
        self.folder.join("certificate.pem")
    }

    /// Returns the file of the certificate of the CA.
    pub(in crate::app) fn ca(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// True if the folder exists: this node has or wants a certificate of the CA of its cluster.
    pub(in crate::app) fn folder_exists(&self) -> anyhow::Result<bool> {
        exists(&self.folder)
    }

    /// Returns the facts of the present certificate, or `None` if there is none, or not all that belongs to it.
    pub(in crate::app) fn facts(&self) -> anyhow::Result<Option<CertificateFacts>> {
        let path = self.certificate();
        let is_whole = exists(&self.ca())? && exists(&self.identity().key)?;
        let Some(pem) = read(&path)?.filter(|_| is_whole) else {
            return Ok(None);
        };
        let facts = CertificateFacts::of_pem(&pem);
        let facts = facts.with_context(|| {
            let path = path.display();
            format!("{path} has something else in it; remove it to get another certificate")
        })?;
        Ok(Some(facts))
    }

    /// Returns the digest of the certificate of the CA, or `None` if there is none.
    pub(super) fn ca_digest(&self) -> anyhow::Result<Option<CaDigest>> {
        let path = self.ca();
        let pem = read(&path)?;
        let digest = pem.map(|pem| ca_digest(&pem)).transpose();
        digest.with_context(|| format!("{} is no certificate of a CA", path.display()))
    }

    /// Returns the private key of this node, or `None` if there is none.
    pub(super) fn present_key(&self) -> anyhow::Result<Option<NodeKey>> {
        let path = self.identity().key;
        let pem = read(&path)?;
        let key = pem.map(|pem| NodeKey::of_pem(&pem)).transpose();
        key.with_context(|| {
            let path = path.display();
            format!("{path} has something else in it; remove it to get another key")
        })
    }

    /// Returns the private key of this node, which is made if there is none.
    pub(super) fn key(&self) -> anyhow::Result<NodeKey> {
        if let Some(key) = self.present_key()? {
            return Ok(key);
        }
        let key = NodeKey::generate()?;
        self.replace("key.pem", &key.to_pem())?;
        Ok(key)
    }

    /// Removes the private key. The certificate is of no use without it.
    pub(super) fn remove_key(&self) -> anyhow::Result<()> {
        let path = self.identity().key;
        let removed = match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => File::open(&self.folder).and_then(|folder| folder.sync_all()),
        };
        removed.with_context(|| format!("cannot remove {}", path.display()))
    }

    /// Puts a certificate and that of its CA in the place of those before.
    pub(super) fn write(&self, chain: &str, ca: &str) -> anyhow::Result<()> {
        // The certificate comes last: a folder with one has all that belongs to it.
        self.replace("ca.pem", ca)?;
        self.replace("certificate.pem", chain)
    }

    fn replace(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let replaced = self.try_replace(name, text);
        replaced.with_context(|| format!("cannot write {}", self.folder.join(name).display()))
    }

    fn try_replace(&self, name: &str, text: &str) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        std::fs::set_permissions(&self.folder, Permissions::from_mode(0o700))?;
        let fresh = self.folder.join(format!(".{name}.new"));
        // One that an earlier process has left may have other rights.
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, self.folder.join(name))?;
        File::open(&self.folder)?.sync_all()
    }
}

/// True if there is such a file or folder. It is an error if this user may not know.
fn exists(path: &Path) -> anyhow::Result<bool> {
    let exists = path.try_exists();
    exists.with_context(|| format!("cannot look for {}", path.display()))
}

/// Returns the text of a file, or `None` if there is none.
fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn mode(path: &Path) -> u32 {
        let metadata = fs::metadata(path).expect("it is there");
        metadata.permissions().mode() & 0o777
    }

    #[test]
    fn files_of_a_node_are_for_its_user_only() {
        let home = tempfile::tempdir().unwrap();
        let files = NodeFiles::in_folder(home.path().join("node"));
        assert!(!files.folder_exists().unwrap());
        let key = files.key().unwrap();
        files.write("chain", "ca").unwrap();
        let identity = files.identity();
        for path in [&identity.certificate, &identity.key, &files.ca()] {
            assert_eq!(mode(path), 0o600, "{}", path.display());
        }
        assert_eq!(mode(&home.path().join("node")), 0o700);
        // The key stays the same.
        assert_eq!(files.key().unwrap().to_pem(), key.to_pem());
    }

    #[test]
    fn a_replacement_leaves_whole_files_only() {
        let home = tempfile::tempdir().unwrap();
        let files = NodeFiles::in_folder(home.path().join("node"));
        fs::create_dir(home.path().join("node")).unwrap();
        // A process was killed while it wrote.
        fs::write(home.path().join("node/.certificate.pem.new"), "hal").unwrap();
        files.write("first", "ca").unwrap();
        files.write("second", "ca").unwrap();
        let certificate = fs::read_to_string(files.certificate()).unwrap();
        assert_eq!(certificate, "second");
        let left = fs::read_dir(home.path().join("node")).unwrap().count();
        assert_eq!(left, 2, "the certificate and that of the CA");
    }

    #[test]
    fn a_folder_without_a_key_has_no_certificate() {
        let home = tempfile::tempdir().unwrap();
        let files = NodeFiles::in_folder(home.path().join("node"));
        assert_eq!(files.facts().unwrap(), None);
        files.write("chain", "ca").unwrap();
        assert_eq!(files.facts().unwrap(), None);
        files.key().unwrap();
        let error = files.facts().unwrap_err();
        assert!(error.to_string().contains("certificate.pem"), "{error}");
    }
}
