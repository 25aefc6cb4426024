//! Profiles in the files of Amazon's own tools: `~/.aws/credentials` and `~/.aws/config`.
//!
//! Only keys that are in the files are read. A profile without keys that takes them from elsewhere, by a role, a
//! sign-on or a program, is refused: Amazon's tools can write such keys into the environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::environment::Variables;
use crawler_data::{AccessKey, Secret};

/// Name of the profile that is read if none is named.
const DEFAULT: &str = "default";
/// Keys of a profile that takes its credentials from elsewhere.
const ELSEWHERE: [&str; 5] = [
    "role_arn",
    "source_profile",
    "sso_session",
    "sso_start_url",
    "credential_process",
];

/// Content of a profile.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) access_key: Option<AccessKey>,
    pub(super) region: Option<String>,
}

/// Keys and values by the name of their section.
type Sections = BTreeMap<String, BTreeMap<String, String>>;

impl Profile {
    /// Reads the profile of this name, or else the one that `AWS_PROFILE` names. A profile that is named must
    /// exist.
    pub(super) fn read(name: Option<&str>, variables: &Variables) -> Result<Self, String> {
        let named = name.or_else(|| variables.get("AWS_PROFILE"));
        let files = files(variables);
        let texts = files
            .iter()
            .map(|file| match std::fs::read_to_string(file) {
                Ok(text) => Ok(text),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
                Err(e) => Err(format!("cannot read {}: {e}", file.display())),
            });
        let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
        Self::parse(&texts, named).map_err(|why| {
            let files: Vec<String> = files
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            format!("{why}; see {}", files.join(" and "))
        })
    }

    fn parse(texts: &[String], named: Option<&str>) -> Result<Self, String> {
        let name = named.unwrap_or(DEFAULT);
        let mut values = BTreeMap::new();
        let mut is_there = false;
        for text in texts {
            let mut sections = sections(text);
            // In the file `config`, the word `profile` precedes all names but the default.
            for section in [name.to_owned(), format!("profile {name}")] {
                if let Some(found) = sections.remove(&section) {
                    is_there = true;
                    values.extend(found);
                }
            }
        }
        if !is_there {
            return match named {
                None => Ok(Self::default()),
                Some(_) => Err(format!("there is no profile {name}")),
            };
        }
        let id = values.remove("aws_access_key_id");
        let secret = values.remove("aws_secret_access_key");
        let token = values.remove("aws_session_token").map(Secret::new);
        let access_key = match (id, secret) {
            (Some(id), Some(secret)) => Some(AccessKey {
                id,
                secret: Secret::new(secret),
                token,
            }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(format!(
                    "profile {name} has only one of aws_access_key_id and aws_secret_access_key"
                ));
            }
        };
        let elsewhere = ELSEWHERE.iter().find(|key| values.contains_key(**key));
        if let (None, Some(key)) = (&access_key, elsewhere) {
            return Err(format!(
                "profile {name} has {key}, which is not supported; put the keys into the environment, as with \"aws configure export-credentials --format env\""
            ));
        }
        Ok(Self {
            access_key,
            region: values.remove("region"),
        })
    }
}

/// Returns the paths of the files: first `config`, then `credentials`, whose values take precedence.
pub(super) fn files(variables: &Variables) -> Vec<PathBuf> {
    let file = |variable: &str, name: &str| {
        let named = variables.get(variable).map(PathBuf::from);
        named.or_else(|| Some(variables.home()?.join(".aws").join(name)))
    };
    let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    let config = file("AWS_CONFIG_FILE", "config");
    config.into_iter().chain(credentials).collect()
}

/// Parses a file of sections. Lines that are indented belong to a key that is not read.
fn sections(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut name = String::new();
    for line in text.lines() {
        let is_comment = line.starts_with(['#', ';', ' ', '\t']);
        let header = line.strip_prefix('[').and_then(|line| line.split_once(']'));
        if let Some((header, _)) = header {
            let words: Vec<&str> = header.split_whitespace().collect();
            name = words.join(" ");
            sections.entry(name.clone()).or_default();
        } else if let (false, Some((key, value))) = (is_comment, line.split_once('=')) {
            let section = sections.entry(name.clone()).or_default();
            section.insert(key.trim().to_owned(), value.trim().to_owned());
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
[default]
region = eu-west-1
s3 =
  endpoint_url = http://elsewhere
[profile  work]
region=eu-north-1 
[profile sso]
sso_session = it
";
    const CREDENTIALS: &str = "\
# a comment = none
[work]
aws_access_key_id = ID
aws_secret_access_key = a=b
aws_session_token = T
";

    fn profile(named: Option<&str>) -> Result<Profile, String> {
        Profile::parse(&[CONFIG.to_owned(), CREDENTIALS.to_owned()], named)
    }

    #[test]
    fn a_profile_is_read_from_both_files() {
        let work = profile(Some("work")).unwrap();
        let key = AccessKey {
            id: "ID".to_owned(),
            secret: Secret::new("a=b".to_owned()),
            token: Some(Secret::new("T".to_owned())),
        };
        let expected = Profile {
            access_key: Some(key),
            region: Some("eu-north-1".to_owned()),
        };
        assert_eq!(work, expected);
        assert!(!format!("{work:?}").contains("a=b"), "{work:?}");
        let default = profile(None).unwrap();
        assert_eq!(default.region.as_deref(), Some("eu-west-1"));
        assert_eq!(default.access_key, None);
        assert_eq!(Profile::parse(&[], None), Ok(Profile::default()));
    }

    #[test]
    fn a_profile_that_is_missing_or_has_no_own_keys_is_refused() {
        assert_eq!(
            profile(Some("away")).unwrap_err(),
            "there is no profile away"
        );
        let error = profile(Some("sso")).unwrap_err();
        assert!(
            error.starts_with("profile sso has sso_session, "),
            "{error}"
        );
    }
}
