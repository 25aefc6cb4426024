//! Streams of NATS JetStream that declared sinks publish to. The table names the place of a secret, so that the file can be
//! shown to others.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use super::super::fetch::values::{some_bytes, time};
use super::super::secret::SecretRef;
use super::SinkTable;
use crawler_message_sink::nats::{
    NatsSecret, NatsSettings, NatsTarget, NatsTargetError, SubjectTemplate,
};

/// Server with the streams that items go to.
#[derive(Clone, PartialEq, Eq)]
pub struct StreamConfig {
    /// URL with a user, which is not shown.
    url: String,
    secret: Option<Secret>,
    ca: Option<PathBuf>,
    /// URL without the user.
    shown: String,
    /// Settings of subjects and batches.
    pub settings: NatsSettings,
}

/// Secret that the table names.
#[derive(Clone, PartialEq, Eq)]
enum Secret {
    Password(SecretRef),
    Token(SecretRef),
    /// File with a signed name, and the key to prove it.
    Credentials(PathBuf),
}

impl Secret {
    fn file(&self) -> Option<&Path> {
        match self {
            Secret::Password(secret) | Secret::Token(secret) => secret.file(),
            Secret::Credentials(path) => Some(path),
        }
    }

    fn read(&self) -> Result<NatsSecret, String> {
        match self {
            Secret::Password(secret) => secret.read().map(NatsSecret::Password),
            Secret::Token(secret) => secret.read().map(NatsSecret::Token),
            Secret::Credentials(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|e| format!("cannot read {}: {e}", path.display()))?;
                Ok(NatsSecret::Credentials(text))
            }
        }
    }
}

impl StreamConfig {
    /// Returns the server, with the secret that the table names; an error is a sentence for the user.
    pub fn target(&self) -> Result<NatsTarget, String> {
        let secret = self.secret.as_ref().map(Secret::read).transpose()?;
        let target = NatsTarget::parse(&self.url, secret, self.ca.clone());
        target.map_err(|error| error.to_string())
    }

    /// Returns the URL without the user.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the address of the server as `HOST:PORT`.
    pub(super) fn server(&self) -> Option<String> {
        let url = Url::parse(&self.url).ok()?;
        Some(format!(
            "{}:{}",
            url.host_str()?,
            url.port().unwrap_or(4222)
        ))
    }

    /// Returns the place of the secret, in words.
    pub(super) fn secret_place(&self) -> Option<String> {
        Some(match self.secret.as_ref()? {
            Secret::Password(secret) => format!("password from {}", secret.place()),
            Secret::Token(secret) => format!("token from {}", secret.place()),
            Secret::Credentials(path) => format!("credentials from {}", path.display()),
        })
    }

    /// Returns the files that are read: the one with the secret, and certificates.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        let secret = self.secret.as_ref().and_then(Secret::file);
        secret.into_iter().chain(self.ca.as_deref())
    }
}

impl fmt::Debug for StreamConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamConfig")
            .field("shown", &self.shown)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Parses the table of a stream; an error is a sentence for the user.
pub(super) fn stream(table: SinkTable, folder: &Path) -> Result<StreamConfig, String> {
    let secret = secret(&table, folder)?;
    // The secret itself is read when a worker starts. One of the same kind shows what goes together.
    let likeness = match &secret {
        Some(Secret::Password(_)) => Some(NatsSecret::Password("-".to_owned())),
        Some(Secret::Token(_)) => Some(NatsSecret::Token("-".to_owned())),
        Some(Secret::Credentials(_)) | None => None,
    };
    let target = NatsTarget::parse(&table.url, likeness, None);
    let target = target.map_err(|error| match (error, &secret) {
        // Credentials have no likeness: without them, the user lacks a password.
        (NatsTargetError::HalfLogin, Some(Secret::Credentials(_))) => {
            NatsTargetError::UserWithToken.to_string()
        }
        (error, _) => error.to_string(),
    })?;
    Ok(StreamConfig {
        secret,
        ca: table.ca.as_ref().map(|path| folder.join(path)),
        shown: target.to_string(),
        url: table.url.clone(),
        settings: settings(table)?,
    })
}

fn secret(table: &SinkTable, folder: &Path) -> Result<Option<Secret>, String> {
    let (file, variable) = (table.password_file.clone(), table.password_env.clone());
    let password = SecretRef::of("password", file, variable, folder)?;
    let (file, variable) = (table.token_file.clone(), table.token_env.clone());
    let token = SecretRef::of("token", file, variable, folder)?;
    let credentials = table.creds_file.as_ref().map(|path| folder.join(path));
    match (password, token, credentials) {
        (None, None, None) => Ok(None),
        (Some(password), None, None) => Ok(Some(Secret::Password(password))),
        (None, Some(token), None) => Ok(Some(Secret::Token(token))),
        (None, None, Some(path)) => Ok(Some(Secret::Credentials(path))),
        _ => Err("a password, a token and creds-file exclude each other".to_owned()),
    }
}

