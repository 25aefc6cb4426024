//! URL of a server of NATS, and how a user logs in there.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::{ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;
use url::Url;

/// The least time for a connection to an address, and the least interval of pings.
const LEAST_TIMEOUT: Duration = Duration::from_secs(1);

/// Server that items are published to.
#[derive(Clone)]
pub struct NatsTarget {
    address: ServerAddr,
    login: Login,
    /// File with the certificates that a server may show; without it, those of the system count.
    ca: Option<PathBuf>,
    /// URL without the user, for messages.
    label: String,
}

/// Secret by which a user logs in.
#[derive(Clone, PartialEq, Eq)]
pub enum NatsSecret {
    /// Password of the user whom the URL names.
    Password(String),
    /// Token, which needs no user.
    Token(String),
    /// Contents of a file of credentials, with a signed name and the key to prove it.
    Credentials(String),
}

#[derive(Clone)]
enum Login {
    Nobody,
    User(String, String),
    Token(String),
    Credentials(String),
}

/// Fault of the URL of a server, or of the way to log in. The message has no secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NatsTargetError {
    /// The URL is not one.
    #[error(
        "its url is nats://HOST or tls://HOST, with a port if it is not 4222, and perhaps USER@ before the host"
    )]
    NoUrl,
    /// A user and a password belong together.
    #[error(
        "a user in url and a password belong together: add the one that is missing, or leave out the other"
    )]
    HalfLogin,
    /// A user has no other secret than a password.
    #[error("a token and credentials need no user; leave the user out of url")]
    UserWithToken,
    /// A secret would be sent without protection.
    #[error(
        "a password or token would be sent to {0} without protection; write tls:// instead of nats://, or use creds-file"
    )]
    Unprotected(String),
    /// The file with credentials is not one.
    #[error("the file of creds-file has no JWT of a user and no seed of their key")]
    NoCredentials,
}

impl NatsTarget {
    /// Parses the URL of a server.
    ///
    /// # Errors
    ///
    /// The URL is of no known form, or does not go together with the secret.
    pub fn parse(
        url: &str,
        secret: Option<NatsSecret>,
        ca: Option<PathBuf>,
    ) -> Result<Self, NatsTargetError> {
        let mut url = Url::parse(url).map_err(|_| NatsTargetError::NoUrl)?;
        let is_plain = url.query().is_none() && url.fragment().is_none();
        let has_host = url.host_str().is_some_and(|host| !host.is_empty());
        let has_path = !matches!(url.path(), "" | "/");
        let is_known = matches!(url.scheme(), "nats" | "tls");
        if !is_known || !is_plain || !has_host || has_path || url.password().is_some() {
            return Err(NatsTargetError::NoUrl);
        }
        let user = percent_decode_str(url.username()).decode_utf8();
        let user = user.map_err(|_| NatsTargetError::NoUrl)?.into_owned();
        let login = login(user, secret)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let is_secret_sent = matches!(login, Login::User(..) | Login::Token(_));
        if url.scheme() == "nats" && is_secret_sent && !is_local(&host) {
            return Err(NatsTargetError::Unprotected(host));
        }
        url.set_username("").map_err(|()| NatsTargetError::NoUrl)?;
        let label = url.as_str().trim_end_matches('/').to_owned();
        let address = ServerAddr::from_url(url).map_err(|_| NatsTargetError::NoUrl)?;
        let target = Self {
            address,
            login,
            ca,
            label,
        };
        target.options(Duration::ZERO)?;
        Ok(target)
    }

    pub(crate) fn address(&self) -> ServerAddr {
        self.address.clone()
    }

    /// Returns the options of a connection, which is to be there within `timeout`. Only the server of the URL gets the
    /// secret, and with `tls://` only over TLS.
    pub(crate) fn options(&self, timeout: Duration) -> Result<ConnectOptions, NatsTargetError> {
        let options = ConnectOptions::new()
            .name("crawler")
            // A server may tell of others, whose addresses have no scheme: the client would go there without TLS.
            .ignore_discovered_servers()
            .require_tls(self.address.tls_required())
            // A name may have several addresses, and one that hangs must leave time for the others.
            .connection_timeout((timeout / 4).max(LEAST_TIMEOUT))
            // An idle connection that is lost is known after three intervals, not at the timeout of the next batch.
            .ping_interval(timeout.max(LEAST_TIMEOUT))
            // The caller has a deadline for all requests of a batch.
            .request_timeout(None)
            // A lost connection is given up: the next write makes another one, and tells why if it cannot. The client knows
            // no smaller number than one.
            .max_reconnects(1_usize);
        let options = match &self.login {
            Login::Nobody => options,
            Login::User(name, password) => {
                options.user_and_password(name.clone(), password.clone())
            }
            Login::Token(token) => options.token(token.clone()),
            Login::Credentials(text) => {
                let known = options.credentials(text);
                known.map_err(|_| NatsTargetError::NoCredentials)?
            }
        };
        Ok(match &self.ca {
            Some(ca) => options.add_root_certificates(ca.clone()),
            None => options,
        })
    }
}

