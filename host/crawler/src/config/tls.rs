//! Certificates of this process: the table `[tls]` of the config file.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crawler_api::tls::IdentityFiles;

/// Keys of the table, in the order in which they are documented.
pub(super) const KEYS: [&str; 4] = ["certificate", "key", "client-ca", "ca"];

/// Certificates that this process shows, and those by which it verifies others. They are in files of their own, so that
/// the config file can be shown to others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TlsConfig {
    /// File with the certificate of this process and those between it and the CA, in PEM. If there is one, the gRPC and
    /// HTTP listeners speak TLS.
    pub certificate: Option<PathBuf>,
    /// File with the key of that certificate, in PEM.
    pub key: Option<PathBuf>,
    /// File with CA certificates, in PEM. If there is one, clients have to show a certificate that one of them vouches
    /// for.
    pub client_ca: Option<PathBuf>,
    /// File with CA certificates, in PEM, by which this process verifies other nodes.
    pub ca: Option<PathBuf>,
}

impl TlsConfig {
    /// Returns the certificate and the key of this process, if it has them.
    pub fn identity(&self) -> Option<IdentityFiles> {
        let (certificate, key) = self.certificate.clone().zip(self.key.clone())?;
        Some(IdentityFiles { certificate, key })
    }

    /// Returns the folders whose files have to be readable for as long as the process runs: a certificate that is
    /// renewed is another file, often behind a link.
    pub fn folders(&self) -> Vec<PathBuf> {
        let files = self.files().flat_map(|file| {
            let behind_links = file.canonicalize().ok();
            [Some(file.to_owned()), behind_links]
        });
        let folders = files.flatten().filter_map(|file| {
            let folder = file.parent()?;
            Some(folder.to_owned())
        });
        folders.collect()
    }

    /// Returns the keys that are set, with their values.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&'static str, String)> {
        let values = [&self.certificate, &self.key, &self.client_ca, &self.ca];
        let shown = values.map(|path| path.as_ref().map(|path| path.display().to_string()));
        let all = KEYS.into_iter().zip(shown);
        all.filter_map(|(key, value)| Some((key, value?)))
    }

    fn files(&self) -> impl Iterator<Item = &Path> {
        let files = [&self.certificate, &self.key, &self.client_ca, &self.ca];
        files.into_iter().filter_map(Option::as_deref)
    }

    /// Refuses a table in which a key lacks the one that it needs; an error is a sentence for the user.
    pub(super) fn check(&self) -> Result<(), String> {
        let (present, missing) = match (&self.certificate, &self.key, &self.client_ca) {
            (Some(_), None, _) => ("certificate", "key"),
            (None, Some(_), _) => ("key", "certificate"),
            (None, None, Some(_)) => ("client-ca", "certificate"),
            _ => return Ok(()),
        };
        Err(format!("[tls] has {present} without {missing}"))
    }

    /// Resolves relative paths against this folder.
    pub(super) fn below(mut self, folder: &Path) -> Self {
        let paths = [
            &mut self.certificate,
            &mut self.key,
            &mut self.client_ca,
            &mut self.ca,
        ];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&*path);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TlsConfig, String> {
        let config: TlsConfig = toml::from_str(text).unwrap();
        config.check().map(|()| config)
    }

    #[test]
    fn a_key_without_the_one_that_it_needs_is_refused() {
        for (text, why) in [
            ("certificate = 'a'", "[tls] has certificate without key"),
            ("key = 'a'", "[tls] has key without certificate"),
            ("client-ca = 'a'", "[tls] has client-ca without certificate"),
            (
                "certificate = 'a'\nclient-ca = 'b'",
                "[tls] has certificate without key",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), why, "{text}");
        }
        for text in ["", "ca = 'a'", "certificate = 'a'\nkey = 'b'"] {
            parse(text).unwrap();
        }
    }

    #[test]
    fn paths_start_where_the_config_file_is() {
        let config = parse("certificate = 'a.pem'\nkey = '/k.pem'\nca = 'tls/ca.pem'").unwrap();
        let config = config.below(Path::new("/etc/crawler"));
        let identity = config.identity().unwrap();
        assert_eq!(identity.certificate, Path::new("/etc/crawler/a.pem"));
        assert_eq!(identity.key, Path::new("/k.pem"));
        let keys: Vec<(&str, String)> = config.keys().collect();
        let expected = [
            ("certificate", "/etc/crawler/a.pem"),
            ("key", "/k.pem"),
            ("ca", "/etc/crawler/tls/ca.pem"),
        ];
        assert_eq!(keys, expected.map(|(key, path)| (key, path.to_owned())));
    }

    #[test]
    fn folders_of_links_and_of_what_they_lead_to_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (live, archive) = (folder.join("live"), folder.join("archive"));
        for folder in [&live, &archive] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(archive.join("ca1.pem"), "").unwrap();
        std::os::unix::fs::symlink(archive.join("ca1.pem"), live.join("ca.pem")).unwrap();
        let config = TlsConfig {
            ca: Some(live.join("ca.pem")),
            ..TlsConfig::default()
        };
        assert_eq!(config.folders(), [live, archive]);
    }
}
