//! The options of every command about the masters that it calls: their URLs, and the certificates of the connection.

use std::fmt;
use std::path::PathBuf;

use clap::Args;

use super::{Failure, print_note};
use crate::config::{Credentials, CredentialsError, DEFAULT_MASTER, Environment};
use crawler_api::client::{self, Client, Health};
use crawler_api::tls::{ClientTls, IdentityFiles, TlsError};

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
    token: TokenSource,
}

/// Place of the access token that masters are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TokenSource {
    /// No token is shown.
    Nowhere,
    /// This token.
    Given(AccessToken),
    /// Token that a login has kept below this folder, if there was one. It is read when a master is called, so that other
    /// commands work whatever the file is like.
    Kept(PathBuf),
}

/// Access token, which is never printed.
#[derive(Clone, PartialEq, Eq)]
struct AccessToken(String);

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(..)")
    }
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
                let hint = "name the certificate too: --certificate FILE";
                return Err(Failure::new(what, hint));
            }
        };
        let urls = urls.unwrap_or_else(|| vec![DEFAULT_MASTER.to_owned()]);
        Ok(CalledMasters {
            token: match (&environment.token, &environment.config_home) {
                (Some(token), _) => TokenSource::Given(AccessToken(token.clone())),
                (None, Some(home)) => TokenSource::Kept(home.clone()),
                // Without a home, there was no login.
                (None, None) => TokenSource::Nowhere,
            },
            urls,
            ca: self.ca.or(environment.ca.clone()),
            identity,
        })
    }
}

impl CalledMasters {
    /// Returns the token to show.
    fn token(&self) -> Result<Option<AccessToken>, CredentialsError> {
        Ok(match &self.token {
            TokenSource::Nowhere => None,
            TokenSource::Given(token) => Some(token.clone()),
            TokenSource::Kept(home) => {
                let credentials = Credentials::read(Some(home))?;
                let token = credentials.token(&self.urls)?;
                token.map(|token| AccessToken(token.to_owned()))
            }
        })
    }

    /// Tells the user where an access token can be read on the way.
    fn warn_of_plain_urls(&self) {
        let plain = |url: &&String| {
            let url = url.parse::<url::Url>().ok();
            let url = url.filter(|url| url.scheme() == "http");
            url.is_some_and(|url| !is_loopback(&url))
        };
        if let Some(url) = self.urls.iter().find(plain) {
            print_note(&format!(
                "note: {url} is called without TLS, so the access token can be read on the way"
            ));
        }
    }

    /// Returns one of these masters, or another one that is reached in the same way, without a token.
    pub(super) fn only(&self, url: &str) -> Self {
        Self {
            urls: vec![url.to_owned()],
            token: TokenSource::Nowhere,
            ..self.clone()
        }
    }

    /// Returns the certificates of the connection. They are read only if a URL asks for TLS.
    fn tls(&self) -> Result<ClientTls, TlsError> {
        let is_encrypted = self.urls.iter().any(|url| url.starts_with("https://"));
        match is_encrypted {
            true => ClientTls::of_command(self.ca.clone(), self.identity.clone()),
            false => Ok(ClientTls::default()),
        }
    }

    /// Asks the first of these processes how it stands, without a token.
    pub(super) async fn health(&self) -> anyhow::Result<Health> {
        let tls = self.tls()?;
        let url = self.urls.first().map_or(DEFAULT_MASTER, String::as_str);
        Ok(client::health(url, &tls).await?)
    }

    /// Connects to the first master that can be reached.
    pub async fn connect(&self) -> anyhow::Result<Client> {
        let tls = self.tls()?;
        let token = self.token()?;
        let client = Client::connect_any(&self.urls, &tls).await?;
        Ok(match token {
            Some(AccessToken(token)) => {
                self.warn_of_plain_urls();
                client.with_token(&token)
            }
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