/// Writes the URL without the user.
impl fmt::Display for NatsTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// Writes the URL without the user.
impl fmt::Debug for NatsTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NatsTarget").field(&self.label).finish()
    }
}

fn login(user: String, secret: Option<NatsSecret>) -> Result<Login, NatsTargetError> {
    let has_user = !user.is_empty();
    match secret {
        None if has_user => Err(NatsTargetError::HalfLogin),
        None => Ok(Login::Nobody),
        Some(NatsSecret::Password(password)) if has_user => Ok(Login::User(user, password)),
        Some(NatsSecret::Password(_)) => Err(NatsTargetError::HalfLogin),
        Some(_) if has_user => Err(NatsTargetError::UserWithToken),
        Some(NatsSecret::Token(token)) => Ok(Login::Token(token)),
        Some(NatsSecret::Credentials(text)) => Ok(Login::Credentials(text)),
    }
}

/// Returns true for an address that does not leave the machine.
fn is_local(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address: Option<IpAddr> = host.parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password() -> Option<NatsSecret> {
        Some(NatsSecret::Password("T0KEN".to_owned()))
    }

    fn token() -> Option<NatsSecret> {
        Some(NatsSecret::Token("T0KEN".to_owned()))
    }

    fn credentials(text: &str) -> Option<NatsSecret> {
        Some(NatsSecret::Credentials(text.to_owned()))
    }

    #[test]
    fn neither_user_nor_secret_is_shown() {
        let target = NatsTarget::parse("tls://so%20me@nats.test:4223", password(), None).unwrap();
        assert_eq!(target.to_string(), "tls://nats.test:4223");
        assert_eq!(
            format!("{target:?}"),
            "NatsTarget(\"tls://nats.test:4223\")"
        );
        assert!(matches!(&target.login, Login::User(name, _) if name == "so me"));
        let plain = NatsTarget::parse("nats://nats.test/", None, None).unwrap();
        assert_eq!(plain.to_string(), "nats://nats.test");
        assert_eq!(plain.address().port(), 4222);
    }

    #[test]
    fn a_secret_goes_to_this_machine_or_over_tls() {
        for url in [
            "nats://localhost",
            "nats://127.0.0.1:4222",
            "nats://[::1]",
            "tls://nats.test",
        ] {
            NatsTarget::parse(url, token(), None).unwrap();
        }
        let refused = NatsTarget::parse("nats://nats.test", token(), None).unwrap_err();
        let expected = NatsTargetError::Unprotected("nats.test".to_owned());
        assert_eq!(refused, expected);
        let refused = NatsTarget::parse("nats://u@10.0.0.1", password(), None).unwrap_err();
        assert!(matches!(refused, NatsTargetError::Unprotected(_)));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (url, secret, expected) in [
            ("nats", None, NatsTargetError::NoUrl),
            ("http://nats.test", None, NatsTargetError::NoUrl),
            ("nats://", None, NatsTargetError::NoUrl),
            ("nats://nats.test/path", None, NatsTargetError::NoUrl),
            ("nats://nats.test?a=b", None, NatsTargetError::NoUrl),
            ("tls://u:pw@nats.test", None, NatsTargetError::NoUrl),
            ("tls://u@nats.test", None, NatsTargetError::HalfLogin),
            ("tls://nats.test", password(), NatsTargetError::HalfLogin),
            ("tls://u@nats.test", token(), NatsTargetError::UserWithToken),
            (
                "tls://nats.test",
                credentials("T0KEN"),
                NatsTargetError::NoCredentials,
            ),
        ] {
            let refused = NatsTarget::parse(url, secret, None).unwrap_err();
            assert_eq!(refused, expected, "{url}");
            assert!(!refused.to_string().contains("T0KEN"), "{refused}");
        }
    }
}
