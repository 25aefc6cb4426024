//! The CA of the cluster: the table `[cluster]` of the config file of a master.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Keys of the table, in the order in which they are documented.
pub(super) const KEYS: [&str; 3] = ["sealing-key", "ca", "ca-key"];

/// Way in which a master gets at the CA that issues the certificates of nodes. Either the store has it, sealed, or files
/// have it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClusterConfig {
    /// File that all masters share; the private key of the CA in the store is sealed with it.
    pub sealing_key: Option<PathBuf>,
    /// File with the certificate of the CA, in PEM.
    pub ca: Option<PathBuf>,
    /// File with the private key of the CA, in PEM.
    pub ca_key: Option<PathBuf>,
}

impl ClusterConfig {
    /// True if a master issues certificates.
    pub fn issues(&self) -> bool {
        self.sealing_key.is_some() || self.ca.is_some()
    }

    /// Returns the keys that are set, with their values.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&'static str, String)> {
        let values = [&self.sealing_key, &self.ca, &self.ca_key];
        let shown = values.map(|path| path.as_ref().map(|path| path.display().to_string()));
        let all = KEYS.into_iter().zip(shown);
        all.filter_map(|(key, value)| Some((key, value?)))
    }

    /// Refuses a table in which a key lacks the one that it needs, or has one that it excludes; an error is a sentence
    /// for the user.
    pub(super) fn check(&self) -> Result<(), String> {
        match (&self.sealing_key, &self.ca, &self.ca_key) {
            (_, Some(_), None) => Err("[cluster] has ca without ca-key".to_owned()),
            (_, None, Some(_)) => Err("[cluster] has ca-key without ca".to_owned()),
            (Some(_), Some(_), Some(_)) => Err(
                "[cluster] has sealing-key and ca: the store has the CA, or files have it"
                    .to_owned(),
            ),
            (_, None, None) | (None, Some(_), Some(_)) => Ok(()),
        }
    }

    /// Resolves relative paths against this folder.
    pub(super) fn below(mut self, folder: &Path) -> Self {
        let paths = [&mut self.sealing_key, &mut self.ca, &mut self.ca_key];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&*path);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ClusterConfig, String> {
        let config: ClusterConfig = toml::from_str(text).unwrap();
        config.check().map(|()| config)
    }

    #[test]
    fn the_ca_is_in_the_store_or_in_files() {
        for (text, why) in [
            ("ca = 'a'", "[cluster] has ca without ca-key"),
            ("ca-key = 'a'", "[cluster] has ca-key without ca"),
            (
                "sealing-key = 'a'\nca = 'b'\nca-key = 'c'",
                "[cluster] has sealing-key and ca: the store has the CA, or files have it",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), why, "{text}");
        }
        assert!(!parse("").unwrap().issues());
        for text in ["sealing-key = 'a'", "ca = 'a'\nca-key = 'b'"] {
            assert!(parse(text).unwrap().issues(), "{text}");
        }
    }

    #[test]
    fn paths_of_the_ca_start_where_the_config_file_is() {
        let config = parse("ca = 'ca.pem'\nca-key = '/ca.key'").unwrap();
        let keys: Vec<(&str, String)> = config.below(Path::new("/etc/crawler")).keys().collect();
        let expected = [("ca", "/etc/crawler/ca.pem"), ("ca-key", "/ca.key")];
        assert_eq!(keys, expected.map(|(key, path)| (key, path.to_owned())));
    }
}
