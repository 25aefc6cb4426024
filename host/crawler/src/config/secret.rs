//! References to secrets: a config file names the place of a secret, so that the file can be shown to others.

use std::path::{Path, PathBuf};

use super::environment::variable;

/// Place of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// File that holds the secret; white space around it does not count.
    File(PathBuf),
    /// Variable of the environment that holds the secret.
    Variable(String),
}

impl SecretRef {
    /// Parses the keys `<what>-file` and `<what>-env`, of which there may be one.
    pub(super) fn of(
        what: &str,
        file: Option<PathBuf>,
        variable: Option<String>,
        folder: &Path,
    ) -> Result<Option<Self>, String> {
        match (file, variable) {
            (Some(_), Some(_)) => Err(format!("{what}-file and {what}-env exclude each other")),
            (Some(file), None) => Ok(Some(Self::File(folder.join(file)))),
            (None, variable) => Ok(variable.map(Self::Variable)),
        }
    }

    /// Returns the file that holds the secret.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            SecretRef::File(path) => Some(path),
            SecretRef::Variable(_) => None,
        }
    }

    /// Returns the place of the secret, in words.
    pub(crate) fn place(&self) -> String {
        match self {
            SecretRef::File(path) => path.display().to_string(),
            SecretRef::Variable(name) => format!("variable {name}"),
        }
    }

    /// Returns the secret; an error names the place where it is missing.
    pub fn read(&self) -> Result<String, String> {
        let secret = match self {
            SecretRef::File(path) => {
                let text = std::fs::read_to_string(path);
                text.map_err(|e| format!("cannot read {}: {e}", path.display()))?
            }
            SecretRef::Variable(name) => variable(name)
                .ok_or_else(|| format!("the environment has no variable {name} that is text"))?,
        };
        let secret = secret.trim();
        let is_meant = !secret.is_empty() && !secret.contains(char::is_control);
        match is_meant {
            true => Ok(secret.to_owned()),
            false => Err(format!("{} has no secret of one line", self.place())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_where_it_is_and_what_is_none_is_told_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let at = |path: &Path| SecretRef::File(path.to_owned());
        std::fs::write(&path, "  p w\n").unwrap();
        assert_eq!(at(&path).read().as_deref(), Ok("p w"));
        for bad in ["", "\n", "two\nlines"] {
            std::fs::write(&path, bad).unwrap();
            let expected = format!("{} has no secret of one line", path.display());
            assert_eq!(at(&path).read(), Err(expected));
        }
        let gone = at(&folder.path().join("gone")).read().unwrap_err();
        assert!(gone.starts_with("cannot read "), "{gone}");
        let set = SecretRef::Variable("PATH".to_owned());
        assert_eq!(set.read().ok(), variable("PATH"));
        let unset = SecretRef::Variable("CRAWLER_TEST_NOT_SET".to_owned());
        let expected = "the environment has no variable CRAWLER_TEST_NOT_SET that is text";
        assert_eq!(unset.read().unwrap_err(), expected);
    }

    #[test]
    fn a_secret_has_one_place() {
        let of = |file: Option<&str>, variable: Option<&str>| {
            let variable = variable.map(str::to_owned);
            SecretRef::of("token", file.map(Into::into), variable, Path::new("/etc"))
        };
        assert_eq!(
            of(Some("t"), None),
            Ok(Some(SecretRef::File("/etc/t".into())))
        );
        assert_eq!(
            of(None, Some("T")),
            Ok(Some(SecretRef::Variable("T".into())))
        );
        assert_eq!(of(None, None), Ok(None));
        let expected = "token-file and token-env exclude each other";
        assert_eq!(of(Some("t"), Some("T")).unwrap_err(), expected);
    }
}
