//! Access tokens that `crawler login` keeps: a file in the folder of the user's settings, which nobody else can read.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Mode bits that let others read or change a file.
const OTHERS: u32 = 0o077;

/// Access tokens by the URLs of masters.
#[derive(Debug, Clone)]
pub struct Credentials {
    path: PathBuf,
    file: CredentialsFile,
}

#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialsFile {
    #[serde(default)]
    tokens: BTreeMap<String, String>,
}

/// Reason why the file of access tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// There is no folder for it.
    #[error("there is no home folder to keep access tokens in; set HOME or XDG_CONFIG_HOME")]
    NoHome,
    /// Some of the masters have a login, and this one has none.
    #[error(
        "there is no login to {url}, and there is one to another of the masters; run crawler login {url}"
    )]
    NoLogin {
        /// URL of the master.
        url: String,
    },
    /// Others can read it.
    #[error("others can read {path}, which has access tokens; run chmod 600 {path}")]
    Open {
        /// Path of the file.
        path: String,
    },
    /// It is not what `crawler login` wrote. The fault is not quoted: it may be a token.
    #[error("{path} is not a file of access tokens; remove it, and log in again")]
    Form {
        /// Path of the file.
        path: String,
    },
    /// It cannot be read or written.
    #[error("cannot {doing} {path}")]
    Io {
        /// Verb for the operation.
        doing: &'static str,
        /// Path of the file.
        path: String,
        /// Cause.
        #[source]
        source: io::Error,
    },
}

impl Credentials {
    /// Reads the file in this folder of settings; without one, there are no tokens.
    pub fn read(config_home: Option<&Path>) -> Result<Self, CredentialsError> {
        let home = config_home.ok_or(CredentialsError::NoHome)?;
        let path = home.join("crawler").join("credentials.toml");
        let shown = || path.display().to_string();
        let failed = |source| CredentialsError::Io {
            doing: "read",
            path: shown(),
            source,
        };
        let file = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => CredentialsFile::default(),
            Err(error) => return Err(failed(error)),
            Ok(metadata) if metadata.permissions().mode() & OTHERS != 0 => {
                return Err(CredentialsError::Open { path: shown() });
            }
            Ok(_) => {
                let text = fs::read_to_string(&path).map_err(failed)?;
                toml::from_str(&text).map_err(|_| CredentialsError::Form { path: shown() })?
            }
        };
        Ok(Self { path, file })
    }

    /// Returns the token for these masters: that of the first one. It is shown to all of them, so all need a login.
    /// `None` if none of them has one.
    pub fn token(&self, masters: &[String]) -> Result<Option<&str>, CredentialsError> {
        let tokens = masters.iter().map(|url| self.file.tokens.get(key(url)));
        let tokens: Vec<Option<&String>> = tokens.collect();
        let Some(first) = tokens.iter().flatten().next() else {
            return Ok(None);
        };
        match masters
            .iter()
            .zip(&tokens)
            .find(|(_, token)| token.is_none())
        {
            None => Ok(Some(first)),
            Some((url, _)) => Err(CredentialsError::NoLogin { url: url.clone() }),
        }
    }

    /// Keeps a token for a master.
    pub fn keep(&mut self, master: &str, token: String) -> Result<(), CredentialsError> {
        self.file.tokens.insert(key(master).to_owned(), token);
        self.write()
    }

    /// Forgets the token of a master. Returns false if there is none.
    pub fn forget(&mut self, master: &str) -> Result<bool, CredentialsError> {
        let was_there = self.file.tokens.remove(key(master)).is_some();
        if was_there {
            self.write()?;
        }
        Ok(was_there)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write(&self) -> Result<(), CredentialsError> {
        let written = self.try_write();
        written.map_err(|source| CredentialsError::Io {
            doing: "write",
            path: self.path.display().to_string(),
            source,
        })
    }

    fn try_write(&self) -> io::Result<()> {
        let text = toml::to_string(&self.file).map_err(io::Error::other)?;
        if let Some(folder) = self.path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        // Whoever reads it meanwhile sees the old one or the new one. Only this user can read a temporary file.
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }
}

impl std::fmt::Debug for CredentialsFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.tokens.keys()).finish()
    }
}

/// Returns the URL under which a token is kept: `http://a:1/` and `http://a:1` are the same master.
fn key(url: &str) -> &str {
    url.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_kept_for_its_master_and_for_this_user_only() {
        let home = tempfile::tempdir().unwrap();
        let read = || Credentials::read(Some(home.path())).unwrap();
        let urls = |urls: &[&str]| urls.iter().map(|url| (*url).to_owned()).collect::<Vec<_>>();
        let mut credentials = read();
        assert_eq!(credentials.token(&urls(&["http://a:1"])).unwrap(), None);
        credentials
            .keep("http://a:1/", "secret-a".to_owned())
            .unwrap();
        credentials
            .keep("https://b:1", "secret-b".to_owned())
            .unwrap();
        let mut credentials = read();
        assert_eq!(
            credentials.token(&urls(&["http://a:1"])).unwrap(),
            Some("secret-a")
        );
        let both = urls(&["http://a:1", "https://b:1"]);
        assert_eq!(credentials.token(&both).unwrap(), Some("secret-a"));
        assert_eq!(
            credentials.token(&urls(&["https://b:1/"])).unwrap(),
            Some("secret-b")
        );
        let mixed = credentials.token(&urls(&["http://c:1", "https://b:1"]));
        assert!(matches!(mixed, Err(CredentialsError::NoLogin { url }) if url == "http://c:1"));
        assert_eq!(credentials.token(&urls(&["https://a:1"])).unwrap(), None);
        assert!(!format!("{credentials:?}").contains("secret"));
        let mode = fs::metadata(credentials.path())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(credentials.forget("http://a:1").unwrap());
        assert!(!credentials.forget("http://a:1").unwrap());
        assert_eq!(read().token(&urls(&["http://a:1"])).unwrap(), None);
    }

    #[test]
    fn a_file_that_others_read_or_nobody_wrote_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let mut credentials = Credentials::read(Some(home.path())).unwrap();
        credentials
            .keep("http://a:1", "secret-a".to_owned())
            .unwrap();
        let path = credentials.path().to_owned();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Credentials::read(Some(home.path())).unwrap_err();
        assert!(matches!(error, CredentialsError::Open { .. }), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "secret-a").unwrap();
        let error = Credentials::read(Some(home.path()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("is not a file of access tokens"), "{error}");
        assert!(!error.contains("secret-a"), "{error}");
        assert!(matches!(
            Credentials::read(None),
            Err(CredentialsError::NoHome)
        ));
    }
}
