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

/// Keys and values by the name of their section.
type Sections = BTreeMap<String, BTreeMap<String, String>>;

/// Returns the access key of the profile of this name, or else of the one that `AWS_PROFILE` names. A profile that is
/// named must exist, and have its own keys or none.
pub(super) fn access_key(
    name: Option<&str>,
    variables: &Variables,
) -> Result<Option<AccessKey>, String> {
    read(name, variables, key_of)
}

/// Returns the region of the same profile. A profile whose keys are elsewhere has one, too.
pub(super) fn region(name: Option<&str>, variables: &Variables) -> Result<Option<String>, String> {
    read(name, variables, |texts, named| {
        Ok(values(texts, named)?.remove("region"))
    })
}

/// Parses the texts of the files for the profile of this name, or else for the one that `AWS_PROFILE` names.
fn read<T>(
    name: Option<&str>,
    variables: &Variables,
    parse: impl FnOnce(&[String], Option<&str>) -> Result<T, String>,
) -> Result<T, String> {
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
    parse(&texts, named).map_err(|why| {
        let files: Vec<String> = files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        format!("{why}; see {}", files.join(" and "))
    })
}

/// Returns the values of a profile; an empty map if no profile is named and the usual one does not exist.
fn values(texts: &[String], named: Option<&str>) -> Result<BTreeMap<String, String>, String> {
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
    if named.is_some() && !is_there {
        return Err(format!("there is no profile {name}"));
    }
    Ok(values)
}

/// Returns the key that a profile has; `None` if it has none.
fn key_of(texts: &[String], named: Option<&str>) -> Result<Option<AccessKey>, String> {
    let mut values = values(texts, named)?;
    let name = named.unwrap_or(DEFAULT);
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
    Ok(access_key)
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
region = eu-central-1
";
    const CREDENTIALS: &str = "\
# a comment = none
[work]
aws_access_key_id = ID
aws_secret_access_key = a=b
aws_session_token = T
";

    /// Returns the access key and the region of a profile.
    fn profile(
        named: Option<&str>,
    ) -> (
        Result<Option<AccessKey>, String>,
        Result<Option<String>, String>,
    ) {
        let texts = [CONFIG.to_owned(), CREDENTIALS.to_owned()];
        let region = values(&texts, named).map(|mut values| values.remove("region"));
        (key_of(&texts, named), region)
    }

    #[test]
    fn a_profile_is_read_from_both_files() {
        let (key, region) = profile(Some("work"));
        let expected = AccessKey {
            id: "ID".to_owned(),
            secret: Secret::new("a=b".to_owned()),
            token: Some(Secret::new("T".to_owned())),
        };
        assert!(!format!("{key:?}").contains("a=b"), "{key:?}");
        assert_eq!(key, Ok(Some(expected)));
        assert_eq!(region, Ok(Some("eu-north-1".to_owned())));
        let (key, region) = profile(None);
        assert_eq!(key, Ok(None));
        assert_eq!(region, Ok(Some("eu-west-1".to_owned())));
        assert_eq!(key_of(&[], None), Ok(None));
    }

    #[test]
    fn a_profile_that_is_missing_or_has_no_own_keys_is_refused() {
        let missing = "there is no profile away".to_owned();
        let (key, region) = profile(Some("away"));
        assert_eq!(key, Err(missing.clone()));
        assert_eq!(region, Err(missing));
        let (key, region) = profile(Some("sso"));
        let error = key.unwrap_err();
        assert!(
            error.starts_with("profile sso has sso_session, "),
            "{error}"
        );
        assert_eq!(region, Ok(Some("eu-central-1".to_owned())));
    }
}