fn settings(table: SinkTable) -> Result<NatsSettings, String> {
    let mut default = NatsSettings::default();
    if table.has_changes() {
        default.subject = NatsSettings::change_subject();
    }
    let template = |key: &str, text: Option<String>, default: SubjectTemplate| match text {
        Some(text) => {
            let parsed = text.parse::<SubjectTemplate>();
            parsed.map_err(|error| format!("{key} {error}"))
        }
        None => Ok(default),
    };
    let a_time = |key: &str, text: Option<String>, default: Duration| match text {
        Some(text) => time(key, &text),
        None => Ok(default),
    };
    let batch_bytes = table.batch_bytes.as_ref();
    let batch_bytes = batch_bytes.map(|text| some_bytes("batch-bytes", text));
    let settings = NatsSettings {
        subject: template("subject", table.subject, default.subject)?,
        reject_subject: template(
            "reject-subject",
            table.reject_subject,
            default.reject_subject,
        )?,
        batch_items: table.batch_items.unwrap_or(default.batch_items),
        batch_bytes: match batch_bytes.transpose()? {
            Some(n_bytes) => n_bytes as u64,
            None => default.batch_bytes,
        },
        max_wait: a_time("max-wait", table.max_wait, default.max_wait)?,
        timeout: a_time("timeout", table.timeout, default.timeout)?,
    };
    settings.check().map_err(|error| error.to_string())?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::super::SinkPlace;
    use super::super::tests::parse;
    use super::*;

    fn stream(toml: &str) -> StreamConfig {
        match parse("out", toml).unwrap().place {
            SinkPlace::Stream(stream) => *stream,
            other => panic!("{other:?} is no stream"),
        }
    }

    #[test]
    fn a_url_is_enough_for_a_stream() {
        let items = stream("url = 'nats://nats.test:4223'");
        assert_eq!(items.settings, NatsSettings::default());
        assert_eq!(items.shown(), "nats://nats.test:4223");
        assert_eq!((items.secret_place(), items.files().count()), (None, 0));
        assert_eq!(items.target().unwrap().to_string(), items.shown());
    }

    #[test]
    fn every_key_of_a_stream_has_its_place() {
        let items = stream(
            "url = 'tls://ann@nats.test'\npassword-file = 'secret'\nca = '/etc/ca.pem'\n\
             subject = 'shop.{kind}'\nreject-subject = 'bad'\nbatch-items = 7\nbatch-bytes = '1MiB'\n\
             max-wait = '0s'\ntimeout = '5s'",
        );
        let settings = &items.settings;
        assert_eq!(settings.subject.to_string(), "shop.{kind}");
        assert_eq!(settings.reject_subject.to_string(), "bad");
        assert_eq!((settings.batch_items, settings.batch_bytes), (7, 1 << 20));
        let seconds = |n| Duration::from_secs(n);
        assert_eq!(
            (settings.max_wait, settings.timeout),
            (seconds(0), seconds(5))
        );
        let files: Vec<&Path> = items.files().collect();
        assert_eq!(files, ["/etc/secret", "/etc/ca.pem"].map(Path::new));
        let place = items.secret_place();
        assert_eq!(place.as_deref(), Some("password from /etc/secret"));
        assert!(!format!("{items:?}").contains("ann"));
        let items = stream("url = 'tls://nats.test'\ntoken-env = 'T'");
        let place = items.secret_place();
        assert_eq!(place.as_deref(), Some("token from variable T"));
        let items = stream("url = 'tls://nats.test'\ncreds-file = 'user.creds'");
        let place = items.secret_place();
        assert_eq!(place.as_deref(), Some("credentials from /etc/user.creds"));
        let error = items.target().unwrap_err();
        assert!(
            error.starts_with("cannot read /etc/user.creds: "),
            "{error}"
        );
    }

    #[test]
    fn what_makes_no_sense_of_a_stream_is_named() {
        let with = |line: &str| format!("url = 'tls://nats.test'\n{line}");
        for (text, why) in [
            (
                "url = 'nats://ann:T0KEN@nats.test'".to_owned(),
                "its url is nats://HOST or tls://HOST, with a port if it is not 4222, and perhaps USER@ before the host",
            ),
            (
                "url = 'nats://nats.test'\ntoken-env = 'T'".to_owned(),
                "a password or token would be sent to nats.test without protection; write tls:// instead of nats://, or use creds-file",
            ),
            (
                with("password-env = 'P'"),
                "a user in url and a password belong together: add the one that is missing, or leave out the other",
            ),
            (
                "url = 'tls://ann@nats.test'\ncreds-file = 'c'".to_owned(),
                "a token and credentials need no user; leave the user out of url",
            ),
            (
                with("token-env = 'T'\ncreds-file = 'c'"),
                "a password, a token and creds-file exclude each other",
            ),
            (
                with("subject = 'a.*'"),
                "subject \"a.*\" is no template of subjects: it has the character '*'; there are letters, digits, -, _ and .",
            ),
            (
                with("batch-items = 0"),
                "batch-items is 0; it goes from 1 to 10000",
            ),
            (
                with("max-wait = 'soon'"),
                "max-wait takes a time like 30s or 5m, not \"soon\"",
            ),
        ] {
            let expected = format!("sink out: {why}");
            assert_eq!(parse("out", &text), Err(expected), "{text}");
        }
    }
}
