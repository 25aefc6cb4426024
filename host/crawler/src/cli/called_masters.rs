//! The options of every command about the masters that it calls: their URLs, and the certificates of the connection.

use std::path::PathBuf;

use clap::Args;

use super::Failure;
use crate::config::{DEFAULT_MASTER, Environment};
use crawler_api::client::Client;
use crawler_api::tls::{ClientTls, IdentityFiles};

#[derive(Debug, Args)]
pub(super) struct MastersArgs {
    /// The master to call, or several: the next one where one does not answer [env: CRAWLER_MASTER] [default: http://127.0.0.1:9091]
    #[arg(
        long,
        global = true,
        value_name = "URL,…",
        value_delimiter = ',',
        help_heading = "Global options"
    )]
    master: Option<Vec<String>>,
    /// CA certificates that vouch for masters with https:// [env: CRAWLER_CA] [default: those of the system]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Global options"
    )]
    ca: Option<PathBuf>,
    /// Certificate to show to masters that ask for one; only with --key [env: CRAWLER_CERTIFICATE]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Global options"
    )]
    certificate: Option<PathBuf>,
    /// Key of --certificate [env: CRAWLER_KEY]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Global options"
    )]
    key: Option<PathBuf>,
}

/// Masters that a command calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledMasters {
    /// URLs of the masters.
    pub urls: Vec<String>,
    /// File with the CA certificates that vouch for them. If `None`, those of the system do.
    pub ca: Option<PathBuf>,
    /// Certificate to show to those that ask for one.
    pub identity: Option<IdentityFiles>,
}

impl MastersArgs {
    /// Returns the masters that options name, and otherwise the environment.
    pub(super) fn into_masters(self, environment: &Environment) -> Result<CalledMasters, Failure> {
        let from_environment = || {
            let masters = environment.master.as_ref()?.split(',');
            Some(masters.map(|url| url.trim().to_owned()).collect())
        };
        let urls = self.master.or_else(from_environment);
        let certificate = self.certificate.or(environment.certificate.clone());
        let identity = match (certificate, self.key.or(environment.key.clone())) {
            (Some(certificate), Some(key)) => Some(IdentityFiles { certificate, key }),
            (None, None) => None,
            (Some(_), None) => {
                let what = "--certificate has no use without its key";
                return Err(Failure::new(what, "name the key too: --key FILE"));
            }
            (None, Some(_)) => {
                let what = "--key has no use without its certificate";
                return Err(Failure::new(
                    what,
                    "name the certificate too: --certificate FILE",
                ));
            }
        };
        Ok(CalledMasters {
            urls: urls.unwrap_or_else(|| vec![DEFAULT_MASTER.to_owned()]),
            ca: self.ca.or(environment.ca.clone()),
            identity,
        })
    }
}

impl CalledMasters {
    /// Connects to the first master that can be reached. Certificates are read only if a URL asks for TLS.
    pub async fn connect(&self) -> anyhow::Result<Client> {
        let is_encrypted = self.urls.iter().any(|url| url.starts_with("https://"));
        let tls = match is_encrypted {
            true => ClientTls::of_command(self.ca.clone(), self.identity.clone())?,
            false => ClientTls::default(),
        };
        Ok(Client::connect_any(&self.urls, &tls).await?)
    }
}
