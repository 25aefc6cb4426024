//! The options of every command about the masters that it calls: their URLs, and the certificates of the connection.

use std::fmt;
use std::path::PathBuf;

use clap::Args;

use super::{Failure, print_note};
use crate::config::{CredentialsError, DEFAULT_MASTER, Environment};
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
    /// Access token to show them.
    pub token: Option<AccessToken>,
}

/// Access token, which is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken(String);

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(..)")
    }
}

impl MastersArgs {
    /// Returns the masters that options name, and otherwise the environment.
    pub(super) fn into_masters(self, environment: &Environment) -> anyhow::Result<CalledMasters> {
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
                return Err(Failure::new(what, "name the key too: --key FILE").into());
            }
            (None, Some(_)) => {
                let what = "--key has no use without its certificate";
                let hint = "name the certificate too: --certificate FILE";
                return Err(Failure::new(what, hint).into());
            }
        };
        let urls = urls.unwrap_or_else(|| vec![DEFAULT_MASTER.to_owned()]);
        Ok(CalledMasters {
            token: token(&urls, environment)?,
            urls,
            ca: self.ca.or(environment.ca.clone()),
            identity,
        })
    }
}

/// Returns the token of the environment, or the one that a login has kept for the masters.
fn token(
    urls: &[String],
    environment: &Environment,
) -> Result<Option<AccessToken>, CredentialsError> {
    let token = match &environment.token {
        Some(token) => Some(token.clone()),
        // Without a home, there was no login.
        None if environment.config_home.is_none() => None,
        None => environment
            .credentials()?
            .token(urls)?
            .map(ToOwned::to_owned),
    };
    Ok(token.map(AccessToken))
}

impl CalledMasters {
    /// Tells the user where an access token can be read on the way.
    fn warn_of_plain_urls(&self) {
        let plain = |url: &&String| {
            let url = url.parse::<url::Url>().ok();
            let url = url.filter(|url| url.scheme() == "http");
            url.is_some_and(|url| !is_loopback(&url))
        };
        if let (Some(_), Some(url)) = (&self.token, self.urls.iter().find(plain)) {
            print_note(&format!(
                "note: {url} is called without TLS, so the access token can be read on the way"
            ));
        }
    }

    /// Returns one of these masters, or another one that is reached in the same way, without a token.
    pub(super) fn only(&self, url: &str) -> Self {
        Self {
            urls: vec![url.to_owned()],
            token: None,
            ..self.clone()
        }
    }

    /// Connects to the first master that can be reached. Certificates are read only if a URL asks for TLS.
    pub async fn connect(&self) -> anyhow::Result<Client> {
        let is_encrypted = self.urls.iter().any(|url| url.starts_with("https://"));
        let tls = match is_encrypted {
            true => ClientTls::of_command(self.ca.clone(), self.identity.clone())?,
            false => ClientTls::default(),
        };
        let client = Client::connect_any(&self.urls, &tls).await?;
        self.warn_of_plain_urls();
        Ok(match &self.token {
            Some(AccessToken(token)) => client.with_token(token),
            None => client,
        })
    }
}

/// True if the URL leads to this machine.
fn is_loopback(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
