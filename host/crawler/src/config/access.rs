//! Proxies and credentials of this process: the tables `[proxies]` and `[credentials]` of the config file.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use url::Url;

use super::secret::SecretRef;
use crawler_model::settings::AccessName;
use crawler_model::settings::HostPattern;
use crawler_model::settings::SettingError;

/// Largest number of proxies under one name.
const MAX_PROXIES: usize = 100;

/// A proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyConfig {
    /// URL of the proxy: `http`, `https`, `socks5` (names are looked up here) or `socks5h` (the proxy looks
    /// them up).
    pub url: Url,
    /// User and password for the proxy.
    pub login: Option<(String, SecretRef)>,
}

/// Credential that some hosts require.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialConfig {
    /// Name by which a setting refers to it.
    pub name: AccessName,
    /// Hosts that it is sent to; they have no ports.
    pub hosts: Vec<HostPattern>,
    /// User of basic authentication. If `None`, it is bearer authentication.
    pub user: Option<String>,
    /// Password or token.
    pub secret: SecretRef,
    /// True if it is sent over http, too.
    pub plain_http: bool,
}

/// Proxy in the form of the file: a URL, or a table.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a proxy is a URL like \"http://10.0.0.9:3128\", or a table with url, user, and password-file or password-env"
)]
pub(super) enum ProxyEntry {
    Url(String),
    Table(ProxyTable),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ProxyTable {
    url: String,
    user: Option<String>,
    password_file: Option<PathBuf>,
    password_env: Option<String>,
}

/// Credential in the form of the file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CredentialTable {
    hosts: Vec<String>,
    user: Option<String>,
    password_file: Option<PathBuf>,
    password_env: Option<String>,
    token_file: Option<PathBuf>,
    token_env: Option<String>,
    #[serde(default)]
    plain_http: bool,
}

/// Parses an entry of `[proxies]`; an error is a sentence for the user.
pub(super) fn proxies(
    name: &str,
    entries: Vec<ProxyEntry>,
    folder: &Path,
) -> Result<(AccessName, Vec<ProxyConfig>), String> {
    let n = entries.len();
    if !(1..=MAX_PROXIES).contains(&n) {
        return Err(format!(
            "{name} has {n} proxies; 1 to {MAX_PROXIES} are meant"
        ));
    }
    let proxies = entries.into_iter().map(|entry| proxy(entry, folder));
    Ok((name.parse()?, proxies.collect::<Result<_, _>>()?))
}

fn proxy(entry: ProxyEntry, folder: &Path) -> Result<ProxyConfig, String> {
    let table = match entry {
        ProxyEntry::Table(table) => table,
        ProxyEntry::Url(url) => ProxyTable {
            url,
            user: None,
            password_file: None,
            password_env: None,
        },
    };
    // The URL is not quoted: it may have a password.
    let url = proxy_url(&table.url).ok_or_else(|| {
        "a proxy is http, https, socks5 or socks5h://HOST:PORT and nothing behind it".to_owned()
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        let why = "a proxy's URL has no user; write { url = …, user = …, password-file = … }";
        return Err(why.to_owned());
    }
    let password = SecretRef::of("password", table.password_file, table.password_env, folder)?;
    let login = match (table.user, password) {
        (Some(user), Some(password)) => Some((user, password)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            let why = "a proxy has user and password-file or password-env, or none of them";
            return Err(why.to_owned());
        }
    };
    Ok(ProxyConfig { url, login })
}

fn proxy_url(text: &str) -> Option<Url> {
    let mut url: Url = text.parse().ok()?;
    let is_known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
    let is_bare = matches!(url.path(), "" | "/") && url.query().is_none();
    // Without a port, each kind of proxy would have another default.
    let has_port = url.port_or_known_default().is_some();
    let host = url::Host::parse(url.host_str()?).ok()?;
    // The client would ignore a proxy whose host is not a valid name, and connect without one.
    let is_plain = |name: &str| {
        let mut bytes = name.bytes();
        bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    if matches!(&host, url::Host::Domain(name) if !is_plain(name)) {
        return None;
    }
    url.set_host(Some(&host.to_string())).ok()?;
    (is_known && is_bare && has_port).then_some(url)
}

impl CredentialTable {
    /// Parses the table; an error is a sentence for the user.
    pub(super) fn into_config(self, name: &str, folder: &Path) -> Result<CredentialConfig, String> {
        let hosts = self.hosts.into_iter().map(|host| self::host(name, &host));
        let hosts: Vec<HostPattern> = hosts.collect::<Result<_, _>>()?;
        if hosts.is_empty() {
            return Err(format!("{name} has no hosts: it would be shown to nobody"));
        }
        let password = SecretRef::of("password", self.password_file, self.password_env, folder)?;
        let token = SecretRef::of("token", self.token_file, self.token_env, folder)?;
        let (user, secret) = match (self.user, password, token) {
            (Some(user), Some(password), None) if !user.contains(':') => (Some(user), password),
            (None, None, Some(token)) => (None, token),
            _ => {
                return Err(format!(
                    "{name} has user (without a colon) and password-file or password-env, or it has token-file or token-env"
                ));
            }
        };
        Ok(CredentialConfig {
            name: name.parse()?,
            hosts,
            user,
            secret,
            plain_http: self.plain_http,
        })
    }
}

/// Parses a host. It may not mean all hosts: nobody wants to send a secret to all of them.
fn host(name: &str, text: &str) -> Result<HostPattern, String> {
    let pattern = text.parse::<HostPattern>().ok();
    let pattern = pattern.filter(|pattern| !pattern.is_any_host() && pattern.port().is_none());
    let pattern = pattern.ok_or_else(|| {
        format!(
            "hosts of {name} are like shop.example, or *.shop.example for that and all below it, without ports, not {text:?}"
        )
    })?;
    let is_meant = pattern.check("hosts");
    is_meant.map_err(|SettingError { why, .. }| format!("hosts of {name}: it {why}"))?;
    Ok(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(toml: &str) -> Result<ProxyConfig, String> {
        #[derive(Deserialize)]
        struct One {
            proxy: ProxyEntry,
        }
        let parsed = toml::from_str::<One>(&format!("proxy = {toml}"));
        let parsed = parsed.map_err(|e| e.message().to_owned())?;
        proxy(parsed.proxy, Path::new("/etc"))
    }

    fn credential(toml: &str) -> Result<CredentialConfig, String> {
        let table = toml::from_str::<CredentialTable>(toml).unwrap();
        table.into_config("shop", Path::new("/etc"))
    }

    #[test]
    fn a_proxy_is_a_url_or_a_table_and_what_is_none_is_told_without_passwords() {
        for (toml, url) in [
            ("'http://10.0.0.9:3128'", "http://10.0.0.9:3128/"),
            (
                "'socks5://proxy.example:1080'",
                "socks5://proxy.example:1080",
            ),
            ("{ url = 'https://p.example' }", "https://p.example/"),
            (
                "'socks5h://b\u{fc}cher.example:1'",
                "socks5h://xn--bcher-kva.example:1",
            ),
            ("'socks5://[::1]:1080'", "socks5://[::1]:1080"),
        ] {
            let proxy = one(toml).unwrap();
            assert_eq!((proxy.url.as_str(), proxy.login), (url, None));
        }
        let with = one("{ url = 'http://p:1', user = 'u', password-file = 'pw' }").unwrap();
        let secret = SecretRef::File("/etc/pw".into());
        assert_eq!(with.login, Some(("u".to_owned(), secret)));
        let shape = "a proxy is http, https, socks5 or socks5h://HOST:PORT and nothing behind it";
        for (toml, why) in [
            ("'ftp://p:1'", shape),
            ("'socks5://p'", shape),
            ("'http://p:1/x'", shape),
            ("'p:1'", shape),
            ("'socks5://${PROXY}:1080'", shape),
            ("'socks5://a b:1080'", shape),
            (
                "'http://u:secret@p:1'",
                "a proxy's URL has no user; write { url = …, user = …, password-file = … }",
            ),
            (
                "{ url = 'http://p:1', user = 'u' }",
                "a proxy has user and password-file or password-env, or none of them",
            ),
            (
                "{ url = 'http://p:1', usr = 'u' }",
                "a proxy is a URL like \"http://10.0.0.9:3128\", or a table with url, user, and password-file or password-env",
            ),
        ] {
            assert_eq!(one(toml), Err(why.to_owned()), "{toml}");
        }
        let none = proxies("de", Vec::new(), Path::new(""));
        assert_eq!(none.unwrap_err(), "de has 0 proxies; 1 to 100 are meant");
    }

    #[test]
    fn a_credential_is_basic_or_bearer_and_says_who_is_shown_it() {
        let basic = "hosts = ['Shop.example', '*.a.test']\nuser = 'u'\npassword-env = 'PW'";
        let found = credential(basic).unwrap();
        let hosts: Vec<String> = found.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["shop.example", "*.a.test"]);
        assert_eq!(
            (found.user.as_deref(), found.plain_http),
            (Some("u"), false)
        );
        let bearer = "hosts = ['127.0.0.1']\ntoken-file = '/t'\nplain-http = true";
        let found = credential(bearer).unwrap();
        assert_eq!((found.user, found.plain_http), (None, true));
        assert_eq!(found.secret, SecretRef::File("/t".into()));
        let kinds = "shop has user (without a colon) and password-file or password-env, or it has token-file or token-env";
        let hosts = |host| {
            format!(
                "hosts of shop are like shop.example, or *.shop.example for that and all below it, without ports, not {host:?}"
            )
        };
        for (toml, why) in [
            ("hosts = ['a']\nuser = 'u'", kinds.to_owned()),
            (
                "hosts = ['a']\nuser = 'u:v'\npassword-env = 'P'",
                kinds.to_owned(),
            ),
            (
                "hosts = ['a']\nuser = 'u'\ntoken-env = 'T'",
                kinds.to_owned(),
            ),
            (
                "hosts = []\ntoken-env = 'T'",
                "shop has no hosts: it would be shown to nobody".to_owned(),
            ),
            ("hosts = ['a:80']\ntoken-env = 'T'", hosts("a:80")),
            ("hosts = ['*']\ntoken-env = 'T'", hosts("*")),
        ] {
            assert_eq!(credential(toml), Err(why), "{toml}");
        }
    }
}
